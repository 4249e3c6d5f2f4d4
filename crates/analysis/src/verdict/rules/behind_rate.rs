//! A job under a rate did less.

use fathom_model::{Direction, ReasonKind, VerdictReason, units};

use crate::rate::BEHIND_RATE_SHARE;
use crate::verdict::JudgedFigure;

/// Of a shorter run the last I/O that is due weighs too much.
const LEAST_MS: u64 = 1000;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let wanted = wanted_iops(figure)?;
    let done = figure.result.iops;
    let is_long = figure.result.runtime_ms >= LEAST_MS;
    if !is_long || done >= wanted * BEHIND_RATE_SHARE {
        return None;
    }
    let text = format!(
        "{} IOPS of the {} that were asked for: the storage, or the job with its depth, cannot do as much",
        units::count(done),
        units::count(wanted)
    );
    let numbers = [("iops", done), ("wanted_iops", wanted)];
    Some(VerdictReason::found(ReasonKind::BehindRate, text, numbers))
}

/// The rate that `rate_iops` asks for, of all jobs that are reported as this one.
pub(super) fn wanted_iops(figure: &JudgedFigure) -> Option<f64> {
    // With blocks of several sizes it is a rate of bytes (fio's HOWTO, `rate_iops`).
    if ["bsrange", "bssplit"]
        .iter()
        .any(|key| figure.option(key).is_some())
    {
        return None;
    }
    // One value for all directions, or one for each (`rate_iops` in fio's HOWTO).
    let wanted = match figure.dir {
        Direction::Read | Direction::Write => figure.number_of_dir("rate_iops"),
        _ => None,
    };
    // It is the rate of each clone, and a group is reported as one.
    Some(wanted? * figure.clones())
}
