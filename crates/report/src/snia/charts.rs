//! The plots of a test.

use std::collections::BTreeMap;

use fathom_analysis::snia::{
    CellFigures, CellSummary, Determination, Setup, SniaCell as Load, SniaTest, TestPart, Tracked,
};
use fathom_analysis::steady_state::Metric;
use fathom_model::Histogram;
use fathom_model::histogram::bounds_of;

use super::words;
use fathom_sheet::chart::palette::{self, Dash, Ink, Marker};
use fathom_sheet::chart::{Chart, ChartAxis, Ends, HeatCell, Layer, Panel, Quantity, Scale, Shape};

/// Values so far apart are shown on a logarithmic axis.
const FAR_APART: f64 = 20.0;
/// Bins of a histogram in each power of ten.
const BINS: f64 = 20.0;

fn quantity(metric: Metric) -> Quantity {
    match metric {
        Metric::Iops => Quantity::Rate,
        Metric::Bandwidth => Quantity::BytesPerSecond,
        Metric::Latency | Metric::Percentile(_) => Quantity::Latency,
    }
}

fn axis(title: impl Into<String>, quantity: Quantity, scale: Scale, ends: Ends) -> ChartAxis {
    ChartAxis {
        title: title.into(),
        quantity,
        scale,
        ends,
    }
}

/// An axis for these values: logarithmic where they lie far apart.
fn value_axis(title: &str, quantity: Quantity, values: impl Iterator<Item = f64>) -> ChartAxis {
    let positive = values.filter(|value| *value > 0.0);
    let (least, most) = positive.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    let scale = match most > FAR_APART * least {
        true => Scale::Log10,
        false => Scale::Linear,
    };
    axis(title, quantity, scale, Ends::Ticks)
}

fn layer(name: impl Into<String>, shape: Shape, ink: Ink) -> Layer {
    Layer {
        name: Some(name.into()),
        shape,
        ink,
    }
}

fn points(shape: &Shape) -> &[(f64, f64)] {
    match shape {
        Shape::Curve(points) | Shape::Line(points) | Shape::Steps(points) => points,
        _ => &[],
    }
}

/// More rounds than this are not named each.
const NAMED_ROUNDS: usize = 40;

/// The axis of the rounds from `first` to `last`, and the place of a round on it.
fn rounds(first: usize, last: usize) -> (ChartAxis, impl Fn(usize) -> f64) {
    let named = last - first < NAMED_ROUNDS;
    let scale = match named {
        true => Scale::Ordinal((first..=last).map(|round| round.to_string()).collect()),
        false => Scale::Linear,
    };
    let axis = axis("Round", Quantity::Number, scale, Ends::Values);
    let place = move |round: usize| match named {
        true => round as f64 - first as f64,
        false => round as f64,
    };
    (axis, place)
}

/// A figure of some cells over the rounds, a curve for each.
fn over_rounds(
    title: String,
    part: &TestPart,
    cells: &[Load],
    metric: Metric,
    y_title: &str,
    figure: &dyn Fn(&CellFigures) -> Option<f64>,
) -> Chart {
    let last = part.measured.last().map_or(1, |round| round.round as usize);
    let (x, at) = rounds(1, last.max(2));
    let mut layers = Vec::new();
    for (place, &cell) in cells.iter().enumerate() {
        let value = |round: &fathom_analysis::snia::SniaRound| {
            let found = round.cell(cell).and_then(figure);
            (at(round.round as usize), found.unwrap_or(f64::NAN))
        };
        let curve: Vec<(f64, f64)> = part.measured.iter().map(value).collect();
        if curve.iter().any(|(_, y)| y.is_finite()) {
            layers.push(layer(
                cell.to_string(),
                Shape::Curve(curve),
                Ink::of_place(place),
            ));
        }
    }
    let values = layers.iter().flat_map(|l| points(&l.shape)).map(|p| p.1);
    let y = value_axis(y_title, quantity(metric), values);
    let mut panel = Panel::new(x, y);
    panel.layers = layers;
    Chart {
        title,
        panels: vec![panel],
        ..Chart::default()
    }
}

/// Steady-state convergence: the tracked variable beside its like, over the rounds.
pub(super) fn convergence(setup: &Setup, part: &TestPart, tracked: &Tracked) -> Chart {
    let cells = setup.cells(&part.part).into_iter();
    let cells: Vec<Load> = match setup.test {
        // All block sizes of its mix.
        SniaTest::Iops => cells
            .filter(|cell| cell.reads_percent == tracked.cell.reads_percent)
            .collect(),
        SniaTest::Throughput => vec![tracked.cell],
        SniaTest::Latency | SniaTest::Wsat => cells.collect(),
    };
    over_rounds(
        match setup.test {
            SniaTest::Iops => format!("All block sizes of {}", tracked.cell.mix()),
            SniaTest::Throughput => tracked.cell.to_string(),
            SniaTest::Latency | SniaTest::Wsat => "All cells".to_owned(),
        },
        part,
        &cells,
        tracked.metric,
        words::metric(tracked.metric),
        &|cell| cell.value(tracked.metric),
    )
}

