//! `fathom export`: the curves of a campaign for other programs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fathom_analysis::Curve;
use fathom_campaign::Only;
use fathom_document::sweep::{CampaignRecord, read_sweep};
use fathom_model::{Exit, text as foreign, units};
use fathom_report::export::{self, NotExported, Separated};
use fathom_sheet::graph::safe_path;
use serde::Serialize;

use super::{ExitError, Global, archived, show, write_named};
use crate::out;

mod rows;

/// Points without figures that are named one by one on the screen.
const MOST_LINES: usize = 8;
/// The list of all of them, beside the exported files.
const FAILURES: &str = "failures.csv";

/// Write the figures of runs for other programs
///
/// Of any run: with --all a row for each figure, with --samples a row for each sample, as csv,
/// json, jsonl or parquet, with the columns of 'fathom query --tables'; 'jsonl' alone is the document of
/// the run in one line.
///
/// Of a campaign: a file for each series. ssv and csv have the columns of fio-tests: IO depth (or
/// threads), then bandwidth in KiB/s, IOPS and mean completion latency in µs, of reads and of
/// writes; csv has a header line. json has everything: the mean of all repetitions with its 95 %
/// confidence interval, percentiles, settings, best points. Points that failed or were left out are
/// never exported as results: they are told, and listed in failures.csv.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The files are in the run's folder 'exports' or in DIR, those of a campaign named after the series:
  exports/0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30.ssv

Examples:
  fathom export csv --all                    exports/figures.csv of the last run
  fathom export jsonl --samples RUN --out -  every sample, a JSON object a line
  fathom export parquet --samples            exports/samples.parquet
  fathom export jsonl RUN --out - >> all.jsonl
  fathom export ssv                          every series of the last run
  fathom export csv 20261121T130737Z --out sheets
  fathom export ssv --only 0003-maxiobatch-single-job
  fathom export csv --only 0001-basic-tests/0003-randwrite --out -
  fathom export json --out - | jq '.series[].points[].read.iops.mean'")]
pub struct Args {
    /// The format
    #[arg(value_enum)]
    format: ExportFormat,
    /// A record folder, or its name or a part of it; without, the last run
    run: Option<String>,
    /// A row for each figure of the run: a job in one direction
    #[arg(long, conflicts_with = "samples")]
    all: bool,
    /// A row for each sample of the run: a job in one direction in one interval
    #[arg(long)]
    samples: bool,
    /// Folder to write to; '-': stdout, for ssv and csv of one series
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only the series of this test, folder or profile; * and ? as in a shell
    #[arg(long, value_name = "PART", conflicts_with_all = ["all", "samples"])]
    only: Vec<Only>,
}

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ExportFormat {
    /// Columns between spaces, for gnuplot
    Ssv,
    /// Columns between commas, with a header
    Csv,
    /// Documents with everything that is known; with --all and --samples a list of objects
    Json,
    /// The document of any run in one line; with --all and --samples an object a line
    Jsonl,
    /// A file of Apache Parquet; with --all and --samples
    Parquet,
}

impl ExportFormat {
    fn ending(self) -> &'static str {
        match self {
            Self::Ssv => "ssv",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document<'c> {
    /// `fathom.exported/1`
    schema: &'static str,
    run: &'c str,
    files: Vec<PathBuf>,
    left_out: Vec<NotExported<'c>>,
}

/// Exports.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let dir = show::find(global, args.run.as_deref())?;
    if args.all
        || args.samples
        || matches!(args.format, ExportFormat::Jsonl | ExportFormat::Parquet)
    {
        return rows::run(global, args, &dir);
    }
    let campaign = read_sweep(&dir)?;
    for note in campaign.damage() {
        out::note(format_args!("fathom: {note}"));
    }
    let series = selected(&campaign, &args.only)?;
    let left_out: Vec<NotExported> = series.iter().flat_map(|s| export::left_out(s)).collect();
    if args.out.as_deref() == Some(Path::new("-")) {
        to_stdout(global, args.format, &campaign, &series)?;
        tell(&left_out, None);
        return Ok(Exit::Success);
    }
    let to = args
        .out
        .clone()
        .unwrap_or_else(|| archived::beside(&dir, "exports"));
    let mut files = Vec::new();
    for series in series {
        // A record may come from elsewhere: its names lead nowhere else.
        let name = safe_path(&series.name);
        let path = to.join(format!("{name}.{}", args.format.ending()));
        match text(args.format, &campaign, series)? {
            Some(text) => {
                write(&path, &text)?;
                files.push(path);
            }
            // Of an earlier export: it would be taken for this one's.
            None => remove(&path)?,
        }
    }
    let list = to.join(FAILURES);
    match left_out.is_empty() {
        true => remove(&list)?,
        false => write(&list, &export::failures_csv(&left_out))?,
    }
    tell(&left_out, Some(&list));
    if global.json {
        out::json(&Document {
            schema: "fathom.exported/1",
            run: &campaign.run.id,
            files,
            left_out,
        })?;
    } else if !global.quiet {
        let files = units::counted(files.len(), "file");
        out::note(format_args!("{files} in {}", to.display()));
    }
    Ok(Exit::Success)
}

