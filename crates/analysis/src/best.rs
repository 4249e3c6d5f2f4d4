//! The best points of a curve.

use fathom_model::Direction;

use crate::series::{Curve, PointResult, RepeatedFigures, SweepOutcome};

/// Where a curve is best in one direction, as places in [`Curve::points`].
/// `None` when no point has the figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Best {
    /// Highest bandwidth.
    pub bandwidth: Option<usize>,
    /// Most I/Os per second.
    pub iops: Option<usize>,
    /// Lowest mean completion latency.
    pub latency: Option<usize>,
}

impl Best {
    /// Whether a point is best in anything.
    pub fn holds(&self, place: usize) -> bool {
        [self.bandwidth, self.iops, self.latency].contains(&Some(place))
    }
}

/// The best points of a curve in one direction, among those that are
/// [`SweepOutcome::Done`]. Of points that are equally good the one with the lower x
/// is best: what needs fewer I/Os under way or fewer jobs costs less. Only the
/// means count; whether two points differ by more than noise their
/// [`Estimate`](crate::Estimate)s tell.
pub fn best(series: &Curve, dir: Direction) -> Best {
    let highest = |figure: fn(&RepeatedFigures) -> Option<f64>| {
        let mut best: Option<(usize, f64)> = None;
        for (place, value) in done(series, dir, figure) {
            if best.is_none_or(|(_, so_far)| value > so_far) {
                best = Some((place, value));
            }
        }
        best.map(|(place, _)| place)
    };
    Best {
        bandwidth: highest(|figures| Some(figures.bw_bytes.mean)),
        iops: highest(|figures| Some(figures.iops.mean)),
        latency: highest(|figures| Some(-figures.clat_mean_ns?.mean)),
    }
}

/// Throughput that is as good as the best: what runs of the same differ by anyway
/// (Maricq et al., Taming Performance Variability, OSDI 2018).
pub const KNEE_SHARE: f64 = 0.98;
/// Options that make more load: of others (a block size) no point is enough.
const LOADS: [&str; 2] = ["iodepth", "numjobs"];
/// A curve of fewer points has no knee to be seen.
const KNEE_POINTS: usize = 3;

/// Where more load only waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knee {
    /// The smallest load whose bandwidth is within 2 % of the best, as a place in
    /// [`Curve::points`].
    pub place: usize,
    /// The point of the highest bandwidth.
    pub best: usize,
    /// All points within 2 % of the best, ascending in x: ties.
    pub ties: Vec<usize>,
}

/// The knee of a curve over depths or jobs; `None` for other curves, and for those of
/// fewer than three good points.
pub fn knee(series: &Curve, dir: Direction) -> Option<Knee> {
    let points: Vec<(usize, f64)> =
        done(series, dir, |figures| Some(figures.bw_bytes.mean)).collect();
    if !LOADS.contains(&series.x.as_str()) || points.len() < KNEE_POINTS {
        return None;
    }
    let best = best(series, dir).bandwidth?;
    let most = points.iter().map(|&(_, bw)| bw).fold(0.0, f64::max);
    let near = points.iter().filter(|&&(_, bw)| bw >= KNEE_SHARE * most);
    let ties: Vec<usize> = near.map(|&(place, _)| place).collect();
    let place = *ties.first()?;
    Some(Knee { place, best, ties })
}

/// Of how many points those of [`best`] are the best, and how many the series
/// has. Where the two differ, the others failed, were left out or did not end,
/// and what is best of all points is not known.
pub fn measured_of(series: &Curve) -> (usize, usize) {
    let points = series.points.iter();
    let measured = points.filter(|point| is_measured(point)).count();
    (measured, series.points.len())
}

fn is_measured(point: &PointResult) -> bool {
    point.outcome == SweepOutcome::Done
}

/// Places and figures of the points that have good ones, ascending in x.
fn done(
    series: &Curve,
    dir: Direction,
    figure: fn(&RepeatedFigures) -> Option<f64>,
) -> impl Iterator<Item = (usize, f64)> {
    let points = series.points.iter().enumerate();
    points
        .filter(move |(_, point)| is_measured(point))
        .filter_map(move |(place, point)| Some((place, figure(point.figures(dir)?)?)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fathom_model::{Point, VerdictLevel};

    use super::*;
    use crate::Estimate;

    fn point(depth: u64, outcome: SweepOutcome, bw: f64, clat: Option<f64>) -> PointResult {
        let one = |value: f64| Estimate::of(&[value]);
        PointResult {
            point: Point {
                id: format!("s/{depth}"),
                series: "s".into(),
                x: "iodepth".into(),
                settings: BTreeMap::from([("iodepth".into(), depth.to_string())]),
                repetition: 1,
            },
            outcome,
            read: Some(RepeatedFigures {
                bw_bytes: one(bw).unwrap(),
                iops: one(bw / 4096.0).unwrap(),
                clat_mean_ns: clat.and_then(one),
                clat: None,
                clat_max_ns: None,
                percentiles_ns: Vec::new(),
            }),
            write: None,
            trim: None,
            latency_targets: Vec::new(),
            verdict: VerdictLevel::default(),
            doubts: Vec::new(),
            engines: Vec::new(),
        }
    }

    #[test]
    fn the_knee_is_the_smallest_load_within_two_percent_of_the_best() {
        let of = |bws: &[f64]| {
            let depths = (0..).map(|n| 1u64 << n);
            let each = depths.zip(bws);
            Curve {
                name: "s".into(),
                x: "iodepth".into(),
                points: each
                    .map(|(depth, &bw)| point(depth, SweepOutcome::Done, bw, None))
                    .collect(),
            }
        };
        let plateau = of(&[50.0, 98.1, 97.0, 99.0, 100.0]);
        let found = knee(&plateau, Direction::Read).unwrap();
        assert_eq!((found.place, found.best, found.ties), (1, 4, vec![1, 3, 4]));
        assert_eq!(knee(&of(&[50.0, 98.0]), Direction::Read), None);
        let sizes = Curve {
            x: "bs".into(),
            ..plateau
        };
        assert_eq!(knee(&sizes, Direction::Read), None);
    }

    #[test]
    fn of_equals_the_lower_x_is_best_and_failed_points_never() {
        let series = Curve {
            name: "s".into(),
            x: "iodepth".into(),
            points: vec![
                point(1, SweepOutcome::Failed(vec!["x".into()]), 9e9, Some(1.0)),
                point(2, SweepOutcome::Done, 4096.0, None),
                point(4, SweepOutcome::Done, 8192.0, Some(20.0)),
                point(8, SweepOutcome::Done, 8192.0, Some(20.0)),
                point(16, SweepOutcome::Unfinished, 9e9, None),
            ],
        };
        let best_read = best(&series, Direction::Read);
        let expected = Best {
            bandwidth: Some(2),
            iops: Some(2),
            latency: Some(2),
        };
        assert_eq!(best_read, expected);
        assert!(best_read.holds(2) && !best_read.holds(0));
        assert_eq!(best(&series, Direction::Write), Best::default());
        assert_eq!(measured_of(&series), (3, 5));
    }
}
