//! What one interval of a running job brought.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::result::{Direction, Spread};

/// One interval of one job (with group reporting: of one group), one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sample {
    /// End of the interval, in ms since the run's start.
    pub t_ms: u64,
    /// Length of the interval in ms, as the engine measured it.
    pub span_ms: u64,
    /// Which job: its place in the last [`crate::Event::Jobs`].
    pub job: u32,
    /// Direction of the I/O.
    pub dir: Direction,
    /// I/Os completed in the interval.
    pub ios: u64,
    /// Bytes transferred in the interval.
    pub bytes: u64,
    /// Completion latencies of these I/Os; absent when the job does not measure them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clat: Option<Histogram>,
    /// The same from their intended starts, under a rate whose engine knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lat: Option<Histogram>,
}

impl Sample {
    /// I/Os per second over the interval; `None` when it has no length.
    pub fn iops(&self) -> Option<f64> {
        (self.span_ms > 0).then(|| self.ios as f64 * 1000.0 / self.span_ms as f64)
    }

    /// Bytes per second over the interval; `None` when it has no length.
    pub fn bw_bytes(&self) -> Option<f64> {
        (self.span_ms > 0).then(|| self.bytes as f64 * 1000.0 / self.span_ms as f64)
    }

    /// How long no I/O was done before this interval, the last one with some having ended
    /// at `end_ms` (0: there was none), in ms. Less than half an interval (`interval_ms`,
    /// the longest one so far or of those that became this one) is how exactly intervals
    /// are told, and no stall.
    pub fn stall_after(&self, end_ms: u64, interval_ms: u64) -> Option<u64> {
        let begin_ms = self.t_ms.saturating_sub(self.span_ms);
        let stall_ms = begin_ms.saturating_sub(end_ms);
        let is_one = self.ios > 0 && self.span_ms > 0 && end_ms > 0;
        (is_one && stall_ms.saturating_mul(2) >= interval_ms.max(1)).then_some(stall_ms)
    }
}

/// Mean and deviation of values seen once each, in constant memory.
///
/// Welford, Note on a method for calculating corrected sums of squares and
/// products, Technometrics 4 (1962): no large sums are subtracted from another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Moments {
    n: u64,
    min: f64,
    max: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.n += 1;
        (self.min, self.max) = match self.n {
            1 => (value, value),
            _ => (self.min.min(value), self.max.max(value)),
        };
        let distance = value - self.mean;
        self.mean += distance / self.n as f64;
        self.squares += distance * (value - self.mean);
    }

    /// Adds all values of `other`: Chan, Golub and LeVeque, Updating formulae and a
    /// pairwise algorithm for computing sample variances, COMPSTAT 1982.
    pub fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        if self.n == 0 {
            *self = *other;
            return;
        }
        let (here, there) = (self.n as f64, other.n as f64);
        let distance = other.mean - self.mean;
        self.n = self.n.saturating_add(other.n);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.mean += distance * there / (here + there);
        self.squares += other.squares + distance * distance * here * there / (here + there);
    }

    /// What is shown of them; `None` without any.
    pub fn spread(self) -> Option<Spread> {
        (self.n > 0).then(|| Spread {
            n: Some(self.n),
            min: self.min,
            max: self.max,
            mean: self.mean,
            stddev: (self.n > 1).then(|| (self.squares / (self.n - 1) as f64).sqrt()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_parts_merge_to_those_of_the_whole() {
        let values: Vec<f64> = (0..1000).map(|n| f64::from(n * n % 977) + 1e6).collect();
        let of = |values: &[f64]| {
            let mut moments = Moments::default();
            values.iter().for_each(|&value| moments.add(value));
            moments
        };
        let whole = of(&values).spread().unwrap();
        let mut merged = Moments::default();
        for part in [&values[..0], &values[..1], &values[1..400], &values[400..]] {
            merged.merge(&of(part));
        }
        let merged = merged.spread().unwrap();
        assert_eq!(
            (merged.n, merged.min, merged.max),
            (whole.n, whole.min, whole.max)
        );
        assert!((merged.mean / whole.mean - 1.0).abs() < 1e-12);
        let (a, b) = (merged.stddev.unwrap(), whole.stddev.unwrap());
        assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
    }
}
