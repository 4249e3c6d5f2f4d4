//! Priorities over time: rates, latencies and a heat map of each class.

use std::collections::BTreeMap;

use fathom_analysis::latlog::{Timeline, TimelineSlice};
use fathom_model::log::class_name;
use fathom_model::{LogKind, PrioColumn, units};
use fathom_sheet::chart::palette::{Dash, Ink};
use fathom_sheet::chart::{Chart, ChartAxis, Ends, Layer, Panel, Quantity, Scale, Shape, Size};
use fathom_sheet::graph::Graph;

use super::percentiles::{at, word};
use super::{Logs, SIZE, graph, heat, latency_axis, middle, subtitle, time_axis, title};

/// Steps of time at most.
const STEPS_MAX: u64 = 256;
/// I/Os that a step is to have on average.
const ENOUGH: u64 = 200;

/// What a priority is called: `RT 3`, `BE 0 hint 2`.
pub(super) fn name(column: PrioColumn, prio: u16) -> String {
    if column == PrioColumn::RealTime {
        return if prio == 1 { "RT" } else { "not RT" }.to_owned();
    }
    let class = class_name(prio >> 13).map_or_else(|| (prio >> 13).to_string(), str::to_owned);
    let (level, hint) = (prio & 7, prio >> 3 & 0x3ff);
    match hint {
        0 => format!("{class} {level}"),
        hint => format!("{class} {level} hint {hint}"),
    }
}

/// The I/Os of each priority in all logs of a kind; none where there is only one.
pub(super) fn of_kind(logs: &Logs, kind: LogKind) -> Vec<(String, Timeline)> {
    let mut all: BTreeMap<u16, (PrioColumn, Vec<Timeline>)> = BTreeMap::new();
    for log in logs.logs.iter().filter(|log| log.kind == kind) {
        for (prio, timeline) in &log.classes {
            let of = all.entry(*prio).or_insert_with(|| (log.prio, Vec::new()));
            of.1.push(timeline.coarser(u64::MAX));
        }
    }
    if all.len() < 2 {
        return Vec::new();
    }
    let together = |(prio, (column, of)): (u16, (PrioColumn, Vec<Timeline>))| {
        (name(column, prio), Timeline::of(of))
    };
    all.into_iter().map(together).collect()
}

/// The plots of priorities; none where there is only one.
pub(super) fn of(logs: &Logs, kind: LogKind) -> Vec<Graph> {
    let classes = of_kind(logs, kind);
    if classes.is_empty() {
        return Vec::new();
    }
    let mut graphs = vec![over_time(logs, kind, &classes)];
    for (name, timeline) in &classes {
        let heat = heat::of(logs, kind, timeline).map(|mut graph| {
            graph.path = format!("{}-{}", graph.path, name.replace(' ', "-"));
            graph.chart.title = format!("{} of {name}", graph.chart.title);
            graph
        });
        graphs.extend(heat);
    }
    graphs
}

/// How often and how fast each class was served.
fn over_time(logs: &Logs, kind: LogKind, classes: &[(String, Timeline)]) -> Graph {
    let rate = ChartAxis {
        title: "IOPS".to_owned(),
        quantity: Quantity::Rate,
        scale: Scale::Linear,
        ends: Ends::Ticks,
    };
    let mut rates = Panel::new(time_axis(), rate);
    let mut latencies = Panel::new(time_axis(), latency_axis(title(kind)));
    let n: u64 = classes
        .iter()
        .flat_map(|(_, t)| t.tracks().map(|track| track.n))
        .sum();
    let steps = (n / ENOUGH / classes.len() as u64).clamp(16, STEPS_MAX);
    let mut longest_ms = 0;
    for (place, (name, timeline)) in classes.iter().enumerate() {
        let coarse = timeline.coarser(steps);
        longest_ms = longest_ms.max(coarse.span_ms());
        let slices = both_directions(&coarse);
        let ink = Ink {
            dash: Dash::Solid,
            ..Ink::of_place(place)
        };
        let iops = slices.iter().enumerate().filter_map(|(place, slice)| {
            let begin = place as u64 * coarse.span_ms();
            let there = coarse
                .span_ms()
                .min((coarse.end_ms + 1).saturating_sub(begin));
            // Too little of the last step is there to say its rate.
            let known = there * 2 >= coarse.span_ms();
            known.then(|| {
                (
                    middle(&coarse, place),
                    slice.n as f64 * 1000.0 / there as f64,
                )
            })
        });
        rates.layers.push(Layer {
            // In the legend once, by the percentiles below.
            name: None,
            shape: Shape::Line(iops.collect()),
            ink,
        });
        for (percent, dash) in [(50.0, Dash::Solid), (99.0, Dash::Dashed)] {
            let points = slices.iter().enumerate();
            let points =
                points.filter_map(|(place, s)| Some((middle(&coarse, place), at(s, percent)?)));
            latencies.layers.push(Layer {
                name: Some(format!("{name} p{percent}")),
                shape: Shape::Line(points.collect()),
                ink: Ink { dash, ..ink },
            });
        }
    }
    latencies
        .layers
        .retain(|layer| !matches!(&layer.shape, Shape::Line(points) if points.is_empty()));
    let chart = Chart {
        title: format!("{} by priority · {}", title(kind), logs.name),
        subtitle: subtitle(logs, kind),
        panels: vec![rates, latencies],
        footer: vec![format!(
            "of all I/Os of each {}: how many a second, and their percentiles",
            units::duration(longest_ms)
        )],
        ..Chart::default()
    };
    let size = Size {
        height: SIZE.height + 320.0,
        ..SIZE
    };
    graph(logs, &format!("{}-priorities", word(kind)), chart, size)
}

/// Reads, writes and trims of each slice as one.
fn both_directions(timeline: &Timeline) -> Vec<TimelineSlice> {
    let mut all: Vec<TimelineSlice> = Vec::new();
    for track in timeline.tracks() {
        if track.slices.len() > all.len() {
            all.resize_with(track.slices.len(), TimelineSlice::default);
        }
        for (to, from) in all.iter_mut().zip(&track.slices) {
            to.merge(from);
        }
    }
    all
}
