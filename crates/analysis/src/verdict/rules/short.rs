//! Less than a second of I/O.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// fio starts the jobs of a group within some ms, reads the disks' counters every
/// 250 ms and takes its interval statistics over 500 ms (`DISK_UTIL_MSEC`,
/// `bwavgtime`): below two of these start and end weigh as much as the rest.
const LEAST_MS: u64 = 1000;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let is_short = (1..LEAST_MS).contains(&figure.result.runtime_ms);
    is_short.then(|| VerdictReason::of(ReasonKind::Short))
}
