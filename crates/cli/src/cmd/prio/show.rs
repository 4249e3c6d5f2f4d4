//! `fathom prio show`: what a run measured, once more from its record.

use fathom_campaign::run::machines_of;
use fathom_model::Exit;
use fathom_record::Entries;

use super::{hosts, outcome};
use crate::cmd::{Global, show};
use crate::out;

/// Show what a run of fathom prio measured
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom prio show                   the last run
  fathom prio show 2026 --json       one run as a document")]
pub struct Args {
    /// The run: its folder, its name or a part of it [default: the last]
    #[arg(value_name = "RUN")]
    run: Option<String>,
}

/// Shows it.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let dir = show::find(global, args.run.as_deref())?;
    if let Some(names) = machines_of(&Entries::open(&dir)?.header) {
        hosts::show(global, &dir, &names)?;
        return Ok(Exit::Success);
    }
    let prio = outcome::read(&dir)?;
    if global.json {
        out::json(&fathom_report::prio::document(&prio))?;
    } else {
        out::text(fathom_report::prio::text(&prio, out::style(global.color)));
    }
    Ok(Exit::Success)
}