/// The series that are wanted: all, or those with a point that `only` names.
pub fn selected<'c>(campaign: &'c CampaignRecord, only: &[Only]) -> anyhow::Result<Vec<&'c Curve>> {
    let all = &campaign.sweep.series;
    let input = |message: String| ExitError::new(Exit::Input, message);
    if all.is_empty() {
        let id = &campaign.run.id;
        let message = format!(
            "{id} is no campaign: it has no points; 'fathom show {id}' shows its figures, 'fathom export csv --all {id}' writes them"
        );
        return Err(input(message).into());
    }
    let is_wanted = |series: &&Curve| {
        let mut points = series.points.iter();
        only.is_empty() || points.any(|point| only.iter().any(|only| only.has(&point.point)))
    };
    let wanted: Vec<&Curve> = all.iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        let names: Vec<&str> = all.iter().map(|series| series.name.as_str()).collect();
        let only: Vec<&str> = only.iter().map(Only::as_str).collect();
        let (only, names) = (only.join(", "), names.join("\n  "));
        let message = format!("no series of {only}; there are:\n  {names}");
        return Err(input(message).into());
    }
    Ok(wanted)
}

fn text(
    form: ExportFormat,
    campaign: &CampaignRecord,
    series: &Curve,
) -> anyhow::Result<Option<String>> {
    Ok(match form {
        ExportFormat::Ssv => export::separated(series, Separated::Spaces),
        ExportFormat::Csv => export::separated(series, Separated::Commas),
        ExportFormat::Json => {
            let document = export::document(campaign, [series]);
            let document = serde_json::to_string_pretty(&document)?;
            Some(foreign::json(&document).into_owned() + "\n")
        }
        ExportFormat::Jsonl | ExportFormat::Parquet => None,
    })
}

fn to_stdout(
    global: &Global,
    form: ExportFormat,
    campaign: &CampaignRecord,
    series: &[&Curve],
) -> anyhow::Result<()> {
    if form == ExportFormat::Json {
        return out::json(&export::document(campaign, series.iter().copied()));
    }
    let [one] = series else {
        let message = format!(
            "stdout takes one series as {}, and there are {}: choose with --only, or take json",
            form.ending(),
            series.len()
        );
        return Err(ExitError::new(Exit::Usage, message).into());
    };
    if global.json {
        let message = "with --json stdout carries a document: take 'export json'".to_owned();
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    if let Some(text) = text(form, campaign, one)? {
        out::text(text);
    }
    Ok(())
}

/// Names the points that have no figures; `list` is where all of them stand.
fn tell(left_out: &[NotExported], list: Option<&Path>) {
    for point in left_out.iter().take(MOST_LINES) {
        let mut line = format!("no figures: {}: {}", point.id, point.outcome);
        if !point.reasons.is_empty() {
            line += &format!(": {}", point.reasons.join("; "));
        }
        out::note(line);
    }
    let more = left_out.len().saturating_sub(MOST_LINES);
    match list {
        Some(list) if more > 0 => {
            out::note(format_args!("and {more} more: {}", list.display()));
        }
        None if more > 0 => out::note(format_args!("and {more} more")),
        _ => {}
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    write_named(path, text)
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
