//! Too few I/Os lie beyond a percentile that is shown.

use fathom_model::{ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;

/// The number of I/Os beyond percentile p of n is n·(1 − p/100), and its relative error is
/// one over its root: a third with ten (Poisson), and the percentile with fewer is hardly
/// more than the maximum.
const BEYOND: f64 = 10.0;
/// The highest percentile that tables show.
const SHOWN: f64 = 99.9;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let latency = figure.result.clat.as_ref().or(figure.result.lat.as_ref())?;
    let n = latency.n.unwrap_or(figure.result.total_ios) as f64;
    let highest = (1.0 - BEYOND / n.max(BEYOND)) * 100.0;
    if highest >= SHOWN {
        return None;
    }
    let text = format!(
        "of {} I/Os fewer than ten lie beyond p99.9: percentiles up to p{highest:.1} rest on ten and more",
        units::count(n)
    );
    let numbers = [("n", n), ("highest_percent", highest)];
    Some(VerdictReason::found(ReasonKind::FewBeyond, text, numbers))
}
