//! `fathom runs rm`: removes runs, after a word.

use std::io::{self, BufRead as _, IsTerminal as _};

use fathom_model::{Exit, units};
use fathom_record::{RecordError, Removal};
use serde::Serialize;

use crate::cmd::{ExitError, Global, show};
use crate::out;

/// Remove runs and everything in their folders
///
/// Only runs that have ended, in the folder of runs itself. At a terminal it asks first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom runs rm 20261121T1307 --dry-run     what it would remove, and how large it is
  fathom runs rm 20261121T1307               that run, after a question
  fathom runs rm --yes nightly-1 nightly-2   for scripts")]
pub struct Args {
    /// Their names or parts of them
    #[arg(value_name = "RUN", required = true)]
    run: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document {
    /// `fathom.runs-rm/1`
    schema: &'static str,
    /// Nothing was removed.
    dry_run: bool,
    runs: Vec<RemovedRun>,
}

/// One run.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct RemovedRun {
    id: String,
    /// Of all its files.
    bytes: u64,
    removed: bool,
}

/// Removes.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    // All of them, before anything is removed.
    let mut removals: Vec<Removal> = Vec::new();
    for name in &args.run {
        let dir = show::find_only(global, Some(name))?;
        let removal = Removal::judge(&global.runs, &dir).map_err(refused)?;
        if !removals.iter().any(|known| known.id == removal.id) {
            removals.push(removal);
        }
    }
    let bytes = removals.iter().map(|removal| removal.bytes).sum();
    if !global.json && !global.quiet {
        for removal in &removals {
            let size = units::bytes(removal.bytes as f64);
            out::line(format_args!("{}  {size}", removal.id));
        }
    }
    let is_agreed = args.dry_run || args.yes || ask(global, removals.len(), bytes)?;
    if !is_agreed {
        out::note("nothing was removed");
        return Ok(Exit::Failed);
    }
    let mut runs = Vec::new();
    let mut exit = Exit::Success;
    for removal in removals {
        let mut row = RemovedRun {
            id: removal.id.clone(),
            bytes: removal.bytes,
            removed: false,
        };
        if !args.dry_run {
            match removal.remove() {
                Ok(bytes) => (row.bytes, row.removed) = (bytes, true),
                Err(error) => {
                    let error = refused(error);
                    exit = error.exit;
                    out::error(&error.into());
                }
            }
        }
        runs.push(row);
    }
    if !args.dry_run {
        // What an earlier one left behind that was killed.
        fathom_record::remove_leftovers(&global.runs)?;
    }
    tell(global, args.dry_run, runs)?;
    Ok(exit)
}

fn tell(global: &Global, dry_run: bool, runs: Vec<RemovedRun>) -> anyhow::Result<()> {
    if global.json {
        return out::json(&Document {
            schema: "fathom.runs-rm/1",
            dry_run,
            runs,
        });
    }
    let removed = runs.iter().filter(|run| run.removed);
    let (count, bytes) = removed.fold((0, 0), |(n, sum), run| (n + 1, sum + run.bytes));
    if !global.quiet && !dry_run {
        let size = units::bytes(bytes as f64);
        out::line(format_args!(
            "removed {}: {size}",
            units::counted(count, "run")
        ));
    }
    Ok(())
}

/// Asks the person at the terminal.
fn ask(global: &Global, runs: usize, bytes: u64) -> anyhow::Result<bool> {
    let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal() && !global.json;
    if !is_asked {
        let message = "nobody can be asked here whether these runs are to be removed\n  \
                       to do: add --yes, or look first with --dry-run";
        return Err(ExitError::new(Exit::Refused, message).into());
    }
    let size = units::bytes(bytes as f64);
    out::note(format_args!(
        "Remove {}, {size}, for good? [y/N]",
        units::counted(runs, "run")
    ));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// A run that stays is no failure of the file system.
fn refused(error: RecordError) -> ExitError {
    let exit = match error {
        RecordError::Kept { .. } | RecordError::Busy { .. } => Exit::Refused,
        _ => Exit::Failed,
    };
    ExitError::new(exit, error)
}
