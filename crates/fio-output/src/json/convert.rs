//! From fio's JSON to [`Results`]: units, absences and doubts.

use std::collections::BTreeMap;

use fathom_model::histogram::FIO_SATURATION_NS;
use fathom_model::result::{ALL_CLIENTS, CpuUse, LatencyTarget, PriorityResult, Spread};
use fathom_model::{DirectionResult, DiskUse, JobResult, Latency, ReasonKind, Results};

use super::raw;
use crate::terse;

/// fio 2.x's histogram ends at 2^24 µs (`stat.h`: 19 groups of 64 buckets).
const FIO2_SATURATION_NS: u64 = (1 << 24) * 1000;

/// Converts a document; what is doubtful in it is added to `warnings`.
pub fn results(document: raw::Document, warnings: &mut Vec<String>) -> Results {
    let timestamp_ms = document
        .timestamp_ms
        .count()
        .or_else(|| document.timestamp.count()?.checked_mul(1000));
    let global_options = merge_options(document.global_options.0, warnings);
    let mut disks: Vec<DiskUse> = document.disk_util.into_iter().map(disk).collect();
    let mut jobs = Vec::new();
    let lists = [document.jobs, document.client_stats];
    let reports = lists.into_iter().flatten().flat_map(|list| list.0);
    for raw in reports.filter(|raw| !is_unused_slot(raw)) {
        jobs.push(job(raw, &global_options, &mut disks, warnings));
    }
    Results {
        engine_version: document.version,
        timestamp_ms,
        global_options,
        jobs,
        disks,
    }
}

/// The options all clients share; of an option they do not agree on the first value.
fn merge_options(
    all: Vec<raw::RawJobOptions>,
    warnings: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let mut merged = BTreeMap::new();
    for (name, value) in all.into_iter().flat_map(|options| options.0) {
        match merged.get(&name) {
            None => {
                merged.insert(name, value);
            }
            Some(first) if *first != value => warnings.push(format!(
                "the clients' global options differ: {name}={first} and {name}={value}"
            )),
            Some(_) => {}
        }
    }
    warnings.dedup();
    merged
}

/// Whether nobody's figures stand here. Where only some jobs of a group have
/// `group_reporting`, fio counts a slot too many and prints it with neither
/// name nor group (`__show_run_stats` in stat.c: `groupid` stays -1).
fn is_unused_slot(raw: &raw::RawJob) -> bool {
    const NO_GROUP: u64 = u32::MAX as u64;
    raw.jobname.as_ref().is_none_or(String::is_empty) && raw.groupid.count() == Some(NO_GROUP)
}

fn job(
    raw: raw::RawJob,
    global_options: &BTreeMap<String, String>,
    disks: &mut Vec<DiskUse>,
    warnings: &mut Vec<String>,
) -> JobResult {
    let name = raw.jobname.unwrap_or_default();
    // The sum carries the name of the last client (fio client.c).
    let is_sum = name == ALL_CLIENTS;
    let hostname = raw.hostname.filter(|_| !is_sum);
    disks.extend(raw.disk_util.into_iter().map(|raw| DiskUse {
        host: hostname.clone(),
        ..disk(raw)
    }));
    let mut convert = Convert {
        job: &name,
        warnings,
    };
    let mut job = JobResult {
        hostname,
        port: raw
            .port
            .count()
            .filter(|_| !is_sum)
            .and_then(|port| port.try_into().ok()),
        description: raw.desc.filter(|text| !text.is_empty()),
        group: small(raw.groupid),
        error: errno(raw.error).or(errno(raw.first_error)).unwrap_or(0),
        total_errors: raw.total_err.count(),
        options: raw.options.0,
        read: raw.read.and_then(|raw| convert.direction("read", *raw)),
        write: raw.write.and_then(|raw| convert.direction("write", *raw)),
        trim: raw.trim.and_then(|raw| convert.direction("trim", *raw)),
        mixed: raw.mixed.and_then(|raw| convert.direction("mixed", *raw)),
        sync: raw.sync.and_then(|raw| convert.sync(*raw)),
        iodepth_percent: raw.iodepth_level.0,
        latency_target: latency_target(
            raw.latency_depth,
            raw.latency_target,
            raw.latency_percentile,
            raw.latency_window,
        ),
        fio_steady_state: raw.steadystate,
        cpu: cpu(raw.usr_cpu, raw.sys_cpu, [raw.ctx, raw.majf, raw.minf]),
        ..JobResult::default()
    };
    job.name = name;
    let (reported, elapsed) = (raw.job_runtime.count(), raw.elapsed.count());
    job.runtime_ms = runtime(&job, global_options, reported, elapsed);
    job
}

