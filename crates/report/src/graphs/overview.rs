//! All series of a folder in one chart: the profiles of a target, the depths of
//! a profile.

use fathom_analysis::{Curve, PointResult};
use fathom_document::sweep::CampaignRecord;
use fathom_model::Direction;
use fathom_sheet::chart::palette::Ink;
use fathom_sheet::chart::{Chart, Layer, Panel, Shape, Size};
use fathom_sheet::graph::{Graph, safe_path};

use super::curve::{curve, doubtful_points, good, hollow, named_once, numbers};
use super::metric::PointMetric;
use super::{DIRECTIONS, words};

/// The folders that hold two or more series over the same option, with those.
pub(super) fn folders<'a>(series: &[&'a Curve]) -> Vec<(&'a str, Vec<&'a Curve>)> {
    let mut found: Vec<(&str, Vec<&Curve>)> = Vec::new();
    for &one in series {
        let folder = one.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        match found
            .iter_mut()
            .find(|(known, all)| *known == folder && all[0].x == one.x)
        {
            Some((_, all)) => all.push(one),
            None => found.push((folder, vec![one])),
        }
    }
    found.retain(|(_, all)| all.len() > 1);
    found
}

/// Where the graphs of a whole folder lie.
pub(super) fn path(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{}/{name}", safe_path(folder))
    }
}

/// A chart for each metric and direction, a curve for each series.
pub(super) fn of_folder(record: &CampaignRecord, folder: &str, series: &[&Curve]) -> Vec<Graph> {
    let mut graphs = Vec::new();
    for metric in PointMetric::ALL {
        for (dir, letter) in DIRECTIONS {
            let name = format!("overview-{}{letter}", metric.stem());
            let together = chart(record, folder, series, metric, dir)
                // Of one series alone there is a graph already.
                .filter(|chart| {
                    chart.panels[0]
                        .layers
                        .iter()
                        .filter(|l| is_curve(l))
                        .count()
                        > 1
                });
            graphs.extend(together.map(|chart| Graph {
                path: path(folder, &name),
                chart,
                size: Size {
                    height: 500.0,
                    ..Size::default()
                },
            }));
        }
    }
    graphs
}

fn is_curve(layer: &Layer) -> bool {
    matches!(layer.shape, Shape::Curve(_))
}

/// One metric and direction of several series; `None` where none has it.
pub(super) fn chart(
    record: &CampaignRecord,
    folder: &str,
    series: &[&Curve],
    metric: PointMetric,
    dir: Direction,
) -> Option<Chart> {
    let xs: Vec<u64> = series
        .iter()
        .flat_map(|series| {
            series
                .points
                .iter()
                .filter_map(|point| point.point.x_value())
        })
        .collect();
    let x = words::x_axis(&series.first()?.x, &xs);
    let mut panel = Panel::new(x.clone(), metric.axis(&x.scale));
    let value = |point: &PointResult| Some(metric.of(good(point, dir)?)?.mean);
    let mut doubtful = Vec::new();
    for (place, one) in series.iter().enumerate() {
        let points = curve(one, value);
        // Its place decides the ink, so that a profile looks the same in all charts.
        if points.iter().any(|(_, y)| y.is_finite()) {
            let ink = Ink::of_place(place);
            let each = numbers(points.clone(), metric.quantity(), Some(ink.color));
            panel.notes.extend(each);
            panel.layers.push(Layer {
                name: Some(words::unnumbered(words::last(&one.name)).to_owned()),
                shape: Shape::Curve(points),
                ink,
            });
            doubtful.extend(hollow(doubtful_points(one, value), ink));
        }
    }
    if panel.layers.is_empty() {
        return None;
    }
    panel.layers.extend(named_once(doubtful));
    let points = series.iter().flat_map(|series| &series.points);
    let what = format!("{} {}", dir.title(), metric.word());
    Some(Chart {
        title: format!(
            "{what} · {}",
            if folder.is_empty() {
                "all series"
            } else {
                words::last(folder)
            }
        ),
        subtitle: words::subtitle(record, folder, points.clone()),
        footer: words::causes(points),
        panels: vec![panel],
        ..Chart::default()
    })
}
