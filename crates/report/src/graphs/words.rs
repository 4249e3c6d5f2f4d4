//! The words on graphs: axes, places, settings, devices.

use std::collections::BTreeMap;

use fathom_analysis::{Curve, PointResult, SweepOutcome, engines_of};
use fathom_model::{Environment, units};

use fathom_document::folding::{Folded, cause};
use fathom_document::sweep::CampaignRecord;
use fathom_sheet::chart::{ChartAxis, Ends, Quantity, Scale};

/// The x axis of curves: by powers of two for depths, and for jobs where they
/// are powers of two, else by what the values are.
pub(crate) fn x_axis(option: &str, values: &[u64]) -> ChartAxis {
    let powers = values.iter().all(|value| value.is_power_of_two());
    let wide = match (values.iter().min(), values.iter().max()) {
        (Some(&min), Some(&max)) => min > 0 && max / min >= 16,
        _ => false,
    };
    let (title, quantity, scale) = match option {
        // Even when there is but one point: an axis like the others'.
        "iodepth" => ("I/O depth", Quantity::Binary, Scale::Log2),
        "numjobs" if powers => ("Jobs", Quantity::Binary, Scale::Log2),
        "numjobs" => ("Jobs", Quantity::Binary, Scale::Linear),
        "bs" | "blocksize" => ("Block size", Quantity::Bytes, Scale::Log2),
        "rwmixread" => ("Share of reads", Quantity::Percent, Scale::Linear),
        other if powers && wide => (other, Quantity::Binary, Scale::Log2),
        other => (other, Quantity::Number, Scale::Linear),
    };
    // A depth of 0 has no logarithm.
    let scale = if values.contains(&0) {
        Scale::Linear
    } else {
        scale
    };
    ChartAxis {
        title: title.to_owned(),
        quantity,
        scale,
        ends: Ends::Values,
    }
}

/// Where a point stands, in a sentence: `at depth 512`, `with 8 jobs`.
pub(super) fn at(option: &str, value: u64) -> String {
    at_all(option, &[value])
}

/// As [`at`] for several points: `at depth 512, 1024`.
fn at_all(option: &str, values: &[u64]) -> String {
    let written = values.iter().map(|&value| match option {
        "bs" | "blocksize" => units::bytes(value as f64),
        _ => value.to_string(),
    });
    let written = written.collect::<Vec<_>>().join(", ");
    match option {
        "iodepth" => format!("at depth {written}"),
        "numjobs" if values == [1] => "with 1 job".to_owned(),
        "numjobs" => format!("with {written} jobs"),
        "bs" | "blocksize" => format!("with blocks of {written}"),
        "rwmixread" => format!("at {written} % reads"),
        other => format!("at {other} {written}"),
    }
}

/// The last part of a series' name.
pub(super) fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// A name without the number that orders folders: `0005-randwrite-70-30`
/// becomes `randwrite-70-30`. The mix `100-0` has no such number.
pub(crate) fn unnumbered(name: &str) -> &str {
    let Some((number, rest)) = name.split_once('-') else {
        return name;
    };
    let orders = (number.len() > 1 && number.starts_with('0'))
        || !rest.starts_with(|c: char| c.is_ascii_digit());
    match number.bytes().all(|b| b.is_ascii_digit()) && orders && !rest.is_empty() {
        true => rest,
        false => name,
    }
}

/// The lines below a title: what was measured where, and with what settings.
pub(super) fn subtitle<'p>(
    record: &CampaignRecord,
    folder: &str,
    points: impl Iterator<Item = &'p PointResult> + Clone,
) -> Vec<String> {
    let mut facts: Vec<String> = Vec::new();
    if !folder.is_empty() {
        facts.push(folder.to_owned());
    }
    facts.extend(record.run.environment.as_ref().and_then(device));
    let engines = engines_of(points.clone());
    facts.extend(engines.into_iter().map(str::to_owned));
    facts.push(record.run.id.clone());
    let settings = common_settings(points);
    let mut lines = vec![facts.join(" · ")];
    if !settings.is_empty() {
        lines.push(settings);
    }
    lines
}

/// The target in a few words: the model and size of a device, else its path.
pub(super) fn device(environment: &Environment) -> Option<String> {
    let target = environment.targets.first()?;
    let path = target.path.display().to_string();
    Some(match &target.device {
        Some(device) => {
            let size = units::bytes(device.capacity_bytes as f64);
            match &device.model {
                Some(model) => format!("{} {size} ({path})", model.trim()),
                None => format!("{path} {size}"),
            }
        }
        None => path,
    })
}

