//! `fathom job`: job files checked, shown, translated and run.

use std::path::Path;

use anyhow::Context as _;
use clap::Subcommand;
use fathom_jobfile::variables::variable;
use fathom_jobfile::{CheckedJobFile, JobFile, Severity};
use fathom_model::Exit;

use super::planned::KindArgs;
use super::{ExitError, Global};
use crate::out;

mod check;
pub mod from_cmdline;
pub mod present;
pub mod request;
pub mod run;
mod show;

#[cfg(test)]
pub(in crate::cmd) use check::Document as CheckDocument;
#[cfg(test)]
pub(in crate::cmd) use show::Document as ShowDocument;

/// Check, show, translate and run fio job files
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom job check nightly.fio
  fathom job show nightly.fio --cmdline
  fathom job from-cmdline -- --name=a --rw=randread --bs=4k --size=1g > a.fio
  fathom job run nightly.fio")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    FromCmdline(from_cmdline::Args),
    Run(Box<run::Args>),
    Show(show::Args),
}

impl KindArgs for Args {
    fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        run(global, self)
    }
}

/// Calls the subcommand.
fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Check(args) => check::run(global, args),
        Command::FromCmdline(args) => from_cmdline::run(global, args),
        Command::Run(args) => run::run(global, args),
        Command::Show(args) => show::run(global, args),
    }
}

/// Reads a job file and refuses one with errors; warnings go to stderr.
pub fn read(path: &Path, quiet: bool) -> anyhow::Result<JobFile> {
    let checked = JobFile::read(path, &variable)
        .with_context(|| format!("cannot read the job file {}", path.display()))
        .map_err(|error| ExitError::new(Exit::Input, format!("{error:#}")))?;
    accept(checked, quiet)
}

/// Gives the file where nothing keeps it from running; says what is wrong on stderr.
pub fn accept(checked: CheckedJobFile, quiet: bool) -> anyhow::Result<JobFile> {
    let errors = checked.has_errors();
    if errors || (!quiet && !checked.diagnostics.is_empty()) {
        out::note(present::diagnostics_for_stderr(&checked.diagnostics));
    }
    if errors {
        let path = checked.file.path().display();
        let message = match out::is_silent() {
            // Nobody reads what was told above.
            true => present::first_error(&checked.diagnostics),
            false => format!("{path} has errors; nothing was done"),
        };
        return Err(ExitError::new(Exit::Input, message).into());
    }
    Ok(checked.file)
}

/// Sets options in every job, and checks them as if they stood in the file.
/// With `strict`, warnings about them are errors. `parse` reads the file's text.
pub fn apply(
    file: &mut JobFile,
    settings: &[Setting],
    strict: bool,
    parse: &dyn Fn(&str, &Path) -> CheckedJobFile,
) -> anyhow::Result<()> {
    if settings.is_empty() {
        return Ok(());
    }
    for setting in settings {
        let value = setting.value.as_deref();
        match setting.key.rsplit_once('.') {
            None => file.set(&setting.key, value),
            Some((job, key)) => {
                if !file.jobs().iter().any(|it| it.name == job) {
                    let path = file.path().display();
                    let what = format!("{path}: there is no section [{job}]");
                    return Err(ExitError::new(Exit::Input, what).into());
                }
                file.set_in(job, key, value);
            }
        }
    }
    let with = format!("{} with --set", file.path().display());
    let mut checked = parse(&file.render(), with.as_ref());
    let mut told = Vec::new();
    for mut diagnostic in checked.diagnostics {
        // Each stands in every job; one telling is enough.
        let place = settings
            .iter()
            .position(|setting| setting.option() == diagnostic.text.trim());
        if let Some(place) = place {
            diagnostic.path = "--set".into();
            diagnostic.line = u32::try_from(place + 1).unwrap_or(u32::MAX);
            if strict {
                diagnostic.severity = Severity::Error;
            }
        } else if diagnostic.severity != Severity::Error {
            // Told when the file was read.
            continue;
        }
        if !told.contains(&diagnostic) {
            told.push(diagnostic);
        }
    }
    checked.diagnostics = told;
    let read = accept(checked, false)?;
    let has_word = |setting: &Setting| setting.value.as_ref().is_some_and(|it| it.contains('$'));
    if settings.iter().any(has_word) {
        // What is judged has to be what the engine will read.
        *file = read;
    }
    Ok(())
}

/// `key=value` of `--set`; `job.key=value` where it is of one job only.
#[derive(Debug, Clone)]
pub struct Setting {
    pub key: String,
    pub value: Option<String>,
}

impl Setting {
    /// As a job file has it.
    fn option(&self) -> String {
        let text = self.to_string();
        match self.key.rsplit_once('.') {
            Some((job, _)) => text[job.len() + 1..].to_owned(),
            None => text,
        }
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.key),
            None => f.write_str(&self.key),
        }
    }
}

impl std::str::FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key.trim(), Some(value.to_owned())),
            None => (text.trim(), None),
        };
        let holds = |text: &str| !text.contains([';', '#', '\n']);
        if key.is_empty() || !holds(text) {
            return Err("write key=value, without ; # and line ends".to_owned());
        }
        Ok(Self {
            key: key.to_owned(),
            value,
        })
    }
}
