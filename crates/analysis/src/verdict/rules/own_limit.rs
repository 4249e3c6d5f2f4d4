//! The job asked for no more than it got: its rate, think time or latency target.

use fathom_model::{ReasonKind, VerdictReason};

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
    let name = match figure.is_set("rate_iops") && !is_behind {
        true => "rate_iops",
        false => LIMITS.iter().copied().find(|name| figure.is_set(name))?,
    };
    let value = figure.option(name).unwrap_or("");
    let text = format!("{name}={value} was the limit: the device may do more");
    Some(VerdictReason::found(ReasonKind::OwnLimit, text, []))
}
