//! `fathom prio restore`: as `fathom restore`.

use fathom_model::Exit;

use crate::cmd::{Global, restore};

/// Put the switches of devices back that a killed run has left
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The same as 'fathom restore'.

Examples:
  fathom prio restore")]
pub struct Args {}

/// Puts back what there is to be put back.
pub fn run(global: &Global, _: &Args) -> anyhow::Result<Exit> {
    restore::run(global, &restore::Args::all())
}
