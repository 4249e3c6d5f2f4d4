//! The device counted more I/O than the jobs asked for.

use fathom_model::{EvidenceSum, ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;
use crate::verdict::figure::ReadsAndWrites;

/// From this share of the job's own bytes, or requests, on. Rates of runs that nobody
/// disturbs differ by some percent (Maricq et al., Taming Performance Variability, OSDI
/// 2018, have a median coefficient of variation of 3.7 % for disks): what takes less away
/// is not seen in them. Direct I/O on a device has no other requests at all; files have
/// those of metadata and the journal, which ext4 commits every 5 s.
const SHARE: f64 = 0.05;
/// Below this share of the job's own bytes, write-back is only a note: it comes in few large
/// requests, and the kernel holds it back beside reads (`wbt_lat_usec`,
/// Documentation/ABI/stable/sysfs-block).
const WRITE_BACK_SHARE: f64 = 0.2;
/// And from so many requests and bytes on: a look at a partition table is no load.
const LEAST_IOS: f64 = 100.0;
const LEAST_BYTES: f64 = 1024.0 * 1024.0;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let (own, counted) = (figure.own()?, figure.counted()?);
    let beyond = |counted: u64, own: u64| counted.saturating_sub(own) as f64;
    let bytes =
        beyond(counted.read_bytes, own.read_bytes) + beyond(counted.write_bytes, own.write_bytes);
    // The kernel makes several requests of one I/O and one of several: only the bytes of
    // one's own can be expected, and the requests that they may have taken.
    let own_requests = |ios: u64, own_bytes: u64, counted: u64, counted_bytes: u64| {
        let mean = counted_bytes as f64 / counted.max(1) as f64;
        (own_bytes as f64 / mean.max(512.0)).max(ios as f64)
    };
    let reads = own_requests(
        own.read_ios,
        own.read_bytes,
        counted.read_ios,
        counted.read_bytes,
    );
    let writes = own_requests(
        own.write_ios,
        own.write_bytes,
        counted.write_ios,
        counted.write_bytes,
    );
    let ios =
        (counted.read_ios as f64 - reads).max(0.0) + (counted.write_ios as f64 - writes).max(0.0);
    let own_ios = (own.read_ios + own.write_ios) as f64;
    let own_bytes = (own.read_bytes + own.write_bytes) as f64;
    let many_ios = ios >= LEAST_IOS && ios >= SHARE * own_ios;
    let many_bytes = bytes >= LEAST_BYTES && bytes >= SHARE * own_bytes;
    if !(many_ios || many_bytes) {
        return None;
    }
    let is_write_back = is_write_back(figure, own, counted);
    let whose = match is_write_back {
        true => "the kernel wrote back what was in the page cache",
        false => "somebody else used it meanwhile",
    };
    let text = format!(
        "the device moved {} beyond the {} of the job, in {} requests more than its own: {whose}",
        units::bytes(bytes),
        units::bytes(own_bytes),
        units::count(ios.round()),
    );
    let numbers = [
        ("own_bytes", own_bytes),
        ("own_ios", own_ios),
        ("foreign_bytes", bytes),
        ("foreign_requests", ios.round()),
    ];
    let found = VerdictReason::found(ReasonKind::ForeignIo, text, numbers);
    // What the device did for others it could have done for the job, and no more.
    let share = (bytes / own_bytes.max(1.0)).max(ios / own_ios.max(1.0));
    let is_little = is_write_back && bytes < WRITE_BACK_SHARE * own_bytes;
    Some(found.noted_unless(!is_little && figure.may_exceed_interval(share)))
}

/// Whether most of what was moved beside the job are pages of the cache that the kernel wrote
/// back (`nr_written` of /proc/vmstat, of all devices).
fn is_write_back(figure: &JudgedFigure, own: ReadsAndWrites, counted: ReadsAndWrites) -> bool {
    let pages_back = |it: &EvidenceSum| {
        let pages = it.count("memory.written_back_pages")?;
        Some(pages.saturating_mul(it.page_bytes()))
    };
    let written = counted.write_bytes.saturating_sub(own.write_bytes);
    let read = counted.read_bytes.saturating_sub(own.read_bytes);
    let back = figure.evidence().and_then(pages_back).unwrap_or(0);
    written > read && back >= written / 2
}
