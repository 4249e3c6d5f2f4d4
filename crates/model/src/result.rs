//! What came out of a run: jobs, groups, disks. Missing is `None`, never 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::certainty::{LatencyCertainty, RateCertainty};
use crate::histogram::Histogram;
use crate::host::Host;
use crate::verdict::{FigureVerdict, ReasonKind, VerdictLevel};

/// Direction of an I/O, as fio names it.
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
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims (discards).
    Trim,
    /// Syncs: only latencies are known of them.
    Sync,
    /// All directions as one, with fio's `unified_rw_reporting`.
    Mixed,
}

impl Direction {
    /// All that there are.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Trim, Self::Sync, Self::Mixed];
    /// Those that have figures of their own beside latencies.
    pub const MEASURED: [Self; 4] = [Self::Read, Self::Write, Self::Trim, Self::Mixed];

    /// The name in job files, documents and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
            Self::Mixed => "mixed",
        }
    }

    /// The same, as a title begins with it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Read => "Read",
            Self::Write => "Write",
            Self::Trim => "Trim",
            Self::Sync => "Sync",
            Self::Mixed => "Mixed",
        }
    }
}

/// Name of the sums over all hosts, which stand beside their parts as if they
/// were one more job: fio's client mode has it so (`client.c`). Where hosts ran
/// jobs of several names, the sum of each is called `All clients: NAME`.
pub const ALL_CLIENTS: &str = "All clients";

/// Everything an engine reports at its end (or, of a running job, so far).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Results {
    /// Engine and version that wrote the figures, for example `fio-3.33`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
    /// When the figures were taken, ms since 1970 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_ms: Option<u64>,
    /// Options of `[global]`, where the engine reports them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub global_options: BTreeMap<String, String>,
    /// The jobs in the engine's order (one a group where it reports groups).
    pub jobs: Vec<JobResult>,
    /// Block devices under the jobs' files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskUse>,
}

/// One job (or, with group reporting, one group of jobs).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JobResult {
    /// Name of the job's section.
    pub name: String,
    /// The step of the run it belongs to, when the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Free text of the option `description`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Host that ran it, for jobs of fio's client mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Port of the fio server on that host: one host may run several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Number of hosts whose figures are added up here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Of a sum over hosts: how they ran beside each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub across: Option<Across>,
    /// Reporting group, counted from 0.
    pub group: u32,
    /// Number of merged jobs, where the engine tells (fio's normal output does).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<u32>,
    /// First error as a positive errno; 0 is none.
    pub error: i32,
    /// I/Os that failed, where the job went on after errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_errors: Option<u64>,
    /// Zones that were reset, of jobs on zoned devices (`zonemode=zbd`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_resets: Option<u64>,
    /// Wall time of the job in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_ms: Option<u64>,
    /// Options of the job, where the engine reports them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Reads; stored as null when there are no figures.
    #[serde(default)]
    pub read: Option<DirectionResult>,
    /// Writes; stored as null when there are no figures.
    #[serde(default)]
    pub write: Option<DirectionResult>,
    /// Trims; stored as null when there are no figures.
    #[serde(default)]
    pub trim: Option<DirectionResult>,
    /// All directions as one (`unified_rw_reporting`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed: Option<DirectionResult>,
    /// Latencies of syncs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<Latency>,
    /// CPU and scheduling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuUse>,
    /// Distribution of the queue depth in percent, by fio's class names (`1`, `2`, … `>=64`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iodepth_percent: Vec<(String, f64)>,
    /// fio's steady-state verdict (`ss=`), under fio's own definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio_steady_state: Option<serde_json::Value>,
    /// What fio's search for the depth that keeps `latency_target` came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_target: Option<LatencyTarget>,
}

/// What fio's search for the depth that keeps a latency came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LatencyTarget {
    /// The depth at the end.
    pub depth: u32,
    /// The latency to be kept (`latency_target`), in ns.
    pub target_ns: u64,
    /// Share of the I/Os that must keep it (`latency_percentile`), in percent.
    pub percentile: f64,
    /// Time for which a depth is tried (`latency_window`), in µs.
    pub window_us: u64,
}

impl JobResult {
    /// The job and where it ran: a machine, a pod and its node.
    pub fn title(&self, hosts: &[Host]) -> String {
        let Some(name) = &self.hostname else {
            return self.name.clone();
        };
        let host = hosts.iter().find(|host| host.name == *name);
        match (host.and_then(|host| host.node.as_ref()), self.port) {
            (Some(node), _) => format!("{} on {name} ({node})", self.name),
            (None, Some(port)) => format!("{} on {name}:{port}", self.name),
            (None, None) => format!("{} on {name}", self.name),
        }
    }

