//! One CPU was full of interrupts.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// Mean share of the intervals that the CPU with most interrupts spent in them, in
/// percent: what is left of it goes to programs, and from here on completions wait.
const MOST_PERCENT: f64 = 80.0;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let percent = figure.evidence()?.gauge("cpu.busiest_irq_percent")?.mean;
    if percent < MOST_PERCENT {
        return None;
    }
    let text = format!("one CPU spent {percent:.0} % of its time in interrupts");
    Some(VerdictReason::found(
        ReasonKind::InterruptBound,
        text,
        [("irq_percent", percent)],
    ))
}