/// The longest latency of every cell over the rounds.
pub(super) fn convergence_of_maximum(setup: &Setup, part: &TestPart) -> Chart {
    over_rounds(
        "All cells".to_owned(),
        part,
        &setup.cells(&part.part),
        Metric::Latency,
        "Maximum latency",
        &|cell| Some(cell.lat_max_ns.filter(|_| cell.failed.is_none())? as f64),
    )
}

/// The window: its values, their mean with the limits of the data excursion, and
/// the fit.
pub(super) fn window(setup: &Setup, tracked: &Tracked, found: &Determination) -> Chart {
    let window = &found.window;
    let (x, at) = rounds(window.first, window.last);
    let (first, last) = (at(window.first), at(window.last));
    let values = (window.first..=window.last).filter_map(|round| {
        let value = tracked.values.get(round - 1).copied().flatten()?;
        Some((at(round), value))
    });
    let level = |y: f64| Shape::Line(vec![(first, y), (last, y)]);
    let half = setup.limits.data_percent / 200.0;
    let percent = setup.limits.data_percent / 2.0;
    let line = |color, dash| Ink {
        dash,
        ..Ink::new(color)
    };
    let end = window.intercept + window.slope * (last - first);
    let quantity = quantity(tracked.metric);
    let mut panel = Panel::new(
        x,
        axis(
            words::metric(tracked.metric),
            quantity,
            Scale::Linear,
            Ends::Ticks,
        ),
    );
    let limits = line(palette::ORANGE, Dash::Dotted);
    panel.layers = vec![
        layer(
            format!("{} % of the mean", plain(100.0 + percent)),
            level(window.mean * (1.0 + half)),
            limits,
        ),
        layer(
            format!("{} % of the mean", plain(100.0 - percent)),
            level(window.mean * (1.0 - half)),
            limits,
        ),
        layer(
            "mean",
            level(window.mean),
            line(palette::GREEN, Dash::Dashed),
        ),
        layer(
            "best linear fit",
            Shape::Line(vec![(first, window.intercept), (last, end)]),
            line(palette::VERMILLION, Dash::DashDotted),
        ),
        layer(
            tracked.cell.to_string(),
            Shape::Points(values.collect()),
            Ink {
                marker: Marker::Circle,
                ..Ink::new(palette::BLUE)
            },
        ),
    ];
    Chart {
        title: format!("Rounds {} to {}", window.first, window.last),
        panels: vec![panel],
        ..Chart::default()
    }
}

fn plain(value: f64) -> String {
    fathom_sheet::chart::quantity::plain(value, 4)
}

/// The figure of a test's tables and plots.
pub(super) fn figure(cell: &CellSummary, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Iops => cell.iops,
        Metric::Bandwidth => cell.bw_bytes,
        Metric::Latency | Metric::Percentile(_) => cell.lat_mean_ns,
    }
}

/// The cells over the block size, a curve for each mix.
pub(super) fn two_dimensional(setup: &Setup, parts: &[&TestPart]) -> Chart {
    let metric = setup.test.metric();
    let mut blocks = setup.blocks.clone();
    blocks.sort_unstable();
    let mut layers = Vec::new();
    for (place, &mix) in setup.mixes.iter().enumerate() {
        let curve = blocks.iter().map(|&block| {
            let mut cells = parts.iter().flat_map(|part| &part.cells);
            let found = cells.find(|c| c.cell.reads_percent == mix && c.cell.block_bytes == block);
            let value = found.and_then(|cell| figure(cell, metric));
            (block as f64, value.unwrap_or(f64::NAN))
        });
        let shape = Shape::Curve(curve.collect());
        layers.push(layer(
            format!("{mix}/{}", 100 - mix),
            shape,
            Ink::of_place(place),
        ));
    }
    let values = layers.iter().flat_map(|l| points(&l.shape)).map(|p| p.1);
    let y = value_axis(words::metric(metric), quantity(metric), values);
    let mut panel = Panel::new(
        axis("Block size", Quantity::Bytes, Scale::Log2, Ends::Values),
        y,
    );
    panel.layers = layers;
    Chart {
        title: "A curve for each mix, reads/writes in percent".to_owned(),
        panels: vec![panel],
        ..Chart::default()
    }
}

/// The cells as a heat map, in place of a plot in three dimensions.
pub(super) fn heat(setup: &Setup, part: &TestPart) -> Chart {
    let metric = setup.test.metric();
    let cell = |summary: &CellSummary| {
        let place = |all: usize| (all as f64 - 0.5, all as f64 + 0.5);
        let x = setup
            .blocks
            .iter()
            .position(|&b| b == summary.cell.block_bytes)?;
        let y = setup
            .mixes
            .iter()
            .position(|&m| m == summary.cell.reads_percent)?;
        Some(HeatCell {
            x: place(x),
            y: place(setup.mixes.len() - 1 - y),
            value: figure(summary, metric),
        })
    };
    let cells: Vec<HeatCell> = part.cells.iter().filter_map(cell).collect();
    let mixes = setup
        .mixes
        .iter()
        .rev()
        .map(|mix| format!("{mix}/{}", 100 - mix));
    let of_block = |block: &u64| {
        let load = Load {
            reads_percent: 0,
            block_bytes: *block,
        };
        load.block()
    };
    let ordinal =
        |title: &str, names| axis(title, Quantity::Number, Scale::Ordinal(names), Ends::Values);
    let mut panel = Panel::new(
        ordinal("Block size", setup.blocks.iter().map(of_block).collect()),
        ordinal("Reads/writes in percent", mixes.collect()),
    );
    let values = cells.iter().filter_map(|cell| cell.value);
    panel.colors = Some(value_axis(words::metric(metric), quantity(metric), values));
    panel.layers = vec![Layer {
        name: None,
        shape: Shape::Cells(cells),
        ink: Ink::of_place(0),
    }];
    Chart {
        title: format!("{} by block size and mix", words::metric(metric)),
        panels: vec![panel],
        ..Chart::default()
    }
}

