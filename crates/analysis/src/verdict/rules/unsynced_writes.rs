//! Writes that went to the page cache, and nothing asked for them to be stored.
//!
//! With direct=1 it is the devices that tell: FUSE servers write through the page cache of
//! the file system below them, and so do file systems that must not see a buffer change.

use fathom_model::{Direction, ReasonKind, VerdictLevel, VerdictReason, units};

use super::compressed;
use crate::verdict::JudgedFigure;
use crate::verdict::figure::{DISK_FIGURES_MS, is_buffered, is_direct, is_file_engine};

/// Less than this share of what was written reached a device. RAID writes more, compression
/// less, and it has a rule of its own.
const SHARE: f64 = 0.5;

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
    let is_judged = figure.dir == Direction::Write
        && is_file_engine(figure.job)
        && !SYNCING.iter().any(|name| figure.is_set(name));
    if !is_judged {
        return None;
    }
    match is_buffered(figure.job) {
        true => Some(VerdictReason::of(ReasonKind::UnsyncedWrites)),
        false => of_direct(figure),
    }
}

/// Direct writes that the devices did not see.
fn of_direct(figure: &JudgedFigure) -> Option<VerdictReason> {
    let is_judged = is_direct(figure.job)
        && figure.result.runtime_ms >= DISK_FIGURES_MS
        && figure.is_on_files()
        && compressed::rule(figure).is_none();
    if !is_judged {
        return None;
    }
    let its = figure.siblings().filter(|job| is_direct(job));
    let its = its.filter_map(|job| job.write.as_ref());
    let written = its.map(|it| it.io_bytes).sum::<u64>() as f64;
    let reached = figure.reached(&["write_bytes"])? as f64;
    (reached < SHARE * written).then(|| {
        let text = format!(
            "direct=1, and yet of {} written only {} reached a device meanwhile: this file system does not pass direct I/O on",
            units::bytes(written),
            units::bytes(reached)
        );
        let numbers = [("written_bytes", written), ("device_bytes", reached)];
        VerdictReason {
            level: VerdictLevel::Invalid,
            ..VerdictReason::found(ReasonKind::UnsyncedWrites, text, numbers)
        }
    })
}
