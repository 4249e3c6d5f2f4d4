//! `fathom runs`: what has been recorded, and what becomes of it.

pub mod archive;
pub mod rm;
mod tag;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_document::rfc3339;
use fathom_model::{Exit, RunDocument, RunStatus, VerdictLevel, units};
use fathom_record::{ListedRun, RunSummary};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::Tone;
use serde::Serialize;

use super::elsewhere::{HostErrand, OtherHost};
use super::{ExitError, Global, archived, show};
use crate::out;

/// A list is to come at once: of a longer event log no figure is made.
const LOG_BYTES_MAX: u64 = 32 << 20;

/// List the recorded runs, newest last; remove, archive and tag them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom runs                        the runs under ./fathom-runs
  fathom --runs /data/runs runs      those of another folder
  fathom runs ab.tar.zst             those in an archive
  fathom runs --host root@lab1       those of another host
  fathom runs --json | jq -r '.runs[] | select(.status == \"failed\") | .id'")]
pub struct Args {
    #[command(subcommand)]
    what: Option<RunsCommand>,
    /// Only these: record folders, their names or parts of them, or archives [default: all]
    #[arg(value_name = "RUN")]
    run: Vec<String>,
    /// Show only the last N runs
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<usize>,
    #[command(flatten)]
    host: OtherHost,
}

/// What can be done with runs.
#[derive(Debug, clap::Subcommand)]
enum RunsCommand {
    Rm(rm::Args),
    Archive(archive::Args),
    Tag(tag::Args),
}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document {
    /// `fathom.runs/1`
    schema: &'static str,
    runs: Vec<RunRow>,
}

/// One run of the list.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct RunRow {
    pub id: String,
    /// Absent for a run that cannot be read, as what follows is where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// As it ended, or that it cannot be read.
    pub status: String,
    #[serde(skip)]
    tone: Tone,
    /// RFC 3339 UTC.
    pub started: String,
    /// Absent for a run that was killed or still goes on.
    ended: Option<String>,
    pub duration_ms: Option<u64>,
    /// Whether its figures are true; absent where there are none, or too many to look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictLevel>,
    /// Absent where no one figure stands for the run.
    #[serde(flatten)]
    pub figure: Option<Figure>,
    /// Of all its files.
    folder_bytes: u64,
    /// Those it was begun with, and those of later.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Figure {
    pub iops: f64,
    pub bw_bytes: f64,
}

/// Lists the runs, or does something with some of them.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if let Some(what) = &args.what {
        if args.last.is_some() || !args.run.is_empty() || args.host.is_given() {
            let message = "runs and options of the list make no sense before what is done with \
                           runs\n  to do: fathom runs rm RUN";
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        return match what {
            RunsCommand::Rm(args) => rm::run(global, args),
            RunsCommand::Archive(args) => archive::run(global, args),
            RunsCommand::Tag(args) => tag::run(global, args),
        };
    }
    if let Some(exit) = args.host.run(global, HostErrand::List)? {
        return Ok(exit);
    }
    let mut dirs = Vec::new();
    for name in &args.run {
        dirs.extend(named(global, name)?);
    }
    let mut runs = match args.run.is_empty() {
        true => fathom_record::list(&global.runs)?,
        false => dirs.iter().map(|dir| ListedRun::read(dir)).collect(),
    };
    if let Some(last) = args.last {
        runs.drain(..runs.len().saturating_sub(last));
    }
    list(global, runs)?;
    Ok(Exit::Success)
}

/// The folders of the runs that a word means; of an archive all that are in it.
fn named(global: &Global, name: &str) -> anyhow::Result<Vec<PathBuf>> {
    let Some(archived) = archived::open(name)? else {
        return Ok(vec![show::find(global, Some(name))?]);
    };
    match archived.name {
        Some(_) => Ok(vec![show::find(global, Some(name))?]),
        None => Ok(fathom_record::list(&archived.runs)?
            .into_iter()
            .map(|run| run.dir)
            .collect()),
    }
}

fn list(global: &Global, runs: Vec<ListedRun>) -> anyhow::Result<()> {
    let runs: Vec<RunRow> = runs.into_iter().map(row).collect();
    if global.json {
        return out::json(&Document {
            schema: "fathom.runs/1",
            runs,
        });
    }
    if runs.is_empty() {
        out::note(format_args!(
            "There are no runs under {}.",
            global.runs.display()
        ));
        return Ok(());
    }
    out::text(table(&runs).render(out::style(global.color)));
    for reason in runs.iter().filter_map(|run| run.reason.as_ref()) {
        out::note(format_args!("unreadable: {reason}"));
    }
    Ok(())
}

