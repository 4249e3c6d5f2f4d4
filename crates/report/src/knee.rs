//! The knee of a curve in words: where more load only waits.

use fathom_analysis::{Curve, PointResult, knee};
use fathom_model::{Direction, units};

/// A sentence for each direction of a curve that has a knee.
pub(crate) fn sentences(series: &Curve) -> Vec<String> {
    let dirs = [Direction::Read, Direction::Write, Direction::Trim];
    let each = dirs.into_iter().filter_map(|dir| of(series, dir));
    each.collect()
}

fn of(series: &Curve, dir: Direction) -> Option<String> {
    let found = knee(series, dir)?;
    let at = |place: usize| {
        let point = &series.points[place].point;
        point.settings.get(&series.x).cloned().unwrap_or_default()
    };
    let name = dir.name();
    let x = &series.x;
    if found.place == found.best {
        return Some(format!(
            "{name}: the knee is the best point, {x}={}",
            at(found.best)
        ));
    }
    let share = |place: usize| {
        let bw = |place: usize| Some(series.points[place].figures(dir)?.bw_bytes.mean);
        Some(100.0 * (1.0 - bw(place)? / bw(found.best)?))
    };
    let ties = match found.ties.len() {
        2 => String::new(),
        n => format!("; {n} points are as good within 2 %"),
    };
    Some(format!(
        "{name}: the knee is at {x}={}, {:.1} % below the best, {x}={}{}{ties}",
        at(found.place),
        share(found.place)?,
        at(found.best),
        latencies(&series.points[found.place], &series.points[found.best], dir).unwrap_or_default(),
    ))
}

/// What the best costs in latency.
fn latencies(knee: &PointResult, best: &PointResult, dir: Direction) -> Option<String> {
    let (knee, best) = (knee.figures(dir)?, best.figures(dir)?);
    let p99 = (knee.percentile_ns(99.0), best.percentile_ns(99.0));
    let (what, low, high) = match p99 {
        (Some(low), Some(high)) => ("p99", low as f64, high as f64),
        _ => (
            "mean latency",
            knee.clat_mean_ns?.mean,
            best.clat_mean_ns?.mean,
        ),
    };
    let (low, high) = (units::latency(low), units::latency(high));
    Some(format!(", with a {what} of {low} instead of {high}"))
}
