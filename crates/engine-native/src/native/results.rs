//! What the workers counted as the results everything else speaks in.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fathom_model::histogram::middle_of;
use fathom_model::result::{CpuUse, LatencyTarget, PriorityResult, Spread};
use fathom_model::{DirectionResult, DiskUse, JobResult, Latency, Results};

use super::clock::TickClock;
use super::job::{DirIndex, Unified};
use super::members::{Member, ReportUnit};
use super::stats::{DEPTH_CLASSES, LatencyReading, WorkerPhase, WorkerStats};
use super::steady::WatchedUnit;
use super::usage::Usage;

/// Figures of one unit's intervals so far, by direction.
#[derive(Debug, Clone, Default)]
pub(super) struct UnitIntervals {
    pub(super) bw: [Vec<f64>; 3],
    pub(super) iops: [Vec<f64>; 3],
}

/// Batches of a job by their size, in percent of all, in fio's classes: 0, up
/// to 4, 8, 16, 32, 64 and more I/Os.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BatchShares {
    pub(super) submitted: [f64; 7],
    pub(super) completed: [f64; 7],
}

/// The batches of each unit.
pub(super) fn batches(members: &[Member], units: &[ReportUnit]) -> Vec<BatchShares> {
    let of_unit = |unit: &ReportUnit| {
        let share = |read: fn(&WorkerStats) -> [u64; 7]| {
            let counts = unit
                .members
                .iter()
                .map(|&place| read(&members[place].stats));
            let sums = counts.fold([0u64; 7], |sums, counts| {
                std::array::from_fn(|class| sums[class] + counts[class])
            });
            let all = sums.iter().sum::<u64>().max(1) as f64;
            sums.map(|count| count as f64 * 100.0 / all)
        };
        BatchShares {
            submitted: share(|stats| stats.submits.read()),
            completed: share(|stats| stats.completes.read()),
        }
    };
    units.iter().map(of_unit).collect()
}

/// Everything results are made from.
pub(super) struct ResultSources<'a> {
    pub(super) members: &'a [Member],
    pub(super) units: &'a [ReportUnit],
    pub(super) usage: &'a [Option<Usage>],
    pub(super) intervals: &'a [UnitIntervals],
    /// Errno of members that failed before or outside their I/O.
    pub(super) errors: &'a [i32],
    pub(super) clock: &'a TickClock,
    pub(super) disks: Vec<DiskUse>,
    pub(super) steady: &'a [Option<WatchedUnit>],
}

/// The results so far or at the end.
pub(super) fn results(of: &ResultSources<'_>) -> Results {
    Results {
        engine_version: Some(super::version()),
        timestamp_ms: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|time| u64::try_from(time.as_millis()).ok()),
        global_options: BTreeMap::new(),
        jobs: of
            .units
            .iter()
            .enumerate()
            .map(|(place, unit)| job_result(of, place, unit))
            .collect(),
        disks: of.disks.clone(),
    }
}

/// How long a member has measured, in ns.
pub(super) fn measured_ns(member: &Member, clock: &TickClock) -> u64 {
    let began = member.stats.began.load(Relaxed);
    let ended = match member.stats.phase() {
        WorkerPhase::Setup | WorkerPhase::Ramp => return 0,
        WorkerPhase::Running => clock.now(),
        WorkerPhase::Done => member.stats.ended.load(Relaxed),
    };
    if began == 0 {
        0
    } else {
        clock.ns(ended.saturating_sub(began))
    }
}

/// How long one direction of a member has been measured, in ns: what it wrote
/// is read back at another time than it is written (backend.c, update_runtime).
fn direction_ns(member: &Member, dir: DirIndex, clock: &TickClock) -> u64 {
    let whole = measured_ns(member, clock);
    let within = member.job.pattern.uses(dir) || member.job.verify.backlog > 0;
    if !member.job.reads_back() || (dir == DirIndex::Read && within) {
        return whole;
    }
    let stats = &member.stats;
    let since = match stats.read_back_since.load(Relaxed) {
        0 => 0,
        since => match stats.phase() {
            WorkerPhase::Done => stats.ended.load(Relaxed).saturating_sub(since),
            _ => clock.now().saturating_sub(since),
        },
    };
    let back = clock.ns(stats.read_back.load(Relaxed) + since).min(whole);
    if dir == DirIndex::Read {
        back
    } else {
        whole - back
    }
}

