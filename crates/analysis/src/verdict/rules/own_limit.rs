//! The job asked for no more than it got: its rate, think time or latency target.

use fathom_model::{Direction, ReasonKind, VerdictReason, units};

use super::behind_rate;
use crate::rate::BEHIND_RATE_SHARE;
use crate::verdict::JudgedFigure;

/// Options that hold a job back, beside `rate_iops` (fio's HOWTO, "I/O rate").
const LIMITS: [&str; 3] = ["rate", "thinktime", "latency_target"];

/// Whether the job is told to hold back.
pub(super) fn is_limited(figure: &JudgedFigure) -> bool {
    figure.is_set("rate_iops") || LIMITS.iter().any(|name| figure.is_set(name))
}

/// Whether it may pause for longer than an I/O takes.
pub(super) fn is_paused(figure: &JudgedFigure) -> bool {
    figure.is_set("thinktime")
}

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let is_behind = behind_rate::wanted_iops(figure)
        .is_some_and(|wanted| figure.result.iops < wanted * BEHIND_RATE_SHARE);
    let holds = |name: &&str| match *name {
        "rate" => !is_behind_bytes(figure),
        _ => true,
    };
    let name = match figure.is_set("rate_iops") && !is_behind {
        true => "rate_iops",
        false => LIMITS
            .iter()
            .copied()
            .find(|name| figure.is_set(name) && holds(name))?,
    };
    let value = figure.option(name).unwrap_or("");
    let text = format!("{name}={value} was the limit: the device may do more");
    Some(VerdictReason::found(ReasonKind::OwnLimit, text, []))
}

/// Whether a rate of bytes was not reached: then something else was the limit.
fn is_behind_bytes(figure: &JudgedFigure) -> bool {
    let mut rates = figure.option("rate").unwrap_or("").split(',');
    let read = rates.next().unwrap_or("");
    let of_dir = match figure.dir {
        Direction::Read => read,
        Direction::Write => rates.next().unwrap_or(read),
        _ => rates.nth(1).unwrap_or(read),
    };
    let wanted = units::parse_size(of_dir).map(|rate| rate as f64 * figure.clones());
    wanted.is_some_and(|wanted| figure.result.bw_bytes < wanted * BEHIND_RATE_SHARE)
}
