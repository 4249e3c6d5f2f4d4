//! What makes a figure doubtful. Each kind has one text, here and nowhere else.

use serde::{Deserialize, Serialize};

/// Why a direction's figures may not be what they seem.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
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
    /// A job under a rate did not reach it.
    BehindRate,
    /// The load in the background, beside which it was measured, fell behind its rate.
    BackgroundBehind,
    /// Less than a second of I/O.
    Short,
    /// The number of I/Os is worked out from a rounded rate; latencies are rounded too.
    RoundedCounts,
    /// The hosts of a sum did not run side by side for all of the time.
    Apart,
    /// A host of a sum is far slower than the others.
    SlowHost,
    /// A host that was to have a part in a sum has none, or not all of it.
    HostsMissing,
    /// The clocks of the hosts of a sum are known too roughly.
    UncertainClocks,
    /// Neither IOPS nor the number of I/Os are known; both stand as 0.
    UnknownCounts,
}

impl Doubt {
    /// Every kind, in the order in which they are told.
    pub const ALL: [Self; 16] = [
        Self::FromSamples,
        Self::FailedIosCounted,
        Self::CachedReads,
        Self::UnsyncedWrites,
        Self::InMemory,
        Self::CpuBound,
        Self::SaturatedPercentiles,
        Self::BehindRate,
        Self::BackgroundBehind,
        Self::Short,
        Self::RoundedCounts,
        Self::Apart,
        Self::SlowHost,
        Self::HostsMissing,
        Self::UncertainClocks,
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
                "I/Os failed and the job went on; fio counts them as done, which makes its rates too high"
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
            Self::BehindRate => {
                "the rate that was asked for was not reached: the storage, or the job with its depth, cannot do as much"
            }
            Self::BackgroundBehind => {
                "the load in the background did not keep its rate meanwhile: the figures are those beside a lighter load than was asked for"
            }
            Self::Short => "less than a second of I/O: start and end weigh heavily; run longer",
            Self::RoundedCounts => {
                "this output rounds: the number of I/Os is worked out from its IOPS, and latencies are cut to whole units"
            }
            Self::Apart => {
                "the hosts did not run side by side all the time; compare their own starts and run times"
            }
            Self::SlowHost => {
                "far slower than the other hosts, which the sum hides: look at the lines of the hosts"
            }
            Self::HostsMissing => {
                "not every host that was asked for has its part in the sum: it is too low"
            }
            Self::UncertainClocks => {
                "the clocks of the hosts are known to half a sampling interval at best: what happened at the same time is uncertain"
            }
            Self::UnknownCounts => {
                "this output knows neither IOPS nor the number of I/Os: they stand as 0"
            }
        }
    }
}
