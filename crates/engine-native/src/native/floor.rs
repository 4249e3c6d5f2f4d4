//! rate_min, rate_iops_min: a job that falls below its least rate fails (backend.c,
//! __check_min_rate).

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use fathom_model::{Failure, FailureKind};

use super::clock::TickClock;
use super::job::{DirIndex, RateOptions};
use super::members::Member;
use super::stats::WorkerPhase;

/// No rate is judged before a job has run so long.
const SETTLES: Duration = Duration::from_secs(2);

/// What a member had done when it was last looked at: when, bytes, I/Os.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RateFloor {
    last: [Option<(u64, u64, u64)>; 3],
}

impl RateFloor {
    /// Looks once in a cycle; how the member has failed, if it has.
    pub(super) fn look(&mut self, member: &Member, clock: &TickClock) -> Option<Failure> {
        let pace = &member.job.pace;
        let stats = &member.stats;
        if !pace.has_floor() || stats.phase() != WorkerPhase::Running {
            return None;
        }
        let now = clock.now();
        let run_ns = clock.ns(now.saturating_sub(stats.began.load(Relaxed)));
        if Duration::from_nanos(run_ns) < SETTLES {
            return None;
        }
        for dir in DirIndex::ALL {
            let Some(counted) = &stats.dirs[dir as usize] else {
                continue;
            };
            let spent = self.last[dir as usize].map(|last| clock.ns(now - last.0));
            if spent.is_some_and(|ns| Duration::from_nanos(ns) < pace.cycle) {
                continue;
            }
            let bytes = counted.bytes.load(Relaxed);
            let ios = counted.clat().histogram.total();
            let last = self.last[dir as usize].replace((now, bytes, ios));
            if let (Some((_, bytes_before, ios_before)), Some(ns)) = (last, spent) {
                let rate = |n: u64| (u128::from(n) * 1_000_000_000 / u128::from(ns.max(1))) as u64;
                let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
                let bytes = rate(since(bytes, bytes_before));
                let ios = rate(since(ios, ios_before));
                if let Some(message) = below(pace, dir, bytes, ios) {
                    return Some(Failure::new(FailureKind::Other, message).with_errno(libc::EIO));
                }
            }
        }
        None
    }
}

/// Which least rate a direction has not kept; of two the one of bytes is looked at.
fn below(pace: &RateOptions, dir: DirIndex, bytes: u64, ios: u64) -> Option<String> {
    match (
        pace.least_bytes_per_second[dir as usize],
        pace.least_ios_per_second[dir as usize],
    ) {
        (Some(least), _) if bytes < least => {
            Some(format!("rate_min={least} not met: {bytes} bytes a second"))
        }
        (None, Some(least)) if ios < least => Some(format!(
            "rate_iops_min={least} not met: {ios} I/Os a second"
        )),
        _ => None,
    }
}
