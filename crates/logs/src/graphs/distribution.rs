//! The distribution of latencies: how many I/Os took at most how long, and the same
//! from the other side, the percentiles.

use fathom_analysis::latlog::{Timeline, TimelineSlice};
use fathom_model::histogram::bounds_of;
use fathom_model::{Histogram, LogKind};
use fathom_sheet::chart::palette::{Ink, of_direction};
use fathom_sheet::chart::{Chart, ChartAxis, Ends, Layer, Panel, Quantity, Scale, Shape, Size};
use fathom_sheet::graph::Graph;

use super::percentiles::word;
use super::{Logs, SIZE, classes, graph, has_distribution, latency_axis, subtitle, title};

/// Places on the axis of percentiles: each is ten times as far from 100 %.
const NINES: [&str; 7] = [
    "0 %",
    "90 %",
    "99 %",
    "99.9 %",
    "99.99 %",
    "99.999 %",
    "99.9999 %",
];

/// I/Os whose distribution is a line.
struct Population {
    name: String,
    ink: Ink,
    histogram: Histogram,
    max_ns: u64,
}

/// The plot; `None` without a distribution.
pub(super) fn of(logs: &Logs, kind: LogKind, all: &Timeline) -> Option<Graph> {
    let lines = populations(logs, kind, all);
    let most = lines.iter().map(|line| line.histogram.total()).max()?;
    let nines = (most.max(2) as f64).log10().ceil() as usize;
    let names = NINES.iter().take(nines.clamp(2, NINES.len()));
    let x = latency_axis(title(kind));
    let mut share = Panel::new(x.clone(), percent_axis());
    let mut percentiles = Panel::new(
        ChartAxis {
            title: "Percentile".to_owned(),
            quantity: Quantity::Percent,
            scale: Scale::Ordinal(names.map(|name| (*name).to_owned()).collect()),
            ends: Ends::Values,
        },
        x,
    );
    let several = lines.len() > 1;
    for line in lines {
        let curve = curve(&line);
        let n = line.histogram.total() as f64;
        let at_most = curve.iter().map(|&(ns, count)| (ns, count * 100.0 / n));
        share.layers.push(Layer {
            name: several.then(|| line.name.clone()),
            shape: Shape::Line(at_most.collect()),
            ink: line.ink,
        });
        // The largest stands for n − 1 of n: nothing is known beyond.
        let most = 1.0 - 1.0 / n.max(2.0);
        let from_the_other_side = curve.iter().map(|&(ns, count)| {
            let below = (count / n).min(most);
            (-(1.0 - below).log10(), ns)
        });
        percentiles.layers.push(Layer {
            name: several.then_some(line.name),
            shape: Shape::Line(
                from_the_other_side
                    .filter(|at| at.0 < NINES.len() as f64)
                    .collect(),
            ),
            ink: line.ink,
        });
    }
    let chart = Chart {
        title: format!("{} distribution · {}", title(kind), logs.name),
        subtitle: subtitle(logs, kind),
        panels: vec![share, percentiles],
        footer: vec![
            "above: the share of the I/Os that took at most that; below: the percentiles, each mark ten times nearer to 100 %".to_owned(),
        ],
        ..Chart::default()
    };
    let size = Size {
        height: SIZE.height + 320.0,
        ..SIZE
    };
    Some(graph(logs, &format!("{}-cdf", word(kind)), chart, size))
}

fn percent_axis() -> ChartAxis {
    ChartAxis {
        title: "I/Os".to_owned(),
        quantity: Quantity::Percent,
        scale: Scale::Linear,
        ends: Ends::Ticks,
    }
}

/// A line for each direction; for each priority where there are several.
fn populations(logs: &Logs, kind: LogKind, all: &Timeline) -> Vec<Population> {
    let classes = classes::of_kind(logs, kind);
    if !classes.is_empty() {
        let line = |(place, (name, timeline)): (usize, (String, Timeline))| {
            let (histogram, max_ns) = together(timeline.tracks().flat_map(|track| &track.slices));
            let ink = Ink::of_place(place);
            Population {
                name,
                ink,
                histogram,
                max_ns,
            }
        };
        return classes.into_iter().enumerate().map(line).collect();
    }
    let of = all.tracks().filter(|track| has_distribution(kind, track));
    of.map(|track| {
        let (histogram, max_ns) = together(&track.slices);
        Population {
            name: track.dir.title().to_owned(),
            ink: Ink::new(of_direction(track.dir)),
            histogram,
            max_ns,
        }
    })
    .collect()
}

fn together<'s>(slices: impl IntoIterator<Item = &'s TimelineSlice>) -> (Histogram, u64) {
    let mut histogram = Histogram::new();
    let mut max_ns = 0;
    for slice in slices {
        histogram.merge(&slice.histogram);
        max_ns = max_ns.max(slice.high.1);
    }
    (histogram, max_ns)
}

/// Latencies, each with the I/Os that took at most that.
fn curve(of: &Population) -> Vec<(f64, f64)> {
    let mut at_most = 0u64;
    let buckets = of.histogram.buckets();
    buckets
        .map(|(bucket, count)| {
            at_most += count;
            let ns = bounds_of(bucket).1.min(of.max_ns).max(1);
            (ns as f64, at_most as f64)
        })
        .collect()
}
