//! The record is written to the measured device.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// It is some KB for each interval, and is synced between steps, every ten seconds at most,
/// never while an engine measures.
pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let on_target = figure.evidence()?.set_to("record.on_target") == Some("1");
    on_target.then(|| VerdictReason::of(ReasonKind::RecordOnTarget))
}
