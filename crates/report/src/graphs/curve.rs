//! The graphs of one series: each metric and direction, IOPS against latency,
//! percentiles.

use fathom_analysis::{
    Best, Curve, Estimate, PointResult, RepeatedFigures, SweepOutcome, best, measured_of,
};
use fathom_document::sweep::CampaignRecord;
use fathom_model::Direction;
use fathom_sheet::chart::palette::{Dash, Ink, Marker, Srgb, of_direction};
use fathom_sheet::chart::{
    Chart, ChartAxis, Ends, Layer, Note, NoteKind, Panel, Quantity, Scale, Shape, Size, Theme,
};
use fathom_sheet::graph::Graph;
use fathom_sheet::graph::safe_path;

use super::metric::PointMetric;
use super::{DIRECTIONS, words};

/// Percentiles that have curves: the middle, and the tails that people promise.
const PERCENTILES: [(f64, &str); 3] = [(50.0, "p50"), (99.0, "p99"), (99.9, "p99.9")];

/// The markers of points without a value are the same in every theme: dark
/// enough on white, light enough on black.
const FAILED: Ink = Ink {
    color: Theme::LIGHT.bad,
    dash: Dash::Solid,
    marker: Marker::Cross,
};
const SKIPPED: Ink = Ink {
    color: Theme::LIGHT.soft,
    dash: Dash::Solid,
    marker: Marker::Ring,
};

/// All graphs of a series; none when it has no figures.
pub(super) fn of_series(record: &CampaignRecord, series: &Curve) -> Vec<Graph> {
    let context = GraphContext::new(record, series);
    let mut graphs = Vec::new();
    for metric in PointMetric::ALL {
        for (dir, letter) in DIRECTIONS {
            let name = format!("{}{letter}", metric.stem());
            graphs.extend(
                context
                    .metric(metric, dir)
                    .map(|chart| context.graph(&name, chart)),
            );
        }
    }
    graphs.extend(
        context
            .iops_latency()
            .map(|chart| context.graph("iops-clat", chart)),
    );
    for (dir, letter) in DIRECTIONS {
        let name = format!("clat{letter}-percentiles");
        graphs.extend(
            context
                .percentiles(dir)
                .map(|chart| context.graph(&name, chart)),
        );
    }
    graphs
}

/// What the graphs of a series have in common.
struct GraphContext<'a> {
    record: &'a CampaignRecord,
    series: &'a Curve,
    x: ChartAxis,
    footer: Vec<String>,
}

/// The good figures of a point in one direction.
pub(super) fn good(point: &PointResult, dir: Direction) -> Option<&RepeatedFigures> {
    (point.outcome == SweepOutcome::Done).then(|| point.figures(dir))?
}

/// The points of a curve in the order of x; a point without a value breaks it.
pub(super) fn curve(
    series: &Curve,
    value: impl Fn(&PointResult) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let points = series.points.iter();
    points
        .filter_map(|point| {
            let x = point.point.x_value()? as f64;
            Some((x, value(point).unwrap_or(f64::NAN)))
        })
        .collect()
}

/// The points of a curve whose figures are to be doubted.
pub(super) fn doubtful_points(
    series: &Curve,
    value: impl Fn(&PointResult) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let doubtful = series
        .points
        .iter()
        .filter(|point| !point.doubts.is_empty());
    doubtful
        .filter_map(|point| Some((point.point.x_value()? as f64, value(point)?)))
        .collect()
}

/// Rings over these points of a curve in this ink; `None` without any.
pub(super) fn hollow(points: Vec<(f64, f64)>, ink: Ink) -> Option<Layer> {
    (!points.is_empty()).then(|| Layer {
        name: Some("doubtful".to_owned()),
        shape: Shape::Points(points),
        ink: Ink {
            marker: Marker::Ring,
            ..ink
        },
    })
}

/// Layers of several curves that mean the same, once in the legend.
pub(super) fn named_once(mut layers: Vec<Layer>) -> Vec<Layer> {
    for layer in layers.iter_mut().skip(1) {
        layer.name = None;
    }
    layers
}

/// The value of each point, shown where there is room for it.
pub(super) fn numbers(
    points: Vec<(f64, f64)>,
    quantity: Quantity,
    color: Option<Srgb>,
) -> impl Iterator<Item = Note> {
    let points = points.into_iter().filter(|(_, y)| y.is_finite());
    points.map(move |at| Note {
        at,
        lines: vec![quantity.text(at.1)],
        kind: NoteKind::Beside,
        hollow: false,
        color,
    })
}

