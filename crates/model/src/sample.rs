//! What one interval of a running job brought.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::result::Direction;

/// One interval of one job (with group reporting: of one group), one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
}

impl Sample {
    /// I/Os per second over the interval; `None` when it has no length.
    #[must_use]
    pub fn iops(&self) -> Option<f64> {
        (self.span_ms > 0).then(|| self.ios as f64 * 1000.0 / self.span_ms as f64)
    }

    /// Bytes per second over the interval; `None` when it has no length.
    #[must_use]
    pub fn bw_bytes(&self) -> Option<f64> {
        (self.span_ms > 0).then(|| self.bytes as f64 * 1000.0 / self.span_ms as f64)
    }
}
