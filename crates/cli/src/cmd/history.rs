//! `fathom history`: a figure over runs, and where it changed.

use std::path::PathBuf;

use clap::ValueEnum;
use fathom_model::Exit;
use fathom_record::Entries;
use fathom_report::compare::{CompareFigure, ComparedRun};
use fathom_report::history;
use fathom_report::html::history_file;

use super::compare::GateArgs;
use super::{ExitError, Global, compare, write_named};
use crate::out;

/// Show a figure over runs, and where it changed
///
/// Runs are those that have all tags (--tag) and whose name has the word in it, oldest first. A
/// change is told from eight runs on, with what differed in the environment at that run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom job run nightly.fio --tag host=a     every night
  fathom history --tag host=a                 IOPS of all jobs over these runs
  fathom history nightly --figure p99 --last 60 --svg p99.svg --html p99.html
  fathom history --tag host=a --fail-if 'slower > 5%'    exit code 7 when the last change is one")]
pub struct Args {
    /// Only runs whose name has this in it
    #[arg(value_name = "WORD")]
    word: Option<String>,
    /// Which figure
    #[arg(long, value_enum, default_value_t = HistoryFigure::Iops)]
    figure: HistoryFigure,
    /// Only the last N runs
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    last: u32,
    /// Only jobs and steps whose name has this in it
    #[arg(long, value_name = "WORD")]
    job: Option<String>,
    /// Draw it there
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write an HTML page there
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    gate: GateArgs,
}

/// Figures that a history can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HistoryFigure {
    Iops,
    Bw,
    Mean,
    P50,
    P99,
    #[value(name = "p99.9")]
    P999,
}

impl HistoryFigure {
    fn compared(self) -> CompareFigure {
        match self {
            Self::Iops => CompareFigure::Iops,
            Self::Bw => CompareFigure::BwBytes,
            Self::Mean => CompareFigure::MeanNs,
            Self::P50 => CompareFigure::P50Ns,
            Self::P99 => CompareFigure::P99Ns,
            Self::P999 => CompareFigure::P999Ns,
        }
    }
}

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut doc = history::history(&runs(global, args)?, args.figure.compared());
    if let Some(word) = &args.job {
        doc.choose(word);
    }
    if doc.series.is_empty() {
        let message = "none of these runs has such a figure";
        return Err(ExitError::new(Exit::Missing, message).into());
    }
    if let Some(conditions) = args.gate.conditions() {
        doc.judge(conditions);
    }
    if let Some(file) = &args.svg {
        write_named(file, history::svg(&doc))?;
    }
    if let Some(file) = &args.html {
        write_named(file, history_file(&doc))?;
    }
    match global.json {
        true => out::json(&doc)?,
        false => out::text(history::text(&doc, out::style(global.color))),
    }
    Ok(args.gate.exit(doc.gate.as_ref()))
}

/// The runs that are asked for, oldest first. What cannot be read is told and left out.
fn runs(global: &Global, args: &Args) -> anyhow::Result<Vec<ComparedRun>> {
    let wanted = |id: &str| args.word.as_deref().is_none_or(|word| id.contains(word));
    let mut dirs: Vec<PathBuf> = fathom_record::list(&global.runs)?
        .into_iter()
        .filter(|run| wanted(&run.id))
        .map(|run| global.runs.join(run.id))
        .filter(|dir| {
            global.tag.is_empty() || Entries::open(dir).is_ok_and(|run| run.has_tags(&global.tag))
        })
        .collect();
    dirs.drain(..dirs.len().saturating_sub(args.last as usize));
    if dirs.is_empty() {
        let message = format!("no such runs under {}", global.runs.display());
        return Err(ExitError::new(Exit::Missing, message).into());
    }
    let mut runs = Vec::new();
    for dir in dirs {
        match compare::compared(&dir) {
            Ok(mut run) => {
                // Many runs: their histograms are not needed.
                fathom_document::drop_histograms(&mut run.doc);
                runs.push(run);
            }
            Err(error) => out::note(format_args!(
                "fathom: {} is left out: {error}",
                dir.display()
            )),
        }
    }
    Ok(runs)
}
