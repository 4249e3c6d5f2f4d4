//! Writes to a flash drive whose earlier writes are unknown.

use fathom_model::{Direction, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// What Fathom's ledger says of a drive that it has neither purged, nor filled, nor brought
/// to a steady state.
const UNKNOWN: &str = "unknown";

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    if figure.dir != Direction::Write {
        return None;
    }
    let evidence = figure.evidence()?;
    let device = figure.hardware()?;
    let is =
        |setting: &str, value: &str| evidence.set_to(&format!("{device}.{setting}")) == Some(value);
    if !is("history", UNKNOWN) || !is("rotational", "0") {
        return None;
    }
    let text = format!(
        "what was written to {device} before is not known: a fresh or trimmed drive writes faster than a full one"
    );
    Some(VerdictReason::found(ReasonKind::UnknownHistory, text, []))
}
