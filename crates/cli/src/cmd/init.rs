//! `fathom init`: makes the folder of a campaign.

use std::path::{Path, PathBuf};

use fathom_campaign::folder;
use fathom_jobfile::variables::variable;
use fathom_model::Exit;
use serde::Serialize;

use super::Global;
use super::campaign::exit_error;
use crate::out;

/// Make the folder of a campaign
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The folder gets Kconfig, tests, profiles, templates, defconfigs and a Makefile; all of it may be
changed and added to. Nothing that is there is ever overwritten.

Examples:
  fathom init nightly                            a campaign in ./nightly
  fathom init nightly --defconfig survey-10min   with a configuration that is ready
  fathom init --force .                          add what a newer Fathom brings along")]
pub struct Args {
    /// Folder; made when it is missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Make .config from this defconfig
    #[arg(long, value_name = "NAME")]
    defconfig: Option<String>,
    /// Also in a folder that is not empty: add the files that are missing
    #[arg(long)]
    force: bool,
}

/// What `--json` prints.
#[derive(Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document<'a> {
    /// `fathom.init/1`
    schema: &'static str,
    folder: &'a Path,
    written: &'a [PathBuf],
    kept: &'a [PathBuf],
}

/// Makes the folder.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let wanted = folder::Init {
        force: args.force,
        defconfig: args.defconfig.clone(),
    };
    let done = folder::init(&args.dir, &wanted, &variable).map_err(exit_error)?;
    if global.json {
        out::json(&Document {
            schema: "fathom.init/1",
            folder: &args.dir,
            written: &done.written,
            kept: &done.kept,
        })?;
        return Ok(Exit::Success);
    }
    for path in &done.kept {
        out::note(format_args!(
            "{} is not as shipped: left as it is",
            path.display()
        ));
    }
    if !global.quiet {
        let dir = args.dir.display();
        out::line(format_args!("{dir}: {} files written", done.written.len()));
        let configured = args.dir.join(folder::CONFIG).exists();
        out::line(if configured {
            "Next: fathom plan says what it will do, fathom run does it."
        } else {
            "Next: fathom config menu, or fathom config defconfig survey-10min; then fathom plan."
        });
        out::line("make help in the folder lists everything.");
    }
    Ok(Exit::Success)
}
