//! `fathom cluster` in a program that was built without it.

use fathom_model::Exit;

use super::{ExitError, Global};

/// Measure the volumes of a Kubernetes cluster (not in this build)
#[derive(Debug, clap::Args)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _all: Vec<String>,
}

/// Says so.
pub fn run(_: &Global, _: &Args) -> anyhow::Result<Exit> {
    let message = "this fathom was built without 'cluster'\n  to do: build it with 'make install' \
                   or 'cargo build --release'";
    Err(ExitError::new(Exit::Missing, message).into())
}
