//! `fathom job show`: the jobs of a file as they will run.

use std::path::PathBuf;

use fathom_jobfile::variables::variable;
use fathom_jobfile::{JobFile, cmdline, shell_quote};
use fathom_model::{Exit, JobSpec, Origin};

use super::Setting;
use crate::cmd::{ExitError, Global};
use crate::out;

/// Show the jobs of a file as they will run
///
/// Globals are applied, variables replaced, included files in their place;
/// each option is shown with the line it comes from.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom job show nightly.fio
  fathom job show nightly.fio --section randread --set runtime=10
  fathom job show nightly.fio --cmdline      the fio command that does the same
  fathom job show nightly.fio --json | jq '.jobs[].options'")]
pub struct Args {
    /// Job file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only these job sections (can be given several times)
    #[arg(long, value_name = "NAME")]
    section: Vec<String>,
    /// Set an option in every job (can be given several times)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<Setting>,
    /// Print the fio command line, quoted for a shell
    #[arg(long)]
    cmdline: bool,
}

/// What `--json` prints.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document {
    schema: &'static str,
    file: PathBuf,
    jobs: Vec<ShownJob>,
    cmdline: Vec<String>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct ShownJob {
    #[serde(flatten)]
    spec: JobSpec,
    writes: bool,
    targets: Vec<ShownTarget>,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct ShownTarget {
    path: PathBuf,
    writes: bool,
    creates: bool,
}

pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut file = super::read(&args.file, global.quiet)?;
    select(&mut file, &args.section)?;
    super::apply(&mut file, &args.set, false, &|text, path| {
        JobFile::parse(text, path, &variable)
    })?;
    let jobs = file.jobs();
    if global.json {
        let document = Document {
            schema: "fathom.job-show/1",
            file: args.file.clone(),
            cmdline: command(&jobs),
            jobs: jobs.into_iter().map(job).collect(),
        };
        out::json(&document)?;
    } else if args.cmdline {
        let words: Vec<String> = command(&jobs)
            .iter()
            .map(|word| shell_quote(word))
            .collect();
        out::line(words.join(" "));
    } else {
        out::line(text(&jobs).trim_end());
    }
    Ok(Exit::Success)
}

fn select(file: &mut JobFile, sections: &[String]) -> anyhow::Result<()> {
    let known: Vec<String> = file.jobs().into_iter().map(|job| job.name).collect();
    if let Some(missing) = sections.iter().find(|section| !known.contains(section)) {
        return Err(ExitError::new(
            Exit::Input,
            format!(
                "no job section [{missing}] in {}; it has {}",
                file.path().display(),
                known.join(", ")
            ),
        )
        .into());
    }
    file.keep_sections(sections);
    Ok(())
}

fn command(jobs: &[JobSpec]) -> Vec<String> {
    std::iter::once("fio".to_owned())
        .chain(cmdline(jobs))
        .collect()
}

fn job(spec: JobSpec) -> ShownJob {
    let targets = fathom_jobfile::targets(&spec)
        .into_iter()
        .map(|target| ShownTarget {
            path: target.path,
            writes: target.writes,
            creates: target.creates,
        });
    ShownJob {
        targets: targets.collect(),
        writes: fathom_jobfile::is_write(&spec),
        spec,
    }
}

/// Each job as a section, its options with their places in a column.
fn text(jobs: &[JobSpec]) -> String {
    let mut text = String::new();
    for job in jobs {
        let lines: Vec<(String, String)> = job
            .options
            .iter()
            .map(|option| {
                let line = match &option.value {
                    Some(value) => format!("{}={value}", option.name),
                    None => option.name.clone(),
                };
                (line, place(&option.origin))
            })
            .collect();
        let width = lines
            .iter()
            .map(|(line, _)| line.chars().count())
            .max()
            .unwrap_or(0)
            .min(50);
        text.push_str(&format!("[{}]\n", job.name));
        for (line, place) in lines {
            text.push_str(&format!("{line:width$}  ; {place}\n"));
        }
        text.push('\n');
    }
    text
}

fn place(origin: &Origin) -> String {
    match origin {
        Origin::File { path, line, .. } => format!("{}:{line}", path.display()),
        Origin::Fathom { reason } => reason.clone(),
        other @ Origin::CommandLine { .. } => other.to_string(),
    }
}
