//! What limited each figure of a run, and why.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_analysis::step_evidence::StepEvidence;
use fathom_analysis::verdict::limit::{BUSY_PERCENT, StepLimit};
use fathom_analysis::verdict::{self, JudgedFigure};
use fathom_model::{Direction, FigureVerdict, RunDocument, VerdictLevel, VerdictReason, units};
use fathom_record::{Entries, RecordError};
use serde::Serialize;

use crate::document;
use crate::style::{Style, Tone, wrap};

/// What `--json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Explanation {
    /// `fathom.explain/1`
    pub schema: &'static str,
    /// The record's folder.
    pub run: String,
    /// One for each job and direction that moved anything.
    pub figures: Vec<ExplainedFigure>,
}

/// A figure and what limited it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ExplainedFigure {
    /// The step; null where the run has one only.
    pub step: Option<String>,
    /// The job.
    pub job: String,
    /// The direction.
    pub dir: Direction,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bw_bytes: f64,
    /// What the figure is worth.
    pub level: VerdictLevel,
    /// What limited it.
    pub limit: StepLimit,
    /// What that rests on.
    pub seen: SeenOfStep,
    /// The reasons, those against the figure first.
    pub reasons: Vec<VerdictReason>,
}

/// What was seen beside a figure; null where it was not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SeenOfStep {
    /// Share of the time in which the device had a request under way.
    pub device_busy_percent: Option<f64>,
    /// Requests under way at the device on average.
    pub device_depth: Option<f64>,
    /// I/Os under way on average, by the job's own times.
    pub job_depth: Option<f64>,
    /// User and system time of the job, of one CPU.
    pub job_cpu_percent: Option<f64>,
    /// The busiest CPU of the machine, on average.
    pub busiest_cpu_percent: Option<f64>,
    /// Time in which a task waited for a CPU.
    pub waiting_for_cpu_percent: Option<f64>,
}

/// Explains the run of a record.
///
/// # Errors
/// When the folder is no record, is of a newer Fathom, or cannot be read.
pub fn read(dir: &Path) -> Result<Explanation, RecordError> {
    let (doc, steps) = document::with_evidence(Entries::summed(dir)?);
    Ok(of(&doc, &steps))
}

fn of(doc: &RunDocument, steps: &[StepEvidence]) -> Explanation {
    let mut figures = Vec::new();
    for (place, job) in doc.jobs.iter().enumerate() {
        let step = steps.iter().find(|step| step.step == job.step);
        let is_result = verdict::results(doc)
            .iter()
            .any(|it| std::ptr::eq(*it, job));
        for (dir, result) in job
            .directions()
            .filter(|(_, it)| is_result && it.total_ios > 0)
        {
            let Some(figure) = JudgedFigure::of(doc, place, dir, step) else {
                continue;
            };
            let none = FigureVerdict::default();
            let verdict = result.verdict.as_ref().unwrap_or(&none);
            let seen = SeenOfStep::of(&figure);
            let mut reasons = verdict.reasons.clone();
            reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
            figures.push(ExplainedFigure {
                step: job.step.clone(),
                job: job.name.clone(),
                dir,
                iops: result.iops,
                bw_bytes: result.bw_bytes,
                level: verdict.level,
                limit: StepLimit::of(verdict, seen.device_busy_percent),
                seen,
                reasons,
            });
        }
    }
    Explanation {
        schema: "fathom.explain/1",
        run: doc.id.clone(),
        figures,
    }
}

impl ExplainedFigure {
    fn name(&self) -> String {
        let step = (self.step.as_ref()).map_or_else(String::new, |step| format!("{step}: "));
        format!("{step}{} {}", self.job, self.dir.name())
    }
}

/// A reason and what to do.
fn told(reason: &VerdictReason) -> String {
    format!("{}; {}", reason.sentence, reason.to_do)
}

fn indented(lines: &[String], style: Style) -> String {
    let room = style.columns().saturating_sub(2);
    let parts = lines.iter().flat_map(|line| wrap(line, room));
    parts.map(|part| format!("  {part}\n")).collect()
}

