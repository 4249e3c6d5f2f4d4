//! Runs side by side: what differs between them, and whether one side is faster.
//!
//! The statistics are `analysis::compare`; here figures are found, matched and told.

mod baseline;
mod differences;
mod html;
mod sides;
mod text;

use std::path::PathBuf;

use fathom_analysis::compare::{CompareVerdict, FigureComparison, compare};
use fathom_model::{Direction, RunDocument, RunStatus, units};
use serde::Serialize;

use crate::gate::Gate;

pub use baseline::{as_baseline, of_baseline};
pub(crate) use differences::between as differences_between;
pub use differences::{CompareDifference, is_alike};
pub use html::html;
pub use text::{markdown, text};
pub(crate) use text::{title, unmatched};

use sides::Pairing;
pub(crate) use sides::{FigureKey, figure_values};

/// Name and version of [`CompareDocument`].
pub const COMPARE_SCHEMA: &str = "fathom.compare/1";

/// A run that is compared.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    /// Its document, with histograms where a graph is wanted.
    pub doc: RunDocument,
    /// When it began, ms since 1970 UTC.
    pub started_ms: u64,
    /// Its record, for what is drawn; a baseline has none.
    pub dir: Option<PathBuf>,
}

/// What is compared.
#[derive(Debug, Clone, Default)]
pub struct CompareRequest {
    /// The one side: repetitions of the same.
    pub a: Vec<ComparedRun>,
    /// The other side.
    pub b: Vec<ComparedRun>,
    /// Earlier runs that are like those of one side.
    pub earlier: Vec<ComparedRun>,
    /// Up to this share of a figure both sides are the same.
    pub margin: f64,
}

/// A comparison, whole.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CompareDocument {
    /// [`COMPARE_SCHEMA`].
    pub schema: &'static str,
    /// Runs of the one side.
    pub a: Vec<String>,
    /// Runs of the other side.
    pub b: Vec<String>,
    /// Earlier runs that told how such runs differ from one another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<String>,
    /// Up to this both sides are the same, percent.
    pub margin_percent: f64,
    /// What differs between the sides but their figures.
    pub differences: Vec<CompareDifference>,
    /// The figures.
    pub rows: Vec<CompareRow>,
    /// Steps and jobs that only one side has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<UnmatchedJob>,
    /// What is to know of it, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What `--fail-if` came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CompareRow {
    /// The step it belongs to, where runs have several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The job; its name on the other side where that is another.
    pub job: String,
    /// Whether step or job have another name on the other side: no gate relies on it.
    #[serde(skip)]
    pub is_renamed: bool,
    /// Direction.
    pub dir: Direction,
    /// Which figure.
    pub figure: CompareFigure,
    /// Runs that have it: of the one side, of the other.
    pub runs: [usize; 2],
    /// What came of it.
    #[serde(flatten)]
    pub comparison: FigureComparison,
}

/// A step, job or direction that only one side has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct UnmatchedJob {
    /// `a` or `b`: the side that has it.
    pub side: &'static str,
    /// The step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The job.
    pub job: String,
    /// The direction, where both sides have the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<Direction>,
}

/// Figures that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareFigure {
    /// I/Os per second.
    Iops,
    /// Bytes per second; where I/Os are as long on both sides IOPS say it.
    BwBytes,
    /// Mean latency.
    MeanNs,
    /// Median latency.
    P50Ns,
    /// 99th percentile.
    P99Ns,
    /// 99.9th percentile.
    P999Ns,
}

impl CompareFigure {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::Iops,
        Self::BwBytes,
        Self::MeanNs,
        Self::P50Ns,
        Self::P99Ns,
        Self::P999Ns,
    ];

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Iops => "IOPS",
            Self::BwBytes => "bandwidth",
            Self::MeanNs => "mean latency",
            Self::P50Ns => "p50 latency",
            Self::P99Ns => "p99 latency",
            Self::P999Ns => "p99.9 latency",
        }
    }

    /// The value with its unit.
    pub fn shown(self, value: f64) -> String {
        match self {
            Self::Iops => units::count(value),
            Self::BwBytes => units::bytes_per_second(value),
            _ => units::latency(value),
        }
    }

    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::Iops | Self::BwBytes)
    }

    pub(crate) fn percent(self) -> Option<f64> {
        match self {
            Self::P50Ns => Some(50.0),
            Self::P99Ns => Some(99.0),
            Self::P999Ns => Some(99.9),
            _ => None,
        }
    }
}

