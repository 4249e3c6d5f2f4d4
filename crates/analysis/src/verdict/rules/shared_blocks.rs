//! Blocks of the measured files are those of a snapshot or a copy, too (FIEMAP_EXTENT_SHARED):
//! on btrfs and xfs the first write to each of them allocates a new one.

use fathom_model::{Direction, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// From this share on: as for parts that hold nothing.
const SHARE: f64 = 0.05;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    if figure.dir != Direction::Write {
        return None;
    }
    let evidence = figure.evidence()?;
    // The first write ends it, so that only the reading before the step has all of it.
    let most = |name: &str| Some(evidence.gauge(name)?.max);
    let share = most("files.shared_bytes")? / most("files.size_bytes")?.max(1.0);
    let percent = share * 100.0;
    let text = format!(
        "{percent:.0} % of the measured files is shared with a snapshot or a copy: the first write to each of these blocks goes to a new one"
    );
    let numbers = [("shared_percent", percent)];
    (share >= SHARE).then(|| VerdictReason::found(ReasonKind::SharedBlocks, text, numbers))
}