impl SeenOfStep {
    fn of(figure: &JudgedFigure) -> Self {
        let evidence = figure.evidence();
        let ms = figure.result.runtime_ms.max(1) as f64;
        let span_ms = evidence.map_or(1, |it| it.span_ms.max(1)) as f64;
        let device = evidence.and_then(|it| it.devices("target").next());
        let of_device = |name: &str| {
            let count = evidence?.count(&format!("{}.{name}", device?))?;
            Some(count as f64 / ms.min(span_ms))
        };
        let clat = figure.result.clat.as_ref().or(figure.result.lat.as_ref());
        Self {
            device_busy_percent: of_device("busy_ms").map(|share| (share * 100.0).min(100.0)),
            device_depth: of_device("queue_ms"),
            job_depth: clat.map(|clat| figure.result.iops * clat.mean_ns / 1e9),
            job_cpu_percent: (figure.job.cpu.as_ref())
                .map(|cpu| cpu.user_percent + cpu.system_percent),
            busiest_cpu_percent: evidence
                .and_then(|it| Some(it.gauge("cpu.busiest_percent")?.mean)),
            waiting_for_cpu_percent: evidence.and_then(|it| {
                let us = it.count("pressure.cpu_some_us")?;
                Some((us as f64 / 10.0 / span_ms).min(100.0))
            }),
        }
    }

    /// In words; what is not known is left out.
    fn words(&self) -> String {
        let mut words = Vec::new();
        let mut tell = |value: Option<f64>, text: &dyn Fn(f64) -> String| {
            words.extend(value.map(text));
        };
        tell(self.device_busy_percent, &|it| {
            format!("the device was busy {it:.0} % of the time")
        });
        tell(self.device_depth, &|it| {
            format!("{it:.1} requests were under way there")
        });
        tell(self.job_depth, &|it| {
            format!("{it:.1} I/Os by the job's own times")
        });
        tell(self.job_cpu_percent, &|it| {
            format!("the job used {it:.0} % of a CPU")
        });
        tell(self.busiest_cpu_percent, &|it| {
            format!("the busiest CPU was {it:.0} % busy")
        });
        tell(self.waiting_for_cpu_percent, &|it| {
            format!("tasks waited for a CPU {it:.0} % of the time")
        });
        words.join(", ")
    }
}

impl Explanation {
    /// As a person reads it.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let mut text = String::new();
        if self.figures.is_empty() {
            text += "there are no figures to explain\n";
        }
        let shared = self.reasons();
        for figure in &self.figures {
            let tone = match figure.level {
                VerdictLevel::Valid => Tone::Good,
                VerdictLevel::Suspect => Tone::Doubtful,
                VerdictLevel::Invalid => Tone::Bad,
            };
            text += &format!(
                "{}: {} IOPS, {}, {}\n",
                style.paint(Tone::Strong, &figure.name()),
                units::count(figure.iops),
                units::bytes_per_second(figure.bw_bytes),
                style.paint(tone, figure.level.name())
            );
            let mut lines = vec![format!("limited by: {}", figure.limit.name())];
            if figure.limit == StepLimit::Device && figure.reasons.is_empty() {
                lines.push(format!(
                    "it was busy for {BUSY_PERCENT:.0} % of the time and more"
                ));
            }
            let own = figure.reasons.iter().map(told);
            lines.extend(own.filter(|told| shared[told].len() == 1));
            let seen = figure.seen.words();
            if !seen.is_empty() {
                lines.push(format!("seen: {seen}"));
            }
            text += &indented(&lines, style);
        }
        let mut told: Vec<(String, Vec<String>)> = Vec::new();
        for (reason, of) in shared.into_iter().filter(|(_, of)| of.len() > 1) {
            let whose = self.whose(&of);
            match told.iter_mut().find(|(known, _)| *known == whose) {
                Some((_, reasons)) => reasons.push(reason),
                None => told.push((whose, vec![reason])),
            }
        }
        for (whose, reasons) in told {
            let head = wrap(&format!("{whose}:"), style.columns()).join("\n");
            text += &format!("{}\n", style.paint(Tone::Strong, &head));
            text += &indented(&reasons, style);
        }
        text
    }

    /// Several figures by their names.
    fn whose(&self, of: &[&ExplainedFigure]) -> String {
        match of {
            all if all.len() == self.figures.len() => "all figures".to_owned(),
            [first, second] => format!("{} and {}", first.name(), second.name()),
            several => {
                let names = several.first().zip(several.last());
                let ends =
                    names.map(|(first, last)| format!("{} to {}", first.name(), last.name()));
                format!("{} figures, {}", several.len(), ends.unwrap_or_default())
            }
        }
    }

    /// Every reason in words, with the figures that have it.
    fn reasons(&self) -> BTreeMap<String, Vec<&ExplainedFigure>> {
        let mut reasons: BTreeMap<String, Vec<&ExplainedFigure>> = BTreeMap::new();
        for figure in &self.figures {
            for reason in &figure.reasons {
                reasons.entry(told(reason)).or_default().push(figure);
            }
        }
        reasons
    }
}
