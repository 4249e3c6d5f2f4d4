//! An explanation as a person reads it.

use fathom_analysis::verdict::limit::{SeenOfStep, StepLimit};
use fathom_model::{VerdictLevel, VerdictReason, text, units};

use super::{ExplainedFigure, Explanation};
use fathom_sheet::style::{Style, Tone, wrap};

/// Width of the names on the left.
const NAMES: usize = 11;

/// What stands below a figure's line: a name and its lines.
type Part = (&'static str, Vec<String>);

impl Explanation {
    /// As a person reads it. What several figures in a row have in common stands once, below
    /// the last of them.
    pub fn text(&self, style: Style) -> String {
        if self.figures.is_empty() {
            return "there are no figures to explain\n".to_owned();
        }
        let mut all = String::new();
        let figures = self.figures.iter();
        let told: Vec<_> = figures.map(|figure| (figure, figure.parts())).collect();
        for same in told.chunk_by(|one, next| one.1 == next.1) {
            if let [(figure, (cause, rest))] = same {
                all += &figure.head(style);
                all += &laid_out(&[cause.clone(), figure.evidence()], style);
                all += &laid_out(rest, style);
                continue;
            }
            for (figure, _) in same {
                all += &figure.head(style);
                all += &laid_out(&[figure.evidence()], style);
            }
            for (_, (cause, rest)) in same.iter().take(1) {
                all += &laid_out(std::slice::from_ref(cause), style);
                all += &laid_out(rest, style);
            }
        }
        all
    }
}

/// Each name with its lines beside it, at the width of the screen.
fn laid_out(parts: &[Part], style: Style) -> String {
    let room = style.columns().saturating_sub(NAMES + 2).max(20);
    let mut all = String::new();
    for (name, lines) in parts {
        let mut name = *name;
        for line in lines.iter().flat_map(|line| wrap(line, room)) {
            all += &format!("  {name:NAMES$}{line}\n");
            name = "";
        }
    }
    all
}

impl ExplainedFigure {
    fn head(&self, style: Style) -> String {
        let tone = match self.level {
            VerdictLevel::Valid => Tone::Good,
            VerdictLevel::Suspect => Tone::Doubtful,
            VerdictLevel::Invalid => Tone::Bad,
        };
        let step = (self.step.as_ref()).map_or_else(String::new, |step| format!("{step}: "));
        let name = format!("{step}{} {}", self.job, self.dir.name());
        let name = text::line(&name).into_owned();
        let figure = format!(
            "{} IOPS, {}",
            units::count(self.iops),
            units::bytes_per_second(self.bw_bytes)
        );
        let line = format!("{name}: {figure}, {}", self.limit.told());
        let level = format!("({})", self.level.name());
        let mut lines = wrap(&format!("{line} {level}"), style.columns());
        // The two that are looked for first.
        if let Some(first) = lines.first_mut() {
            *first = first.replacen(&name, &style.paint(Tone::Strong, &name), 1);
        }
        if let Some(last) = lines.last_mut() {
            *last = last.replacen(&level, &style.paint(tone, &level), 1);
        }
        lines.join("\n") + "\n"
    }

    /// What was seen.
    fn evidence(&self) -> Part {
        ("evidence", lines_of(&self.seen))
    }

    /// The cause, and what is said of it beside the numbers that were seen.
    fn parts(&self) -> (Part, [Part; 4]) {
        let sentence = |reason: &VerdictReason| reason.sentence.clone();
        let of_device = "the device was busy nearly all the time, at the queue depth of the job";
        let of_one = "the job waits for each I/O before the next: their latency decides";
        let cause = match (&self.cause, self.limit) {
            (Some(cause), _) => vec![cause.sentence.clone()],
            (None, StepLimit::Device) => vec![of_device.to_owned()],
            (None, StepLimit::Depth) => vec![of_one.to_owned()],
            (None, _) => Vec::new(),
        };
        let is_told = |reason: &&VerdictReason| {
            self.cause.as_ref() == Some(*reason) || self.follows.contains(reason)
        };
        let also: Vec<&VerdictReason> = self.reasons.iter().filter(|it| !is_told(it)).collect();
        let to_do = self.cause.iter().chain(
            also.iter()
                .copied()
                .filter(|it| it.level > VerdictLevel::Valid),
        );
        let ruled_out = match self.ruled_out.is_empty() {
            true => Vec::new(),
            false => vec![self.ruled_out.join(", ")],
        };
        let rest = [
            ("follows", self.follows.iter().map(sentence).collect()),
            ("ruled out", ruled_out),
            ("also", also.iter().map(|it| sentence(it)).collect()),
            ("to do", to_do.map(|it| it.to_do.clone()).collect()),
        ];
        (("cause", cause), rest)
    }
}

/// In words; what is not known is left out.
fn lines_of(seen: &SeenOfStep) -> Vec<String> {
    let mut device = Vec::new();
    device.extend(
        seen.device_busy_percent
            .map(|it| format!("device busy {it:.0} %")),
    );
    device.extend(match (seen.device_depth, seen.job_depth) {
        (Some(device), Some(job)) => Some(format!(
            "queue depth {device:.1} at the device and {job:.1} in the job"
        )),
        (None, Some(job)) => Some(format!("queue depth {job:.1} in the job")),
        (Some(device), None) => Some(format!("queue depth {device:.1} at the device")),
        (None, None) => None,
    });
    let mut cpu = Vec::new();
    cpu.extend(
        seen.job_cpu_percent
            .map(|it| format!("job {it:.0} % of one core")),
    );
    cpu.extend(
        seen.busiest_cpu_percent
            .map(|it| format!("busiest core {it:.0} %")),
    );
    let mut cpu = match cpu.is_empty() {
        true => Vec::new(),
        false => vec![format!("CPU: {}", cpu.join(", "))],
    };
    cpu.extend(
        (seen.waiting_for_cpu_percent)
            .map(|it| format!("the job's threads waited for a CPU {it:.0} % of the time")),
    );
    let lines = [device.join(", "), cpu.join("; ")];
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}
