//! The job read a small range over and over: a drive's own memory may have answered.

use fathom_model::{Direction, EvidenceSum, ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;

/// The largest memory of a hard disk (data sheets of Seagate Exos X and WD Ultrastar DC HC:
/// 256 and 512 MiB). Flash drives have more of it, for their tables.
const MEMORY_BYTES: f64 = 512.0 * 1024.0 * 1024.0;
/// Times that the range was read: what is read once comes from the media.
const PASSES: f64 = 2.0;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    if figure.dir != Direction::Read {
        return None;
    }
    let evidence = figure.evidence()?;
    figure.hardware()?;
    let range = range_bytes(figure, evidence)?;
    let passes = figure.result.io_bytes as f64 / range.max(1.0);
    if range > MEMORY_BYTES || passes < PASSES {
        return None;
    }
    let text = format!(
        "{} were read {passes:.0} times over: a drive's own memory can hold as much",
        units::bytes(range)
    );
    let numbers = [("range_bytes", range), ("passes", passes)];
    Some(VerdictReason::found(
        ReasonKind::DeviceMemory,
        text,
        numbers,
    ))
}

/// What the job works on, in bytes.
fn range_bytes(figure: &JudgedFigure, evidence: &EvidenceSum) -> Option<f64> {
    let gauge = |name: &str| Some(evidence.gauge(name)?.max);
    let of_files = gauge("files.size_bytes");
    let named = || {
        let device = evidence.devices("target").find(|it| figure.is_named(it))?;
        gauge(&format!("{device}.size_bytes"))
    };
    let (begin, end) = figure.range(of_files.or_else(named)?)?;
    Some(end - begin)
}
