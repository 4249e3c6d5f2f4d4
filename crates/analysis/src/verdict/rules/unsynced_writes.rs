//! Writes without O_DIRECT that nothing asked to be stored.

use fathom_model::{Direction, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;
use crate::verdict::figure::{is_buffered, is_file_engine};

/// Options that wait for the data (fio's HOWTO, "I/O type").
const SYNCING: [&str; 7] = [
    "fsync",
    "fdatasync",
    "end_fsync",
    "fsync_on_close",
    "sync",
    "sync_file_range",
    "verify",
];

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let holds = figure.dir == Direction::Write
        && is_buffered(figure.job)
        && is_file_engine(figure.job)
        && !SYNCING.iter().any(|name| figure.is_set(name));
    holds.then(|| VerdictReason::of(ReasonKind::UnsyncedWrites))
}