/// fio writes these of every job; one without the option has a target of 0.
fn latency_target(
    depth: raw::Number,
    target_ns: raw::Number,
    percentile: raw::Number,
    window_us: raw::Number,
) -> Option<LatencyTarget> {
    Some(LatencyTarget {
        depth: depth.count()?.try_into().ok()?,
        target_ns: target_ns.count().filter(|&ns| ns > 0)?,
        percentile: percentile.decimal()?,
        window_us: window_us.count()?,
    })
}

/// `job_runtime`, which fio sums over the members of a reported group
/// (`stat.c`, `sum_thread_stats`); of a sum the longest direction's run time holds.
///
/// Nothing in the document says how many members there were: more than one
/// when the job has `numjobs`, and when its time is longer than fio itself ran.
fn runtime(
    job: &JobResult,
    global_options: &BTreeMap<String, String>,
    reported: Option<u64>,
    elapsed_s: Option<u64>,
) -> Option<u64> {
    let longest = job.directions().map(|(_, dir)| dir.runtime_ms).max();
    let numjobs = job.options.get("numjobs").or(global_options.get("numjobs"));
    let is_sum = job.is_sum_of_clients()
        || numjobs.is_some_and(|n| n.trim() != "1")
        || elapsed_s.is_some_and(|s| reported > Some(s.saturating_add(1).saturating_mul(1000)));
    if is_sum {
        longest
    } else {
        reported.or(longest)
    }
}

fn errno(number: raw::Number) -> Option<i32> {
    let value = number.decimal()?.abs();
    (value != 0.0 && value <= f64::from(i32::MAX)).then_some(value as i32)
}

fn small(number: raw::Number) -> u32 {
    number.count().and_then(|n| n.try_into().ok()).unwrap_or(0)
}

fn cpu(user: raw::Number, system: raw::Number, counts: [raw::Number; 3]) -> Option<CpuUse> {
    let [context_switches, major_faults, minor_faults] = counts.map(|n| n.count().unwrap_or(0));
    Some(CpuUse {
        user_percent: user.decimal()?,
        system_percent: system.decimal()?,
        context_switches,
        major_faults,
        minor_faults,
    })
}

fn disk(raw: raw::Disk) -> DiskUse {
    let count = |number: raw::Number| number.count().unwrap_or(0);
    let mut disk = DiskUse {
        name: raw.name.unwrap_or_default(),
        read_ios: count(raw.read_ios),
        write_ios: count(raw.write_ios),
        read_merges: count(raw.read_merges),
        write_merges: count(raw.write_merges),
        read_ticks_ms: count(raw.read_ticks),
        write_ticks_ms: count(raw.write_ticks),
        in_queue_ms: count(raw.in_queue),
        util_percent: raw.util.decimal().unwrap_or(0.0),
        ..DiskUse::default()
    };
    disk.host = raw.hostname;
    disk
}

/// What a latency's numbers are counted in.
#[derive(Clone, Copy, PartialEq)]
enum LatencyScale {
    Ns,
    /// fio 2.x.
    Us,
}

impl LatencyScale {
    fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1000,
        }
    }

    fn saturation_ns(self) -> u64 {
        match self {
            Self::Ns => FIO_SATURATION_NS,
            Self::Us => FIO2_SATURATION_NS,
        }
    }
}

