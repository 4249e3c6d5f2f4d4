//! Less than half of the job's reads can have come from a disk.
//!
//! Two counters tell, and the lower one counts: what storage delivered to the engine's own
//! processes, and the requests of the disks, which others may have made. Both are of all jobs
//! of a step together, so what the direct jobs of the step read for certain is taken off
//! first. A random read is one request at the least; of sequential reads the kernel makes
//! larger ones, up to [`LARGEST_REQUEST_BYTES`].
//! Where no device is known below the files (a container's layers, FUSE), what all block
//! devices of the machine delivered is the most that can have come from one.

use fathom_model::{
    Direction, DiskUse, JobResult, LayerKind, ReasonKind, StackLayer, VerdictReason, units,
};

use super::{compressed, nothing_read};
use crate::verdict::JudgedFigure;
use crate::verdict::figure::{DISK_FIGURES_MS, is_buffered, is_direct, is_file_engine};
use crate::volumes;

/// Largest request the kernel makes of adjacent reads unless told otherwise:
/// `BLK_DEF_MAX_SECTORS_CAP` (include/linux/blkdev.h), 2560 sectors.
const LARGEST_REQUEST_BYTES: u64 = 1280 * 1024;

/// Requests that a device completed, and those that were merged into them.
const REQUESTS: [&str; 2] = ["read_ios", "read_merges"];

/// Reads of jobs.
#[derive(Debug, Clone, Copy, Default)]
struct JobReads {
    ios: u64,
    bytes: u64,
}

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let (job, doc) = (figure.job, figure.doc);
    let is_judged = figure.dir == Direction::Read
        && !volumes::is_counted(job, doc)
        && is_file_engine(job)
        && figure.result.runtime_ms >= DISK_FIGURES_MS;
    if !is_judged {
        return None;
    }
    figure.pattern()?;
    match is_buffered(job) {
        true => of_buffered(figure),
        false => of_direct(figure),
    }
}

fn of_buffered(figure: &JudgedFigure) -> Option<VerdictReason> {
    let reads = reads_of(figure, is_buffered);
    let text = ReasonKind::CachedReads.sentence().to_owned();
    if let Some(reason) = of_engine(figure, reads, reads_of(figure, is_direct), &text) {
        return Some(reason);
    }
    let Some(requests) = figure.reached(&REQUESTS).or_else(|| by_engine(figure)) else {
        return of_machine(figure, reads, text);
    };
    let requests = requests.saturating_sub(reads_of(figure, is_direct).ios);
    let pattern = figure.pattern()?;
    let is_cached = match pattern.starts_with("rand") {
        true => requests < reads.ios / 2,
        false => requests.saturating_mul(LARGEST_REQUEST_BYTES) < reads.bytes / 2,
    };
    is_cached.then(|| found(text, reads, requests))
}

/// FUSE servers and compressed extents of btrfs read through the page cache.
fn of_direct(figure: &JudgedFigure) -> Option<VerdictReason> {
    // Holes are answered without the device, whatever the cache holds.
    if !figure.is_on_files() || nothing_read::rule(figure).is_some() {
        return None;
    }
    let reads = reads_of(figure, is_direct);
    let text = "direct=1, and yet the page cache answered reads: this file system does not pass direct I/O on".to_owned();
    if let Some(reason) = of_engine(figure, reads, JobReads::default(), &text) {
        return Some(reason);
    }
    let Some(requests) = figure.reached(&REQUESTS) else {
        return of_machine(figure, reads, text);
    };
    (requests < reads.ios / 2).then(|| found(text, reads, requests))
}

/// By what storage delivered to the engine's processes and those that serve its files. Less
/// is delivered of data that is kept compressed, and nothing of holes.
fn of_engine(
    figure: &JudgedFigure,
    reads: JobReads,
    others: JobReads,
    text: &str,
) -> Option<VerdictReason> {
    let delivered = figure.evidence()?.count("job.read_bytes")?;
    let delivered = delivered.saturating_sub(others.bytes);
    let sentence = |read, delivered| {
        format!("{text} ({read} were read, and storage delivered {delivered} of it)")
    };
    too_few(reads, delivered, sentence).filter(|_| {
        is_of_this_machine(figure)
            && compressed::rule(figure).is_none()
            && nothing_read::rule(figure).is_none()
    })
}

/// By what all block devices delivered, where the files are on this machine.
fn of_machine(figure: &JudgedFigure, reads: JobReads, text: String) -> Option<VerdictReason> {
    let of_memory = |stack: &StackLayer| {
        let mut layers = stack.layers();
        layers.any(|layer| layer.kind == LayerKind::MemoryDevice)
    };
    if !is_of_this_machine(figure) || figure.stacks().any(of_memory) {
        return None;
    }
    let kib = figure.evidence()?.count("memory.read_kib")?;
    let sentence = |read, delivered| {
        format!("{text} ({read} were read, and all disks of the machine delivered {delivered})")
    };
    too_few(reads, kib.saturating_mul(1024), sentence)
}

/// Whether everything that is known to lie under the targets is storage of this machine. What
/// a server does that has no device or folder of it is not known.
fn is_of_this_machine(figure: &JudgedFigure) -> bool {
    let is_local = |stack: &StackLayer| {
        let mut layers = stack.layers();
        layers.all(|layer| match layer.kind {
            LayerKind::Network | LayerKind::Memory => false,
            LayerKind::Fuse => layer.leaves().all(|it| it.kind != LayerKind::Unknown),
            _ => true,
        })
    };
    let targets = figure.targets();
    let mut stacks = targets.iter().map(|target| target.stack.as_ref());
    !targets.is_empty() && stacks.all(|stack| stack.is_some_and(is_local))
}

/// The finding where less than half of what was read was delivered.
fn too_few(
    reads: JobReads,
    delivered: u64,
    sentence: impl Fn(String, String) -> String,
) -> Option<VerdictReason> {
    let bytes = |bytes: u64| units::bytes(bytes as f64);
    let numbers = [
        ("read_bytes", reads.bytes as f64),
        ("disk_bytes", delivered as f64),
    ];
    let text = sentence(bytes(reads.bytes), bytes(delivered));
    (delivered < reads.bytes / 2)
        .then(|| VerdictReason::found(ReasonKind::CachedReads, text, numbers))
}

fn found(text: String, reads: JobReads, requests: u64) -> VerdictReason {
    let numbers = [
        ("reads", reads.ios as f64),
        ("disk_requests", requests as f64),
    ];
    VerdictReason::found(ReasonKind::CachedReads, text, numbers)
}

/// What those jobs of the step that go to files read, and that are like this.
fn reads_of(figure: &JudgedFigure, wanted: fn(&JobResult) -> bool) -> JobReads {
    let job = figure.job;
    let is_its = |other: &&JobResult| other.step == job.step && other.hostname == job.hostname;
    let its = figure.doc.jobs.iter().filter(is_its);
    let its = its.filter(|other| is_file_engine(other) && wanted(other));
    let reads = its.filter_map(|job| job.read.as_ref());
    reads.fold(JobReads::default(), |sum, read| JobReads {
        ios: sum.ios.saturating_add(read.total_ios),
        bytes: sum.bytes.saturating_add(read.io_bytes),
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
