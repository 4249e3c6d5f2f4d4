//! `--notify`: tells somebody that a run has ended.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::ArgMatches;
use fathom_campaign::flow::ShellEnd;
use fathom_model::{Exit, RunStatus, VerdictLevel, text};
use fathom_record::RunSummary;

use super::Global;
use super::measuring::innermost;
use crate::{out, signals};

/// Id and name of the option.
const NOTIFY: &str = "notify";
/// A mail or a webhook takes seconds.
const TIME_MAX: Duration = Duration::from_secs(30);

/// The option, in the definition of a command. Its value is read by [`asked`].
#[derive(Debug, Clone, Default, clap::Args)]
pub struct NotifyArg {
    /// Run this in a shell when the run has ended, however it did: $FATHOM_MESSAGE says how, and
    /// $FATHOM_RUN, $FATHOM_STATUS, $FATHOM_VERDICT and others do one by one
    #[arg(id = NOTIFY, long = NOTIFY, value_name = "COMMAND")]
    _notify: Option<String>,
}

/// What this command line says.
pub fn asked(matches: &ArgMatches) -> Option<String> {
    let own = |at: &ArgMatches| at.try_get_one::<String>(NOTIFY).ok().flatten().cloned();
    innermost(matches, &own)
}

/// Tells of every run that this command has made, when it is to be told. That it cannot be
/// is said, and changes nothing.
pub fn tell(global: &Global, exit: Exit) {
    let Some(command) = &global.notify else {
        return;
    };
    for record in global.requirement.records() {
        if let Err(why) = call(command, &record, exit) {
            out::note(format_args!("fathom: --notify: {why}"));
        }
    }
}

fn call(command: &str, record: &Path, exit: Exit) -> Result<(), String> {
    let run = RunSummary::read(record).map_err(|error| error.to_string())?;
    let status = run.status.unwrap_or(RunStatus::Running).to_string();
    let verdict = verdict(record).map_or("", VerdictLevel::name);
    let mut message = format!("{} ({}): {status}", run.name, run.command);
    if !verdict.is_empty() {
        message += &format!(", figures {verdict}");
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).process_group(0);
    shell.stdin(Stdio::null());
    // Neither a document on stdout nor a screen is disturbed.
    shell.stdout(Stdio::null()).stderr(Stdio::null());
    // Names of runs are values here, and never a part of what the shell reads.
    for (name, value) in [
        ("FATHOM_RUN", run.id.as_str()),
        ("FATHOM_NAME", &run.name),
        ("FATHOM_COMMAND", &run.command),
        ("FATHOM_STATUS", &status),
        ("FATHOM_VERDICT", verdict),
        ("FATHOM_MESSAGE", &message),
        ("FATHOM_EXIT", &exit.code().to_string()),
    ] {
        shell.env(name, text::line(value).as_ref());
    }
    shell.env("FATHOM_DIR", record.canonicalize().unwrap_or_default());
    let control = signals::control().map_err(|error| error.to_string())?;
    let mut child = shell
        .spawn()
        .map_err(|error| format!("sh cannot be started: {error}"))?;
    match ShellEnd::await_of(&mut child, Some(TIME_MAX), &control) {
        ShellEnd::Ended(status) if status.success() => Ok(()),
        ShellEnd::Ended(status) => Err(format!("'{command}' ended with {status}")),
        ShellEnd::TooLong => Err(format!(
            "'{command}' took longer than {} s and was ended",
            TIME_MAX.as_secs()
        )),
        ShellEnd::Stopped => Err(format!("'{command}' was ended with Fathom")),
    }
}

/// Whether the run's figures are true, where it has any.
fn verdict(record: &Path) -> Option<VerdictLevel> {
    let doc = fathom_report::read(record).ok()?;
    doc.verdict.map(|verdict| verdict.level)
}
