//! `fathom show`: one recorded run, ended or not.

mod raw;
pub mod samples;

use std::path::{Path, PathBuf};

use fathom_document::attempts::Counting;
use fathom_model::Exit;
use fathom_record::{Entries, RecordError};

use super::archived::{self, ArchivedRun};
use super::{ExitError, Global};
use crate::format::FioOutputFormat;
use crate::out;

/// Show a recorded run: its figures, its samples, or what the engine wrote
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A run that was killed is shown as interrupted, with figures counted from its samples; one that
goes on as running, with figures so far. Of a campaign every series is a table, a line for each
point and direction.

Examples:
  fathom show                              the last run
  fathom show randread                     the last whose name has this in it
  fathom show --json | jq '.jobs[].read.iops'
  fathom show --samples=csv > run.csv      one line per interval, job and direction
  fathom show --output-format=terse        what fio itself would have printed
  fathom show --events | grep note         lines of the record's log
  fathom show --salvage 20261121T1307      what is intact of a damaged record")]
pub struct Args {
    /// A record folder, or its name or a part of it; without, the last run
    run: Option<String>,
    /// Print the time series
    #[arg(
        long,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "table",
        value_enum,
        conflicts_with = "output_format"
    )]
    samples: Option<samples::SeriesFormat>,
    /// Print the lines of the record's log, however they are stored
    #[arg(long, conflicts_with_all = ["samples", "output_format", "json", "histograms"])]
    events: bool,
    /// Print exactly what fio wrote, in one of its formats
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with = "json")]
    output_format: Option<FioOutputFormat>,
    /// With --json: add the latency histograms, where there are any
    #[arg(long)]
    histograms: bool,
    /// Of a damaged record, show whatever lines are intact
    #[arg(long, conflicts_with = "output_format")]
    salvage: bool,
}

/// How a record is opened: [`Entries::summed`] or [`Entries::salvage`].
type Open = fn(&Path) -> Result<Entries, RecordError>;

/// Shows one run.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let dir = find(global, args.run.as_deref())?;
    if let Some(format) = args.output_format {
        return raw::show(&dir, format);
    }
    let (open, each): (Open, Open) = match args.salvage {
        true => (Entries::salvage, Entries::salvage),
        false => (Entries::summed, Entries::open),
    };
    if args.events {
        return events(each(&dir)?);
    }
    if let Some(form) = args.samples {
        let form = if global.json {
            samples::SeriesFormat::Json
        } else {
            form
        };
        let counting = Counting::of(open(&dir)?);
        return samples::show(counting, each(&dir)?, form, out::style(global.color));
    }
    present_by(open, global, &dir, args.histograms)?;
    Ok(Exit::Success)
}

/// The run as a document or as tables; a campaign has one for each series.
pub fn present(global: &Global, dir: &Path, histograms: bool) -> anyhow::Result<()> {
    present_by(Entries::summed, global, dir, histograms)
}

/// Writes the lines of a log as they stand in it, but for its headers.
fn events(mut entries: Entries) -> anyhow::Result<Exit> {
    let mut told = false;
    while let Some(line) = entries.next_raw() {
        match line {
            Ok(line) => {
                out::bytes(line);
                out::bytes(b"\n");
            }
            Err(damage @ RecordError::Damaged { .. }) => {
                told = true;
                out::note(format_args!("fathom: {damage}"));
            }
            Err(error) => return Err(error.into()),
        }
        if out::is_stopped() {
            break;
        }
    }
    Ok(match told {
        true => Exit::Failed,
        false => Exit::Success,
    })
}

fn present_by(open: Open, global: &Global, dir: &Path, histograms: bool) -> anyhow::Result<()> {
    let style = out::style(global.color);
    if let Some(document) = super::purge::document_of(dir) {
        match global.json {
            true => out::json(&document)?,
            false => out::text(fathom_report::purge::text(&document, style)),
        }
        return Ok(());
    }
    if !global.json {
        let campaign = fathom_document::sweep::sweep_of(open(dir)?);
        if !campaign.sweep.series.is_empty() {
            out::text(fathom_report::campaign_table(&campaign, style));
            return Ok(());
        }
    }
    let mut doc = fathom_document::read_entries(open(dir)?);
    if !global.json {
        out::text(fathom_report::table(&doc, style));
        return Ok(());
    }
    if !histograms {
        fathom_document::drop_histograms(&mut doc);
    }
    out::json(&doc)
}

/// The folder of a run that is to be read: of the one that is named, also in an archive,
/// or of the last. Where a part of a name fits several it is the last of those, and said.
pub fn find(global: &Global, run: Option<&str>) -> anyhow::Result<PathBuf> {
    let Some(name) = run else {
        return fathom_record::find(&global.runs, None).map_err(missing);
    };
    let mut fitting = match archived::open(name)? {
        Some(ArchivedRun { runs, name }) => match name {
            Some(name) => fathom_record::fitting(&runs, &name).map_err(missing)?,
            None => {
                let all = fathom_record::list(&runs)?.into_iter();
                all.rev().map(|run| run.dir).collect()
            }
        },
        None => fathom_record::fitting(&global.runs, name).map_err(missing)?,
    };
    let (several, last) = (fitting.len(), fitting.swap_remove(0));
    if several > 1 {
        let id = last.file_name().unwrap_or_default().to_string_lossy();
        out::note(format_args!(
            "'{name}' fits {several} runs; this is the last of them: {id}"
        ));
    }
    Ok(last)
}

/// The folder of the one run that is meant, to go on with it.
pub fn find_only(global: &Global, run: Option<&str>) -> anyhow::Result<PathBuf> {
    fathom_record::find(&global.runs, run).map_err(missing)
}

/// A run that is not there is something missing, not a failure.
fn missing(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::NotFound(message) => ExitError::new(Exit::Missing, message).into(),
        other => other.into(),
    }
}
