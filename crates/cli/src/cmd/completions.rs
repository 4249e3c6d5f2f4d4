//! `fathom completions`: what a shell needs to complete the command line.

use clap::CommandFactory;
use clap_complete::Shell;
use fathom_model::Exit;

use super::{Cli, Global};
use crate::out;

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom completions bash > /etc/bash_completion.d/fathom
  fathom completions zsh > ~/.zfunc/_fathom
  fathom completions fish > ~/.config/fish/completions/fathom.fish")]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(_global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "fathom", &mut script);
    out::line(String::from_utf8(script)?.trim_end());
    Ok(Exit::Success)
}