/// Converts the parts of one job.
struct Convert<'a> {
    job: &'a str,
    warnings: &'a mut Vec<String>,
}

impl Convert<'_> {
    fn warn(&mut self, what: &str, text: &str) {
        self.warnings
            .push(format!("job '{}': {what}: {text}", self.job));
    }

    /// `None` for a direction without I/O.
    fn direction(&mut self, name: &str, raw: raw::RawDirection) -> Option<DirectionResult> {
        let runtime_ms = raw.runtime.count().unwrap_or(0);
        let io_bytes = io_bytes(&raw);
        // fio before 2.1.5 does not say how many I/Os there were, and cuts the IOPS.
        let counted = raw.total_ios.count();
        let total_ios =
            counted.unwrap_or_else(|| terse::fewest_ios(raw.iops.count().unwrap_or(0), runtime_ms));
        if total_ios == 0 && io_bytes == 0 && runtime_ms == 0 {
            return None;
        }
        let per_second = |amount: u64| match runtime_ms {
            0 => 0.0,
            ms => amount as f64 * 1000.0 / ms as f64,
        };
        let bw_bytes = raw
            .bw_bytes
            .decimal()
            .unwrap_or_else(|| per_second(io_bytes));
        let iops = raw.iops.decimal().unwrap_or_else(|| per_second(total_ios));
        let mut result = DirectionResult {
            total_ios,
            io_bytes,
            bw_bytes,
            iops,
            runtime_ms,
            short_ios: raw.short_ios.count(),
            drop_ios: raw.drop_ios.count(),
            lag: self.either(name, "lag", raw.lag_ns, None),
            slat: self.either(name, "slat", raw.slat_ns, raw.slat),
            clat: self.either(name, "clat", raw.clat_ns, raw.clat),
            lat: self.either(name, "lat", raw.lat_ns, raw.lat),
            // Bandwidths of intervals are in KiB/s in every version.
            bw_intervals: spread(
                [
                    raw.bw_samples,
                    raw.bw_min,
                    raw.bw_max,
                    raw.bw_mean,
                    raw.bw_dev,
                ],
                1024.0,
            ),
            iops_intervals: spread(
                [
                    raw.iops_samples,
                    raw.iops_min,
                    raw.iops_max,
                    raw.iops_mean,
                    raw.iops_stddev,
                ],
                1.0,
            ),
            ..DirectionResult::default()
        };
        if counted.is_none() {
            result.told.push(ReasonKind::RoundedCounts);
        }
        result.priorities = self.priorities(name, raw.prios, raw.clat_high_prio, raw.clat_low_prio);
        Some(result)
    }

    fn either(
        &mut self,
        dir: &str,
        kind: &str,
        ns: Option<raw::RawLatency>,
        us: Option<raw::RawLatency>,
    ) -> Option<Latency> {
        let what = || format!("{dir} {kind}");
        match (ns, us) {
            (Some(raw), _) => self.latency(&what(), raw, LatencyScale::Ns),
            (None, Some(raw)) => self.latency(&what(), raw, LatencyScale::Us),
            (None, None) => None,
        }
    }

    fn sync(&mut self, raw: raw::RawDirection) -> Option<Latency> {
        self.either("sync", "latency", raw.lat_ns, raw.lat)
    }

    /// `None` when the job did not measure it.
    fn latency(&mut self, what: &str, raw: raw::RawLatency, unit: LatencyScale) -> Option<Latency> {
        let n = raw.n.count();
        let is_zero = |number: raw::Number| number.decimal().is_none_or(|value| value == 0.0);
        let measured = match n {
            Some(n) => n > 0,
            // fio 2.x has no N; all zeros is how it prints what was not measured.
            None => !(is_zero(raw.min) && is_zero(raw.max) && is_zero(raw.mean)),
        };
        if !measured {
            return None;
        }
        let (Some(min), Some(max), Some(mean)) =
            (raw.min.count(), raw.max.count(), raw.mean.decimal())
        else {
            self.warn(what, "not a number; left out");
            return None;
        };
        if raw.stddev.decimal().is_none() {
            self.warn(what, "the deviation is not a number; left out");
        }
        let scale = unit.ns();
        let max_ns = max.saturating_mul(scale);
        let histogram = raw
            .bins
            .map(|bins| bins.histogram(scale))
            .filter(|h| !h.is_empty());
        if max_ns >= unit.saturation_ns() && (histogram.is_some() || !raw.percentile.0.is_empty()) {
            self.warn(
                what,
                "fio's histogram ends at about 17 s and the maximum is larger: \
                 percentiles that reach the end are too small",
            );
        }
        if let (Some(histogram), Some(n)) = (&histogram, n)
            && histogram.total() != n
        {
            let text = format!("{n} values, but its histogram holds {}", histogram.total());
            self.warn(what, &text);
        }
        Some(Latency {
            certainty: None,
            n,
            min_ns: min.saturating_mul(scale),
            max_ns,
            mean_ns: mean * scale as f64,
            stddev_ns: raw.stddev.decimal().map(|dev| dev * scale as f64),
            percentiles_ns: percentiles(raw.percentile, scale),
            histogram,
        })
    }

    fn priorities(
        &mut self,
        dir: &str,
        prios: Vec<raw::Priority>,
        high: Option<raw::RawLatency>,
        low: Option<raw::RawLatency>,
    ) -> Vec<PriorityResult> {
        let mut all = Vec::new();
        for raw in prios {
            let value = ((small(raw.prioclass) & 0x7) << 13)
                | ((small(raw.priohint) & 0x3ff) << 3)
                | (small(raw.prio) & 0x7);
            let clat = raw.clat_ns.and_then(|raw| {
                self.latency(
                    &format!("{dir} priority {value:#06x}"),
                    raw,
                    LatencyScale::Ns,
                )
            });
            if let (Some(clat), Ok(value)) = (clat, u16::try_from(value)) {
                all.push(PriorityResult { value, clat });
            }
        }
        let two = [("high", 1 << 13, high), ("low", 0, low)];
        for (name, value, raw) in two {
            let Some(raw) = raw else { continue };
            let what = format!("{dir} {name} priority");
            if let Some(clat) = self.latency(&what, raw, LatencyScale::Ns) {
                self.warn(
                    &what,
                    "this fio knows high (class RT) and low only, not the levels",
                );
                all.push(PriorityResult { value, clat });
            }
        }
        all
    }
}

