//! The rate of all jobs in one direction over one interval.

use std::collections::BTreeMap;

use fathom_model::histogram::bounds_of;
use fathom_model::{Direction, Histogram, Latency, Sample};

/// Percentiles that are shown when the engine reported none: fio's own default
/// list (`stat.c`), so that records of all kinds have the same.
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Below this share of the rate that was asked for a load is behind it. fio makes
/// up for what it missed (`usec_for_io`, backend.c), so that storage that can do
/// the rate reaches it but for the last I/Os.
pub const BEHIND_RATE_SHARE: f64 = 0.95;

/// One direction of all jobs in one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rate {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bw_bytes: f64,
    /// Completion latencies; empty when the jobs do not measure them.
    pub clat: Histogram,
}

impl Rate {
    /// Adds the sample of another job of the same interval.
    pub fn add(&mut self, sample: &Sample) {
        self.iops += sample.iops().unwrap_or(0.0);
        self.bw_bytes += sample.bw_bytes().unwrap_or(0.0);
        if let Some(clat) = &sample.clat {
            self.clat.merge(clat);
        }
    }

    /// Mean and 99th percentile of the completion latencies in ns, when there
    /// are any.
    #[must_use]
    pub fn latencies_ns(&self) -> Option<(f64, f64)> {
        let p99 = self.clat.percentile_ns(99.0)? as f64;
        Some((self.clat.mean_ns()?, p99))
    }
}

/// The rates of an interval by direction.
pub type Rates = BTreeMap<Direction, Rate>;

/// What a histogram tells of its values. Minimum and maximum are the outer
/// bounds of its outer buckets: no value was beyond them.
#[must_use]
pub fn latency(histogram: &Histogram) -> Option<Latency> {
    let mean_ns = histogram.mean_ns()?;
    let (first, _) = histogram.buckets().next()?;
    let (last, _) = histogram.buckets().last()?;
    let squares: f64 = histogram
        .buckets()
        .map(|(bucket, n)| {
            let (low, high) = bounds_of(bucket);
            let middle = low as f64 + (high - low) as f64 / 2.0;
            (middle - mean_ns).powi(2) * n as f64
        })
        .sum();
    let n = histogram.total();
    Some(Latency {
        n: Some(n),
        min_ns: bounds_of(first).0,
        max_ns: bounds_of(last).1,
        mean_ns,
        stddev_ns: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
        percentiles_ns: PERCENTILES
            .iter()
            .filter_map(|&percent| Some((percent, histogram.percentile_ns(percent)?)))
            .collect(),
        histogram: Some(histogram.clone()),
    })
}