    /// The directions of data that have figures, in fio's order.
    pub fn directions(&self) -> impl Iterator<Item = (Direction, &DirectionResult)> {
        [
            (Direction::Read, &self.read),
            (Direction::Write, &self.write),
            (Direction::Trim, &self.trim),
            (Direction::Mixed, &self.mixed),
        ]
        .into_iter()
        .filter_map(|(dir, result)| result.as_ref().map(|result| (dir, result)))
    }

    /// Whether this is a sum over hosts, fio's or Fathom's: its parts stand
    /// beside it.
    pub fn is_sum_of_clients(&self) -> bool {
        self.clients.is_some() || self.name == ALL_CLIENTS
    }

    /// Whether it reports an error and went past none: of one that went past some, the
    /// engine tells by a failure when another ended it.
    pub fn has_failed(&self) -> bool {
        self.error != 0 && self.total_errors.is_none_or(|errors| errors == 0)
    }

    /// The place of one direction's result; `None` for syncs, which carry latencies only.
    pub fn direction_mut(&mut self, dir: Direction) -> Option<&mut Option<DirectionResult>> {
        match dir {
            Direction::Read => Some(&mut self.read),
            Direction::Write => Some(&mut self.write),
            Direction::Trim => Some(&mut self.trim),
            Direction::Mixed => Some(&mut self.mixed),
            Direction::Sync => None,
        }
    }
}

/// How the hosts of a sum ran beside each other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Across {
    /// From the first start of a host to the last end, in ms.
    pub span_ms: u64,
    /// The part of it in which all of them ran, in ms.
    pub shared_ms: u64,
    /// What the rates of the sum are.
    pub rates: RatesOf,
    /// Hosts that are far slower than the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slow: Vec<SlowHost>,
}

/// What the rates of a sum over hosts are.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RatesOf {
    /// Each host's rate over its own run time, added up.
    #[default]
    OwnTimes,
    /// What all did together in the time that all shared, counted from samples.
    SharedTime,
}

/// A host that is far slower than the others in one respect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SlowHost {
    /// The host, as [`Host::label`](crate::Host::label) has it.
    pub host: String,
    /// The direction.
    pub dir: Direction,
    /// In what.
    pub figure: SlowBy,
    /// Its figure over the median of all hosts.
    pub of_median: f64,
}

/// In what a host can be far slower than others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlowBy {
    /// Its bandwidth is far below.
    Bandwidth,
    /// Its IOPS are far below.
    Iops,
    /// Its 99th percentile of the completion latency is far above.
    ClatP99,
}

/// One direction of one job over its whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DirectionResult {
    /// I/Os completed. fio counts failed I/Os too when told to go on after errors.
    pub total_ios: u64,
    /// Bytes transferred.
    pub io_bytes: u64,
    /// Bytes per second over the direction's run time.
    pub bw_bytes: f64,
    /// I/Os per second over the direction's run time.
    pub iops: f64,
    /// Run time of the direction in ms.
    pub runtime_ms: u64,
    /// What the engine itself said against them; a part of the verdict once there is one.
    #[serde(default, rename = "doubts", skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<ReasonKind>,
    /// Whether these figures are true; found when they are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FigureVerdict>,
    /// How far the rates can be trusted; filled in when they are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<RateCertainty>,
    /// I/Os that came back shorter than asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_ios: Option<u64>,
    /// I/Os that failed and were gone past, where the engine counts them by direction: a
    /// part of [`JobResult::total_errors`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// I/Os dropped by the engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_ios: Option<u64>,
    /// Under a rate: how far the I/Os began behind their intended start. Where it
    /// is there, `clat` and `slat` count from the issue and `lat` does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Latency>,
    /// Time to submit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slat: Option<Latency>,
    /// From submission to completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clat: Option<Latency>,
    /// From creation of the I/O to completion. Where `lag` is there too, from
    /// its intended start: lat = lag + slat + clat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lat: Option<Latency>,
    /// Completion latencies by I/O priority, when two or more were seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<PriorityResult>,
    /// Bandwidth over the engine's own intervals, in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bw_intervals: Option<Spread>,
    /// IOPS over the engine's own intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops_intervals: Option<Spread>,
}

impl DirectionResult {
    /// The kinds of reasons against these figures.
    pub fn kinds(&self) -> Vec<ReasonKind> {
        match &self.verdict {
            Some(verdict) => verdict.kinds(),
            None => self.told.clone(),
        }
    }

    /// Whether they are figures of something else than what was to be measured.
    pub fn is_invalid(&self) -> bool {
        let kinds = self.kinds().into_iter();
        kinds
            .map(ReasonKind::level)
            .any(|level| level == VerdictLevel::Invalid)
    }

