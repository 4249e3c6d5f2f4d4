//! The job asked for no more than it got: its rate, think time or latency target.

use fathom_model::value::{BareTimeUnit, time_us};
use fathom_model::{ReasonKind, VerdictReason};

use super::behind_rate;
use crate::rate::BEHIND_RATE_SHARE;
use crate::verdict::JudgedFigure;

/// Share of a job's time that its pauses take, from which on they are the limit, and not what
/// happens between them.
const PAUSED_SHARE: f64 = 0.5;

/// Options that hold a job back, beside `rate_iops` (fio's HOWTO, "I/O rate").
const LIMITS: [&str; 3] = ["rate", "thinktime", "latency_target"];

/// Whether the job is told to hold back.
pub(super) fn is_limited(figure: &JudgedFigure) -> bool {
    figure.is_set("rate_iops") || LIMITS.iter().any(|name| holds(figure, name))
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
        false => LIMITS.iter().copied().find(|name| holds(figure, name))?,
    };
    let value = figure.option(name).unwrap_or("");
    let text = format!("{name}={value} was the limit: the device may do more");
    Some(VerdictReason::found(ReasonKind::OwnLimit, text, []))
}

/// Whether this option is set, and held the job back.
fn holds(figure: &JudgedFigure, name: &str) -> bool {
    figure.is_set(name)
        && match name {
            "rate" => !is_behind_bytes(figure),
            "thinktime" => paused_share(figure).is_none_or(|share| share >= PAUSED_SHARE),
            _ => true,
        }
}

/// The part of its time in which each of its jobs pauses; `None` where it is not told how often.
fn paused_share(figure: &JudgedFigure) -> Option<f64> {
    if figure.is_set("thinktime_iotime") {
        return None;
    }
    // A number alone counts µs (fio's HOWTO, `thinktime`).
    let pause_us = time_us(figure.option("thinktime")?, BareTimeUnit::Micros).ok()? as f64;
    let blocks = figure.number_or("thinktime_blocks", 1.0)?;
    let ios: u64 = figure.job.directions().map(|(_, it)| it.total_ios).sum();
    let of_each = ios as f64 / figure.clones() / blocks.max(1.0);
    Some(of_each * pause_us / 1000.0 / figure.result.runtime_ms.max(1) as f64)
}

/// Whether a rate of bytes was not reached: then something else was the limit.
fn is_behind_bytes(figure: &JudgedFigure) -> bool {
    let rate = figure.number_of_dir("rate").filter(|&rate| rate > 0.0);
    let wanted = rate.map(|rate| rate * figure.clones());
    wanted.is_some_and(|wanted| figure.result.bw_bytes < wanted * BEHIND_RATE_SHARE)
}
