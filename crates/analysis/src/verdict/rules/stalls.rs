//! Times without I/O between two with some.

use fathom_model::{ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;
use crate::verdict::rules::own_limit;

/// So many I/Os the job would have done in that time at its own mean rate: of a job that
/// does fewer an empty interval is chance. With ten expected, none at all has a chance of
/// e^-10 where I/Os come at random.
const EXPECTED: f64 = 10.0;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    if own_limit::is_paused(figure) {
        return None;
    }
    let missing = |ms: &&u64| figure.result.iops * **ms as f64 / 1000.0 >= EXPECTED;
    let stalls: Vec<u64> = figure
        .course?
        .stalls_ms
        .iter()
        .filter(missing)
        .copied()
        .collect();
    let longest_ms = *stalls.iter().max()?;
    let all_ms: u64 = stalls.iter().sum();
    let longest = units::duration(longest_ms);
    let text = match stalls.len() {
        1 => format!("the I/O stood still for {longest}"),
        n => format!(
            "the I/O stood still {n} times, {} in all, {longest} at the longest",
            units::duration(all_ms)
        ),
    };
    let numbers = [
        ("stalls", stalls.len() as f64),
        ("stalled_ms", all_ms as f64),
        ("longest_ms", longest_ms as f64),
    ];
    Some(VerdictReason::found(ReasonKind::Stalls, text, numbers))
}
