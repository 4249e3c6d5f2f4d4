//! `fathom restore`: puts back what killed runs have left switched.

use std::path::PathBuf;

use fathom_flow::undo;
use fathom_model::Exit;

use super::Global;
use super::elsewhere::{HostErrand, OtherHost};
use crate::cmd::failed;
use crate::out;

/// Put back what killed runs have left switched on this machine
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Whatever a run switches, it notes first: how it found the switches of a device, or the command that
takes another one back. It puts them back at its end, after a failure and after Ctrl-C. After a kill
or a power cut this command does it; so does the next run on the same device.

Examples:
  fathom restore --list
  fathom restore
  fathom restore --host root@lab1")]
pub struct Args {
    /// Show what there is to put back, and put nothing back
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    host: OtherHost,
}

impl Args {
    /// To put everything back.
    pub fn all() -> Self {
        Self {
            list: false,
            host: OtherHost::default(),
        }
    }
}

/// What `--json` prints.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct RestoreDocument {
    schema: &'static str,
    left_behind: Vec<LeftBehind>,
}

/// Something that an earlier run changed and did not put back.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct LeftBehind {
    subject: String,
    /// The file that says what it was.
    note: PathBuf,
    /// Whether it is now; null with `--list`.
    put_back: Option<bool>,
}

/// Lists, or puts back, what there is.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if let Some(exit) = args.host.run(global, HostErrand::List)? {
        return Ok(exit);
    }
    let left = undo::left_behind().map_err(failed)?;
    if left.is_empty() && !global.quiet && !global.json {
        out::note("there is nothing to put back");
    }
    let mut exit = Exit::Success;
    let mut shown = Vec::new();
    for undo in left {
        let subject = undo.subject();
        let mut is_back = None;
        if args.list {
            if !global.json {
                out::line(&subject);
            }
        } else {
            let done = undo.restore().map_err(failed);
            is_back = Some(done.is_ok());
            match done {
                Ok(()) if !global.quiet => out::note(format_args!("{subject}: as it was")),
                Ok(()) => {}
                Err(error) => {
                    out::error(&error.into());
                    exit = Exit::Failed;
                }
            }
        }
        shown.push(LeftBehind {
            subject,
            note: undo.file.path().to_owned(),
            put_back: is_back,
        });
    }
    if global.json {
        out::json(&RestoreDocument {
            schema: "fathom.restore/1",
            left_behind: shown,
        })?;
    }
    Ok(exit)
}
