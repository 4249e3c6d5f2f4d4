//! What makes a figure doubtful. Each kind has one text, here and nowhere else.

use serde::{Deserialize, Serialize};

/// Why a direction's figures may not be what they seem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Counted from the samples up to the last whole interval, because the job
    /// left no figures of its own.
    FromSamples,
    /// Failed I/Os are counted as done (`continue_on_error`, `ignore_error`).
    FailedIosCounted,
    /// The page cache answered reads that never reached a disk.
    CachedReads,
    /// Writes went to the page cache and nothing waited for them to be stored.
    UnsyncedWrites,
    /// The files lie in memory (tmpfs, ramfs).
    InMemory,
    /// The job used up its CPU.
    CpuBound,
    /// Latencies beyond 17.18 s, where fio's histogram ends.
    SaturatedPercentiles,
    /// Less than a second of I/O.
    Short,
    /// The number of I/Os is worked out from a rounded rate; latencies are rounded too.
    RoundedCounts,
    /// Neither IOPS nor the number of I/Os are known; both stand as 0.
    UnknownCounts,
}

impl Doubt {
    /// Every kind, in the order in which they are told.
    pub const ALL: [Self; 10] = [
        Self::FromSamples,
        Self::FailedIosCounted,
        Self::CachedReads,
        Self::UnsyncedWrites,
        Self::InMemory,
        Self::CpuBound,
        Self::SaturatedPercentiles,
        Self::Short,
        Self::RoundedCounts,
        Self::UnknownCounts,
    ];

    /// What it means for the figures, and what would give better ones.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::FromSamples => {
                "counted from the interval samples: the I/O after the last whole interval is missing"
            }
            Self::FailedIosCounted => {
                "the engine counts failed I/Os as done: the rates are too high"
            }
            Self::CachedReads => {
                "the page cache answered reads: the disk is slower; set direct=1 or read more than fits in memory"
            }
            Self::UnsyncedWrites => {
                "the writes went to the page cache and nothing waited for the disk; set direct=1, fsync or end_fsync=1"
            }
            Self::InMemory => "the files lie in memory: this says nothing about a disk",
            Self::CpuBound => {
                "the job used up its CPU: the disk may do more; use more jobs or larger blocks"
            }
            Self::SaturatedPercentiles => {
                "fio's histogram ends at 17.18 s: percentiles there are lower bounds; the maximum is exact"
            }
            Self::Short => "less than a second of I/O: start and end weigh heavily; run longer",
            Self::RoundedCounts => {
                "this output rounds: the number of I/Os is worked out from its IOPS, and latencies are cut to whole units"
            }
            Self::UnknownCounts => {
                "this output knows neither IOPS nor the number of I/Os: they stand as 0"
            }
        }
    }
}
