//! Groups of I/Os and their figures.

use fathom_model::histogram::bounds_of;
use fathom_model::{Direction, Histogram};
use serde::Serialize;

use super::moments::LatencyMoments;
use super::values::Exact;
use super::{FRACTIONS, PERCENTS, element};

/// By what I/Os are set apart; by nothing, they are one group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breakdown {
    /// By host.
    pub host: bool,
    /// By job, that is by log.
    pub job: bool,
    /// By direction.
    pub direction: bool,
    /// By priority.
    pub priority: bool,
}

impl Breakdown {
    /// All I/Os.
    pub const ALL: Self = Self {
        host: false,
        job: false,
        direction: false,
        priority: false,
    };
    /// Each direction.
    pub const DIRECTION: Self = Self {
        direction: true,
        ..Self::ALL
    };
    /// Each priority.
    pub const PRIORITY: Self = Self {
        priority: true,
        ..Self::ALL
    };
}

/// Which I/Os a group has; what is `None` does not matter to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LatencyKey {
    /// Of this host; empty where the name of the log says none.
    pub host: Option<String>,
    /// Of this job.
    pub job: Option<String>,
    /// In this direction.
    pub dir: Option<Direction>,
    /// With this value in the priority's column.
    pub prio: Option<u16>,
}

impl LatencyKey {
    /// What it sets I/Os apart by.
    pub fn breakdown(&self) -> Breakdown {
        Breakdown {
            host: self.host.is_some(),
            job: self.job.is_some(),
            direction: self.dir.is_some(),
            priority: self.prio.is_some(),
        }
    }
}

/// I/Os that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyGroup {
    /// I/Os; lines of an averaged log.
    pub n: u64,
    /// I/Os of the whole, of which this is a part.
    pub of: u64,
    /// The figures; `None` without any I/O.
    pub figures: Option<LatencyFigures>,
    /// Where it was asked for: latencies in ns, ascending, each with the number of
    /// I/Os that took at most that. The last is the largest.
    pub curve: Vec<(u64, u64)>,
}

/// Figures of at least one I/O.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LatencyFigures {
    /// I/Os per second; not known of an averaged log, nor of no time at all.
    pub iops: Option<f64>,
    /// Bytes per second; likewise, and not known of a histogram log.
    pub bw_bytes: Option<f64>,
    /// Bytes of all I/Os; not known of an averaged log, nor of a histogram log.
    pub io_bytes: Option<f64>,
    /// Smallest latency.
    pub min_ns: u64,
    /// Largest latency.
    pub max_ns: u64,
    /// Mean latency.
    pub avg_ns: f64,
    /// Standard deviation of the sample; `None` of one.
    pub stdev_ns: Option<f64>,
    /// The percentiles of [`PERCENTS`].
    #[serde(with = "fathom_model::percentiles")]
    #[schemars(with = "std::collections::BTreeMap<String, u64>")]
    pub percentiles_ns: Vec<(f64, u64)>,
}

/// What a group's figures are made of.
#[derive(Default)]
pub(super) struct GroupParts<'c> {
    pub(super) moments: LatencyMoments,
    pub(super) exact: Vec<&'c Exact>,
    pub(super) histogram: Histogram,
}

/// What is known of the whole that groups are parts of.
#[derive(Clone, Copy)]
pub(super) struct WholeLog {
    /// I/Os of the whole.
    pub(super) of: u64,
    pub(super) span_ms: u64,
    pub(super) exact: bool,
    pub(super) averaged: bool,
    /// Whether it has counts instead of lines of I/Os.
    pub(super) counted: bool,
    pub(super) curves: bool,
}

impl GroupParts<'_> {
    pub(super) fn group(&self, whole: WholeLog) -> LatencyGroup {
        let moments = &self.moments;
        let n = moments.n;
        let rate = |amount: f64| {
            let known = whole.span_ms > 0 && !whole.averaged;
            known.then(|| amount * 1000.0 / whole.span_ms as f64)
        };
        let percentile = |fraction| {
            let element = element(n, fraction);
            let (min, max) = (moments.min_ns, moments.max_ns);
            match whole.exact {
                true => Some(Exact::element_ns(&self.exact, element, min, max)),
                // The middle of the outermost bucket may lie beyond what it holds.
                false => Some(self.histogram.element_ns(element)?.clamp(min, max)),
            }
        };
        let bytes = (!whole.averaged && !whole.counted).then_some(moments.bytes as f64);
        let figures = moments.mean_ns().map(|avg_ns| LatencyFigures {
            iops: rate(n as f64),
            bw_bytes: bytes.and_then(rate),
            io_bytes: bytes,
            min_ns: moments.min_ns,
            max_ns: moments.max_ns,
            avg_ns,
            stdev_ns: moments.stdev_ns(),
            percentiles_ns: PERCENTS
                .iter()
                .zip(FRACTIONS)
                .filter_map(|(&percent, fraction)| Some((percent, percentile(fraction)?)))
                .collect(),
        });
        let of = whole.of;
        let curve = match whole.curves {
            true => self.curve(whole.exact),
            false => Vec::new(),
        };
        LatencyGroup {
            n,
            of,
            figures,
            curve,
        }
    }

    /// How many took at most as long as a bucket reaches, of buckets with any.
    fn curve(&self, exact: bool) -> Vec<(u64, u64)> {
        let mut counted = Histogram::new();
        if exact {
            let (min, max) = (self.moments.min_ns, self.moments.max_ns);
            for values in &self.exact {
                counted.merge(&values.counted().take(min, max));
            }
        }
        let histogram = if exact { &counted } else { &self.histogram };
        let mut at_most = 0;
        histogram
            .buckets()
            .map(|(bucket, count)| {
                at_most += count;
                (bounds_of(bucket).1.min(self.moments.max_ns), at_most)
            })
            .collect()
    }
}
