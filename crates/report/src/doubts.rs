//! Which figures of a run may not be what they seem, and why.
//!
//! Every rule is a pure function of the document. A rule that lacks its facts
//! (options not reported, no disk under the files) says nothing: no doubt means
//! none was found, not that there is none.

mod across;

use fathom_analysis::hosts;
use fathom_analysis::rate::BEHIND_RATE_SHARE;
use fathom_model::environment::Target;
use fathom_model::histogram::FIO_SATURATION_NS;
use fathom_model::result::SlowHost;
use fathom_model::{Direction, DirectionResult, DiskUse, Doubt, Host, JobResult, RunDocument};

use crate::volumes;

/// From this share of one CPU on, in percent, a job is taken to be bound by it.
/// A job that waits for a device sleeps; the rest to 100 is accounting noise.
const CPU_BOUND_PERCENT: f64 = 95.0;
/// Largest request the kernel makes of adjacent reads unless told otherwise:
/// `BLK_DEF_MAX_SECTORS_CAP` (include/linux/blkdev.h), 2560 sectors.
const LARGEST_REQUEST_BYTES: u64 = 1280 * 1024;
/// fio reads the disks' counters every 250 ms (`DISK_UTIL_MSEC`, diskutil.h) and
/// not once more at the end, so that up to that much of a run is missing in
/// them. From this run time on that is a quarter at the most.
pub(crate) const DISK_FIGURES_MS: u64 = 1000;
/// Run time from which on that is asked, in ms.
const BEHIND_RATE_MS: u64 = 1000;
/// Half of the usual interval between samples: clocks that are known no better
/// cannot say which samples belong together.
const CLOCK_ERROR_MOST_MS: f64 = 500.0;
/// The engines that read and write files through the kernel, page cache included.
const FILE_ENGINES: [&str; 12] = [
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "libaio",
    "posixaio",
    "solarisaio",
    "io_uring",
    "mmap",
    "splice",
    "falloc",
];

/// One doubt and where it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// Place of the job in the document.
    pub job: usize,
    /// The direction.
    pub dir: Direction,
    /// The doubt.
    pub doubt: Doubt,
}

impl Finding {
    /// Marks the figures it is about.
    pub fn mark(self, jobs: &mut [JobResult]) {
        let place = jobs
            .get_mut(self.job)
            .and_then(|job| job.direction_mut(self.dir)?.as_mut());
        if let Some(result) = place
            && !result.doubts.contains(&self.doubt)
        {
            result.doubts.push(self.doubt);
            result.doubts.sort_unstable();
        }
    }
}

/// Every doubt about the figures of a run.
#[must_use]
pub fn doubts(doc: &RunDocument) -> Vec<Finding> {
    let mut found = Vec::new();
    for (place, job) in doc.jobs.iter().enumerate() {
        for (dir, result) in job.directions().filter(|(_, r)| r.total_ios > 0) {
            let rules = [
                (
                    Doubt::FailedIosCounted,
                    doc.engine != "native" && failed_ios_counted(job),
                ),
                (
                    Doubt::CachedReads,
                    dir == Direction::Read
                        && !volumes::is_counted(job, doc)
                        && cached_reads(job, doc),
                ),
                (
                    Doubt::UnsyncedWrites,
                    dir == Direction::Write && unsynced_writes(job),
                ),
                (Doubt::InMemory, in_memory(targets_of(job, doc))),
                (Doubt::CpuBound, cpu_bound(job)),
                (
                    Doubt::SaturatedPercentiles,
                    doc.engine == "fio" && saturated(result),
                ),
                (Doubt::BehindRate, behind_rate(job, dir, result)),
                (Doubt::Short, short(result)),
            ];
            let holding = rules.into_iter().filter(|(_, holds)| *holds);
            found.extend(holding.map(|(doubt, _)| Finding {
                job: place,
                dir,
                doubt,
            }));
        }
    }
    found.extend(volumes::doubts(doc));
    for (place, total) in doc.jobs.iter().enumerate() {
        if total.clients.is_some() {
            of_total(doc, place, total, &mut found);
        }
    }
    found
}

/// What a job may have worked on: the targets of the machine that ran it.
fn targets_of<'d>(job: &JobResult, doc: &'d RunDocument) -> &'d [Target] {
    let environment = match &job.hostname {
        None => doc.environment.as_ref(),
        Some(name) => {
            let host = doc.hosts.iter().find(|host| host.name == *name);
            host.and_then(|host| host.environment.as_deref())
        }
    };
    environment.map_or(&[][..], |environment| &environment.targets)
}

