//! `fathom job from-cmdline`: a fio command line as a job file.

use fathom_jobfile::JobFile;
use fathom_model::Exit;

use crate::cmd::Global;
use crate::out;

/// Turn a fio command line into a job file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom job from-cmdline -- --name=a --rw=randread --bs=4k --size=1g > a.fio
  fathom job from-cmdline -- --name=global --rw=read --name=a --name=b --bs=8k

Options before the first --name become a [global] section, as fio takes them.")]
pub struct Args {
    /// Options as given to fio (a leading word fio is left out)
    #[arg(last = true, required = true, value_name = "FIO OPTIONS")]
    options: Vec<String>,
}

/// What `--json` prints.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct JobFileDocument {
    schema: &'static str,
    /// The job file.
    text: String,
}

pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let options = match args.options.split_first() {
        Some((first, rest)) if first == "fio" || first.ends_with("/fio") => rest,
        _ => &args.options,
    };
    let file = super::accept(JobFile::from_cmdline(options), global.quiet)?;
    let text = file.render();
    if global.json {
        out::json(&JobFileDocument {
            schema: "fathom.job-file/1",
            text,
        })?;
    } else {
        out::line(text.trim_end());
    }
    Ok(Exit::Success)
}
