//! The targets lie in memory: files on a file system that keeps them there, itself or below.
//! A device in memory that was named, or that a file system was made on, is what it is.

use fathom_model::{LayerKind, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let targets = figure.targets();
    if !targets.is_empty() && targets.iter().all(|target| target.is_in_memory()) {
        return Some(VerdictReason::of(ReasonKind::InMemory));
    }
    let mut leaves = figure.stacks().flat_map(|stack| stack.leaves());
    let device = leaves.find(|leaf| leaf.kind == LayerKind::MemoryDevice)?;
    let text = format!(
        "{} keeps its data in memory: this says nothing about a disk",
        device.name
    );
    Some(VerdictReason::found(ReasonKind::InMemory, text, []).noted())
}
