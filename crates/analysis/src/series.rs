//! From the events of a campaign to curves: what graphs, exports, the guard and
//! the report are made of.

use fathom_model::result::LatencyTarget;
use fathom_model::{Direction, Histogram, Point, VerdictLevel};
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;

mod collector;

pub use collector::SweepCollector;

/// All curves of a campaign.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sweep {
    /// The curves in the order of their first points.
    pub series: Vec<Curve>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Curve {
    /// Its name: [`Point::series`], a folder of the campaign.
    pub name: String,
    /// The option on the x axis: [`Point::x`].
    pub x: String,
    /// The points, ascending in x.
    pub points: Vec<PointResult>,
}

/// One point and what came of it over all its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PointResult {
    /// The point; its repetition is that of its first measurement.
    pub point: Point,
    /// What came of it.
    pub outcome: SweepOutcome,
    /// Reads; `None` when it did none or there are no good figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<RepeatedFigures>,
    /// Writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<RepeatedFigures>,
    /// Trims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<RepeatedFigures>,
    /// What fio's searches for the depth that keeps a latency came to: of each job and
    /// measurement that made one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_targets: Vec<LatencyTarget>,
    /// What its figures are worth: the worst of them.
    #[serde(default)]
    pub verdict: VerdictLevel,
    /// What makes its figures doubtful, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// The engines that measured it, each once, with their versions: `fio-3.33`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<String>,
}

/// The engines that measured these points, each once, in the order of the points.
pub fn engines_of<'p>(points: impl IntoIterator<Item = &'p PointResult>) -> Vec<&'p str> {
    let mut engines: Vec<&str> = Vec::new();
    for engine in points.into_iter().flat_map(|point| &point.engines) {
        if !engines.contains(&engine.as_str()) {
            engines.push(engine);
        }
    }
    engines
}

impl PointResult {
    /// The figures of one direction.
    pub fn figures(&self, dir: Direction) -> Option<&RepeatedFigures> {
        match dir {
            Direction::Read => self.read.as_ref(),
            Direction::Write => self.write.as_ref(),
            Direction::Trim => self.trim.as_ref(),
            Direction::Sync | Direction::Mixed => None,
        }
    }
}

/// What came of a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SweepOutcome {
    /// Measured as often as asked; the figures are good.
    Done,
    /// At least one repetition failed; the reasons. Figures of a failed point
    /// are never exported or drawn as results.
    Failed(Vec<String>),
    /// Left out, with the reason.
    Skipped(String),
    /// Begun and not ended: the run was killed in it, or is in it now.
    Unfinished,
}

/// The figures of one direction over all repetitions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RepeatedFigures {
    /// Bytes per second.
    pub bw_bytes: Estimate,
    /// I/Os per second.
    pub iops: Estimate,
    /// Mean completion latency in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clat_mean_ns: Option<Estimate>,
    /// Completion latencies of all repetitions, merged, where the engine gave
    /// histograms: percentiles come from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clat: Option<Histogram>,
    /// The largest completion latency in ns, where the engine told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clat_max_ns: Option<u64>,
    /// (percent, ns) as reported, for a single repetition without a histogram.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles_ns: Vec<(f64, u64)>,
}

impl RepeatedFigures {
    /// The completion latency at `percent` in ns: from the merged histogram,
    /// else as reported; never beyond the largest, which 100 % is.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let reported = || {
            let mut all = self.percentiles_ns.iter();
            let found = all.find(|(p, _)| (p - percent).abs() < 1e-9);
            found.map(|&(_, ns)| ns)
        };
        if percent >= 100.0 && self.clat_max_ns.is_some() {
            return self.clat_max_ns;
        }
        let found = match &self.clat {
            Some(clat) => clat.percentile_ns(percent),
            None => reported(),
        };
        Some(found?.min(self.clat_max_ns.unwrap_or(u64::MAX)))
    }
}