/// The 95 % intervals of points that were measured more than once.
pub(super) fn error_bars(
    series: &Curve,
    ink: Ink,
    estimate: impl Fn(&PointResult) -> Option<Estimate>,
) -> Option<Layer> {
    let mut bars = Vec::new();
    let (mut n_min, mut n_max) = (u32::MAX, 0);
    for point in &series.points {
        let Some((x, found)) = point.point.x_value().zip(estimate(point)) else {
            continue;
        };
        if let Some(half) = found.half_width_95 {
            bars.push((x as f64, found.mean - half, found.mean + half));
            (n_min, n_max) = (n_min.min(found.n), n_max.max(found.n));
        }
    }
    let n = if n_min == n_max {
        n_min.to_string()
    } else {
        format!("{n_min} … {n_max}")
    };
    (!bars.is_empty()).then(|| Layer {
        name: Some(format!("95 % confidence interval, n = {n}")),
        shape: Shape::ErrorBars(bars),
        ink,
    })
}

/// Failed and skipped points, on the axis.
pub(super) fn left_out(series: &Curve) -> impl Iterator<Item = Layer> {
    let on_axis = |wanted: fn(&SweepOutcome) -> bool| -> Vec<f64> {
        let points = series.points.iter();
        let fitting = points.filter(|point| wanted(&point.outcome));
        fitting
            .filter_map(|point| Some(point.point.x_value()? as f64))
            .collect()
    };
    let failed = on_axis(|o| matches!(o, SweepOutcome::Failed(_) | SweepOutcome::Unfinished));
    let skipped = on_axis(|o| matches!(o, SweepOutcome::Skipped(_)));
    [("failed", failed, FAILED), ("skipped", skipped, SKIPPED)]
        .into_iter()
        .filter(|(_, points, _)| !points.is_empty())
        .map(|(name, points, ink)| Layer {
            name: Some(name.to_owned()),
            shape: Shape::OnAxis(points),
            ink,
        })
}

fn has_value(points: &[(f64, f64)]) -> bool {
    points.iter().any(|(_, y)| y.is_finite())
}

impl<'a> GraphContext<'a> {
    fn new(record: &'a CampaignRecord, series: &'a Curve) -> Self {
        let values: Vec<u64> = series
            .points
            .iter()
            .filter_map(|p| p.point.x_value())
            .collect();
        Self {
            record,
            series,
            x: words::x_axis(&series.x, &values),
            footer: words::footer(series),
        }
    }

    fn graph(&self, name: &str, chart: Chart) -> Graph {
        Graph {
            path: format!("{}-{name}", safe_path(&self.series.name)),
            chart,
            size: Size::default(),
        }
    }

    fn chart(&self, what: &str, panel: Panel, footer: Vec<String>) -> Chart {
        let name = &self.series.name;
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        Chart {
            title: format!("{what} · {}", words::last(name)),
            subtitle: words::subtitle(self.record, folder, self.series.points.iter()),
            description: String::new(),
            panels: vec![panel],
            footer,
        }
    }

    /// One metric of one direction against x, its best points named.
    fn metric(&self, metric: PointMetric, dir: Direction) -> Option<Chart> {
        let estimate = |point: &PointResult| metric.of(good(point, dir)?);
        let points = curve(self.series, |point| Some(estimate(point)?.mean));
        if !has_value(&points) {
            return None;
        }
        let mut panel = Panel::new(self.x.clone(), metric.axis(&self.x.scale));
        let ink = Ink::new(of_direction(dir));
        panel.layers.extend(error_bars(self.series, ink, estimate));
        panel.layers.push(Layer {
            name: None,
            shape: Shape::Curve(points),
            ink,
        });
        let doubtful = doubtful_points(self.series, |point| Some(estimate(point)?.mean));
        panel.layers.extend(hollow(doubtful, ink));
        panel.layers.extend(left_out(self.series));
        panel.notes = self.best_points(best(self.series, dir), |point| {
            let estimate = estimate(point)?;
            Some((estimate.mean, value_text(metric.quantity(), estimate)))
        });
        let described = panel.notes.len();
        let points = curve(self.series, |point| Some(estimate(point)?.mean));
        let each = numbers(points, metric.quantity(), None);
        // The labels of best points have theirs.
        let labelled: Vec<(f64, f64)> = panel.notes.iter().map(|label| label.at).collect();
        let unlabelled = each.filter(|number| !labelled.contains(&number.at));
        panel.notes.extend(unlabelled);
        let what = format!("{} {}", dir.title(), metric.word());
        let mut chart = self.chart(&what, panel, self.footer.clone());
        chart.description = describe(&what, &self.x.title, &chart.panels[0].notes[..described]);
        Some(chart)
    }

