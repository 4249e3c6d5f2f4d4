//! Data written may still be in the drive's volatile cache.

use fathom_model::{Direction, ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// The kernel says that the cache is volatile (`write back`), and no flush was sent in all
/// of the time (flush requests of Documentation/block/stat.rst).
pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    if figure.dir != Direction::Write {
        return None;
    }
    let evidence = figure.evidence()?;
    let is_volatile = |device: &&str| {
        evidence.set_to(&format!("{device}.write_cache")) == Some("write back")
            && evidence.count(&format!("{device}.flush_ios")) == Some(0)
    };
    let device = evidence.devices("target").find(is_volatile)?;
    let text = format!(
        "the write cache of {device} was on and nothing flushed it: the writes need not be stored"
    );
    Some(VerdictReason::found(ReasonKind::VolatileCache, text, []))
}
