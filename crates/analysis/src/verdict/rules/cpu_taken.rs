//! The job's threads waited for a CPU, or the hypervisor had it.

use fathom_model::{EvidenceSum, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;
use crate::verdict::course::are_far_apart;
use crate::verdict::limit::BUSY_PERCENT;

/// Share of the time in which a thread of the job could run and had no CPU (`run_delay` of
/// /proc/PID/task/TID/schedstat). A thread that is woken waits some µs, so that a little is
/// always there: 10 % is where a completion waits for a CPU as often as one in ten. What
/// other tasks wait for says nothing of the job.
const WAITING_SHARE: f64 = 0.10;
/// Share of all CPU time taken by the hypervisor (`steal` of proc_stat(5)) from which it is
/// reported. A virtual machine on a shared host always loses a little.
const STEAL_SHARE: f64 = 0.05;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    // The device was busy throughout: waiting threads did not slow it down.
    if is_busy(evidence) {
        return None;
    }
    let steal = steal_share(evidence).unwrap_or(0.0);
    let waiting = waiting_share(evidence).unwrap_or(0.0);
    // A job that never waited would have been faster by no more than that.
    if !figure.may_exceed_interval(steal + waiting) {
        return None;
    }
    let numbers = [
        ("steal_percent", steal * 100.0),
        ("waiting_percent", waiting * 100.0),
    ];
    let text = if steal >= STEAL_SHARE {
        format!(
            "the hypervisor took {:.0} % of the CPU time away",
            steal * 100.0
        )
    } else if waiting >= WAITING_SHARE {
        format!(
            "for {:.0} % of the time the threads of the job waited for a CPU",
            waiting * 100.0
        )
    } else {
        return None;
    };
    // Without both the rate could be higher by at most this factor. Threads that take turns
    // waiting lose less, as does a job that leaves the CPUs idle: a small factor is only a note.
    let weighs = are_far_apart(1.0, 1.0 - (steal + waiting).min(1.0));
    let found = VerdictReason::found(ReasonKind::CpuTaken, text, numbers);
    Some(found.noted_unless(weighs))
}

/// Of those threads that do the job's work; `None`: they were not looked at.
pub(in crate::verdict) fn waiting_share(evidence: &EvidenceSum) -> Option<f64> {
    let waited_us = evidence.count("job.wait_us")? as f64;
    let threads = evidence.gauge("job.threads")?.mean.max(1.0);
    Some(waited_us / 1000.0 / evidence.span_ms.max(1) as f64 / threads)
}

/// Whether one of its devices had a request under way all the time.
fn is_busy(evidence: &EvidenceSum) -> bool {
    let busy_percent = |device: &str| {
        let ms = evidence.count(&format!("{device}.busy_ms"))?;
        Some(100.0 * ms as f64 / evidence.span_ms.max(1) as f64)
    };
    let mut devices = evidence.devices("target");
    devices.any(|device| busy_percent(device).is_some_and(|it| it >= BUSY_PERCENT))
}

fn steal_share(evidence: &EvidenceSum) -> Option<f64> {
    let all = [
        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
    ];
    let ms = |name: &str| evidence.count(&format!("cpu.{name}_ms"));
    let sum: u64 = all.iter().filter_map(|name| ms(name)).sum();
    (sum > 0).then_some(ms("steal")? as f64 / sum as f64)
}