    /// The best points, those that coincide with one label.
    fn best_points(
        &self,
        best: Best,
        value: impl Fn(&PointResult) -> Option<(f64, String)>,
    ) -> Vec<Note> {
        let best = [
            (best.bandwidth, "bandwidth"),
            (best.iops, "IOPS"),
            (best.latency, "latency"),
        ];
        let mut places: Vec<(usize, Vec<&str>)> = Vec::new();
        for (place, what) in best {
            let Some(place) = place else { continue };
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, all)) => all.push(what),
                None => places.push((place, vec![what])),
            }
        }
        let of = match measured_of(self.series) {
            (measured, all) if measured < all => format!(" of {measured} of {all} points"),
            _ => String::new(),
        };
        let note = |(place, what): (usize, Vec<&str>)| {
            let point = self.series.points.get(place)?;
            let (y, text) = value(point)?;
            let x = point.point.x_value()?;
            let hollow = !point.doubts.is_empty();
            let doubt = if hollow { ", doubtful" } else { "" };
            Some(Note {
                at: (x as f64, y),
                lines: vec![
                    format!("best {}{of}", list(&what)),
                    format!("{text} {}{doubt}", words::at(&self.series.x, x)),
                ],
                kind: NoteKind::Leader,
                hollow,
                color: None,
            })
        };
        places.into_iter().filter_map(note).collect()
    }

    /// What latency a rate costs: all directions, x at the points.
    fn iops_latency(&self) -> Option<Chart> {
        let mut panel = Panel::new(
            ChartAxis {
                title: "IOPS".to_owned(),
                quantity: Quantity::Rate,
                scale: Scale::Linear,
                ends: Ends::Values,
            },
            PointMetric::Latency.axis(&Scale::Log2),
        );
        let mut doubtful = Vec::new();
        for (dir, _) in DIRECTIONS {
            let (mut points, mut rings) = (Vec::new(), Vec::new());
            for point in &self.series.points {
                let figures = good(point, dir);
                let pair = figures.and_then(|f| Some((f.iops.mean, f.clat_mean_ns?.mean)));
                let at = pair.unwrap_or((f64::NAN, f64::NAN));
                points.push(at);
                rings.extend(pair.filter(|_| !point.doubts.is_empty()));
                if let Some(x) = point.point.x_value().filter(|_| at.1.is_finite()) {
                    panel.notes.push(Note {
                        at,
                        lines: vec![self.x.quantity.text(x as f64)],
                        kind: NoteKind::Beside,
                        hollow: false,
                        color: Some(of_direction(dir)),
                    });
                }
            }
            if has_value(&points) {
                let marker = match dir {
                    Direction::Read => Marker::Circle,
                    _ => Marker::Square,
                };
                let ink = Ink {
                    marker,
                    ..Ink::new(of_direction(dir))
                };
                panel.layers.push(Layer {
                    name: Some(dir.title().to_lowercase()),
                    shape: Shape::Curve(points),
                    ink,
                });
                doubtful.extend(hollow(rings, ink));
            }
        }
        panel.layers.extend(named_once(doubtful));
        if panel.layers.is_empty() {
            return None;
        }
        let mut footer = vec![format!("numbers at points: {}", self.x.title)];
        footer.extend(self.footer.iter().cloned());
        Some(self.chart("IOPS and completion latency", panel, footer))
    }

    /// Percentiles of one direction against x.
    fn percentiles(&self, dir: Direction) -> Option<Chart> {
        let mut panel = Panel::new(self.x.clone(), PointMetric::Latency.axis(&Scale::Log2));
        panel.y.title = "Completion latency".to_owned();
        let mut doubtful = Vec::new();
        for (place, (percent, name)) in PERCENTILES.into_iter().enumerate() {
            let value =
                |point: &PointResult| Some(good(point, dir)?.percentile_ns(percent)? as f64);
            let points = curve(self.series, value);
            if has_value(&points) {
                let ink = Ink::of_place(place);
                panel.layers.push(Layer {
                    name: Some(name.to_owned()),
                    shape: Shape::Curve(points),
                    ink,
                });
                doubtful.extend(hollow(doubtful_points(self.series, value), ink));
                let each = numbers(
                    curve(self.series, value),
                    Quantity::Latency,
                    Some(ink.color),
                );
                panel.notes.extend(each);
            }
        }
        if panel.layers.is_empty() {
            return None;
        }
        panel.layers.extend(named_once(doubtful));
        panel.layers.extend(left_out(self.series));
        let what = format!("{} latency percentiles", dir.title());
        Some(self.chart(&what, panel, self.footer.clone()))
    }
}

/// A value with how far it is to be trusted: `402 MiB/s ± 1.3 %`.
fn value_text(quantity: Quantity, estimate: Estimate) -> String {
    let value = quantity.text(estimate.mean);
    match estimate.half_width_95 {
        Some(half) if estimate.mean > 0.0 => {
            format!("{value} ± {:.1} %", 100.0 * half / estimate.mean)
        }
        _ => value,
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn describe(what: &str, x: &str, notes: &[Note]) -> String {
    let mut text = format!("{what} against {x}.");
    for note in notes {
        text.push_str(&format!(" {}.", note.lines.join(": ")));
    }
    text
}
