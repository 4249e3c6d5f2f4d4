//! Heat maps: a metric over two options, where the series of a folder make a grid.

use std::collections::BTreeSet;

use fathom_analysis::{Curve, SweepOutcome};
use fathom_document::sweep::CampaignRecord;
use fathom_model::Direction;
use fathom_sheet::chart::palette::Ink;
use fathom_sheet::chart::{Chart, ChartAxis, Ends, HeatCell, Layer, Panel, Scale, Shape, Size};
use fathom_sheet::graph::Graph;

use super::curve::{good, hollow};
use super::metric::PointMetric;
use super::overview::path;
use super::{DIRECTIONS, words};

/// A chart for each metric and direction; none when the series make no grid.
pub(super) fn of_folder(record: &CampaignRecord, folder: &str, series: &[&Curve]) -> Vec<Graph> {
    let Some(grid) = SeriesGrid::of(series) else {
        return Vec::new();
    };
    let mut graphs = Vec::new();
    for metric in PointMetric::ALL {
        for (dir, letter) in DIRECTIONS {
            let name = format!("heat-{}{letter}", metric.stem());
            graphs.extend(grid.chart(record, folder, metric, dir).map(|chart| Graph {
                path: path(folder, &name),
                chart,
                size: Size::default(),
            }));
        }
    }
    graphs
}

/// Series that differ in the value of one option.
struct SeriesGrid<'a> {
    /// The option that differs, its values ascending, and the series of each.
    option: String,
    rows: Vec<(u64, &'a Curve)>,
    /// The values on the x axis.
    columns: Vec<u64>,
}

impl<'a> SeriesGrid<'a> {
    /// The grid of series that differ in exactly one option, a number.
    fn of(series: &[&'a Curve]) -> Option<Self> {
        let x = &series.first()?.x;
        let names = series
            .iter()
            .flat_map(|series| &series.points)
            .flat_map(|point| point.point.settings.keys());
        let options: BTreeSet<&String> = names.filter(|&name| name != x).collect();
        // One text for each series, when all its points agree.
        let values = |option: &str| -> Option<Vec<&'a str>> {
            series
                .iter()
                .map(|series| constant(series, option))
                .collect()
        };
        let differing: Vec<&String> = options
            .into_iter()
            .filter(|option| {
                values(option).is_none_or(|values| values.iter().any(|value| *value != values[0]))
            })
            .collect();
        let [option] = differing[..] else { return None };
        let mut rows: Vec<(u64, &Curve)> = Vec::new();
        for &one in series {
            rows.push((one.points.first()?.point.number(option)?, one));
        }
        rows.sort_by_key(|&(value, _)| value);
        let apart = rows.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let columns: BTreeSet<u64> = rows
            .iter()
            .flat_map(|(_, series)| series.points.iter().filter_map(|p| p.point.x_value()))
            .collect();
        (apart && columns.len() > 1).then(|| Self {
            option: option.clone(),
            rows,
            columns: columns.into_iter().collect(),
        })
    }

    fn chart(
        &self,
        record: &CampaignRecord,
        folder: &str,
        metric: PointMetric,
        dir: Direction,
    ) -> Option<Chart> {
        let (mut cells, mut doubtful) = (Vec::new(), Vec::new());
        for (row, (_, series)) in self.rows.iter().enumerate() {
            for point in &series.points {
                let Some(x) = point.point.x_value() else {
                    continue;
                };
                let column = self.columns.binary_search(&x).ok()?;
                let value = good(point, dir).and_then(|figures| metric.of(figures));
                // What was left out is no cell; what failed is one without a value.
                if value.is_none() && matches!(point.outcome, SweepOutcome::Skipped(_)) {
                    continue;
                }
                if value.is_some() && !point.doubts.is_empty() {
                    // In a corner: the number stands in the middle.
                    doubtful.push((column as f64 + 0.36, row as f64 + 0.32));
                }
                let around = |n: usize| (n as f64 - 0.5, n as f64 + 0.5);
                cells.push(HeatCell {
                    x: around(column),
                    y: around(row),
                    value: value.map(|estimate| estimate.mean),
                });
            }
        }
        if cells.iter().all(|cell| cell.value.is_none()) {
            return None;
        }
        let first = self.rows.first()?.1;
        let rows: Vec<u64> = self.rows.iter().map(|(value, _)| *value).collect();
        let mut panel = Panel::new(
            ordinal(&first.x, &self.columns),
            ordinal(&self.option, &rows),
        );
        panel.layers = vec![Layer {
            name: None,
            shape: Shape::Cells(cells),
            ink: Ink::of_place(0),
        }];
        panel.layers.extend(hollow(doubtful, Ink::of_place(0)));
        panel.colors = Some(metric.axis(&Scale::Log2));
        let points = self.rows.iter().flat_map(|(_, series)| &series.points);
        let what = format!("{} {}", dir.title(), metric.word());
        let name = if folder.is_empty() {
            "all series"
        } else {
            words::last(folder)
        };
        Some(Chart {
            title: format!("{what} · {name}"),
            subtitle: words::subtitle(record, folder, points.clone()),
            footer: words::causes(points),
            panels: vec![panel],
            ..Chart::default()
        })
    }
}

/// The one text that all points of a series have for an option.
fn constant<'a>(series: &'a Curve, option: &str) -> Option<&'a str> {
    let mut texts = series
        .points
        .iter()
        .map(|point| point.point.settings.get(option));
    let first = texts.next()??;
    texts
        .all(|text| text == Some(first))
        .then_some(first.as_str())
}

/// An axis with a place for each value.
fn ordinal(option: &str, values: &[u64]) -> ChartAxis {
    let axis = words::x_axis(option, values);
    let names = values.iter().map(|&value| axis.quantity.text(value as f64));
    ChartAxis {
        scale: Scale::Ordinal(names.collect()),
        ends: Ends::Values,
        ..axis
    }
}