    /// Whether there is a reason of this kind against them.
    pub fn is(&self, kind: ReasonKind) -> bool {
        self.kinds().contains(&kind)
    }
}

/// Latencies of one kind, in ns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Latency {
    /// Number of values, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Smallest.
    pub min_ns: u64,
    /// Largest.
    pub max_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Standard deviation of the single values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stddev_ns: Option<f64>,
    /// (percent, ns), ascending; as reported, or from the histogram. Stored as
    /// an object: `{"50": 81408, "99.9": 134144}`.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        with = "crate::percentiles"
    )]
    #[schemars(with = "std::collections::BTreeMap<String, u64>")]
    pub percentiles_ns: Vec<(f64, u64)>,
    /// How far they can be trusted; filled in when they are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<LatencyCertainty>,
    /// All values, where the engine gave them (fio: json+).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

impl Latency {
    /// The value at `percent` in ns: as reported if it was, else from the
    /// histogram; never beyond the smallest and the largest value.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        Some(self.bounded(self.raw_percentile_ns(percent)?))
    }

    /// The same as fio writes it, which can be beyond the largest value.
    pub fn raw_percentile_ns(&self, percent: f64) -> Option<u64> {
        self.percentiles_ns
            .iter()
            .find(|(p, _)| (p - percent).abs() < 1e-9)
            .map(|&(_, ns)| ns)
            .or_else(|| self.histogram.as_ref()?.percentile_ns(percent))
    }

    /// A percentile within what was measured. Histograms give a place in a
    /// bucket, which can be beyond its last value; fio's do.
    fn bounded(&self, ns: u64) -> u64 {
        match self.max_ns {
            // Not known: no I/O takes no time.
            0 => ns,
            max => ns.max(self.min_ns).min(max),
        }
    }
}

/// Completion latencies of one I/O priority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PriorityResult {
    /// The kernel's value: class << 13 | hint << 3 | level (`include/uapi/linux/ioprio.h`).
    pub value: u16,
    /// Latencies of the I/Os with this priority.
    pub clat: Latency,
}

impl PriorityResult {
    /// The value's parts: class, hint, level.
    pub fn parts(&self) -> (u16, u16, u16) {
        (
            self.value >> 13,
            (self.value >> 3) & 0x3ff,
            self.value & 0x7,
        )
    }
}

/// Minimum, maximum, mean and deviation of an interval figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Spread {
    /// Number of intervals, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Smallest interval.
    pub min: f64,
    /// Largest interval.
    pub max: f64,
    /// Mean of the intervals.
    pub mean: f64,
    /// Standard deviation of the intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stddev: Option<f64>,
}

/// CPU and scheduling figures of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuUse {
    /// User time in percent of the job's run time.
    pub user_percent: f64,
    /// System time in percent of the job's run time.
    pub system_percent: f64,
    /// Context switches.
    pub context_switches: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Minor page faults.
    pub minor_faults: u64,
}

/// A group of jobs in one direction: fio's "Run status group" line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GroupResult {
    /// The step of the run it belongs to, when the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Group, counted from 0.
    pub group: u32,
    /// Direction.
    pub dir: Direction,
    /// I/Os completed by all jobs of the group.
    pub total_ios: u64,
    /// I/Os of the group per second of its longest run time.
    pub iops: f64,
    /// Bytes moved by all jobs of the group.
    pub io_bytes: u64,
    /// Bytes moved by the group per second of its longest run time.
    pub bw_bytes: f64,
    /// Lowest average bandwidth of a job, bytes per second.
    pub bw_bytes_min: f64,
    /// Highest average bandwidth of a job, bytes per second.
    pub bw_bytes_max: f64,
    /// Shortest run time of a job, ms.
    pub runtime_ms_min: u64,
    /// Longest run time of a job, ms.
    pub runtime_ms_max: u64,
}

/// What a block device did while the jobs ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DiskUse {
    /// Host it belongs to, for jobs of fio's client mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Kernel name, for example `nvme0n1`.
    pub name: String,
    /// The step of the run it belongs to, when the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Requests completed: reads.
    pub read_ios: u64,
    /// Requests completed: writes.
    pub write_ios: u64,
    /// Requests merged: reads.
    pub read_merges: u64,
    /// Requests merged: writes.
    pub write_merges: u64,
    /// Time reads took, ms (sum over requests).
    pub read_ticks_ms: u64,
    /// Time writes took, ms (sum over requests).
    pub write_ticks_ms: u64,
    /// Time requests spent queued, ms (sum over requests).
    pub in_queue_ms: u64,
    /// Share of the time in which at least one request was under way, percent.
    pub util_percent: f64,
}
