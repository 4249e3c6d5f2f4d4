//! All targets lie on file systems that keep their files in memory, themselves or below.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let targets = figure.targets();
    let all = targets.iter().all(|target| target.is_in_memory());
    (all && !targets.is_empty()).then(|| VerdictReason::of(ReasonKind::InMemory))
}
