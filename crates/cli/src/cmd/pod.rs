//! `fathom pod`: what runs in the pods of a cluster whose image holds Fathom and
//! nothing else; started by `fathom cluster`, never by a person.

use std::path::Path;

use anyhow::Context;
use clap::Subcommand;
use fathom_cluster::manifests::DATASET;
use fathom_cluster::pod::{PodLook, drop_caches};
use fathom_model::Exit;
use rustix::process::{WaitOptions, wait};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{ExitError, Global};
use crate::out;

/// Do in a pod what there is no other program for
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom pod wait          the first process of a server: waits until it is ended
  fathom pod look          what a server sees of its volume and its surroundings
  fathom pod files /proc/uptime '/proc/[0-9]*/stat'
                           prints files, each behind a line with its name
  fathom pod drop-caches   drops the page cache of the node, from a privileged pod")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Wait until the pod is ended
    Wait,
    /// Tell what is to be seen here, as JSON
    Look,
    /// Print files, each behind a line with its name; `*` and `[0-9]*` stand for
    /// parts of a path
    Files {
        /// Files, or patterns of them
        #[arg(value_name = "FILE", required = true)]
        patterns: Vec<String>,
    },
    /// Drop the page cache of the node
    DropCaches,
}

/// Runs the subcommand.
pub fn run(_: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Wait => wait_for_end(),
        Command::Look => {
            let version = env!("CARGO_PKG_VERSION");
            out::json(&PodLook::around(version, Path::new(DATASET)))?;
            Ok(Exit::Success)
        }
        Command::Files { patterns } => {
            let mut text = Vec::new();
            fathom_device::node::dump(patterns, &mut text)?;
            out::bytes(&text);
            Ok(Exit::Success)
        }
        Command::DropCaches => {
            drop_caches().map_err(|error| {
                ExitError::new(
                    Exit::Failed,
                    format!("the page cache was not dropped: {error}"),
                )
            })?;
            Ok(Exit::Success)
        }
    }
}

/// Waits for the end of the pod. As its first process it inherits what other
/// ones leave behind, and has to take note of its end.
fn wait_for_end() -> anyhow::Result<Exit> {
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGCHLD]).context("cannot watch for signals")?;
    for signal in signals.forever() {
        if signal != SIGCHLD {
            break;
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    }
    Ok(Exit::Success)
}
