//! Steady state of a record: the verdicts as a document and as text.

use std::collections::BTreeSet;
use std::path::Path;

use fathom_analysis::steady_state::{
    Ask, Metric, RoundSeries, RoundSpan, Rounds, SteadyVerdict, WindowRule, judge,
};
use fathom_model::{Event, JobResult};
use fathom_record::{Entries, RecordError};
use serde::Serialize;

mod fio;
mod text;

pub use fio::FioVerdict;
pub use text::text;

/// `schema` of [`RecordVerdicts`].
pub const SCHEMA: &str = "fathom.steady/1";

/// The length of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So many samples or rounds.
    Values(usize),
    /// So many ms: as many of them as fit best.
    Time(u64),
}

/// What is to be judged of a record, and how.
#[derive(Debug, Clone)]
pub struct Question {
    /// The rule; its window is replaced by `window`.
    pub rule: WindowRule,
    /// The window; `None`: that of the rule.
    pub window: Option<Length>,
    /// What is gathered.
    pub ask: Ask,
    /// Only the step, or point, whose name begins so.
    pub step: Option<String>,
}

/// All verdicts on one record.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct RecordVerdicts {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Name of the record's folder.
    pub run: String,
    /// Name of the run.
    pub name: String,
    /// [`WindowRule::name`].
    pub rule_name: &'static str,
    /// `interval`, `time` or `point`.
    pub round: &'static str,
    /// The job asked for; null: all together.
    pub job: Option<String>,
    /// The direction asked for; null: all together.
    pub dir: Option<&'static str>,
    /// Whether every verdict is that steady state was attained.
    pub attained: bool,
    /// One for each series and metric.
    pub verdicts: Vec<Judged>,
    /// fio's own verdicts, where jobs had `ss=`.
    pub fio: Vec<FioVerdict>,
    /// What is to know, a sentence each.
    pub notes: Vec<String>,
    /// The jobs that there are.
    #[serde(skip)]
    pub jobs: BTreeSet<String>,
    /// Steps that belong to the stages of a flow.
    #[serde(skip)]
    of_stages: BTreeSet<String>,
    #[serde(skip)]
    in_stage: bool,
    /// Length of the gaps in ms behind which nothing was run yet.
    gap_ms: u64,
}

/// One metric of one series.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Judged {
    /// Step, or id of the point; empty when the run has but one step.
    pub series: String,
    /// What was judged.
    pub metric: Metric,
    /// Length of a round, in ms: the middle one.
    pub round_ms: u64,
    /// Time at the end that was too short for a round, in ms.
    pub left_over_ms: u64,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: SteadyVerdict,
}

/// Judges a record. Damaged lines are left out, and a note says so.
///
/// # Errors
/// When the folder is no record, is of a newer Fathom, or cannot be read.
pub fn read(dir: &Path, question: &Question) -> Result<RecordVerdicts, RecordError> {
    let mut entries = Entries::open(dir)?;
    let mut rounds = Rounds::new(question.ask.clone());
    let mut found = RecordVerdicts::new(&entries, question);
    for entry in &mut entries {
        match entry {
            Ok(entry) => {
                found.take(&entry.event);
                rounds.take(&entry.event);
            }
            Err(damage @ RecordError::Damaged { .. }) => found.notes.push(damage.to_string()),
            Err(error) => return Err(error),
        }
    }
    let all = rounds.finish();
    for (place, series) in all.iter().enumerate() {
        // A stage that was interrupted was done anew: what stands is the last.
        let is_anew = |later: &RoundSeries| later.name == series.name;
        if found.of_stages.contains(&series.name) && all[place + 1..].iter().any(is_anew) {
            continue;
        }
        let wanted = question.step.as_deref();
        if wanted.is_none_or(|step| series.name.starts_with(step)) {
            found.judge(series, question);
        }
    }
    found.attained =
        !found.verdicts.is_empty() && found.verdicts.iter().all(|judged| judged.verdict.attained);
    Ok(found)
}

impl RecordVerdicts {
    fn new(entries: &Entries, question: &Question) -> Self {
        Self {
            schema: SCHEMA,
            run: entries.id(),
            name: entries.header.name.clone(),
            rule_name: question.rule.name(),
            round: match question.ask.span {
                RoundSpan::Interval => "interval",
                RoundSpan::Time(_) => "time",
                RoundSpan::Point => "point",
            },
            job: question.ask.job.clone(),
            dir: question.ask.dir.map(fathom_model::Direction::name),
            attained: false,
            verdicts: Vec::new(),
            fio: Vec::new(),
            notes: Vec::new(),
            jobs: BTreeSet::new(),
            of_stages: BTreeSet::new(),
            in_stage: false,
            gap_ms: 0,
        }
    }

    /// A gap is one where something was run behind it: starting a run that had
    /// nothing left to do interrupts nothing.
    fn tell_gap(&mut self) {
        if self.gap_ms > 0 {
            self.notes.push(format!(
                "the run was interrupted for {}: SNIA's flow allows no unplanned gap",
                fathom_model::units::duration(self.gap_ms)
            ));
            self.gap_ms = 0;
        }
    }

    fn take(&mut self, event: &Event) {
        if matches!(event, Event::Step { .. }) {
            self.tell_gap();
        }
        match event {
            Event::Stage { .. } => self.in_stage = true,
            Event::StageEnded { .. } | Event::Resumed { .. } if self.in_stage => {
                self.in_stage = false;
                self.take(event);
            }
            Event::Step { name, .. } if self.in_stage => {
                self.of_stages.insert(name.clone());
            }
            Event::Jobs { names, .. } => self.jobs.extend(names.iter().cloned()),
            Event::Resumed { gap_ms, .. } => self.gap_ms += gap_ms,
            Event::Finished { results } => {
                let jobs = &results.jobs;
                self.jobs
                    .extend(jobs.iter().map(|job: &JobResult| job.name.clone()));
                self.fio.extend(jobs.iter().filter_map(FioVerdict::of));
            }
            _ => {}
        }
    }

    fn judge(&mut self, series: &RoundSeries, question: &Question) {
        let round_ms = series.round_ms();
        let rule = with_window(question.rule, question.window, round_ms);
        self.rule_name = rule.name();
        for (place, &metric) in question.ask.metrics.iter().enumerate() {
            self.verdicts.push(Judged {
                series: series.name.clone(),
                metric,
                round_ms,
                left_over_ms: series.left_over_ms,
                verdict: judge(rule, series.values(place)),
            });
        }
    }
}

/// The rule with a window of this length, when rounds are so long.
fn with_window(mut rule: WindowRule, length: Option<Length>, round_ms: u64) -> WindowRule {
    let values = match length {
        None => return rule,
        Some(Length::Values(values)) => values,
        // Without a round nothing is judged anyway.
        Some(Length::Time(ms)) => {
            let values = (ms + round_ms / 2) / round_ms.max(1);
            usize::try_from(values).unwrap_or(usize::MAX)
        }
    };
    match &mut rule {
        WindowRule::Fio { window, .. } | WindowRule::Snia { window, .. } => *window = values.max(2),
    }
    rule
}