/// What all points have in common, in fio's words.
fn common_settings<'p>(mut points: impl Iterator<Item = &'p PointResult>) -> String {
    let Some(first) = points.next() else {
        return String::new();
    };
    let mut common: BTreeMap<&str, &str> = first
        .point
        .settings
        .iter()
        .map(|(option, value)| (option.as_str(), value.as_str()))
        .collect();
    for point in points {
        common.retain(|option, value| {
            point
                .point
                .settings
                .get(*option)
                .is_some_and(|v| v == value)
        });
    }
    // What a reader looks for first comes first.
    let order = ["rw", "rwmixread", "bs", "iodepth", "numjobs"];
    let place = |option: &str| {
        order
            .iter()
            .position(|o| *o == option)
            .unwrap_or(order.len())
    };
    let mut common: Vec<(&str, &str)> = common.into_iter().collect();
    common.sort_by_key(|&(option, _)| (place(option), option));
    let words = common.iter().map(|(option, value)| match *value {
        "" => (*option).to_owned(),
        value => format!("{option}={value}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Failures, skips and doubts below a graph: what it cannot show at a glance.
pub(super) fn footer(series: &Curve) -> Vec<String> {
    /// More of one kind are counted.
    const LINES_MAX: usize = 2;
    let mut lines = Vec::new();
    for (kind, found) in [
        (
            "failed",
            reasons(series, |point| match &point.outcome {
                SweepOutcome::Failed(reasons) => Some(reasons.first().cloned().unwrap_or_default()),
                SweepOutcome::Unfinished => Some("begun and not ended".to_owned()),
                _ => None,
            }),
        ),
        (
            "skipped",
            reasons(series, |point| match &point.outcome {
                SweepOutcome::Skipped(reason) => Some(reason.clone()),
                _ => None,
            }),
        ),
        (
            "doubtful",
            reasons(series, |point| {
                let good = point.outcome == SweepOutcome::Done;
                point.doubts.first().filter(|_| good).cloned()
            }),
        ),
    ] {
        for (reason, places) in found.iter().take(LINES_MAX) {
            lines.push(format!("{kind} {}: {reason}", at_all(&series.x, places)));
        }
        if found.len() > LINES_MAX {
            lines.push(format!("{kind}: {} other reasons", found.len() - LINES_MAX));
        }
    }
    lines
}

/// What failed and what is doubtful of many points, each cause once.
pub(super) fn causes<'p>(points: impl Iterator<Item = &'p PointResult> + Clone) -> Vec<String> {
    /// More causes of one kind are counted.
    const LINES_MAX: usize = 2;
    let failed = points.clone().filter_map(|point| match &point.outcome {
        SweepOutcome::Failed(reasons) => reasons.first(),
        _ => None,
    });
    let good = points.filter(|point| point.outcome == SweepOutcome::Done);
    let doubtful = good.filter_map(|point| point.doubts.first());
    let folded = [
        ("failed", Folded::of(failed.map(String::as_str))),
        ("doubtful", Folded::of(doubtful.map(String::as_str))),
    ];
    let mut lines = Vec::new();
    for (kind, folded) in &folded {
        let causes = folded.causes();
        lines.extend(causes.iter().take(LINES_MAX).map(|cause| {
            let points = units::counted(cause.count, "point");
            format!("{kind}, {points}: {}", cause.sentence())
        }));
        if causes.len() > LINES_MAX {
            lines.push(format!(
                "{kind}: {} other reasons",
                causes.len() - LINES_MAX
            ));
        }
    }
    lines
}

/// Each reason once, with the places of the points that have it.
fn reasons(
    series: &Curve,
    reason: impl Fn(&PointResult) -> Option<String>,
) -> Vec<(String, Vec<u64>)> {
    let mut found: Vec<(String, Vec<u64>)> = Vec::new();
    for point in &series.points {
        let (Some(reason), Some(x)) = (reason(point), point.point.x_value()) else {
            continue;
        };
        match found
            .iter_mut()
            .find(|(known, _)| cause(known) == cause(&reason))
        {
            Some((_, places)) => places.push(x),
            None => found.push((reason, vec![x])),
        }
    }
    found
}

/// Why a series has no graph.
pub(super) fn why_not(series: &Curve) -> String {
    let count = |wanted: fn(&SweepOutcome) -> bool| {
        series
            .points
            .iter()
            .filter(|point| wanted(&point.outcome))
            .count()
    };
    let failed = count(|outcome| matches!(outcome, SweepOutcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, SweepOutcome::Skipped(_)));
    let done = count(|outcome| *outcome == SweepOutcome::Done);
    if done > 0 {
        return format!(
            "its points have no figures, or no number for '{}'",
            series.x
        );
    }
    let of = series.points.len();
    format!("no point has figures: {failed} of {of} failed, {skipped} were skipped")
}
