//! `fathom`: reads the command line, calls one command, ends with its exit code.

use std::process::ExitCode;

use fathom_device::threads;
use fathom_engine::guard;

use fathom_model::Exit;

mod cmd;
mod exit_error;
mod format;
mod http;
mod live;
mod out;
mod pictures;
mod signals;
mod wire;

fn main() -> ExitCode {
    let args = std::env::args_os;
    // Without it a limit would end the program as it did before: nothing to tell.
    let _ = signals::outlive_file_limit();
    threads::share_heap_in_limited_space();
    if let Some(ended) = guard::entry(args()).or_else(|| fathom_engine_native::entry(args())) {
        return ended;
    }
    if let Some(ended) = cmd::complete::entry() {
        return ended;
    }
    let cli = match cmd::options::parse() {
        Ok(cli) => cli,
        Err(error) => return out::usage(&error),
    };
    let done = cmd::dispatch(&cli).and_then(|exit| out::end().map(|()| exit));
    let exit = match done.and_then(|exit| match exit {
        Exit::Success => cmd::require::check(&cli.global),
        _ => Ok(exit),
    }) {
        Ok(Exit::Failed) if signals::is_refused() => Exit::Refused,
        Ok(exit) => exit,
        Err(error) => {
            cmd::tell_error(&cli.global, &error);
            cmd::exit_for(&error)
        }
    };
    cmd::notify::tell(&cli.global, exit);
    cmd::archived::close();
    ExitCode::from(exit.code())
}
