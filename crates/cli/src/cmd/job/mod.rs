//! `fathom job`: job files checked, shown, translated and run.

use clap::Subcommand;
use fathom_model::Exit;

use super::Global;

mod check;
mod from_cmdline;
mod run;
mod show;

/// Check, show, translate and run fio job files
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    FromCmdline(from_cmdline::Args),
    Run(Box<run::Args>),
    Show(show::Args),
}

/// Calls the subcommand.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Check(args) => check::run(global, args),
        Command::FromCmdline(args) => from_cmdline::run(global, args),
        Command::Run(args) => run::run(global, args),
        Command::Show(args) => show::run(global, args),
    }
}
