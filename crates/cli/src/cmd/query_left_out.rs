//! `fathom query` in a program that was built without it.

use fathom_model::Exit;

use super::{ExitError, Global};

/// Ask all runs, or some of them, in SQL (not in this build)
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _all: Vec<String>,
}

/// Says so.
pub fn run(_: &Global, _: &Args) -> anyhow::Result<Exit> {
    let message = "this fathom was built without 'query'\n  to do: build it with 'make install' or \
                   'cargo build --release'; 'fathom export csv --all' writes the figures of a run";
    Err(ExitError::new(Exit::Missing, message).into())
}
