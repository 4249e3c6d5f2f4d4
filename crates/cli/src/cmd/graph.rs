//! `fathom graph`: the graphs of a run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fathom_analysis::Curve;
use fathom_campaign::Only;
use fathom_document::sweep::CampaignRecord;
use fathom_model::{Exit, units};
use fathom_report::graphs::{self, GraphAxes, NotDrawn, PointMetric};
use fathom_sheet::chart::Size;
use fathom_sheet::graph::Graph;
use serde::Serialize;

use super::export::selected;
use super::{ExitError, Global, answered, archived, show};
use crate::out;
use crate::pictures::{self, PictureFormat, PictureStyle};

/// Draw the graphs of a run
///
/// Of a campaign: bandwidth, IOPS and latency of every series and direction with
/// the best points named, IOPS against latency, percentiles, all series of a
/// folder together, heat maps of depth and jobs. Of a search what it found. Of any
/// other run, and with --point: what it did over time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom graph                             the last run, into its folder graphs/
  fathom graph 20261121T130737Z-nvme --out ~/graphs
  fathom graph --only 0003-maxiobatch-single-job    a test, a folder, a series or a profile
  fathom graph --format svg,png            PNG too, for places that show no SVG
  fathom graph --x bs --by numjobs --y p99 p99 over block sizes, a line for each number of jobs
  fathom graph --point 512qd-randrw        points over time, those whose names contain this")]
pub struct Args {
    /// A record folder, or its name or a part of it; without, the last run
    run: Option<String>,
    /// Folder for the graphs [default: graphs/ in the run's own]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// svg, png, or both: svg,png
    #[arg(
        long,
        value_name = "LIST",
        value_enum,
        value_delimiter = ',',
        default_value = "svg"
    )]
    #[arg(hide_possible_values = true)]
    format: Vec<PictureFormat>,
    /// Only this test, folder, series or profile; may be given several times
    #[arg(long, value_name = "PART")]
    only: Vec<Only>,
    /// Points whose names contain this, over time, instead of the series
    #[arg(long, value_name = "POINT", conflicts_with = "only")]
    point: Option<String>,
    /// An option with numbers (iodepth, bs, numjobs, …) on the x axis, instead of the one of
    /// each series
    #[arg(long, value_name = "OPTION", conflicts_with = "point")]
    x: Option<String>,
    /// A line for each value of this option; without, for each combination of those that differ
    #[arg(long, value_name = "OPTION", requires = "x")]
    by: Option<String>,
    /// What is drawn over --x: bw, iops, clat (the mean), p50, p99, p99.9 or max
    #[arg(long, value_name = "FIGURE", requires = "x", default_value = "iops", value_parser = figure)]
    y: PointMetric,
    /// Width and height in pixels [default: what suits each graph]
    #[arg(long, value_name = "WxH", value_parser = size)]
    size: Option<Size>,
    /// Pixels of a PNG for each of the SVG's
    #[arg(long, value_name = "N", default_value_t = 2.0, value_parser = scale)]
    scale: f32,
    /// Light on dark
    #[arg(long)]
    dark: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document {
    /// `fathom.graphs/1`
    schema: &'static str,
    run: String,
    folder: PathBuf,
    /// Paths below `folder`.
    files: Vec<String>,
    not_drawn: Vec<Left>,
}

/// A series without graphs.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Left {
    series: String,
    reason: String,
}

/// Draws.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let dir = show::find(global, args.run.as_deref())?;
    let (drawn, not_drawn) = graphs_of(&dir, args)?;
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| archived::beside(&dir, "graphs"));
    let look = PictureStyle {
        formats: args.format.iter().copied().collect(),
        width: args.size.map(|size| size.width),
        height: args.size.map(|size| size.height),
        scale: args.scale,
        dark: args.dark,
    };
    let files = pictures::write_all(&folder, &drawn, &look)?;
    for NotDrawn { series, reason } in &not_drawn {
        out::note(format_args!("not drawn: {series}: {reason}"));
    }
    if global.json {
        let left = |NotDrawn { series, reason }| Left { series, reason };
        out::json(&Document {
            schema: "fathom.graphs/1",
            run: dir
                .file_name()
                .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            folder,
            files,
            not_drawn: not_drawn.into_iter().map(left).collect(),
        })?;
    } else {
        out::line(format_args!(
            "{} in {}",
            units::counted(drawn.len(), "graph"),
            folder.display()
        ));
    }
    Ok(Exit::Success)
}

