//! User and system time together fill the CPU of the job.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// From this share of one CPU on, in percent, a job is taken to be bound by it.
/// A job that waits for a device sleeps; the rest to 100 is accounting noise. fio
/// reports the mean over the members of a group, so one limit serves for both.
const MOST_PERCENT: f64 = 95.0;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let cpu = figure.job.cpu.as_ref()?;
    let percent = cpu.user_percent + cpu.system_percent;
    if percent < MOST_PERCENT {
        return None;
    }
    let text = format!("the job used {percent:.0} % of a CPU: the disk may do more");
    Some(VerdictReason::found(
        ReasonKind::CpuBound,
        text,
        [("cpu_percent", percent)],
    ))
}
