//! `fathom job check`: everything that is wrong with a job file, and where.

use std::path::PathBuf;

use fathom_engine::jobfile::JobFile;
use fathom_model::Exit;

use crate::cmd::Global;
use crate::out;

/// Report every error in job files, with its place
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Job files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Take unknown options as errors
    #[arg(long)]
    strict: bool,
}

pub fn run(_global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut exit = Exit::Success;
    for path in &args.files {
        let checked = JobFile::read(path, &|name| std::env::var(name).ok())?;
        for diagnostic in &checked.diagnostics {
            out::line(diagnostic);
        }
        if checked.has_errors() || (args.strict && !checked.diagnostics.is_empty()) {
            exit = Exit::Input;
        }
    }
    Ok(exit)
}