/// How many I/Os took how long, and how many took longer.
pub(super) fn histogram(cell: Load, latencies: &Histogram) -> Chart {
    let total = latencies.total() as f64;
    let mut bins: BTreeMap<i64, f64> = BTreeMap::new();
    let mut slower = Vec::new();
    let mut left = total;
    for (bucket, count) in latencies.buckets() {
        let (low, high) = bounds_of(bucket);
        let bin = ((low.max(1) as f64).log10() * BINS).floor() as i64;
        *bins.entry(bin).or_default() += count as f64;
        left -= count as f64;
        slower.push((high.max(1) as f64, 100.0 * left / total));
    }
    let edge = |bin: i64| 10f64.powf(bin as f64 / BINS);
    let mut steps = Vec::new();
    for (&bin, &count) in &bins {
        steps.push((edge(bin), count));
        if !bins.contains_key(&(bin + 1)) {
            steps.push((edge(bin + 1), 0.0));
        }
    }
    let x = || {
        axis(
            "Completion latency",
            Quantity::Latency,
            Scale::Log10,
            Ends::Values,
        )
    };
    let mut counts = Panel::new(
        x(),
        axis("I/Os", Quantity::Rate, Scale::Linear, Ends::Ticks),
    );
    counts.layers = vec![Layer {
        name: None,
        shape: Shape::Steps(steps),
        ink: Ink::new(palette::BLUE),
    }];
    let mut beyond = Panel::new(
        x(),
        axis(
            "I/Os that took longer",
            Quantity::Percent,
            Scale::Log10,
            Ends::Ticks,
        ),
    );
    beyond.layers = vec![Layer {
        name: None,
        shape: Shape::Line(slower),
        ink: Ink::new(palette::VERMILLION),
    }];
    Chart {
        title: cell.to_string(),
        panels: vec![counts, beyond],
        ..Chart::default()
    }
}

/// Write saturation over time or over drive fills.
pub(super) fn saturation(setup: &Setup, part: &TestPart, over_fills: bool) -> Chart {
    let capacity = setup.capacity_bytes.max(1) as f64;
    let begin_ms = part.measured.first().and_then(|round| round.cells.first());
    let begin_ms = begin_ms.map_or(0, |cell| cell.begin_ms);
    let mut written = 0;
    let samples: Vec<(f64, &CellFigures)> = part
        .measured
        .iter()
        .flat_map(|round| &round.cells)
        .map(|cell| {
            written += cell.written_bytes;
            let x = match over_fills {
                true => written as f64 / capacity,
                false => cell.end_ms.saturating_sub(begin_ms) as f64,
            };
            (x, cell)
        })
        .collect();
    let curve = |figure: &dyn Fn(&CellFigures) -> Option<f64>| -> Shape {
        let point = |&(x, cell): &(f64, &CellFigures)| {
            let good = figure(cell).filter(|_| cell.failed.is_none());
            (x, good.unwrap_or(f64::NAN))
        };
        Shape::Line(samples.iter().map(point).collect())
    };
    let x_axis = || match over_fills {
        true => axis("Drive fills", Quantity::Number, Scale::Linear, Ends::Values),
        false => axis("Time", Quantity::Time, Scale::Time, Ends::Values),
    };
    let mut rates = Panel::new(
        x_axis(),
        axis("IOPS", Quantity::Rate, Scale::Linear, Ends::Ticks),
    );
    rates.layers = vec![Layer {
        name: None,
        shape: curve(&|cell| cell.iops),
        ink: Ink::new(palette::VERMILLION),
    }];
    let mut waits = Panel::new(
        x_axis(),
        axis("Latency", Quantity::Latency, Scale::Log10, Ends::Ticks),
    );
    let line = |place| Ink::of_place(place);
    waits.layers = vec![
        layer(
            "maximum",
            curve(&|cell| cell.lat_max_ns.map(|ns| ns as f64)),
            line(3),
        ),
        layer(
            "99.999 %",
            curve(&|cell| cell.percentile_ns(99.999).map(|ns| ns as f64)),
            line(1),
        ),
        layer("mean", curve(&|cell| cell.lat_mean_ns), line(0)),
    ];
    Chart {
        title: "4k random writes since the purge".to_owned(),
        panels: vec![rates, waits],
        ..Chart::default()
    }
}
