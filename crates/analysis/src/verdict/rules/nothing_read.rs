//! Reads of parts that hold nothing: holes, extents that were allocated and never written,
//! pages of zram that were never written or hold one value. No media is read for them.

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
    let named = evidence
        .devices("target")
        .filter(|device| figure.is_named(device));
    let of_devices = named.filter_map(|device| {
        of_zram(figure, evidence, device)
            .or_else(|| of_file(figure, evidence, &format!("{device}.backing_")))
    });
    let share = of_devices
        .chain(of_file(figure, evidence, "files."))
        .fold(0.0, f64::max);
    if share < SHARE {
        return None;
    }
    let percent = share * 100.0;
    let text = format!(
        "{percent:.0} % of the range that was read holds no data: such reads are answered without the media"
    );
    Some(VerdictReason::found(
        ReasonKind::NothingRead,
        text,
        [("empty_percent", percent)],
    ))
}

/// Pages that are not kept, or kept as one value (`mm_stat` of
/// Documentation/admin-guide/blockdev/zram.rst), where the job reads more than is kept.
fn of_zram(figure: &JudgedFigure, evidence: &EvidenceSum, device: &str) -> Option<f64> {
    let most = |name: &str| Some(evidence.gauge(&format!("{device}.{name}"))?.max);
    let kept = most("zram_data_bytes")? - most("zram_same_pages")? * evidence.page_bytes() as f64;
    beyond(figure.range(most("size_bytes")?)?, kept)
}

/// Of the targets, or of the file behind a loop device: of a single one by where it was
/// written, of several by how much of them was.
fn of_file(figure: &JudgedFigure, evidence: &EvidenceSum, prefix: &str) -> Option<f64> {
    let most = |name: &str| Some(evidence.gauge(&format!("{prefix}{name}"))?.max);
    let size = most("size_bytes")?;
    // Records of earlier versions have what was allocated.
    let written = most("written_bytes").or_else(|| most("allocated_bytes"))?;
    let Some(map) = evidence.setting(&format!("{prefix}written_map")).last() else {
        return beyond((0.0, size), written);
    };
    let range = figure.range(size)?;
    match written_in(map, size, range) {
        Some(written) => beyond(range, written),
        None => beyond(range, most("written_bytes")?),
    }
}

/// Share of a range that is more than so many bytes.
fn beyond((begin, end): (f64, f64), held: f64) -> Option<f64> {
    (end > begin).then(|| 1.0 - (held / (end - begin)).clamp(0.0, 1.0))
}

/// Bytes of a range that were written, by the share of each of as many equal parts as the
/// map has pairs of digits.
fn written_in(map: &str, size: f64, (begin, end): (f64, f64)) -> Option<f64> {
    let parts = map.as_bytes().chunks(2).map(|pair| {
        let digits = std::str::from_utf8(pair).ok()?;
        Some(f64::from(u8::from_str_radix(digits, 16).ok()?) / 255.0)
    });
    let shares: Option<Vec<f64>> = parts.collect();
    let shares = shares.filter(|shares| !shares.is_empty())?;
    let length = size / shares.len() as f64;
    let within = (0u32..).zip(&shares).map(|(part, share)| {
        let from = f64::from(part) * length;
        share * (end.min(from + length) - begin.max(from)).max(0.0)
    });
    Some(within.sum())
}
