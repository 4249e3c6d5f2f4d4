//! `fathom job from-cmdline`: a fio command line as a job file.

use fathom_engine::jobfile::JobFile;
use fathom_model::Exit;

use crate::cmd::Global;
use crate::out;

/// Turn a fio command line into a job file
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Options as given to fio
    #[arg(last = true, required = true, value_name = "FIO OPTIONS")]
    options: Vec<String>,
}

pub fn run(_global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let checked = JobFile::from_cmdline(&args.options);
    out::line(checked.file.render().trim_end());
    Ok(Exit::Success)
}
