//! `fathom explain`: what limited each step of a run, and why Fathom thinks so.

use fathom_model::Exit;

use super::{Global, show};
use crate::out;

/// Tell what limited each step of a run: device, link, CPU, depth, cgroup, cache
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom explain                     the last run
  fathom explain randread            the last whose name has this in it
  fathom explain --json | jq '.figures[].limit'")]
pub struct Args {
    /// A record folder, or its name or a part of it; without, the last run
    run: Option<String>,
}

/// Explains one run.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let dir = show::find(global, args.run.as_deref())?;
    let explanation = fathom_report::explain::read(&dir)?;
    match global.json {
        true => out::json(&explanation)?,
        false => out::text(explanation.text(out::style(global.color))),
    }
    Ok(Exit::Success)
}
