//! Whether a figure is true, and why not. Each kind of reason has one text, here and
//! nowhere else; `analysis::verdict` has the rule of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a figure is worth.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
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
pub enum VerdictLevel {
    /// No reason was found against it.
    #[default]
    Valid,
    /// Something else than what was to be measured is in it, or may be.
    Suspect,
    /// It is a figure of something else.
    Invalid,
}

impl VerdictLevel {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Suspect => "suspect",
            Self::Invalid => "invalid",
        }
    }
}

/// What is to be known of a figure before it is used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FigureVerdict {
    /// The worst of its reasons.
    pub level: VerdictLevel,
    /// In the order of [`ReasonKind::ALL`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<VerdictReason>,
}

impl FigureVerdict {
    /// Adds a reason; of each kind the first one stays.
    pub fn add(&mut self, reason: VerdictReason) {
        if self.has(reason.kind) {
            return;
        }
        self.level = self.level.max(reason.level);
        self.reasons.push(reason);
        self.reasons.sort_by_key(|reason| reason.kind);
    }

    /// Takes reasons of these kinds away.
    pub fn without(&mut self, kinds: &[ReasonKind]) {
        self.reasons.retain(|reason| !kinds.contains(&reason.kind));
        let levels = self.reasons.iter().map(|reason| reason.level);
        self.level = levels.max().unwrap_or_default();
    }

    /// Whether there is a reason of this kind.
    pub fn has(&self, kind: ReasonKind) -> bool {
        self.reasons.iter().any(|reason| reason.kind == kind)
    }

    /// The reasons that speak against the figure.
    pub fn against(&self) -> impl Iterator<Item = &VerdictReason> {
        let all = self.reasons.iter();
        all.filter(|reason| reason.level > VerdictLevel::Valid)
    }

    /// Their kinds.
    pub fn kinds(&self) -> Vec<ReasonKind> {
        self.against().map(|reason| reason.kind).collect()
    }
}

/// One reason, with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VerdictReason {
    /// Which rule found it.
    pub kind: ReasonKind,
    /// How bad it is. One that is `valid` says what the figure is a figure of.
    pub level: VerdictLevel,
    /// The numbers it rests on, by their names, which end with the unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<String, f64>,
    /// What was found.
    pub sentence: String,
    /// What would give a better figure.
    pub to_do: String,
}

impl VerdictReason {
    /// A reason that needs no numbers.
    pub fn of(kind: ReasonKind) -> Self {
        Self {
            kind,
            level: kind.level(),
            evidence: BTreeMap::new(),
            sentence: kind.sentence().to_owned(),
            to_do: kind.to_do().to_owned(),
        }
    }

    /// The same as a note: it is there, and does not weigh.
    #[must_use]
    pub fn noted(self) -> Self {
        Self {
            level: VerdictLevel::Valid,
            ..self
        }
    }

    /// The same, which weighs only where this holds.
    #[must_use]
    pub fn noted_unless(self, weighs: bool) -> Self {
        match weighs {
            true => self,
            false => self.noted(),
        }
    }

    /// A reason in a sentence of its own, with its numbers.
    pub fn found<'n>(
        kind: ReasonKind,
        sentence: String,
        evidence: impl IntoIterator<Item = (&'n str, f64)>,
    ) -> Self {
        let finite = evidence.into_iter().filter(|(_, value)| value.is_finite());
        Self {
            evidence: finite
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            sentence,
            ..Self::of(kind)
        }
    }
}

