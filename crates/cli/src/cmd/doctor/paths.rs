//! What lies under the paths that were named, and what it means for a measurement.

use std::path::{Path, PathBuf};

use fathom_device::{Sys, stack};
use fathom_model::{LayerKind, StackLayer, text};

use super::{CheckState, Topic};

pub(super) fn look(topic: &mut Topic, paths: &[PathBuf]) {
    let sys = Sys::live();
    for path in paths {
        let shown = path.display().to_string();
        let name = text::line(&shown);
        match stack::of(&sys, path) {
            Some(stack) => found(topic, &name, path, &stack),
            None => topic.add(
                &name,
                CheckState::Note,
                "what lies under it cannot be told",
                Some("name a file or folder of a mounted file system, or a block device".into()),
            ),
        }
    }
}

fn found(topic: &mut Topic, name: &str, path: &Path, stack: &StackLayer) {
    let note = |topic: &mut Topic, why: &str, fix: &str| {
        let text = format!("{stack}: {why}");
        topic.add(name, CheckState::Note, text, Some(fix.to_owned()));
    };
    let mut leaves = stack.leaves();
    if stack.is_in_memory() {
        note(
            topic,
            "files here lie in memory",
            "measure on a file system that is on a disk",
        );
    } else if leaves.any(|leaf| leaf.kind == LayerKind::Network) {
        note(
            topic,
            "another machine keeps the data; its caches are not seen here",
            "run Fathom on that machine to measure its disks",
        );
    } else if !path.exists() {
        topic.ok(name, format!("does not exist yet; would be on {stack}"));
    } else {
        topic.ok(name, stack.to_string());
    }
}
