//! Too little was written to fill the write cache of a flash drive.

use fathom_model::{Direction, ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;

/// Share of its capacity that a flash drive may take at the speed of one bit a cell (data
/// sheet of Samsung's 970 EVO Plus, TurboWrite: 42 GB of 1 TB). What a drive has is not told.
const CACHE_SHARE: f64 = 0.042;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    if figure.dir != Direction::Write {
        return None;
    }
    let evidence = figure.evidence()?;
    let device = figure.hardware()?;
    if evidence.set_to(&format!("{device}.rotational")) != Some("0") {
        return None;
    }
    let cache = CACHE_SHARE * evidence.gauge(&format!("{device}.size_bytes"))?.max;
    let written = figure.counted()?.write_bytes as f64;
    if written >= cache {
        return None;
    }
    let text = format!(
        "{} were written: a flash drive of this size may take {} and more in a fast cache before it slows down",
        units::bytes(written),
        units::bytes(cache)
    );
    let numbers = [("written_bytes", written), ("cache_bytes", cache)];
    Some(VerdictReason::found(
        ReasonKind::WriteCacheUnfilled,
        text,
        numbers,
    ))
}
