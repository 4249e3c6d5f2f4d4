//! `fathom gen`: the job files of a campaign.

use std::path::PathBuf;

use fathom_campaign::generate::{Generation, clean, generate};
use fathom_model::{Exit, units};
use fathom_prepare::settings::Overrides;
use serde::Serialize;

use super::Global;
use super::campaign::{CampaignArgs, exit_error, tell_notes};
use crate::out;

/// Write the job files of a campaign
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Made from .config, tests/, profiles/ and templates/. Files that were generated before and are no
longer asked for are removed; what was made or changed by hand is never touched.

Examples:
  fathom gen                            in the current folder
  fathom gen -C nightly --only randread
  DEV=/dev/nvme2n1 fathom gen           for another device than that of the configuration")]
pub struct Args {
    #[command(flatten)]
    which: CampaignArgs,
    /// Overwrite job files that were made or changed by hand
    #[arg(long)]
    force: bool,
    /// Remove the generated job files instead
    #[arg(long, conflicts_with = "force")]
    clean: bool,
}

/// What `--json` prints.
#[derive(Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document {
    /// `fathom.gen/1`
    schema: &'static str,
    files: usize,
    written: usize,
    removed: Vec<PathBuf>,
    kept: Vec<PathBuf>,
    notes: Vec<String>,
}

/// Generates the files.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let only = &args.which.only;
    let (notes, done) = if args.clean {
        let folder = args.which.folder()?;
        (Vec::new(), clean(folder.path(), only))
    } else {
        let plan = args.which.plan(&Overrides::default())?;
        let done = generate(&plan, only, args.force);
        (plan.notes, done)
    };
    let done = done.map_err(exit_error)?;
    if global.json {
        out::json(&Document {
            schema: "fathom.gen/1",
            files: done.files,
            written: done.written,
            removed: done.removed,
            kept: done.kept,
            notes,
        })?;
        return Ok(Exit::Success);
    }
    if !global.quiet {
        tell_notes(&notes);
    }
    for path in &done.kept {
        out::note(format_args!(
            "{} is not asked for any more, but was changed by hand: left as it is",
            path.display()
        ));
    }
    if !global.quiet {
        let removed = done.removed.len();
        out::line(match (args.clean, removed) {
            (true, removed) => format!("{} removed", units::counted(removed, "job file")),
            (false, 0) => made(&done),
            (false, _) => format!(
                "{}, {removed} of another configuration removed",
                made(&done)
            ),
        });
    }
    Ok(Exit::Success)
}

fn made(done: &Generation) -> String {
    format!(
        "{}: {} written, {} as they were",
        units::counted(done.files, "job file"),
        done.written,
        done.files - done.written
    )
}
