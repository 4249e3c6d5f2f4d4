//! Memory ran short.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// Share of the time in which a task waited for memory (Documentation/accounting/psi.rst),
/// what two runs differ by.
const WAITING_SHARE: f64 = 0.05;
/// Pages a second that went to swap: a MiB.
const SWAPPED_PAGES: f64 = 256.0;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let ms = evidence.span_ms.max(1) as f64;
    let count = |name: &str| evidence.count(name).unwrap_or(0) as f64;
    let share = count("pressure.memory_some_us") / 1000.0 / ms;
    let swapped = count("memory.swapped_out_pages") * 1000.0 / ms;
    let text = if share >= WAITING_SHARE {
        format!(
            "for {:.0} % of the time tasks waited for memory",
            share * 100.0
        )
    } else if swapped >= SWAPPED_PAGES {
        format!("{swapped:.0} pages a second went to swap")
    } else {
        return None;
    };
    let numbers = [
        ("waiting_percent", share * 100.0),
        ("swapped_pages_per_s", swapped),
    ];
    Some(VerdictReason::found(
        ReasonKind::MemoryPressure,
        text,
        numbers,
    ))
}
