//! All targets lie on a file system that has no storage under it.

use fathom_model::environment::is_in_memory;
use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let targets = figure.targets();
    let mut kinds = targets.iter().map(|target| target.file_system.as_ref());
    let all = kinds.all(|fs| fs.is_some_and(|fs| is_in_memory(&fs.kind)));
    (all && !targets.is_empty()).then(|| VerdictReason::of(ReasonKind::InMemory))
}
