//! Any option on the x axis, any other told apart by lines: the points of a campaign cut
//! another way than its tests do.

use std::collections::{BTreeMap, BTreeSet};

use fathom_analysis::{Curve, PointResult};
use fathom_document::sweep::CampaignRecord;
use fathom_sheet::chart::Size;
use fathom_sheet::graph::Graph;

use super::metric::PointMetric;
use super::overview::{chart, path};
use super::words::last;
use super::{DIRECTIONS, NotDrawn};

/// What is drawn over what.
#[derive(Debug, Clone)]
pub struct GraphAxes {
    /// The option on the x axis.
    pub x: String,
    /// The option that has a line for each of its values; without, every combination of
    /// the others has one.
    pub by: Option<String>,
    /// What is drawn.
    pub y: PointMetric,
}

/// The options of a point.
type Settings<'p> = BTreeMap<&'p str, &'p str>;

/// A chart for each direction and each combination of the options that are neither on the
/// axis nor told apart by lines; points of different tests are not put together.
pub fn over_options(
    record: &CampaignRecord,
    series: &[&Curve],
    axes: &GraphAxes,
) -> (Vec<Graph>, Vec<NotDrawn>) {
    let by_options = cut(series, axes, false);
    let mut charts = by_options.unwrap_or_default();
    if charts.is_empty() {
        // Their names tell them apart where no option does.
        match cut(series, axes, true) {
            Ok(found) => charts = found,
            Err(reason) => {
                let series = axes.x.clone();
                return (Vec::new(), vec![NotDrawn { series, reason }]);
            }
        }
    }
    let graphs = charts.iter().flat_map(|((test, rest), lines)| {
        let name = [(*test).to_owned(), written(rest)];
        let name: Vec<String> = name.into_iter().filter(|part| !part.is_empty()).collect();
        drawn(record, &name.join("/"), lines, axes)
    });
    (graphs.collect(), Vec::new())
}

/// The lines of each chart, by its test and what all its points have.
type Charts<'c> = BTreeMap<(&'c str, Settings<'c>), Vec<Curve>>;

/// Cuts the points anew; fails where two points of a line stand at one place.
fn cut<'c>(series: &[&'c Curve], axes: &GraphAxes, by_series: bool) -> Result<Charts<'c>, String> {
    let mut charts = Charts::new();
    let varying = varying(series);
    for one in series {
        let test = one.name.split_once('/').map_or("", |(test, _)| test);
        for point in &one.points {
            if point.point.number(&axes.x).is_none() {
                continue;
            }
            let others = settings(point).into_iter();
            let others =
                others.filter(|(name, _)| *name != axes.x.as_str() && varying.contains(name));
            let others = others.chain(by_series.then(|| ("series", last(&one.name))));
            let (line, rest): (Settings, Settings) =
                others.partition(|(name, _)| axes.by.as_deref().is_none_or(|by| *name == by));
            let lines = charts.entry((test, rest)).or_default();
            let name = written(&line);
            let place = lines.iter().position(|known| known.name == name);
            let place = place.unwrap_or_else(|| {
                lines.push(Curve {
                    name,
                    x: axes.x.clone(),
                    points: Vec::new(),
                });
                lines.len() - 1
            });
            let mut point = point.clone();
            point.point.x.clone_from(&axes.x);
            lines[place].points.push(point);
        }
    }
    for lines in charts.values_mut() {
        sorted(lines)?;
    }
    Ok(charts)
}

fn settings(point: &PointResult) -> Settings<'_> {
    let settings = point.point.settings.iter();
    settings.map(|(n, v)| (n.as_str(), v.as_str())).collect()
}

/// The options in which any two points differ.
fn varying<'c>(series: &[&'c Curve]) -> BTreeSet<&'c str> {
    let points = || series.iter().flat_map(|one| &one.points);
    let names: BTreeSet<&str> = points()
        .flat_map(|point| settings(point).into_keys())
        .collect();
    let differs = |name: &&str| {
        let values: BTreeSet<_> = points()
            .map(|point| point.point.settings.get(*name))
            .collect();
        values.len() > 1
    };
    names.into_iter().filter(differs).collect()
}

/// `bs 4k, rw randread`.
fn written(settings: &Settings) -> String {
    let each = settings
        .iter()
        .map(|(name, value)| format!("{name} {value}"));
    each.collect::<Vec<_>>().join(", ")
}

/// Puts lines and their points in order; fails where two points of a line stand at one
/// place.
fn sorted(lines: &mut [Curve]) -> Result<(), String> {
    let number = |curve: &Curve| {
        let value = curve.name.rsplit_once(' ').map_or("", |(_, value)| value);
        value.parse::<u64>().ok()
    };
    lines.sort_by(|a, b| (number(a), &a.name).cmp(&(number(b), &b.name)));
    for line in lines {
        line.points.sort_by_key(|point| point.point.x_value());
        let pair = line.points.windows(2).find(|pair| {
            let [a, b] = pair else { return false };
            a.point.x_value() == b.point.x_value()
        });
        if let Some([a, b]) = pair {
            return Err(format!(
                "{} and {} differ in nothing that is an option",
                a.point.id, b.point.id
            ));
        }
    }
    Ok(())
}

fn drawn(record: &CampaignRecord, name: &str, lines: &[Curve], axes: &GraphAxes) -> Vec<Graph> {
    let lines: Vec<&Curve> = lines.iter().collect();
    let mut graphs = Vec::new();
    for (dir, letter) in DIRECTIONS {
        let by = axes
            .by
            .as_ref()
            .map_or_else(String::new, |by| format!("-by-{by}"));
        let file = format!("{}{letter}-over-{}{by}", axes.y.stem(), axes.x);
        graphs.extend(chart(record, name, &lines, axes.y, dir).map(|chart| Graph {
            path: path(
                name,
                &fathom_sheet::graph::safe_path(&file).replace('/', "-"),
            ),
            chart,
            size: Size {
                height: 500.0,
                ..Size::default()
            },
        }));
    }
    graphs
}
