//! The points of a campaign, for the script: what they are filtered by, and what is
//! shown of one.

use std::collections::{BTreeMap, HashMap};

use fathom_analysis::{Curve, PointResult, SweepOutcome};
use serde::Serialize;

use super::marks::DoubtMarks;
use super::story::Story;

/// One point, in the order of the series.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct HtmlPoint<'s> {
    /// Its name; what begins with a slash goes on behind the name of its series.
    id: &'s str,
    /// The place of its series.
    series: usize,
    /// Its place in the lists of the series; absent where it has none on the axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<usize>,
    /// `failed`, `skipped` or `unfinished`; absent when it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    /// Why it has no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// What makes its figures doubtful: numbers of sentences in `doubts`, from 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubts: Vec<usize>,
    /// Settings that not all points of its series have.
    settings: BTreeMap<&'s str, &'s str>,
    /// Places of its measurements in `steps`.
    steps: Vec<usize>,
}

/// The points of a run.
pub fn of<'s>(story: &'s Story, marks: &DoubtMarks) -> Vec<HtmlPoint<'s>> {
    let mut steps: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, step) in story.steps.iter().enumerate() {
        if let (true, Some(point)) = (step.counts, &step.point) {
            steps.entry(point).or_default().push(place);
        }
    }
    let mut points = Vec::new();
    for (place, series) in story.sweep.series.iter().enumerate() {
        let shared = shared_settings(series);
        let mut on_axis = 0;
        for point in &series.points {
            let at = point.point.x_value().map(|_| {
                on_axis += 1;
                on_axis - 1
            });
            let id = point.point.id.as_str();
            let settings = point.point.settings.iter();
            let own = settings.filter(|(name, _)| !shared.contains_key(name.as_str()));
            points.push(HtmlPoint {
                id: id
                    .strip_prefix(series.name.as_str())
                    .filter(|rest| rest.starts_with('/'))
                    .unwrap_or(id),
                series: place,
                at,
                outcome: outcome(point),
                why: why(point),
                doubts: marks.numbers_of([point]),
                settings: own.map(|(n, v)| (n.as_str(), v.as_str())).collect(),
                steps: steps.remove(id).unwrap_or_default(),
            });
        }
    }
    points
}

/// The settings that all points of a series have.
pub fn shared_settings(series: &Curve) -> BTreeMap<&str, &str> {
    let Some(first) = series.points.first() else {
        return BTreeMap::new();
    };
    let in_all = |name: &String, value: &String| {
        let mut points = series.points.iter();
        points.all(|point| point.point.settings.get(name) == Some(value))
    };
    let settings = first.point.settings.iter();
    let shared = settings.filter(|(name, value)| in_all(name, value));
    shared.map(|(n, v)| (n.as_str(), v.as_str())).collect()
}

fn outcome(point: &PointResult) -> Option<&'static str> {
    match &point.outcome {
        SweepOutcome::Done => None,
        SweepOutcome::Failed(_) => Some("failed"),
        SweepOutcome::Skipped(_) => Some("skipped"),
        SweepOutcome::Unfinished => Some("unfinished"),
    }
}

fn why(point: &PointResult) -> Option<String> {
    match &point.outcome {
        SweepOutcome::Failed(why) => Some(why.join("; ")),
        SweepOutcome::Skipped(why) => Some(why.clone()),
        SweepOutcome::Done | SweepOutcome::Unfinished => None,
    }
}
