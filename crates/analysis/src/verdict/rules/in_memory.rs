//! All targets lie on a file system that has no storage under it.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let targets = figure.targets();
    let in_memory = |kind: &str| matches!(kind, "tmpfs" | "ramfs");
    let mut kinds = targets.iter().map(|target| target.file_system.as_ref());
    let all = kinds.all(|fs| fs.is_some_and(|fs| in_memory(&fs.kind)));
    (all && !targets.is_empty()).then(|| VerdictReason::of(ReasonKind::InMemory))
}