fn job_result(of: &ResultSources<'_>, place: usize, unit: &ReportUnit) -> JobResult {
    let intervals = &of.intervals[place];
    let members: Vec<&Member> = unit
        .members
        .iter()
        .map(|&place| &of.members[place])
        .collect();
    let first = members[0];
    let runtime_ns = members
        .iter()
        .map(|member| measured_ns(member, of.clock))
        .max()
        .unwrap_or(0);
    let errors: u64 = members
        .iter()
        .map(|member| member.stats.errors.load(Relaxed))
        .sum();
    let error = unit
        .members
        .iter()
        .map(
            |&place| match of.members[place].stats.first_error.load(Relaxed) {
                0 => of.errors[place],
                errno => errno,
            },
        )
        .find(|&errno| errno != 0);
    let mut result = JobResult {
        name: unit.name.clone(),
        description: first.job.show.description.clone(),
        group: first.group,
        members: (members.len() > 1).then_some(members.len() as u32),
        error: error.unwrap_or(0),
        total_errors: (errors > 0 || first.job.errors.any()).then_some(errors),
        zone_resets: zone_resets(&members),
        // Rounded up, as fio does: what took no whole millisecond took some time.
        runtime_ms: Some(runtime_ns.div_ceil(1_000_000)),
        options: first.spec.by_name(),
        cpu: cpu(of, unit),
        iodepth_percent: depths(&members),
        latency_target: latency_target(first),
        fio_steady_state: of.steady[place]
            .as_ref()
            .map(|watched| watched.steady.report()),
        ..JobResult::default()
    };
    let mut sync = LatencyReading::default();
    members
        .iter()
        .for_each(|member| sync.merge(&member.stats.sync.read()));
    result.sync = latency(&sync, first, true, true);
    let unified = first.job.show.unified;
    if unified != Unified::Mixed {
        for dir in DirIndex::ALL {
            let direction = direction(of, &members, &[dir], intervals);
            if let Some(place) = result.direction_mut(dir.model()) {
                *place = Some(direction);
            }
        }
    }
    if unified != Unified::No {
        result.mixed = Some(direction(of, &members, &DirIndex::ALL, intervals));
    }
    result
}

/// Of members on zoned devices.
fn zone_resets(members: &[&Member]) -> Option<u64> {
    let zoned = members
        .iter()
        .filter(|member| member.job.extent.zones.is_zbd());
    zoned
        .map(|member| member.stats.zone_resets.load(Relaxed))
        .reduce(|one, other| one + other)
}

/// What the search for a depth came to.
fn latency_target(member: &Member) -> Option<LatencyTarget> {
    let options = &member.job.latency;
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Some(LatencyTarget {
        depth: member.stats.found_depth.load(Relaxed) as u32,
        target_ns: us(options.target?).saturating_mul(1000),
        percentile: options.percent,
        window_us: us(options.window),
    })
}

/// The figures of a direction, or of several as one.
fn direction(
    of: &ResultSources<'_>,
    members: &[&Member],
    dirs: &[DirIndex],
    intervals: &UnitIntervals,
) -> DirectionResult {
    let mut result = DirectionResult::default();
    let mut readings: [LatencyReading; 4] = Default::default();
    let [clat, lat, slat, lag] = &mut readings;
    let mut priorities: BTreeMap<u16, LatencyReading> = BTreeMap::new();
    let (mut runtime_ns, mut errors) = (0, 0);
    let of_members = |&dir: &DirIndex| members.iter().map(move |&member| (member, dir));
    for (member, dir) in dirs.iter().flat_map(of_members) {
        let Some(stats) = &member.stats.dirs[dir as usize] else {
            continue;
        };
        runtime_ns = runtime_ns.max(direction_ns(member, dir, of.clock));
        for (class, &value) in member.classes.values().iter().enumerate() {
            let reading = stats.clat[class].read();
            clat.merge(&reading);
            // With lat_percentiles priorities have those of lat (stat.c,
            // add_clat_percentile_prio_sample).
            let of_lat = stats.lat_of.get(class).map(|cells| cells.read());
            let entry = priorities.entry(value).or_default();
            entry.merge(&of_lat.unwrap_or(reading));
        }
        lat.merge(&stats.lat.read());
        slat.merge(&stats.slat.read());
        if let Some(cells) = &stats.lag {
            lag.merge(&cells.read());
        }
        result.io_bytes += stats.bytes.load(Relaxed);
        *result.short_ios.get_or_insert(0) += stats.short.load(Relaxed);
        errors += stats.errors.load(Relaxed);
    }
    result.errors = (errors > 0).then_some(errors);
    result.total_ios = clat.histogram.total();
    if result.total_ios == 0 {
        return result;
    }
    let seconds = runtime_ns as f64 / 1e9;
    result.runtime_ms = runtime_ns.div_ceil(1_000_000);
    if seconds > 0.0 {
        result.bw_bytes = result.io_bytes as f64 / seconds;
        result.iops = result.total_ios as f64 / seconds;
    }
    let show = &members[0].job.show;
    let first = members[0];
    result.slat = show
        .slat
        .then(|| latency(slat, first, show.slat_percentiles, show.slat_percentiles))
        .flatten()
        // Engines that are called have none.
        .filter(|slat| slat.max_ns > 0);
    result.clat = show
        .clat
        .then(|| latency(clat, first, show.clat_percentiles, true))
        .flatten();
    result.lat = show
        .lat
        .then(|| latency(lat, first, show.lat_percentiles, true))
        .flatten();
    result.lag = latency(lag, first, show.lat_percentiles, true);
    priorities.retain(|_, reading| !reading.histogram.is_empty());
    if show.clat && priorities.len() > 1 {
        result.priorities = priorities
            .into_iter()
            .filter_map(|(value, reading)| {
                let clat = latency(&reading, first, true, true)?;
                Some(PriorityResult { value, clat })
            })
            .collect();
    }
    result.bw_intervals = spread(&added_up(dirs, &intervals.bw));
    result.iops_intervals = spread(&added_up(dirs, &intervals.iops));
    result
}