/// The graphs that were asked for; an error when there are none.
fn graphs_of(dir: &Path, args: &Args) -> anyhow::Result<(Vec<Graph>, Vec<NotDrawn>)> {
    if let Some(point) = &args.point {
        let drawn = graphs::time::over_time(dir, &|name| name.contains(point.as_str()))?;
        if drawn.is_empty() {
            let message = format!(
                "no point of {} has samples and a name with '{point}' in it; `fathom show {} --samples` lists what there is",
                dir.display(),
                dir.display()
            );
            return Err(none(message));
        }
        return Ok((drawn, Vec::new()));
    }
    let record = fathom_document::sweep::read_sweep(dir)?;
    for note in record.damage() {
        out::note(format_args!("fathom: {note}"));
    }
    if record.sweep.series.is_empty() && args.only.is_empty() {
        let mut drawn = answered::of(dir).graphs;
        drawn.extend(graphs::time::over_time(dir, &|_| true)?);
        if drawn.is_empty() {
            let message = format!(
                "{} has no points of a campaign and no samples: nothing to draw",
                dir.display()
            );
            return Err(none(message));
        }
        return Ok((drawn, Vec::new()));
    }
    let series = selected(&record, &args.only)?;
    if let Some(x) = &args.x {
        return over(&record, &series, x, args);
    }
    let wanted = |name: &str| series.iter().any(|series| series.name == name);
    let (drawn, not_drawn) = graphs::of_campaign(&record, &wanted);
    if drawn.is_empty() {
        let reason = match not_drawn.first() {
            Some(first) => format!("{}: {}", first.series, first.reason),
            None => "it has no figures".to_owned(),
        };
        return Err(none(format!(
            "nothing to draw of {}: {reason}",
            dir.display()
        )));
    }
    Ok((drawn, not_drawn))
}

/// The graphs over one option; an error where no point has it, or they are no curves.
fn over(
    record: &CampaignRecord,
    series: &[&Curve],
    x: &str,
    args: &Args,
) -> anyhow::Result<(Vec<Graph>, Vec<NotDrawn>)> {
    let points = || series.iter().flat_map(|series| &series.points);
    for option in [Some(x), args.by.as_deref()].into_iter().flatten() {
        if points().any(|point| point.point.settings.contains_key(option)) {
            continue;
        }
        let known = points().flat_map(|point| point.point.settings.keys());
        let known: BTreeSet<&str> = known.map(String::as_str).collect();
        let known: Vec<&str> = known.into_iter().collect();
        let message = format!("no point has '{option}'; there are: {}", known.join(", "));
        return Err(ExitError::new(Exit::Input, message).into());
    }
    if points().all(|point| point.point.number(x).is_none()) {
        let message = format!("the values of '{x}' are no numbers: it can be told apart with --by");
        return Err(ExitError::new(Exit::Input, message).into());
    }
    let axes = GraphAxes {
        x: x.to_owned(),
        by: args.by.clone(),
        y: args.y,
    };
    let (drawn, not_drawn) = graphs::over_options(record, series, &axes);
    if drawn.is_empty() {
        let reason = not_drawn.first().map(|first| first.reason.as_str());
        let reason = reason.unwrap_or("no point has the figure");
        return Err(none(format!("nothing to draw over {x}: {reason}")));
    }
    Ok((drawn, not_drawn))
}

fn figure(text: &str) -> Result<PointMetric, String> {
    let named = PointMetric::NAMED.iter().find(|(name, _)| *name == text);
    named.map(|(_, metric)| *metric).ok_or_else(|| {
        let names = PointMetric::NAMED.map(|(name, _)| name);
        format!("expected one of {}", names.join(", "))
    })
}

fn none(message: String) -> anyhow::Error {
    ExitError::new(Exit::Missing, message).into()
}

/// `800x500`.
fn size(text: &str) -> Result<Size, String> {
    let number = |text: &str| {
        let number = text.parse::<u16>().ok();
        number.filter(|n| (160..=8000).contains(n)).map(f64::from)
    };
    let pair = text.split_once('x');
    let pair = pair.and_then(|(width, height)| Some((number(width)?, number(height)?)));
    let (width, height) =
        pair.ok_or("expected WIDTHxHEIGHT, each from 160 to 8000 pixels, such as 800x500")?;
    Ok(Size { width, height })
}

fn scale(text: &str) -> Result<f32, String> {
    let number = text.parse::<f32>().ok();
    number
        .filter(|n| (0.25..=8.0).contains(n))
        .ok_or_else(|| "expected a number from 0.25 to 8".to_owned())
}
