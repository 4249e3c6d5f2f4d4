//! `fathom job show`: the jobs of a file as they will run.

use std::path::PathBuf;

use fathom_engine::jobfile::JobFile;
use fathom_model::Exit;

use crate::cmd::Global;
use crate::out;

/// Show the jobs of a file as they will run
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Job file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub fn run(_global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let checked = JobFile::read(&args.file, &|name| std::env::var(name).ok())?;
    out::line(checked.file.render().trim_end());
    Ok(Exit::Success)
}