/// What makes a sum over hosts doubtful.
fn of_total(doc: &RunDocument, place: usize, total: &JobResult, found: &mut Vec<Finding>) {
    let of_step = doc.hosts.iter().filter(|host| host.step == total.step);
    let hosts: Vec<Host> = of_step.cloned().collect();
    let parts = hosts::parts_of(total, &doc.jobs, &hosts);
    let missing = total.clients.is_some_and(|n| (n as usize) < hosts.len());
    let apart = total.across.as_ref().is_some_and(hosts::is_apart);
    let slow = total.across.as_ref().map_or(&[][..], |across| &across.slow);
    let uncertain = |host: &Host| {
        let clock = host.clock.as_ref();
        clock.is_some_and(|clock| clock.error_ms > CLOCK_ERROR_MOST_MS)
    };
    let uncertain = hosts.iter().any(uncertain);
    let so_far = found.clone();
    for (dir, _) in total.directions().filter(|(_, r)| r.total_ios > 0) {
        let slow: Vec<&SlowHost> = slow.iter().filter(|slow| slow.dir == dir).collect();
        let mut mark = |job: usize, doubt: Doubt, holds: bool| {
            if holds {
                found.push(Finding { job, dir, doubt });
            }
        };
        for doubt in of_parts(&parts, doc, &so_far, dir) {
            mark(place, doubt, true);
        }
        mark(place, Doubt::HostsMissing, missing);
        mark(place, Doubt::Apart, apart);
        mark(place, Doubt::UncertainClocks, uncertain);
        mark(place, Doubt::SlowHost, !slow.is_empty());
        for (job, part) in doc.jobs.iter().enumerate() {
            let label = hosts::label_of(part);
            let is_slow = slow.iter().any(|slow| Some(&slow.host) == label.as_ref());
            let is_part = parts.iter().any(|other| std::ptr::eq(*other, part));
            mark(job, Doubt::SlowHost, is_slow && is_part);
        }
    }
}

/// What makes the parts of a sum doubtful spoils the sum.
fn of_parts(
    parts: &[&JobResult],
    doc: &RunDocument,
    found: &[Finding],
    dir: Direction,
) -> Vec<Doubt> {
    let is_part = |place: usize| {
        parts
            .iter()
            .any(|part| std::ptr::eq(*part, &doc.jobs[place]))
    };
    let theirs = found
        .iter()
        .filter(|finding| finding.dir == dir && is_part(finding.job));
    theirs.map(|finding| finding.doubt).collect()
}

/// One sentence per kind of doubt that any job carries, in the order of
/// [`Doubt::ALL`]: where it holds and what it means.
#[must_use]
pub fn sentences(jobs: &[JobResult]) -> Vec<(Doubt, String)> {
    let carried = |job: &JobResult, doubt| job.directions().any(|(_, r)| r.doubts.contains(&doubt));
    Doubt::ALL
        .into_iter()
        .filter_map(|doubt| {
            let carrying: Vec<&JobResult> = jobs.iter().filter(|job| carried(job, doubt)).collect();
            let told = match doubt {
                Doubt::SlowHost => across::slow(&carrying),
                Doubt::Apart => across::apart(&carrying),
                _ => None,
            };
            let place = told.or_else(|| place(&carrying, jobs.len()))?;
            Some((doubt, format!("{place}: {}", doubt.meaning())))
        })
        .collect()
}

/// Which of so many jobs these are.
fn place(carrying: &[&JobResult], of: usize) -> Option<String> {
    let names: Vec<&str> = carrying.iter().map(|job| job.name.as_str()).collect();
    Some(match names[..] {
        [] => return None,
        _ if names.len() == of && of > 1 => "all jobs".to_owned(),
        [name] => name.to_owned(),
        // The same job on several hosts.
        [first, ..] if names.iter().all(|name| *name == first) => first.to_owned(),
        [first, second] => format!("{first} and {second}"),
        [first, ..] => format!("{first} and {} more jobs", names.len() - 1),
    })
}

/// Some I/Os of the job failed and it went on.
fn failed_ios_counted(job: &JobResult) -> bool {
    job.total_errors.is_some_and(|errors| errors > 0)
}

/// usr + sys together fill the CPU of the job; fio reports the mean over the
/// members of a group, so one limit serves for both.
fn cpu_bound(job: &JobResult) -> bool {
    job.cpu
        .as_ref()
        .is_some_and(|cpu| cpu.user_percent + cpu.system_percent >= CPU_BOUND_PERCENT)
}

/// A value lies in or beyond fio's last bucket.
fn saturated(result: &DirectionResult) -> bool {
    [&result.lag, &result.slat, &result.clat, &result.lat]
        .into_iter()
        .flatten()
        .any(|latency| latency.max_ns >= FIO_SATURATION_NS - 1)
}

