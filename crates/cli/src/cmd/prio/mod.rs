//! `fathom prio`: what priorities and Command Duration Limits do, and what they cost.

use fathom_device::cdl::{Kind, Page, file};
use fathom_model::Exit;

use super::Global;

pub mod pages;

/// Measure what priorities and Command Duration Limits do, and what they cost
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom prio pages T2A.cdl          what a page of limits says, checked")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Pages(pages::Args),
}

/// Calls the subcommand, or runs workloads.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Pages(args) => pages::run(global, args),
    }
}

/// The I/Os that a page limits.
fn of(kind: Kind) -> &'static str {
    match kind {
        Kind::T2a => "reads",
        Kind::T2b => "writes",
    }
}

/// The pages that are uploaded by default.
fn shipped() -> [Page; 2] {
    let parse = |text| file::parse(text).expect("a test reads the shipped pages");
    [T2A, T2B].map(parse)
}

const T2A: &str = include_str!("../../../../../campaigns/cdl/T2A.cdl");
const T2B: &str = include_str!("../../../../../campaigns/cdl/T2B.cdl");
