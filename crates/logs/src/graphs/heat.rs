//! How many I/Os took how long when: a heat map.

use std::collections::BTreeMap;

use fathom_analysis::latlog::{DirectionTrack, Timeline};
use fathom_model::histogram::bounds_of;
use fathom_model::{LogKind, units};
use fathom_sheet::chart::palette::{BLUE, Ink};
use fathom_sheet::chart::{Chart, ChartAxis, Ends, HeatCell, Layer, Panel, Quantity, Scale, Shape};
use fathom_sheet::graph::Graph;

use super::percentiles::word;
use super::{
    Logs, by_direction, graph, has_distribution, latency_axis, subtitle, time_axis, title,
};

/// Columns at most: three pixels each.
const COLUMNS: u64 = 256;
/// Cells at most: each takes some 30 bytes of an SVG, which is to stay below 1 MB.
const CELLS_MAX: usize = 24_000;
/// I/Os that a column is to have on average.
const ENOUGH: u64 = 200;
/// Buckets of the model's histogram that make a row: eight rows an octave, 9 % each.
const ROW: usize = 8;
/// Buckets of an octave.
const OCTAVE: usize = 64;

/// The plot; `None` without a distribution.
pub(super) fn of(logs: &Logs, kind: LogKind, all: &Timeline) -> Option<Graph> {
    let n: u64 = all.tracks().map(|track| track.n).max()?;
    // A row is no lower than the bins of the log, or rows between them stayed empty.
    let bins = logs.bin_error_percent;
    let bins = bins.filter(|_| kind == LogKind::ClatHistograms);
    let bin = bins.map_or(1, |percent| {
        (percent / 100.0 * 2.0 * OCTAVE as f64) as usize
    });
    let row = bin.next_power_of_two().clamp(ROW, OCTAVE);
    let mut columns = (n / ENOUGH).clamp(32, COLUMNS);
    let (coarse, panels) = loop {
        let coarse = all.coarser(columns);
        let of = coarse
            .tracks()
            .filter(|track| has_distribution(kind, track));
        let panels: Vec<_> = of
            .map(|track| (track.dir, panel(kind, &coarse, track, row)))
            .collect();
        if panels.iter().map(|(_, panel)| cells(panel)).sum::<usize>() <= CELLS_MAX || columns <= 16
        {
            break (coarse, panels);
        }
        columns /= 2;
    };
    let (panels, size) = by_direction(panels, title(kind));
    let chart = Chart {
        title: format!("{} heat map · {}", title(kind), logs.name),
        subtitle: subtitle(logs, kind),
        panels,
        footer: vec![format!(
            "I/Os of each {} by their latency in {} steps an octave, scaled to steps of the same height; blank: none",
            units::duration(coarse.span_ms()),
            OCTAVE / row
        )],
        ..Chart::default()
    };
    Some(graph(logs, &format!("{}-heat", word(kind)), chart, size))
}

fn cells(panel: &Panel) -> usize {
    let layers = panel.layers.iter();
    layers
        .map(|layer| match &layer.shape {
            Shape::Cells(cells) => cells.len(),
            _ => 0,
        })
        .sum()
}

fn panel(kind: LogKind, timeline: &Timeline, track: &DirectionTrack, row: usize) -> Panel {
    let mut panel = Panel::new(time_axis(), latency_axis(title(kind)));
    panel.colors = Some(ChartAxis {
        title: "I/Os".to_owned(),
        quantity: Quantity::Rate,
        // A few slow I/Os among a million are what one looks for.
        scale: Scale::Log10,
        ends: Ends::Values,
    });
    let span = timeline.span_ms();
    let mut cells = Vec::new();
    for (place, slice) in track.slices.iter().enumerate() {
        let mut rows: BTreeMap<usize, u64> = BTreeMap::new();
        for (bucket, count) in slice.histogram.buckets() {
            *rows.entry(bucket / row).or_default() += count;
        }
        let begin = place as u64 * span;
        let end = (begin + span).min(timeline.end_ms.max(begin + 1));
        cells.extend(rows.into_iter().map(|(number, count)| {
            let (low, high) = (number * row, (number + 1) * row - 1);
            // Below 1 ns there is nothing, and no place on the axis.
            let (low, high) = (
                bounds_of(low).0.max(1) as f64,
                bounds_of(high).1 as f64 + 1.0,
            );
            // Rows are cut evenly within an octave, so the first looks higher than
            // the last, and would hold more: its part of the octave is what counts.
            let even = row as f64 / OCTAVE as f64;
            let scaled = count as f64 * even / (high / low).log2();
            HeatCell {
                x: (begin as f64, end as f64),
                y: (low, high),
                value: Some(scaled),
            }
        }));
    }
    panel.layers.push(Layer {
        name: None,
        shape: Shape::Cells(cells),
        ink: Ink::new(BLUE),
    });
    panel
}
