//! The record is written to the measured device.

use fathom_model::{ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;

/// From this share of what the device moved on: a record is some KB for each interval, which
/// no figure shows. It is synced between steps, every ten seconds at most, never while an
/// engine measures.
const SHARE: f64 = 0.01;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    if evidence.set_to("record.on_target") != Some("1") {
        return None;
    }
    let bytes = evidence.count("record.bytes")? as f64;
    let moved = figure.counted()?;
    let moved = (moved.read_bytes + moved.write_bytes) as f64;
    let text = format!(
        "the record is on the measured device and wrote {} there",
        units::bytes(bytes)
    );
    let numbers = [("record_bytes", bytes)];
    (bytes >= SHARE * moved)
        .then(|| VerdictReason::found(ReasonKind::RecordOnTarget, text, numbers))
}
