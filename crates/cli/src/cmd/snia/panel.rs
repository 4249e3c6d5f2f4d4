//! What tests after SNIA's specification add to the screen of a run: how far the tracked
//! variables are from steady, and of write saturation how much is written.

use fathom_analysis::snia::{NOTICE, Setup, SniaTest, Tracked};
use fathom_analysis::steady_state::Metric;
use fathom_flow::History;
use fathom_flow::progress::{Progress, ProgressEvent, Recent};
use fathom_model::{Event, Stage, StageEnd, units};
use fathom_sheet::style::{Style, Tone, fitting, wrap};
use fathom_suites::snia::{FACTS, part_so_far};

use crate::live::{LiveOptions, bar, clock};

/// What is added.
#[derive(Debug)]
pub struct SniaPanel {
    setups: Vec<Setup>,
    is_alone: bool,
    /// The tracked variables in the last round that has ended.
    tracked: Vec<String>,
}

impl SniaPanel {
    /// Of a record with such tests.
    pub fn of(progress: &Progress) -> Option<Self> {
        let setups = progress.facts.get(FACTS)?.clone();
        let mut panel = Self {
            setups: serde_json::from_value(setups).ok()?,
            is_alone: progress.command.starts_with("snia"),
            tracked: Vec::new(),
        };
        panel.tracked = panel.tracked(progress.stages().history());
        Some(panel)
    }

    /// Whether the run is one of `fathom snia`, which has lines of its own where none
    /// can stay in place.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Takes the next event; gives what is said of it in a line of its own.
    pub fn take(
        &mut self,
        progress: &Progress,
        event: &Event,
        happened: &[Recent],
        options: LiveOptions,
    ) -> Option<String> {
        let ended = happened.iter().find_map(|recent| match &recent.what {
            ProgressEvent::StageEnded(ended) => Some(ended),
            _ => None,
        });
        if ended.is_some() {
            self.tracked = self.tracked(progress.stages().history());
        }
        match (event, ended) {
            (Event::Failure(failure), _) => Some(failure.to_string()),
            _ if options.quiet => None,
            (Event::Note { text }, _) => Some(text.clone()),
            (_, Some(ended)) if !options.in_place() => {
                let (stage, end, took_ms) = &**ended;
                Some(self.ended(stage, end, *took_ms))
            }
            _ => None,
        }
    }

    /// The lines below those of the whole run.
    pub fn lines(&self, progress: &Progress, style: Style) -> Vec<String> {
        let now = progress.stage();
        let Some((setup, _)) = now.and_then(|now| self.of_stage(&now.stage.id)) else {
            return Vec::new();
        };
        let columns = style.width.map_or(usize::MAX, usize::from);
        let notice = wrap(NOTICE, columns).into_iter();
        let mut lines: Vec<String> = notice.map(|it| style.paint(Tone::Faint, &it)).collect();
        if setup.test == SniaTest::Wsat {
            lines.push(saturation(setup, progress.stages().history(), style));
        }
        lines.extend_from_slice(&self.tracked);
        lines
    }

    /// The test that a stage belongs to, and the part of it.
    fn of_stage<'p>(&'p self, id: &'p str) -> Option<(&'p Setup, &'p str)> {
        let mut setups = self.setups.iter();
        setups.find_map(|setup| Some((setup, setup.part_of(id)?.0)))
    }

    fn ended(&self, stage: &Stage, end: &StageEnd, took_ms: u64) -> String {
        let (title, took) = (&stage.title, clock(took_ms));
        match end {
            StageEnd::Done if stage.round.is_some() => {
                format!("{title}, {took}: {}", self.tracked.join(", "))
            }
            StageEnd::Done => format!("{title}: done in {took}"),
            StageEnd::Skipped { reason } => format!("{title}: skipped, {reason}"),
            StageEnd::NotAttained { reason } => format!("{title}: {reason}"),
            StageEnd::Failed { reason } => format!("{title}: failed, {reason}"),
            StageEnd::Waits { reason } => format!("{title}: waits, {reason}"),
            StageEnd::Interrupted { reason } => format!("{title}: stopped, {reason}"),
        }
    }

    /// The tracked variables in the last round that has ended, and how far the window is
    /// from steady.
    fn tracked(&self, history: &History) -> Vec<String> {
        let mut rounds = history.stages().iter().rev();
        let last = rounds.find(|past| past.stage.round.is_some() && past.end.is_some());
        let Some((setup, part)) = last.and_then(|past| self.of_stage(&past.stage.id)) else {
            return Vec::new();
        };
        let part = part_so_far(setup, part, history);
        let mut told: Vec<String> = part.tracked.iter().map(words).collect();
        if part.attained {
            told.push("steady".to_owned());
        } else if part.is_late(setup) {
            told.push("NOT steady within the rounds that there may be".to_owned());
        }
        told
    }
}

/// How much write saturation has written, and of how much.
fn saturation(setup: &Setup, history: &History, style: Style) -> String {
    let (mut written, mut ms) = (0, 0);
    for past in history.stages() {
        if past.stage.round.is_some() {
            written += past.written_bytes;
            ms += past.last_ms - past.begin_ms;
        }
    }
    let all = setup.stop_fills * setup.capacity_bytes as f64;
    let fills = written as f64 / setup.capacity_bytes.max(1) as f64;
    let parts = [
        bar(style, written, (all as u64).saturating_sub(written)),
        format!("{fills:.2} of {} drive fills", setup.stop_fills),
        format!("{} of {}", clock(ms), clock(setup.stop_ms)),
    ];
    fitting(style, parts)
}

fn words(tracked: &Tracked) -> String {
    let figure = match (tracked.metric, tracked.values.last().copied().flatten()) {
        (_, None) => "–".to_owned(),
        (Metric::Iops, Some(value)) => units::count(value),
        (Metric::Bandwidth, Some(value)) => units::bytes_per_second(value),
        (Metric::Latency | Metric::Percentile(_), Some(value)) => units::latency(value),
    };
    let text = format!("{} {figure}", tracked.cell);
    let Some(found) = &tracked.determination else {
        return text;
    };
    let percent = |p: Option<f64>| p.map_or("–".to_owned(), |p| format!("{p:.1} %"));
    format!(
        "{text} (data {}, slope {})",
        percent(found.window.range_percent),
        percent(found.window.slope_excursion_percent)
    )
}
