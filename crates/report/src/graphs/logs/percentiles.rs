//! Percentiles of latencies over time, in bands.

use fathom_analysis::latlog::{Timeline, Track};
use fathom_model::{LogKind, units};

use super::{
    Logs, by_direction, graph, has_distribution, latency_axis, middle, subtitle, time_axis, title,
};
use crate::chart::palette::{Dash, Ink, of_direction};
use crate::chart::{Chart, Layer, Panel, Shape};
use crate::graphs::Graph;

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
    let of: Vec<&Track> = coarse
        .tracks()
        .filter(|track| has_distribution(kind, track))
        .collect();
    let panels = of.iter().map(|track| (track.dir, panel(kind, &coarse, track)));
    let (panels, size) = by_direction(panels.collect(), title(kind));
    let span = units::duration(coarse.span_ms());
    let mut footer = vec![format!(
        "of all I/Os of each {span}; shades between the smallest, the percentiles and the \
         largest; a percentile is drawn where the time has enough I/Os for it"
    )];
    footer.extend(logs.bin_error_percent.filter(|_| kind == LogKind::ClatHistograms).map(
        |percent| format!("the log's bins are {percent:.1} % wide to each side of their middle"),
    ));
    let chart = Chart {
        title: format!("{} percentiles over time · {}", title(kind), logs.name),
        subtitle: subtitle(logs, kind),
        panels,
        footer,
        ..Chart::default()
    };
    Some(graph(logs, &format!("{}-percentiles", word(kind)), chart, size))
}

pub(super) fn word(kind: LogKind) -> &'static str {
    match kind {
        LogKind::ClatHistograms => "clat",
        other => other.word(),
    }
}

fn panel(kind: LogKind, timeline: &Timeline, track: &Track) -> Panel {
    let mut panel = Panel::new(time_axis(), latency_axis(title(kind)));
    let color = of_direction(track.dir);
    let all = track.slices.iter().enumerate().filter(|(_, slice)| slice.n > 0);
    let all: Vec<_> = all
        .map(|(place, slice)| (middle(timeline, place), slice))
        .collect();
    // The percentiles of each slice, and at the ends the smallest and the largest.
    let curve = |percent: f64| -> Vec<(f64, f64)> {
        let value = |&(x, slice): &(f64, &fathom_analysis::latlog::Slice)| {
            // Of fewer I/Os the largest would stand for it.
            let enough = slice.n as f64 * (1.0 - percent / 100.0) >= 1.0 - 1e-9;
            let ns = slice.histogram.percentile_ns(percent).filter(|_| enough);
            let ns = ns.map(|ns| ns.clamp(slice.low.1, slice.high.1) as f64);
            (x, ns.unwrap_or(f64::NAN))
        };
        all.iter().map(value).collect()
    };
    let lowest: Vec<(f64, f64)> = all.iter().map(|&(x, s)| (x, s.low.1 as f64)).collect();
    let highest: Vec<(f64, f64)> = all.iter().map(|&(x, s)| (x, s.high.1 as f64)).collect();
    let mut lines = vec![lowest];
    lines.extend(LEVELS.map(|(percent, ..)| curve(percent)));
    lines.push(highest.clone());
    // Each shade lies over those further out: the nearer to the median, the darker.
    for outer in 0..lines.len() / 2 {
        let (low, high) = (&lines[0], &lines[lines.len() - 1 - outer]);
        let spans: Vec<(f64, f64, f64)> = low
            .iter()
            .zip(high)
            .filter(|(_, high)| high.1.is_finite())
            .map(|(low, high)| (low.0, low.1, high.1))
            .collect();
        if spans.len() > 1 {
            panel.layers.push(Layer {
                name: None,
                shape: Shape::Band(spans),
                ink: Ink::new(color),
            });
        }
    }
    for ((_, name, dash), points) in LEVELS.into_iter().zip(&lines[1..]) {
        if points.iter().any(|point| point.1.is_finite()) {
            panel.layers.push(line(name, points.clone(), color, dash));
        }
    }
    panel
}

fn line(name: &str, points: Vec<(f64, f64)>, color: crate::chart::palette::Color, dash: Dash) -> Layer {
    Layer {
        name: Some(name.to_owned()),
        shape: Shape::Line(points),
        ink: Ink {
            dash,
            ..Ink::new(color)
        },
    }
}
