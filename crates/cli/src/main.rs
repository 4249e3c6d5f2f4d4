//! `fathom`: reads the command line, calls one command, ends with its exit code.

use std::process::ExitCode;

use clap::Parser;

mod cmd;
#[allow(dead_code)] // until a command runs jobs
mod live;
mod out;
mod signals;

fn main() -> ExitCode {
    let cli = cmd::Cli::parse();
    let done = cmd::dispatch(&cli).and_then(|exit| out::end().map(|()| exit));
    let exit = done.unwrap_or_else(|error| {
        out::error(&error);
        cmd::exit_for(&error)
    });
    ExitCode::from(exit.code())
}
