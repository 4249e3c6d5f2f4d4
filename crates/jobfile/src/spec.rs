//! What a resolved job says, typed.

use std::time::Duration;

use fathom_model::io_engine::DEFAULT_IO_ENGINE;
use fathom_model::{JobOption, JobSpec};

use super::kind::engine_name;
use super::table::table;
use fathom_model::value::{self, Amount, BareTimeUnit, Base};

/// The option in effect: the last one of this name or an alias of it.
pub fn option<'j>(job: &'j JobSpec, name: &str) -> Option<&'j JobOption> {
    let name = table().canonical(name);
    job.options
        .iter()
        .rev()
        .find(|option| table().canonical(&option.name) == name)
}

fn value<'j>(job: &'j JobSpec, name: &str) -> Option<&'j str> {
    option(job, name)?.value.as_deref()
}

/// What `k` means in this job.
pub fn base(job: &JobSpec) -> Base {
    match value(job, "kb_base") {
        Some("1000") => Base::Decimal,
        _ => Base::Binary,
    }
}

/// A whole number, `None` when it is not given or is none.
pub fn number(job: &JobSpec, name: &str) -> Option<u64> {
    u64::try_from(value::size(value(job, name)?, base(job)).ok()?).ok()
}

/// Whether an option without value, or of 0 and 1, is on.
pub fn is_on(job: &JobSpec, name: &str) -> bool {
    option(job, name).is_some_and(|option| match &option.value {
        None => true,
        // What is not understood may well be on.
        Some(value) => !matches!(value::size(value, Base::Binary), Ok(0)),
    })
}

/// The I/O engine; fio's default on Linux is `psync`.
pub fn engine(job: &JobSpec) -> &str {
    value(job, "ioengine").map_or(DEFAULT_IO_ENGINE, engine_name)
}

/// Clones of the job, each a process or thread of its own.
pub fn numjobs(job: &JobSpec) -> u64 {
    number(job, "numjobs").unwrap_or(1)
}

/// I/Os kept in flight by each clone.
pub fn iodepth(job: &JobSpec) -> u64 {
    number(job, "iodepth").unwrap_or(1)
}

/// Longest time the job runs, if it has a limit.
pub fn runtime(job: &JobSpec) -> Option<Duration> {
    time(job, "runtime").filter(|time| !time.is_zero())
}

/// Time before the measurement begins.
pub fn ramp_time(job: &JobSpec) -> Option<Duration> {
    time(job, "ramp_time")
}

/// A time, `None` when it is not given or is none.
pub fn time(job: &JobSpec, name: &str) -> Option<Duration> {
    let us = value::time_us(value(job, name)?, BareTimeUnit::Seconds).ok()?;
    Some(Duration::from_micros(u64::try_from(us).ok()?))
}

/// Whether the job goes on until its runtime is over, however small its size.
pub fn time_based(job: &JobSpec) -> bool {
    is_on(job, "time_based")
}

/// Bytes (or a share of the file) that each clone covers.
pub fn size(job: &JobSpec) -> Option<Amount> {
    amount(job, "size")
}

/// A number of bytes or a share, `None` when it is not given or is none.
pub fn amount(job: &JobSpec, name: &str) -> Option<Amount> {
    value::amount(value(job, name)?, base(job)).ok()
}

/// Block sizes of reads, writes and trims in bytes, where `bs` is what gives
/// them (`bsrange` and `bssplit` do not); 4096 is fio's default.
pub fn bs(job: &JobSpec) -> Option<[u64; 3]> {
    const DEFAULT: u64 = 4096;
    if option(job, "bsrange").is_some() || option(job, "bssplit").is_some() {
        return None;
    }
    let Some(text) = value(job, "bs") else {
        return Some([DEFAULT; 3]);
    };
    let sizes = value::triple(text, |part| value::size(part, base(job))).ok()?;
    let bytes = |size: Option<i64>| size.map_or(Some(DEFAULT), |n| u64::try_from(n).ok());
    let [read, write, trim] = sizes.map(bytes);
    Some([read?, write?, trim?])
}

/// What a job does to its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobWorkload {
    /// It reads.
    pub reads: bool,
    /// It writes.
    pub writes: bool,
    /// It trims.
    pub trims: bool,
    /// In random order.
    pub random: bool,
}

/// The option `rw`; `None` when its value is not understood. Reads in order
/// are fio's default.
pub fn rw(job: &JobSpec) -> Option<JobWorkload> {
    let Some(option) = option(job, "rw") else {
        return workload("read");
    };
    workload(option.value.as_deref()?.split(':').next()?)
}

fn workload(word: &str) -> Option<JobWorkload> {
    let (reads, writes, trims) = match word {
        "read" | "randread" => (true, false, false),
        "write" | "randwrite" => (false, true, false),
        "trim" | "randtrim" => (false, false, true),
        "rw" | "readwrite" | "randrw" => (true, true, false),
        "trimwrite" | "randtrimwrite" => (false, true, true),
        _ => return None,
    };
    Some(JobWorkload {
        reads,
        writes,
        trims,
        random: word.starts_with("rand"),
    })
}
