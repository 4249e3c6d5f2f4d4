//! `fathom completions`: what a shell needs to complete the command line.

use clap_complete::Shell;
use clap_complete::env::Shells;
use fathom_model::Exit;

use super::{ExitError, Global, complete};
use crate::out;

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The script asks fathom itself at each key: for commands, options and files, and for the runs,
baselines, defconfigs, tests, I/O engines and devices that are there.

Examples:
  fathom completions bash > /etc/bash_completion.d/fathom
  fathom completions zsh > ~/.zfunc/_fathom
  fathom completions fish > ~/.config/fish/completions/fathom.fish")]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(_global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let shells = Shells::builtins();
    let name = args.shell.to_string();
    let shell = shells.completer(&name).ok_or_else(|| {
        let message = format!("nothing can be completed in {name}");
        ExitError::new(Exit::Usage, message)
    })?;
    let mut script = Vec::new();
    shell.write_registration(
        complete::VARIABLE,
        "fathom",
        "fathom",
        "fathom",
        &mut script,
    )?;
    out::line(String::from_utf8(script)?.trim());
    Ok(Exit::Success)
}
