//! The curves of a campaign for other programs: columns as fio-tests writes
//! them, or a document with everything.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fathom_analysis::rate::PERCENTILES;
use fathom_analysis::{
    Curve, Estimate, PointResult, RepeatedFigures, SweepOutcome, best, engines_of, knee,
    measured_of,
};
use fathom_model::result::LatencyTarget;
use fathom_model::{Direction, RunStatus, VerdictLevel, text};
use serde::Serialize;

use fathom_document::sweep::CampaignRecord;

/// Name and version of [`Document`]'s schema.
pub const SCHEMA: &str = "fathom.export/1";

/// The columns behind x, named as fio-tests names them.
const FIGURES: &str = ",Read IO throughput (KiB/s),Read IOPS,Read completion latency,\
    Write IO throughput (KiB/s),Write IOPS,Write completion latency,Verdict\n";

/// Columns of figures, a line a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separated {
    /// By spaces, without a header: what gnuplot reads.
    Spaces,
    /// By commas, with a header.
    Commas,
}

/// A series as columns: x, then bandwidth in KiB/s, IOPS and mean completion
/// latency in µs of reads and of writes; with commas the verdict behind them, where it
/// moves no column. `None` when it has no good point.
///
/// Rates are cut to whole numbers, as fio's terse output has them, from which
/// these columns stem. A direction that a point does not have stands as zeros:
/// it moved nothing. A latency that nobody measured is `NaN`, which gnuplot
/// leaves out, and with commas an empty field.
pub fn separated(series: &Curve, form: Separated) -> Option<String> {
    let (separator, unknown) = match form {
        Separated::Spaces => (" ", "NaN"),
        Separated::Commas => (",", ""),
    };
    let mut text = String::new();
    if form == Separated::Commas {
        text += &match series.x.as_str() {
            "iodepth" => "IO depth".to_owned(),
            "numjobs" => "Threads".to_owned(),
            other => text::csv_field(other),
        };
        text += FIGURES;
    }
    let mut good = series
        .points
        .iter()
        .filter(|point| is_good(point))
        .peekable();
    good.peek()?;
    for point in good {
        text += &x_field(point, form);
        for dir in [Direction::Read, Direction::Write] {
            let (bw_kib, iops, clat) = match point.figures(dir) {
                None => (0.0, 0.0, "0.000000".to_owned()),
                Some(figures) => (
                    figures.bw_bytes.mean / 1024.0,
                    figures.iops.mean,
                    figures.clat_mean_ns.map_or_else(
                        || unknown.to_owned(),
                        |clat| format!("{:.6}", clat.mean / 1000.0),
                    ),
                ),
            };
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "{separator}{:.0}{separator}{:.0}{separator}{clat}",
                bw_kib.floor(),
                iops.floor()
            );
        }
        if form == Separated::Commas {
            text += separator;
            text += point.verdict.name();
        }
        text.push('\n');
    }
    Some(text)
}

/// Where a point stands: a number, where its setting is one.
fn x_field(point: &PointResult, form: Separated) -> String {
    if let Some(x) = point.point.x_value() {
        return x.to_string();
    }
    let text = point.point.settings.get(&point.point.x);
    let text = text.map_or("?", String::as_str);
    match form {
        Separated::Spaces => text::line(text).replace(char::is_whitespace, "_"),
        Separated::Commas => text::csv_field(text),
    }
}

fn is_good(point: &PointResult) -> bool {
    point.outcome == SweepOutcome::Done
}

/// A point that is not exported as a result.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NotExported<'c> {
    /// The point.
    pub id: &'c str,
    /// Its series.
    pub series: &'c str,
    /// Where it stands on the x axis.
    pub x: Option<u64>,
    /// `failed`, `skipped` or `unfinished`.
    pub outcome: &'static str,
    /// Why, a sentence each.
    pub reasons: Vec<&'c str>,
    /// What it was to measure.
    pub settings: &'c BTreeMap<String, String>,
}

/// The points of a series that are not exported as results.
pub fn left_out(series: &Curve) -> Vec<NotExported<'_>> {
    let points = series.points.iter();
    points
        .filter_map(|point| {
            let (outcome, reasons) = match &point.outcome {
                SweepOutcome::Done => return None,
                SweepOutcome::Failed(why) => ("failed", why.iter().map(String::as_str).collect()),
                SweepOutcome::Skipped(why) => ("skipped", vec![why.as_str()]),
                SweepOutcome::Unfinished => ("unfinished", Vec::new()),
            };
            Some(NotExported {
                id: &point.point.id,
                series: &series.name,
                x: point.point.x_value(),
                outcome,
                reasons,
                settings: &point.point.settings,
            })
        })
        .collect()
}

