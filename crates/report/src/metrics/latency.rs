//! Latencies as a classic histogram of Prometheus has them.

use fathom_model::Histogram;
use fathom_model::histogram::{bounds_of, middle_of};

/// Upper bounds in ns: 1, 2, 5 from a microsecond to ten seconds, which are the bounds
/// that limits of latencies are written in.
pub(super) const BOUNDS_NS: [u64; 22] = {
    let mut bounds = [0; 22];
    let mut at = 0;
    let mut decade = 1000;
    while at < bounds.len() {
        bounds[at] = decade * [1, 2, 5][at % 3];
        at += 1;
        if at.is_multiple_of(3) {
            decade *= 10;
        }
    }
    bounds
};

/// Counts between the bounds.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencyCounts {
    /// The last one: beyond all bounds.
    counts: [u64; BOUNDS_NS.len() + 1],
    sum_ns: f64,
}

impl LatencyCounts {
    /// Adds all values of a histogram, each of whose buckets counts where its upper end
    /// lies: 1/64 too high at the most.
    pub(super) fn add(&mut self, histogram: &Histogram) {
        for (bucket, count) in histogram.buckets() {
            let (_, high) = bounds_of(bucket);
            let place = BOUNDS_NS.partition_point(|bound| *bound < high);
            self.counts[place] = self.counts[place].saturating_add(count);
            self.sum_ns += middle_of(bucket) as f64 * count as f64;
        }
    }

    /// How many values are at most each bound, in seconds.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let mut below = 0u64;
        BOUNDS_NS.iter().zip(&self.counts).map(move |(bound, n)| {
            below = below.saturating_add(*n);
            (*bound as f64 / 1e9, below)
        })
    }

    /// How many values there are.
    pub(super) fn total(&self) -> u64 {
        let add = |sum: u64, n: &u64| sum.saturating_add(*n);
        self.counts.iter().fold(0, add)
    }

    /// Their sum in seconds.
    pub(super) fn sum_s(&self) -> f64 {
        self.sum_ns / 1e9
    }
}
