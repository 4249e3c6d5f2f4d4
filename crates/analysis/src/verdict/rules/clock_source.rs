//! The kernel's clock is slow to read.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// Clocks that are read over a bus, some µs at a time, and by a system call: an engine
/// reads the clock twice for each I/O (Documentation/virt/kvm/x86/timekeeping.rst).
const SLOW: [&str; 4] = ["acpi_pm", "hpet", "jiffies", "refined-jiffies"];

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let sources = figure.evidence()?.setting("clock.source");
    let slow = sources
        .iter()
        .find(|source| SLOW.contains(&source.as_str()))?;
    let text =
        format!("the kernel's clock is {slow}, which is slow to read and costs CPU for every I/O");
    Some(VerdictReason::found(ReasonKind::ClockSource, text, []))
}