/// Points that were left out, as lines between commas with a header.
pub fn failures_csv(left_out: &[NotExported]) -> String {
    let mut text = "series,point,x,outcome,reason\n".to_owned();
    for point in left_out {
        let x = point.x.map_or_else(String::new, |x| x.to_string());
        let fields = [
            text::csv_field(point.series),
            text::csv_field(point.id),
            x,
            point.outcome.to_owned(),
            text::csv_field(&point.reasons.join("; ")),
        ];
        text += &fields.join(",");
        text.push('\n');
    }
    text
}

/// Everything that is known of series.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Document<'c> {
    schema: &'static str,
    run: ExportRun<'c>,
    series: Vec<ExportCurve<'c>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
struct ExportRun<'c> {
    id: &'c str,
    name: &'c str,
    status: RunStatus,
    started: &'c str,
    engines: &'c [String],
}

#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
struct ExportCurve<'c> {
    name: &'c str,
    x: &'c str,
    points: Vec<ExportPoint<'c>>,
    left_out: Vec<NotExported<'c>>,
    /// Engines that measured its points.
    engines: Vec<&'c str>,
    /// Of how many points `best` holds the best.
    best_of_points: usize,
    best: BTreeMap<&'static str, BestPoints>,
}

#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
struct ExportPoint<'c> {
    id: &'c str,
    x: Option<u64>,
    settings: &'c BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<ExportRates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    write: Option<ExportRates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trim: Option<ExportRates>,
    #[serde(skip_serializing_if = "<[LatencyTarget]>::is_empty")]
    latency_targets: &'c [LatencyTarget],
    /// What its figures are worth: the worst of them.
    verdict: VerdictLevel,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    doubts: &'c [String],
}

#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
struct ExportRates {
    bw_bytes: Estimate,
    iops: Estimate,
    #[serde(skip_serializing_if = "Option::is_none")]
    clat_mean_ns: Option<Estimate>,
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        with = "fathom_model::percentiles"
    )]
    #[schemars(with = "std::collections::BTreeMap<String, u64>")]
    clat_percentiles_ns: Vec<(f64, u64)>,
}

/// Ids of the best points of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
struct BestPoints {
    bandwidth: Option<String>,
    iops: Option<String>,
    latency: Option<String>,
    /// The smallest load that is as good as the best, of depths and jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    knee: Option<String>,
}

/// The document of some series of a campaign.
pub fn document<'c>(
    campaign: &'c CampaignRecord,
    series: impl IntoIterator<Item = &'c Curve>,
) -> Document<'c> {
    let run = &campaign.run;
    Document {
        schema: SCHEMA,
        run: ExportRun {
            id: &run.id,
            name: &run.name,
            status: run.status,
            started: &run.started,
            engines: &campaign.engines,
        },
        series: series.into_iter().map(curve).collect(),
    }
}

fn curve(series: &Curve) -> ExportCurve<'_> {
    let points = series.points.iter().filter(|point| is_good(point));
    let directions = [Direction::Read, Direction::Write, Direction::Trim];
    let bests = directions.into_iter().filter_map(|dir| {
        let best = best(series, dir);
        let id = |place: Option<usize>| Some(series.points[place?].point.id.clone());
        best.bandwidth?;
        let points = BestPoints {
            bandwidth: id(best.bandwidth),
            iops: id(best.iops),
            latency: id(best.latency),
            knee: id(knee(series, dir).map(|knee| knee.place)),
        };
        Some((dir.name(), points))
    });
    ExportCurve {
        name: &series.name,
        x: &series.x,
        points: points.map(point).collect(),
        left_out: left_out(series),
        engines: engines_of(&series.points),
        best_of_points: measured_of(series).0,
        best: bests.collect(),
    }
}

fn point(point: &PointResult) -> ExportPoint<'_> {
    ExportPoint {
        id: &point.point.id,
        x: point.point.x_value(),
        settings: &point.point.settings,
        read: point.read.as_ref().map(rates),
        write: point.write.as_ref().map(rates),
        trim: point.trim.as_ref().map(rates),
        latency_targets: &point.latency_targets,
        verdict: point.verdict,
        doubts: &point.doubts,
    }
}

fn rates(figures: &RepeatedFigures) -> ExportRates {
    let percentiles: Vec<(f64, u64)> = match &figures.clat {
        Some(_) => PERCENTILES
            .iter()
            .filter_map(|&percent| Some((percent, figures.percentile_ns(percent)?)))
            .collect(),
        None => figures.percentiles_ns.clone(),
    };
    ExportRates {
        bw_bytes: figures.bw_bytes,
        iops: figures.iops,
        clat_mean_ns: figures.clat_mean_ns,
        clat_percentiles_ns: percentiles,
    }
}