/// `io_bytes` counts KiB before fio 3.0, which is when `io_kbytes` appeared.
fn io_bytes(raw: &raw::RawDirection) -> u64 {
    let value = raw.io_bytes.count();
    let kib = raw.io_kbytes.count();
    match (value, kib) {
        (Some(bytes), Some(_)) => bytes,
        (Some(kib), None) if raw.bw_bytes == raw::Number::None => kib.saturating_mul(1024),
        (Some(bytes), None) => bytes,
        (None, kib) => kib.unwrap_or(0).saturating_mul(1024),
    }
}

/// `None` without intervals: a run shorter than one has none.
fn spread([n, min, max, mean, stddev]: [raw::Number; 5], scale: f64) -> Option<Spread> {
    let n = n.count();
    let (min, max, mean) = (min.decimal()?, max.decimal()?, mean.decimal()?);
    if n == Some(0) || (n.is_none() && max == 0.0 && mean == 0.0) {
        return None;
    }
    Some(Spread {
        n,
        min: min * scale,
        max: max * scale,
        mean: mean * scale,
        stddev: stddev.decimal().map(|dev| dev * scale),
    })
}

fn percentiles(raw: raw::Percentiles, scale: u64) -> Vec<(f64, u64)> {
    let mut all: Vec<(f64, u64)> = raw
        .0
        .into_iter()
        .map(|(percent, value)| (percent, value.saturating_mul(scale)))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.dedup_by(|a, b| a.0 == b.0);
    all
}
