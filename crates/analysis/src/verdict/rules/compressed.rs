//! A layer below compresses, and the data let it.

use fathom_model::{EvidenceSum, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// zram keeps a page that saves less than this as it is (`huge_class_size`, mm/zsmalloc.c:
/// about 7/8 of a page); data below it costs time to compress and saves memory traffic.
const RATIO: f64 = 0.8;
/// Of the measured files, the share in compressed extents from which on it matters: as for
/// parts that hold nothing.
const SHARE: f64 = 0.05;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let mut devices = evidence.devices("target").chain(evidence.devices("under"));
    devices
        .find_map(|device| of_zram(evidence, device))
        .or_else(|| of_files(figure, evidence))
}

/// Pages filled with one value take no space there; `nothing_read` covers them.
fn of_zram(evidence: &EvidenceSum, device: &str) -> Option<VerdictReason> {
    let last = |name: &str| Some(evidence.gauge(&format!("{device}.{name}"))?.last);
    let (data, kept) = (last("zram_data_bytes")?, last("zram_compressed_bytes")?);
    let data = data - last("zram_same_pages")? * evidence.page_bytes() as f64;
    if data < 1.0 || kept >= RATIO * data {
        return None;
    }
    let percent = 100.0 * kept / data;
    let text = format!("{device} compressed the data to {percent:.0} % of its size");
    let numbers = [("compressed_percent", percent)];
    Some(VerdictReason::found(ReasonKind::Compressed, text, numbers))
}

/// Extents that a file system keeps in another form (FIEMAP_EXTENT_ENCODED): btrfs, which
/// compresses nothing of direct writes.
fn of_files(figure: &JudgedFigure, evidence: &EvidenceSum) -> Option<VerdictReason> {
    let is_btrfs = |kind: &str| kind == "btrfs";
    let mut kinds = figure.targets().iter();
    if !kinds.any(|it| it.file_system.as_ref().is_some_and(|fs| is_btrfs(&fs.kind))) {
        return None;
    }
    let encoded = evidence.gauge("files.encoded_bytes")?.max;
    let written = evidence.gauge("files.written_bytes")?.max;
    if written < 1.0 || encoded < SHARE * written {
        return None;
    }
    let percent = 100.0 * encoded / written;
    let text = format!("btrfs keeps {percent:.0} % of the measured data compressed");
    let numbers = [("compressed_percent", percent)];
    Some(VerdictReason::found(ReasonKind::Compressed, text, numbers))
}
