//! What a job file costs: how long it runs, and how much it may write.

use std::time::Duration;

use fathom_jobfile::{is_write, spec};
use fathom_model::JobSpec;
use fathom_model::value::Amount;

/// The load of a job file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Load {
    /// Ramp and run time, where every job has one.
    pub duration: Option<Duration>,
    /// The most it writes, in bytes, where its jobs say so.
    pub write_bytes: Option<u64>,
    /// The part of its I/O that writes, 0 to 1; of several jobs the greatest.
    pub write_share: f64,
}

impl Load {
    /// Jobs run side by side, up to one that waits (`stonewall`).
    pub fn of(jobs: &[JobSpec]) -> Self {
        let waits = |job: &JobSpec| {
            ["stonewall", "wait_for_previous"]
                .iter()
                .any(|name| spec::is_on(job, name))
        };
        let mut groups: Vec<Vec<&JobSpec>> = Vec::new();
        for job in jobs {
            match groups.last_mut() {
                Some(group) if !waits(job) => group.push(job),
                _ => groups.push(vec![job]),
            }
        }
        let longest = |group: &Vec<&JobSpec>| {
            let times: Option<Vec<Duration>> = group.iter().map(|job| duration(job)).collect();
            times?.into_iter().max()
        };
        let times: Option<Vec<Duration>> = groups.iter().map(longest).collect();
        let bytes: Option<Vec<u64>> = jobs.iter().map(write_bytes).collect();
        Self {
            duration: times
                .filter(|_| !jobs.is_empty())
                .map(|times| times.iter().sum()),
            write_bytes: bytes
                .map(|all| all.iter().fold(0_u64, |sum, one| sum.saturating_add(*one))),
            write_share: jobs.iter().map(write_share).fold(0.0, f64::max),
        }
    }
}

fn duration(job: &JobSpec) -> Option<Duration> {
    Some(spec::runtime(job)? + spec::ramp_time(job).unwrap_or_default())
}

/// The part of a job's I/O that writes.
fn write_share(job: &JobSpec) -> f64 {
    /// fio's default of rwmixread.
    const MIX: u64 = 50;
    match spec::rw(job) {
        _ if !is_write(job) => 0.0,
        Some(rw) if rw.reads && rw.writes => {
            let percent = |name| spec::number(job, name).map(|percent| percent.min(100));
            let writes = percent("rwmixwrite").or(percent("rwmixread").map(|reads| 100 - reads));
            writes.unwrap_or(MIX) as f64 / 100.0
        }
        _ => 1.0,
    }
}

/// A job that goes by time has no bound but the device's speed.
fn write_bytes(job: &JobSpec) -> Option<u64> {
    if !is_write(job) {
        return Some(0);
    }
    if spec::time_based(job) {
        return None;
    }
    let size = match spec::number(job, "io_size").filter(|size| *size > 0) {
        Some(size) => size,
        None => match spec::size(job)? {
            Amount::Number(size) => u64::try_from(size).ok()?,
            _ => return None,
        },
    };
    let times = spec::number(job, "loops").unwrap_or(1).max(1);
    let bytes = size.checked_mul(times)?.checked_mul(spec::numjobs(job))?;
    Some((bytes as f64 * write_share(job)) as u64)
}
