//! The rate of all jobs in one direction over one interval.

use std::collections::BTreeMap;

use fathom_model::{Direction, Histogram, Sample};

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
