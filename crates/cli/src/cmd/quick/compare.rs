//! `fathom quick compare`: `fathom compare` by the name that it had.

use fathom_model::Exit;

use super::Global;
use crate::cmd::compare::{self, HowToCompare};

/// Compare two runs of the series, before and after tuning; see 'fathom compare'
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom quick compare 20261121T130744Z-quick 20261121T141203Z-quick
  fathom compare A1 A2 A3 --with B1 B2 B3     with repetitions, which tell more")]
pub struct Args {
    /// Run before: a folder, or its name under --runs
    #[arg(value_name = "RUN")]
    before: String,
    /// Run after
    #[arg(value_name = "RUN")]
    after: String,
    #[command(flatten)]
    how: HowToCompare,
}

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let one = |name: &String| [name.clone()];
    compare::sides(global, &one(&args.before), &one(&args.after), &args.how)
}
