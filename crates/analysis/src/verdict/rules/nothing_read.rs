//! Reads of parts that hold nothing: holes of sparse files, of a zram device, pages that
//! zram keeps as one value. No media is read for them.

use fathom_model::{Direction, EvidenceSum, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// From this share on: less is within what two runs differ by, as for reads that a
/// volume has not delivered (`volumes`).
const SHARE: f64 = 0.05;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    if figure.dir != Direction::Read {
        return None;
    }
    let evidence = figure.evidence()?;
    let of_devices = evidence
        .devices("target")
        .filter_map(|device| of_device(evidence, device));
    let share = of_devices.chain(of_files(evidence)).fold(0.0, f64::max);
    if share < SHARE {
        return None;
    }
    let percent = share * 100.0;
    let text = format!(
        "{percent:.0} % of what was read from holds nothing: the device answers such reads without its media"
    );
    Some(VerdictReason::found(
        ReasonKind::NothingRead,
        text,
        [("empty_percent", percent)],
    ))
}

/// Of zram: pages that are not kept, or kept as one value (`mm_stat`). Of a loop device:
/// holes of its file.
fn of_device(evidence: &EvidenceSum, device: &str) -> Option<f64> {
    let gauge = |figure: &str| Some(evidence.gauge(&format!("{device}.{figure}"))?.mean);
    let size = gauge("size_bytes")?;
    let held = match gauge("zram_data_bytes") {
        Some(stored) => stored - gauge("zram_same_pages")? * 4096.0,
        None => gauge("backing_allocated_bytes")?,
    };
    Some(1.0 - (held / size.max(1.0)).clamp(0.0, 1.0))
}

fn of_files(evidence: &EvidenceSum) -> Option<f64> {
    let size = evidence.gauge("files.size_bytes")?.mean;
    let held = evidence.gauge("files.allocated_bytes")?.mean;
    Some(1.0 - (held / size.max(1.0)).clamp(0.0, 1.0))
}