/// Compares the two sides.
pub fn comparison(request: &CompareRequest) -> CompareDocument {
    let pairing = Pairing::of(request);
    let figures: Vec<_> = pairing.rows.iter().map(|row| row.sides.clone()).collect();
    let judged = compare(&figures, request.margin);
    let rows: Vec<CompareRow> = (pairing.rows.iter().zip(judged))
        .map(|(row, comparison)| CompareRow {
            step: row.step.clone(),
            job: row.job.clone(),
            is_renamed: row.is_renamed,
            dir: row.dir,
            figure: row.figure,
            runs: [row.sides.a.len(), row.sides.b.len()],
            comparison,
        })
        .collect();
    let ids = |runs: &[ComparedRun]| runs.iter().map(|run| run.doc.id.clone()).collect();
    let mut differences = differences::between(&request.a, &request.b);
    differences.extend(pairing.options);
    CompareDocument {
        schema: COMPARE_SCHEMA,
        a: ids(&request.a),
        b: ids(&request.b),
        earlier: ids(&request.earlier),
        margin_percent: 100.0 * request.margin,
        differences,
        notes: notes(request, &rows),
        gate: None,
        rows,
        unmatched: pairing.unmatched,
    }
}

fn notes(request: &CompareRequest, rows: &[CompareRow]) -> Vec<String> {
    let mut notes = Vec::new();
    let least = request.a.len().min(request.b.len());
    if least == 1 && request.earlier.is_empty() && request.a.len() + request.b.len() < 6 {
        notes.push(
            "one run does not tell how runs of the same differ from one another: repeat both sides, three times at the least, in turn".to_owned(),
        );
    } else if !request.earlier.is_empty() {
        notes.push(format!(
            "how much runs of the same differ is taken from {} earlier runs of this machine and device",
            request.earlier.len()
        ));
    }
    let times = |runs: &[ComparedRun]| {
        let all: Vec<u64> = runs.iter().map(|run| run.started_ms).collect();
        Some((all.iter().min().copied()?, all.iter().max().copied()?))
    };
    if let (Some(a), Some(b)) = (times(&request.a), times(&request.b))
        && request.a.len() + request.b.len() > 2
        && (a.1 < b.0 || b.1 < a.0)
    {
        notes.push(
            "one side was measured wholly before the other: what changed meanwhile looks like a difference; measure in turn (A B A B …)".to_owned(),
        );
    }
    for run in request.a.iter().chain(&request.b) {
        if run.doc.status != RunStatus::Complete {
            notes.push(format!("run {} is {}", run.doc.id, run.doc.status));
        }
    }
    if rows.is_empty() {
        notes.push("no figure is in both sides".to_owned());
    }
    notes
}

/// A condition on a comparison: `slower > 5%`, `cannot_tell`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, serde::Deserialize)]
pub struct CompareCondition {
    pub(crate) verdict: CompareVerdict,
    /// By more than this share.
    pub(crate) beyond: f64,
}

impl std::str::FromStr for CompareCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, beyond) = match text.split_once('>') {
            None => (text, None),
            Some((word, beyond)) => (word, Some(beyond)),
        };
        let verdict = match word.trim() {
            "faster" => CompareVerdict::Faster,
            "slower" => CompareVerdict::Slower,
            "same" => CompareVerdict::Same,
            "cannot_tell" => CompareVerdict::CannotTell,
            other => {
                return Err(format!(
                    "'{other}' is none of faster, slower, same, cannot_tell"
                ));
            }
        };
        let has_size = matches!(verdict, CompareVerdict::Faster | CompareVerdict::Slower);
        let beyond = match beyond {
            None => 0.0,
            Some(_) if !has_size => return Err("only 'faster' and 'slower' have a size".into()),
            Some(size) => percent(size)?,
        };
        Ok(Self { verdict, beyond })
    }
}

/// A share, written in percent: `5%`.
///
/// # Errors
/// When it is none.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim();
    let value: Option<f64> = number.parse().ok();
    let value = value.filter(|value| value.is_finite() && (0.0..1000.0).contains(value));
    value
        .map(|value| value / 100.0)
        .ok_or_else(|| format!("'{}' is no share like 5%", text.trim()))
}

/// The share by which sides may differ and are the same.
///
/// # Errors
/// When it is none, or lets one side be nothing.
pub fn margin(text: &str) -> Result<f64, String> {
    let share = percent(text)?;
    (share < 1.0)
        .then_some(share)
        .ok_or_else(|| format!("a margin is less than 100%, '{}' is not", text.trim()))
}

impl CompareCondition {
    /// Whether it holds for a comparison. A size is judged on the bound of the interval
    /// that lies nearest to no difference.
    pub(crate) fn holds_for(&self, found: &FigureComparison) -> bool {
        if found.verdict != self.verdict {
            return false;
        }
        let (Some(low), Some(high)) = (found.ratio_low, found.ratio_high) else {
            return self.beyond == 0.0;
        };
        match found.verdict {
            CompareVerdict::Faster | CompareVerdict::Slower => {
                low > 1.0 + self.beyond || high < 1.0 - self.beyond
            }
            _ => true,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