/// A job under a rate did less, by more than [`BEHIND_RATE_SHARE`].
fn behind_rate(job: &JobResult, dir: Direction, result: &DirectionResult) -> bool {
    let Some(rate) = job.options.get("rate_iops") else {
        return false;
    };
    // With blocks of several sizes it is a rate of bytes (fio's HOWTO, `rate_iops`).
    let several = ["bsrange", "bssplit"];
    if several.iter().any(|key| job.options.contains_key(*key)) {
        return false;
    }
    // One value for all directions, or one for each (`rate_iops` in fio's HOWTO).
    let mut values = rate
        .split(',')
        .map(|value| value.trim().parse::<f64>().ok());
    let nth = match dir {
        Direction::Read => 0,
        Direction::Write => 1,
        _ => return false,
    };
    let first = values.next().flatten();
    let wanted = match nth {
        0 => first,
        _ => values.next().unwrap_or(first),
    };
    // It is the rate of each clone, and a group is reported as one.
    let clones = match is_set(job, "group_reporting") {
        true => job.options.get("numjobs").and_then(|n| n.parse().ok()),
        false => None,
    };
    let wanted = wanted.map(|rate| rate * clones.unwrap_or(1.0));
    // Of a short run the last I/O that is due weighs too much.
    let is_long = result.runtime_ms >= BEHIND_RATE_MS;
    wanted.is_some_and(|wanted| is_long && result.iops < wanted * BEHIND_RATE_SHARE)
}

fn short(result: &DirectionResult) -> bool {
    (1..1000).contains(&result.runtime_ms)
}

/// All targets lie on a file system that has no storage under it.
fn in_memory(targets: &[Target]) -> bool {
    let kinds = targets.iter().map(|target| target.file_system.as_ref());
    let in_memory = |kind: &str| matches!(kind, "tmpfs" | "ramfs");
    !targets.is_empty()
        && kinds
            .into_iter()
            .all(|fs| fs.is_some_and(|fs| in_memory(&fs.kind)))
}

/// Writes without O_DIRECT that nothing asked to be stored.
fn unsynced_writes(job: &JobResult) -> bool {
    const SYNCING: [&str; 7] = [
        "fsync",
        "fdatasync",
        "end_fsync",
        "fsync_on_close",
        "sync",
        "sync_file_range",
        "verify",
    ];
    buffered(job) && file_engine(job) && !SYNCING.iter().any(|name| is_set(job, name))
}

/// Whether the job's engine goes to files; fio's default does.
fn file_engine(job: &JobResult) -> bool {
    job.options
        .get("ioengine")
        .is_none_or(|engine| FILE_ENGINES.contains(&engine.as_str()))
}

/// Less than half of the job's buffered reads can have come from a disk.
///
/// fio counts the disks' requests for all jobs of a step together, so what the
/// direct jobs of the step read for certain is taken off first. A random read
/// is one request at the least; of sequential reads the kernel makes larger
/// ones, up to [`LARGEST_REQUEST_BYTES`].
fn cached_reads(job: &JobResult, doc: &RunDocument) -> bool {
    let Some(pattern) = pattern(job).filter(|_| buffered(job) && file_engine(job)) else {
        return false;
    };
    if job
        .read
        .as_ref()
        .is_none_or(|read| read.runtime_ms < DISK_FIGURES_MS)
    {
        return false;
    }
    let its = |disk: &&DiskUse| disk.step == job.step && disk.host == job.hostname;
    let disks: Vec<&DiskUse> = doc.disks.iter().filter(its).collect();
    if disks.is_empty() {
        return false;
    }
    let siblings = || {
        let beside = |other: &&JobResult| other.step == job.step && other.hostname == job.hostname;
        doc.jobs
            .iter()
            .filter(beside)
            .filter(|other| file_engine(other))
    };
    let reads = |jobs: &mut dyn Iterator<Item = &JobResult>| {
        jobs.filter_map(|job| job.read.as_ref())
            .fold((0u64, 0u64), |(ios, bytes), read| {
                (
                    ios.saturating_add(read.total_ios),
                    bytes.saturating_add(read.io_bytes),
                )
            })
    };
    let (direct_ios, _) = reads(&mut siblings().filter(|job| !buffered(job)));
    let (ios, bytes) = reads(&mut siblings().filter(|job| buffered(job)));
    let requests = disks
        .iter()
        .map(|disk| disk.read_ios.saturating_add(disk.read_merges))
        .sum::<u64>()
        .saturating_sub(direct_ios);
    if pattern.starts_with("rand") {
        requests < ios / 2
    } else {
        requests.saturating_mul(LARGEST_REQUEST_BYTES) < bytes / 2
    }
}

/// The job's `rw`; `None` when its options are not known.
fn pattern(job: &JobResult) -> Option<&str> {
    let value = job
        .options
        .get("rw")
        .or_else(|| job.options.get("readwrite"));
    value.map(String::as_str)
}

/// Whether the job goes through the page cache; false when its options are not known.
fn buffered(job: &JobResult) -> bool {
    let direct = is_set(job, "direct") || job.options.get("buffered").is_some_and(|v| v == "0");
    pattern(job).is_some() && !direct
}

/// Whether an option is there and not turned off.
fn is_set(job: &JobResult, name: &str) -> bool {
    job.options.get(name).is_some_and(|value| value != "0")
}
