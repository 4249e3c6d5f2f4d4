//! `fathom`: reads the command line, calls one command, ends with its exit code.

use std::process::ExitCode;

use clap::Parser;

mod cmd;
mod out;
mod signals;

fn main() -> ExitCode {
    let cli = cmd::Cli::parse();
    let exit = cmd::dispatch(&cli).unwrap_or_else(|error| {
        out::error(&error);
        cmd::exit_for(&error)
    });
    ExitCode::from(exit.code())
}