/// What is to be known of a run.
pub(in crate::cmd) fn row(run: ListedRun) -> RunRow {
    match run.summary {
        Ok(summary) => readable(&run.dir, summary),
        Err(_) => unreadable(&run),
    }
}

/// The row of a run that cannot be read.
pub(in crate::cmd) fn unreadable(run: &ListedRun) -> RunRow {
    RunRow {
        id: run.id.clone(),
        name: None,
        command: run.command.clone(),
        label: None,
        status: "unreadable".to_owned(),
        tone: Tone::Bad,
        started: rfc3339(run.started_ms),
        ended: None,
        duration_ms: None,
        verdict: None,
        figure: None,
        folder_bytes: fathom_record::folder_bytes(&run.dir),
        tags: BTreeMap::new(),
        reason: run.summary.as_ref().err().map(ToString::to_string),
    }
}

fn readable(dir: &Path, summary: RunSummary) -> RunRow {
    let status = summary.status.unwrap_or(RunStatus::Running);
    let doc = document(dir);
    // Records of before may be of a clock that was set back.
    let duration = |end: u64| end.checked_sub(summary.started_ms);
    // How long an import took says nothing of the run.
    let ended_ms = summary.ended_ms.filter(|_| summary.command != "import");
    RunRow {
        verdict: doc
            .as_ref()
            .and_then(|doc| Some(doc.verdict.as_ref()?.level)),
        figure: doc.as_ref().and_then(figure),
        name: Some(summary.name),
        command: Some(summary.command),
        label: summary.label,
        status: status.to_string(),
        tone: match status {
            RunStatus::Complete => Tone::Good,
            RunStatus::Interrupted | RunStatus::Running => Tone::Doubtful,
            RunStatus::Failed => Tone::Bad,
        },
        started: rfc3339(summary.started_ms),
        ended: summary.ended_ms.map(rfc3339),
        duration_ms: ended_ms.and_then(duration),
        folder_bytes: fathom_record::folder_bytes(dir),
        tags: summary.tags,
        id: summary.id,
        reason: None,
    }
}

fn document(dir: &Path) -> Option<RunDocument> {
    // What of it is not added up ([`fathom_record::digest`]).
    let log = std::fs::metadata(dir.join(fathom_record::EVENTS)).ok()?;
    if log.len() > LOG_BYTES_MAX {
        return None;
    }
    fathom_document::read(dir).ok()
}

/// What all jobs did together. None of a run of several steps or groups: they
/// did different things, one after the other, and no one figure stands for them.
fn figure(doc: &RunDocument) -> Option<Figure> {
    let groups = &doc.groups;
    let first = groups.first()?;
    let one = groups
        .iter()
        .all(|g| (&g.step, g.group) == (&first.step, first.group));
    one.then(|| Figure {
        iops: groups.iter().map(|group| group.iops).sum(),
        bw_bytes: groups.iter().map(|group| group.bw_bytes).sum(),
    })
}

fn table(runs: &[RunRow]) -> Grid {
    let has_label = runs.iter().any(|run| run.label.is_some());
    let label = has_label.then(|| words("label", 1));
    let own = [
        words("run", 0),
        words("command", 2),
        words("status", 0),
        words("verdict", 0),
        figures("duration", 2),
        figures("IOPS", 0),
        figures("bandwidth", 1),
        figures("size", 3),
    ];
    let mut grid = Grid::new(own.into_iter().chain(label).collect::<Vec<_>>());
    for run in runs {
        let figure = |text: fn(Figure) -> String| {
            run.figure
                .map_or_else(GridCell::default, |f| text(f).into())
        };
        let label = has_label.then(|| GridCell::from(run.label.clone().unwrap_or_default()));
        let own = [
            GridCell::from(run.id.as_str()),
            run.command
                .as_deref()
                .map_or_else(GridCell::default, GridCell::from),
            GridCell::new(run.tone, run.status.as_str()),
            run.verdict.map_or_else(GridCell::default, |level| {
                let tone = match level {
                    VerdictLevel::Valid => Tone::Good,
                    VerdictLevel::Suspect => Tone::Doubtful,
                    VerdictLevel::Invalid => Tone::Bad,
                };
                GridCell::new(tone, level.name())
            }),
            run.duration_ms
                .map_or_else(GridCell::default, |ms| units::duration(ms).into()),
            // Outputs of some ages, imported, do not tell how many I/Os there were.
            figure(|figure| match figure.iops {
                0.0 => "–".to_owned(),
                iops => units::count(iops),
            }),
            figure(|figure| units::bytes_per_second(figure.bw_bytes)),
            units::bytes(run.folder_bytes as f64).into(),
        ];
        grid.line(own.into_iter().chain(label).collect::<Vec<_>>());
    }
    grid
}
