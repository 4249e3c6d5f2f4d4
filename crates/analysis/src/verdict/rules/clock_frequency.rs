//! CPUs ran far below their highest clock.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// Share of the highest clock below which even the fastest reading of all CPUs lay.
/// Present CPUs reach their highest clock with one core alone; with all of them two
/// thirds and more.
const SHARE: f64 = 0.6;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let (mhz, most) = (evidence.gauge("cpu.mhz")?, evidence.gauge("cpu.most_mhz")?);
    // One reading is that of an idle machine, before the job.
    if mhz.n < 2 || mhz.max >= SHARE * most.max {
        return None;
    }
    let text = format!(
        "the CPUs ran at {:.0} MHz at most, and can do {:.0}",
        mhz.max, most.max
    );
    let numbers = [("mhz", mhz.max), ("most_mhz", most.max)];
    Some(VerdictReason::found(
        ReasonKind::ClockFrequency,
        text,
        numbers,
    ))
}
