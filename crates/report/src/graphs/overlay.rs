//! Both sides of a comparison in one graph: curves over depth or jobs, IOPS over time.

use std::collections::BTreeMap;

use fathom_analysis::{Curve, PointResult, Sweep};
use fathom_model::Direction;
use fathom_sheet::chart::palette::{CURVES, Ink};
use fathom_sheet::chart::{Chart, ChartAxis, Layer, Panel, Quantity, Scale, Shape};

use super::curve::{doubtful_points, error_bars, good, hollow, left_out, named_once};
use super::metric::PointMetric;
use super::time::{self, StepIops};
use super::{DIRECTIONS, words};

/// What the sides are called.
const SIDES: [&str; 2] = ["A", "B"];

/// The curves that both sides have, one graph for each direction. A side has a [`Sweep`]
/// for each of its runs.
pub(crate) fn curves(sides: [&[Sweep]; 2]) -> Vec<Chart> {
    let pairs = partners(sides).into_iter();
    pairs
        .flat_map(|pair| {
            let each = DIRECTIONS.into_iter();
            each.filter_map(move |(dir, _)| chart([&pair[0], &pair[1]], dir))
        })
        .collect()
}

/// The curves of the same name over the same option, of each run that has them.
fn partners<'s>(sides: [&'s [Sweep]; 2]) -> Vec<[Vec<&'s Curve>; 2]> {
    let named = |side: &'s [Sweep]| {
        let mut names: Vec<(&str, &str)> = Vec::new();
        for curve in side.iter().flat_map(|sweep| &sweep.series) {
            let name = (curve.name.as_str(), curve.x.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    };
    let of = |side: &'s [Sweep], name: (&str, &str)| -> Vec<&'s Curve> {
        let all = side.iter().flat_map(|sweep| &sweep.series);
        all.filter(|curve| (curve.name.as_str(), curve.x.as_str()) == name)
            .collect()
    };
    let [a, b] = sides.map(named);
    let pair = |one, other| [of(sides[0], one), of(sides[1], other)];
    match (&a[..], &b[..]) {
        // The only one of either side, whatever it is called.
        (&[one], &[other]) if one.1 == other.1 => vec![pair(one, other)],
        _ => {
            let both = a.into_iter().filter(|name| b.contains(name));
            both.map(|name| pair(name, name)).collect()
        }
    }
}

/// The panels of a curve below each other; `None` where no figure is in both sides.
fn chart(sides: [&[&Curve]; 2], dir: Direction) -> Option<Chart> {
    let first = sides[0].first()?;
    let points = sides.iter().copied().flatten();
    let points = points.flat_map(|curve| &curve.points);
    let xs: Vec<u64> = points.filter_map(|point| point.point.x_value()).collect();
    let x = words::x_axis(&first.x, &xs);
    // IOPS say what bandwidth does, except over block sizes.
    let rate = match x.quantity {
        Quantity::Bytes => PointMetric::Bandwidth,
        _ => PointMetric::Iops,
    };
    let metrics = [rate, PointMetric::Latency, PointMetric::P99];
    let panels = metrics.map(|metric| panel(sides, &x, metric, dir));
    let panels: Vec<Panel> = panels.into_iter().flatten().collect();
    let name = either(&first.name, &sides[1].first()?.name);
    let title = match name.as_str() {
        "" => dir.title().to_owned(),
        name => format!("{} · {name}", dir.title()),
    };
    let mut footer: Vec<String> = Vec::new();
    for (side, curves) in SIDES.into_iter().zip(sides) {
        for line in curves.iter().flat_map(|curve| words::footer(curve)) {
            let line = format!("{side}: {line}");
            if !footer.contains(&line) {
                footer.push(line);
            }
        }
    }
    (!panels.is_empty()).then(|| Chart {
        title,
        panels,
        footer,
        ..Chart::default()
    })
}

/// One figure of both sides; `None` where one of them has none.
fn panel(
    sides: [&[&Curve]; 2],
    x: &ChartAxis,
    metric: PointMetric,
    dir: Direction,
) -> Option<Panel> {
    let estimate = |point: &PointResult| metric.of(good(point, dir)?);
    let value = |point: &PointResult| Some(estimate(point)?.mean);
    let (mut spreads, mut curves) = (Vec::new(), Vec::new());
    let (mut doubtful, mut absent) = (Vec::new(), Vec::new());
    for (place, (name, side)) in SIDES.into_iter().zip(sides).enumerate() {
        let ink = Ink::of_place(place);
        let at = together(side, value);
        if at.values().all(Vec::is_empty) {
            return None;
        }
        // Where no run has it the line is broken: of nothing the mean is no number.
        let mean = |all: &Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
        let means = at.iter().map(|(&x, all)| (x as f64, mean(all)));
        match side {
            [one] => spreads.extend(error_bars(one, ink, estimate)),
            _ => spreads.push(Layer {
                name: Some("lowest to highest run".to_owned()),
                shape: Shape::Band(spread(&at)),
                ink,
            }),
        }
        curves.push(Layer {
            name: Some(of_runs(name, side.len())),
            shape: Shape::Curve(means.collect()),
            ink,
        });
        let rings = side.iter().map(|curve| doubtful_points(curve, value));
        doubtful.extend(hollow(rings.flatten().collect(), ink));
        absent.extend(side.iter().flat_map(|curve| left_out(curve)));
    }
    let mut panel = Panel::new(x.clone(), metric.axis(&x.scale));
    let layers = [spreads, curves, named_once(doubtful), absent];
    panel.layers = layers.into_iter().flatten().collect();
    Some(panel)
}

/// The name of what both sides have: their names, where they differ.
fn either(a: &str, b: &str) -> String {
    match a == b {
        true => a.to_owned(),
        false => format!("{a} / {b}"),
    }
}

/// `A`, or `A, mean of 3 runs`.
fn of_runs(side: &str, runs: usize) -> String {
    match runs {
        1 => side.to_owned(),
        runs => format!("{side}, mean of {runs} runs"),
    }
}

/// What the runs of a side have at each x.
fn together(
    side: &[&Curve],
    value: impl Fn(&PointResult) -> Option<f64>,
) -> BTreeMap<u64, Vec<f64>> {
    let mut at: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for point in side.iter().flat_map(|curve| &curve.points) {
        if let Some(x) = point.point.x_value() {
            at.entry(x).or_default().extend(value(point));
        }
    }
    at
}

/// From the lowest to the highest of all runs.
fn spread(at: &BTreeMap<u64, Vec<f64>>) -> Vec<(f64, f64, f64)> {
    let several = at.iter().filter(|(_, all)| all.len() > 1);
    let ends = several.map(|(&x, all)| {
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (x as f64, low, high)
    });
    ends.collect()
}

/// IOPS over time of every step that both sides have, all jobs together, a line for each
/// run. A side has its steps for each of its runs.
pub(crate) fn over_time(sides: [&[Vec<StepIops>]; 2]) -> Vec<Chart> {
    // Runs of one step each have it, whatever it is called.
    let is_alone = |side: &[Vec<StepIops>]| side.iter().all(|run| run.len() == 1);
    let is_alone = sides.into_iter().all(is_alone);
    let (mut charts, mut names) = (Vec::new(), Vec::new());
    for step in sides[0].iter().flatten() {
        let name = (step.name.as_str(), step.repetition);
        if names.contains(&name) || (is_alone && !names.is_empty()) {
            continue;
        }
        names.push(name);
        let is_it = |other: &&StepIops| is_alone || (other.name.as_str(), other.repetition) == name;
        let [a, b] = sides.map(|side| {
            let steps = side.iter().flatten().filter(is_it);
            steps.collect::<Vec<_>>()
        });
        charts.extend(step_over_time([&a, &b]));
    }
    charts
}

/// A panel for each direction; `None` where no direction is in both sides.
fn step_over_time(sides: [&[&StepIops]; 2]) -> Option<Chart> {
    let [a, b] = sides;
    let [first, other] = [a.first()?, b.first()?];
    let name = either(&first.name, &other.name);
    let title = match first.repetition {
        1 => name,
        n => format!("{name}, repetition {n}"),
    };
    let has = |side: &[&StepIops], dir| side.iter().any(|step| step.of.contains_key(&dir));
    let dirs = [Direction::Read, Direction::Write, Direction::Trim];
    let both = dirs.into_iter().filter(|&dir| has(a, dir) && has(b, dir));
    let panels = both.map(|dir| {
        let title = format!("{} IOPS", dir.title());
        let mut panel = time::panel(&title, Quantity::Rate, Scale::Linear);
        for (place, (name, side)) in SIDES.into_iter().zip(sides).enumerate() {
            let runs = side.iter().filter_map(|step| step.of.get(&dir));
            let lines = runs.map(|points| Layer {
                name: Some(match side.len() {
                    1 => name.to_owned(),
                    runs => format!("{name}, {runs} runs"),
                }),
                shape: Shape::Line(points.clone()),
                ink: Ink::new(CURVES[place]),
            });
            panel.layers.extend(named_once(lines.collect()));
        }
        panel
    });
    let panels: Vec<Panel> = panels.collect();
    (!panels.is_empty()).then(|| Chart {
        title,
        panels,
        ..Chart::default()
    })
}
