//! Percentiles of latencies over time, in bands.

use fathom_analysis::latlog::{DirectionTrack, Timeline, TimelineSlice};
use fathom_model::{LogKind, units};
use fathom_sheet::chart::palette::{Dash, Ink, Srgb, of_direction};
use fathom_sheet::chart::{Chart, Layer, Panel, Shape};
use fathom_sheet::graph::Graph;

use super::{
    Logs, by_direction, graph, has_distribution, latency_axis, middle, subtitle, time_axis, title,
};

/// Percent, name, and how its line is broken. Above the last is the largest.
const LEVELS: [(f64, &str, Dash); 4] = [
    (50.0, "p50", Dash::Solid),
    (90.0, "p90", Dash::DashDotted),
    (99.0, "p99", Dash::Dashed),
    (99.9, "p99.9", Dash::Dotted),
];
/// Slices at most: percentiles of fewer I/Os say less.
const SLICES_MAX: u64 = 256;
/// And at least, while there are.
const SLICES_MIN: u64 = 32;
/// I/Os that a slice is to have on average, so that its p99.9 is one of them.
const ENOUGH: u64 = 1000;

/// The plot; `None` without a distribution.
pub(super) fn of(logs: &Logs, kind: LogKind, all: &Timeline) -> Option<Graph> {
    let n: u64 = all.tracks().map(|track| track.n).max()?;
    let slices = (n / ENOUGH).clamp(SLICES_MIN, SLICES_MAX);
    let coarse = all.coarser(slices);
    let of: Vec<&DirectionTrack> = coarse
        .tracks()
        .filter(|track| has_distribution(kind, track))
        .collect();
    let panels = of.iter().map(|track| {
        let prefix = match of.len() {
            1 => String::new(),
            _ => format!("{} ", track.dir.title().to_lowercase()),
        };
        (track.dir, panel(kind, &coarse, track, &prefix))
    });
    let (panels, size) = by_direction(panels.collect(), title(kind));
    let span = units::duration(coarse.span_ms());
    let mut footer = vec![format!(
        "of all I/Os of each {span}; shades: from the smallest to p90, p99, p99.9 and the largest"
    )];
    footer.extend(
        logs.bin_error_percent
            .filter(|_| kind == LogKind::ClatHistograms)
            .map(|percent| {
                format!("the log's bins are {percent:.1} % wide to each side of their middle")
            }),
    );
    let chart = Chart {
        title: format!("{} percentiles over time · {}", title(kind), logs.name),
        subtitle: subtitle(logs, kind),
        panels,
        footer,
        ..Chart::default()
    };
    Some(graph(
        logs,
        &format!("{}-percentiles", word(kind)),
        chart,
        size,
    ))
}

pub(super) fn word(kind: LogKind) -> &'static str {
    match kind {
        LogKind::ClatHistograms => "clat",
        other => other.word(),
    }
}

fn panel(kind: LogKind, timeline: &Timeline, track: &DirectionTrack, prefix: &str) -> Panel {
    let mut panel = Panel::new(time_axis(), latency_axis(title(kind)));
    let color = of_direction(track.dir);
    let all = track
        .slices
        .iter()
        .enumerate()
        .filter(|(_, slice)| slice.n > 0);
    let all: Vec<_> = all
        .map(|(place, slice)| (middle(timeline, place), slice))
        .collect();
    let low: Vec<f64> = all.iter().map(|(_, slice)| slice.low.1 as f64).collect();
    let largest: Vec<Option<f64>> = all.iter().map(|(_, s)| Some(s.high.1 as f64)).collect();
    let levels: Vec<_> = LEVELS
        .into_iter()
        .map(|(percent, name, dash)| {
            (
                name,
                dash,
                all.iter().map(|(_, s)| at(s, percent)).collect(),
            )
        })
        // One that most of the time is not known is none.
        .filter(|(.., values): &(_, _, Vec<Option<f64>>)| {
            values.iter().flatten().count() * 5 >= values.len() * 4
        })
        .collect();
    // Each shade lies over those further out: the nearer to the median, the darker.
    let shades = levels.iter().skip(1).map(|(.., values)| values);
    for highs in shades.chain([&largest]).rev() {
        let spans = all.iter().zip(&low).zip(highs);
        let spans: Vec<(f64, f64, f64)> = spans
            .filter_map(|((&(x, _), &low), high)| Some((x, low, (*high)?)))
            .collect();
        if spans.len() > 1 {
            panel.layers.push(Layer {
                name: None,
                shape: Shape::Band(spans),
                ink: Ink::new(color),
            });
        }
    }
    for (name, dash, values) in &levels {
        let points: Vec<_> = all.iter().zip(values).collect();
        // Broken where it is not known: a line across would cross lower percentiles.
        let runs = points.split(|(_, value)| value.is_none());
        let runs = runs.filter(|run| !run.is_empty());
        for (place, run) in runs.enumerate() {
            let points = run
                .iter()
                .filter_map(|(at, value)| Some((at.0, (**value)?)));
            let name = (place == 0).then(|| format!("{prefix}{name}"));
            panel
                .layers
                .push(line(name, points.collect(), color, *dash));
        }
    }
    panel
}

/// A percentile of a slice; of too few I/Os the largest would stand for it.
pub(super) fn at(slice: &TimelineSlice, percent: f64) -> Option<f64> {
    let enough = slice.n as f64 * (1.0 - percent / 100.0) >= 1.0 - 1e-9;
    let ns = slice.histogram.percentile_ns(percent).filter(|_| enough)?;
    Some(ns.clamp(slice.low.1, slice.high.1) as f64)
}

fn line(name: Option<String>, points: Vec<(f64, f64)>, color: Srgb, dash: Dash) -> Layer {
    Layer {
        name,
        shape: Shape::Line(points),
        ink: Ink {
            dash,
            ..Ink::new(color)
        },
    }
}
