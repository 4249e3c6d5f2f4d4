//! Less than half of the job's buffered reads can have come from a disk.
//!
//! fio counts the disks' requests for all jobs of a step together, so what the
//! direct jobs of the step read for certain is taken off first. A random read
//! is one request at the least; of sequential reads the kernel makes larger
//! ones, up to [`LARGEST_REQUEST_BYTES`].

use fathom_model::{Direction, DiskUse, JobResult, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;
use crate::verdict::figure::{DISK_FIGURES_MS, is_buffered, is_file_engine};
use crate::volumes;

/// Largest request the kernel makes of adjacent reads unless told otherwise:
/// `BLK_DEF_MAX_SECTORS_CAP` (include/linux/blkdev.h), 2560 sectors.
const LARGEST_REQUEST_BYTES: u64 = 1280 * 1024;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let (job, doc) = (figure.job, figure.doc);
    if figure.dir != Direction::Read || volumes::is_counted(job, doc) {
        return None;
    }
    let pattern = figure
        .pattern()
        .filter(|_| is_buffered(job) && is_file_engine(job))?;
    if figure.result.runtime_ms < DISK_FIGURES_MS {
        return None;
    }
    let disk_requests = by_engine(figure).or_else(|| by_evidence(figure))?;
    let siblings = || {
        let beside = |other: &&JobResult| other.step == job.step && other.hostname == job.hostname;
        doc.jobs
            .iter()
            .filter(beside)
            .filter(|other| is_file_engine(other))
    };
    let reads = |jobs: &mut dyn Iterator<Item = &JobResult>| {
        let reads = jobs.filter_map(|job| job.read.as_ref());
        reads.fold((0u64, 0u64), |(ios, bytes), read| {
            (
                ios.saturating_add(read.total_ios),
                bytes.saturating_add(read.io_bytes),
            )
        })
    };
    let (direct_ios, _) = reads(&mut siblings().filter(|job| !is_buffered(job)));
    let (ios, bytes) = reads(&mut siblings().filter(|job| is_buffered(job)));
    let requests = disk_requests.saturating_sub(direct_ios);
    let is_cached = match pattern.starts_with("rand") {
        true => requests < ios / 2,
        false => requests.saturating_mul(LARGEST_REQUEST_BYTES) < bytes / 2,
    };
    is_cached.then(|| {
        let numbers = [("reads", ios as f64), ("disk_requests", requests as f64)];
        let text = ReasonKind::CachedReads.sentence().to_owned();
        VerdictReason::found(ReasonKind::CachedReads, text, numbers)
    })
}

/// Read requests that the disks completed in the step, merged ones too, by the engine's
/// own figures of them; `None` where it has none.
fn by_engine(figure: &JudgedFigure) -> Option<u64> {
    let job = figure.job;
    let its = |disk: &&DiskUse| disk.step == job.step && disk.host == job.hostname;
    let disks = figure.doc.disks.iter().filter(its);
    disks
        .map(|disk| disk.read_ios.saturating_add(disk.read_merges))
        .reduce(u64::saturating_add)
}

/// The same by what was read of the machine.
fn by_evidence(figure: &JudgedFigure) -> Option<u64> {
    let evidence = figure.evidence()?;
    evidence.devices("target").next()?;
    let requests = |device: &str| {
        // Counters that are switched off stay at 0.
        if evidence.set_to(&format!("{device}.iostats")) == Some("0") {
            return None;
        }
        let count = |name: &str| evidence.count(&format!("{device}.{name}"));
        Some(count("read_ios")?.saturating_add(count("read_merges")?))
    };
    evidence.devices("target").map(requests).sum()
}
