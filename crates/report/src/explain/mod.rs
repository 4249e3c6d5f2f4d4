//! What limited each figure of a run, and why.

#[cfg(test)]
mod tests;
mod text;

use std::path::Path;

use fathom_analysis::step_evidence::StepEvidence;
use fathom_analysis::verdict::limit::{LimitFound, SeenOfStep, StepLimit};
use fathom_analysis::verdict::{self, JudgedFigure};
use fathom_model::{Direction, FigureVerdict, RunDocument, VerdictLevel, VerdictReason};
use fathom_record::{Entries, RecordError};
use serde::Serialize;

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
    /// The reason that says so; null where there is none.
    pub cause: Option<VerdictReason>,
    /// Reasons that are consequences of the limit.
    pub follows: Vec<VerdictReason>,
    /// Limits that were looked for and not reached, the first cause first.
    pub ruled_out: Vec<String>,
    /// What that rests on.
    pub seen: SeenOfStep,
    /// All reasons, those against the figure first.
    pub reasons: Vec<VerdictReason>,
}

/// Explains the run of a record.
///
/// # Errors
/// When the folder is no record, is of a newer Fathom, or cannot be read.
pub fn read(dir: &Path) -> Result<Explanation, RecordError> {
    let (doc, steps) = fathom_document::with_evidence(Entries::summed(dir)?);
    Ok(of(&doc, &steps))
}

pub(crate) fn of(doc: &RunDocument, steps: &[StepEvidence]) -> Explanation {
    let mut figures = Vec::new();
    let results = verdict::results(doc);
    for (place, job) in doc.jobs.iter().enumerate() {
        let step = steps.iter().find(|step| step.step == job.step);
        let is_result = results.iter().any(|it| std::ptr::eq(*it, job));
        for (dir, result) in job
            .directions()
            .filter(|(_, it)| is_result && it.total_ios > 0)
        {
            let Some(figure) = JudgedFigure::of(doc, place, dir, step) else {
                continue;
            };
            let none = FigureVerdict::default();
            let verdict = result.verdict.as_ref().unwrap_or(&none);
            figures.push(explained(&figure, verdict));
        }
    }
    Explanation {
        schema: "fathom.explain/1",
        run: doc.id.clone(),
        figures,
    }
}

fn explained(figure: &JudgedFigure, verdict: &FigureVerdict) -> ExplainedFigure {
    let found = LimitFound::of(figure, verdict);
    let mut reasons = verdict.reasons.clone();
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
    ExplainedFigure {
        step: figure.job.step.clone(),
        job: figure.job.name.clone(),
        dir: figure.dir,
        iops: figure.result.iops,
        bw_bytes: figure.result.bw_bytes,
        level: verdict.level,
        limit: found.limit,
        cause: found.cause,
        follows: found.follows,
        ruled_out: found.ruled_out,
        seen: found.seen,
        reasons,
    }
}
