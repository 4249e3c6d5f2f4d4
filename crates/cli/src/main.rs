//! `fathom`: reads the command line, calls one command, ends with its exit code.

use std::process::ExitCode;

use clap::Parser;

mod cmd;
#[allow(dead_code)] // until a command runs jobs
mod live;
mod out;
mod signals;

fn main() -> ExitCode {
    // The guard of a running fio is this program with an argument of its own.
    if let Some(exit) = fathom_engine::fio::guard::entry(std::env::args_os()) {
        return exit;
    }
    let cli = cmd::Cli::parse();
    let done = cmd::dispatch(&cli).and_then(|exit| out::end().map(|()| exit));
    let exit = done.unwrap_or_else(|error| {
        out::error(&error);
        cmd::exit_for(&error)
    });
    ExitCode::from(exit.code())
}