macro_rules! reason_kinds {
    ($($(#[$doc:meta])* $name:ident: $level:ident, $text:literal;)*) => {
        /// Why a figure may not be what it seems.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ReasonKind {
            $($(#[$doc])* $name,)*
        }

        impl ReasonKind {
            /// Every kind, in the order in which they are told.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// How bad it is.
            pub fn level(self) -> VerdictLevel {
                match self {
                    $(Self::$name => VerdictLevel::$level,)*
                }
            }

            /// What it means for the figures; behind the semicolon, what to do.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

reason_kinds! {
    /// Counted from the samples up to the last whole interval, because the job
    /// left no figures of its own.
    FromSamples: Suspect, "counted from the interval samples: the I/O after the last whole interval is missing; let the job run to its end";
    /// Failed I/Os are counted as done (`continue_on_error`, `ignore_error`).
    FailedIosCounted: Invalid, "I/Os failed and the job went on, and fio counts them as done, which makes its rates too high; use the native engine, or repair the device";
    /// The page cache answered reads that never reached a disk.
    CachedReads: Invalid, "the page cache answered reads: the disk is slower; set direct=1 or read more than fits in memory";
    /// Reads of blocks that hold nothing: the device need not look at its media.
    NothingRead: Invalid, "blocks were read that hold nothing: the device answers these without its media; write the whole range first";
    /// A cache below the measured device answered.
    CachedBelow: Suspect, "a cache below the device answered: its storage is slower; attach the loop device with --direct-io=on, or use a range larger than that cache";
    /// A layer below compresses, and the data can be compressed.
    Compressed: Suspect, "the storage compresses, and this data compresses well: less was moved than was counted; use data like that of the application (refill_buffers, buffer_compress_percentage)";
    /// Writes to blocks that a snapshot or a copy has, too.
    SharedBlocks: Valid, "a snapshot or a copy shares blocks of the file: the first write to each of them goes to a new one; measure a file that shares none, or write all of it once before";
    /// A small range was read over and over.
    DeviceMemory: Valid, "a small range was read many times over: the drive's own memory may have answered; use a range of several GiB";
    /// Too little was written to fill a drive's write cache.
    WriteCacheUnfilled: Valid, "little was written: the drive may have taken it all in a fast cache; write more than that cache holds, or until the rate is steady";
    /// Nothing is known of what a flash drive was written with before.
    UnknownHistory: Valid, "what was written to the drive before is not known: a fresh or trimmed drive writes faster than a full one; fill it, or bring it to a steady state first";
    /// Writes went to the page cache and nothing waited for them to be stored.
    UnsyncedWrites: Suspect, "the writes went to the page cache and nothing waited for the disk; set direct=1, fsync or end_fsync=1";
    /// The files lie in memory (tmpfs, ramfs).
    InMemory: Invalid, "the files lie in memory: this says nothing about a disk; name a file on a disk";
    /// Others read or wrote the device meanwhile.
    ForeignIo: Suspect, "the device did more than the job asked for: somebody else used it meanwhile; stop what else uses it, and measure again";
    /// The job's I/Os were not all under way that were to be.
    DepthNotReached: Suspect, "fewer I/Os were under way than iodepth asks for; an engine that waits for each I/O (psync, libaio without direct=1) keeps one, and a job without a free CPU fewer than it may";
    /// The job used up its CPU.
    CpuBound: Valid, "the job used up its CPU: the disk may do more; use more jobs or larger blocks";
    /// The job waited for a CPU: others, or the hypervisor, had it.
    CpuTaken: Suspect, "tasks waited for a CPU, or the hypervisor took it away; stop what else runs, or measure on a machine with spare CPUs";
    /// One CPU was full of interrupts.
    InterruptBound: Valid, "one CPU was full of interrupts; spread the device's interrupts over more CPUs";
    /// The engine ran on CPUs far from the device.
    FarCpus: Valid, "the engine ran on CPUs of another NUMA node than the device's; run it with cpus_allowed, or numactl, on the device's node";
    /// A control group held the job back.
    Throttled: Suspect, "a control group held the job back: the figure is its limit; measure outside the group, or without its limit";
    /// CPU or drive slowed down for its temperature.
    Thermal: Suspect, "the CPU or the drive slowed itself down for its temperature; cool it, and measure again";
    /// CPUs ran far below their highest clock.
    ClockFrequency: Valid, "the CPUs ran far below their highest clock; set the governor 'performance'";
    /// The PCIe link is slower than it could be.
    LinkNarrow: Valid, "the link to the drive is slower or narrower than both ends can do; reseat the drive, or use another slot";
    /// The PCIe link carries as much as it can.
    LinkLimit: Valid, "the link to the drive was full: the figure is the link's; use a faster slot to measure the drive";
    /// Its rate changed from one level to another.
    LevelShift: Suspect, "the rate changed from one level to another while it was measured: the mean is of neither; measure longer, or each level by itself";
    /// Its rate has not settled.
    StillChanging: Suspect, "the rate was still changing: another run time gives another figure; set ramp_time, or measure until it is steady";
    /// Intervals without I/O.
    Stalls: Suspect, "the I/O stood still for whole intervals; look for what held it, in the kernel's log and on the device";
    /// Errors of the device or its link meanwhile.
    DeviceErrors: Suspect, "the device or its link counted errors meanwhile; look at its log, its cable and its slot";
    /// Data written may still be in the drive's volatile cache.
    VolatileCache: Valid, "the drive's write cache was on and nothing flushed it: the writes need not be stored; set fsync or end_fsync=1 to measure stored data";
    /// The device saw other requests than were asked for.
    RequestsSplit: Valid, "the device saw requests of another size than the job's: the kernel merged or split them; look at max_sectors_kb, the scheduler and bs";
    /// I/Os do not begin or end at the device's own blocks.
    Misaligned: Valid, "I/Os are no multiples of the device's physical block: it reads before it writes; use a multiple of it for bs and offsets";
    /// The settings of the queue changed meanwhile.
    SettingsChanged: Suspect, "a setting of the device changed while it was measured; measure again, and leave it alone";
    /// Other work on the device by the system.
    Maintenance: Suspect, "an array, a file system or trims worked on the device meanwhile; wait until that is done";
    /// Memory ran short.
    MemoryPressure: Suspect, "memory ran short while it was measured; use smaller buffers or fewer jobs, or stop what else needs memory";
    /// The record was written to the measured device.
    RecordOnTarget: Valid, "the record is on the measured device: it writes a little beside the job; name another folder with --runs";
    /// The kernel's clock is a slow one.
    ClockSource: Suspect, "the kernel's clock is slow to read, which costs CPU for every I/O; boot with a clocksource of tsc";
    /// Too few I/Os beyond a percentile that is shown.
    FewBeyond: Valid, "fewer than ten I/Os lie beyond a percentile that is shown: it is hardly more than the maximum; measure longer";
    /// Its rate, its think time or its latency target was the limit.
    OwnLimit: Valid, "the job asked for no more: its rate, its think time or its latency target was the limit; take it away to see what the device can do";
    /// Latencies beyond 17.18 s, where fio's histogram ends.
    SaturatedPercentiles: Suspect, "fio's histogram ends at 17.18 s: percentiles there are lower bounds; use the maximum, which is exact, or the native engine";
    /// A job under a rate did not reach it.
    BehindRate: Suspect, "the rate that was asked for was not reached: the storage, or the job with its depth, cannot do as much; ask for less, or for more I/Os under way";
    /// The load in the background, beside which it was measured, fell behind its rate.
    BackgroundBehind: Suspect, "the load in the background did not keep its rate meanwhile: the figures are those beside a lighter load than was asked for; ask for a lighter load";
    /// Less than a second of I/O.
    Short: Suspect, "less than a second of I/O: start and end weigh heavily; run longer";
    /// The number of I/Os is worked out from a rounded rate; latencies are rounded too.
    RoundedCounts: Suspect, "this output rounds: the number of I/Os is worked out from its IOPS, and latencies are cut to whole units; import fio's json+ output";
    /// The hosts of a sum did not run side by side for all of the time.
    Apart: Suspect, "the hosts did not run side by side all the time; compare their own starts and run times";
    /// A host of a sum is far slower than the others.
    SlowHost: Suspect, "far slower than the other hosts, which the sum hides; look at the lines of the hosts";
    /// A host that was to have a part in a sum has none, or not all of it.
    HostsMissing: Invalid, "not every host that was asked for has its part in the sum, which is too low; measure again with all of them";
    /// The clocks of the hosts of a sum are known too roughly.
    UncertainClocks: Suspect, "the clocks of the hosts are known to half a sampling interval at best: what happened at the same time is uncertain; use a network with shorter round trips";
    /// Neither IOPS nor the number of I/Os are known; both stand as 0.
    UnknownCounts: Invalid, "this output knows neither IOPS nor the number of I/Os: they stand as 0; import fio's json+ output";
}

impl ReasonKind {
    /// What it means for the figures.
    pub fn sentence(self) -> &'static str {
        self.meaning()
            .split_once("; ")
            .map_or(self.meaning(), |(what, _)| what)
    }

    /// What would give better ones.
    pub fn to_do(self) -> &'static str {
        self.meaning()
            .split_once("; ")
            .map_or("", |(_, to_do)| to_do)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_says_what_it_means_and_what_to_do() {
        for kind in ReasonKind::ALL {
            assert_eq!(kind.meaning().matches("; ").count(), 1, "{kind:?}");
        }
    }

    #[test]
    fn a_verdict_is_as_bad_as_its_worst_reason() {
        let mut verdict = FigureVerdict::default();
        assert_eq!(verdict.level, VerdictLevel::Valid);
        for kind in [
            ReasonKind::LinkLimit,
            ReasonKind::Short,
            ReasonKind::InMemory,
        ] {
            verdict.add(VerdictReason::of(kind));
        }
        assert_eq!(verdict.level, VerdictLevel::Invalid);
        assert_eq!(verdict.kinds(), [ReasonKind::InMemory, ReasonKind::Short]);
        assert!(verdict.has(ReasonKind::LinkLimit));
    }
}