/// Figures of a reading; `None` when it is empty.
fn latency(
    reading: &LatencyReading,
    member: &Member,
    percentiles: bool,
    histogram: bool,
) -> Option<Latency> {
    let n = reading.histogram.total();
    if n == 0 {
        return None;
    }
    let mean = reading.sum_ns as f64 / n as f64;
    // From the buckets' middles: good to the histogram's 0.8 %.
    let squares: f64 = reading
        .histogram
        .buckets()
        .map(|(bucket, count)| (middle_of(bucket) as f64 - mean).powi(2) * count as f64)
        .sum();
    let wanted = &member.job.show.percentiles;
    Some(Latency {
        certainty: None,
        n: Some(n),
        min_ns: reading.min_ns,
        max_ns: reading.max_ns,
        mean_ns: mean,
        stddev_ns: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
        percentiles_ns: if percentiles {
            let value = |&percent: &f64| {
                let ns = reading.histogram.percentile_ns(percent)?;
                Some((percent, ns.clamp(reading.min_ns, reading.max_ns)))
            };
            wanted.iter().filter_map(value).collect()
        } else {
            Vec::new()
        },
        histogram: histogram.then(|| reading.histogram.clone()),
    })
}

/// What each interval has of these directions; all have the same intervals.
fn added_up(dirs: &[DirIndex], intervals: &[Vec<f64>; 3]) -> Vec<f64> {
    let mut sums: Vec<f64> = Vec::new();
    for dir in dirs {
        let values = &intervals[*dir as usize];
        sums.resize(sums.len().max(values.len()), 0.0);
        sums.iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum += value);
    }
    sums
}

fn spread(values: &[f64]) -> Option<Spread> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(Spread {
        n: Some(values.len() as u64),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(0.0, f64::max),
        mean,
        stddev: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
    })
}

fn depths(members: &[&Member]) -> Vec<(String, f64)> {
    let counts: Vec<u64> = (0..DEPTH_CLASSES.len())
        .map(|class| {
            members
                .iter()
                .map(|member| member.stats.depths[class].load(Relaxed))
                .sum()
        })
        .collect();
    let all: u64 = counts.iter().sum();
    if all == 0 {
        return Vec::new();
    }
    DEPTH_CLASSES
        .iter()
        .zip(counts)
        .map(|(name, count)| ((*name).to_owned(), count as f64 * 100.0 / all as f64))
        .collect()
}

/// As fio adds them up: times over the sum of the members' run times.
fn cpu(of: &ResultSources<'_>, unit: &ReportUnit) -> Option<CpuUse> {
    let mut cpu = CpuUse::default();
    let mut wall_us = 0.0;
    let (mut user, mut system) = (0.0, 0.0);
    for &place in &unit.members {
        let usage = of.usage[place]?;
        wall_us += measured_ns(&of.members[place], of.clock) as f64 / 1000.0;
        user += usage.user_us as f64;
        system += usage.system_us as f64;
        cpu.context_switches += usage.switches;
        cpu.major_faults += usage.major_faults;
        cpu.minor_faults += usage.minor_faults;
    }
    if wall_us > 0.0 {
        cpu.user_percent = user * 100.0 / wall_us;
        cpu.system_percent = system * 100.0 / wall_us;
    }
    Some(cpu)
}
