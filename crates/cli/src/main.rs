//! `fathom`: reads the command line, calls one command, ends with its exit code.

use std::process::ExitCode;

use clap::Parser;
use fathom_engine::fio::guard;

mod cmd;
mod engine;
mod format;
mod live;
mod out;
mod signals;

fn main() -> ExitCode {
    if let Some(ended) = guard::entry(std::env::args_os()) {
        return ended;
    }
    let cli = cmd::Cli::parse();
    let done = cmd::dispatch(&cli).and_then(|exit| out::end().map(|()| exit));
    let exit = done.unwrap_or_else(|error| {
        out::error(&error);
        cmd::exit_for(&error)
    });
    ExitCode::from(exit.code())
}
