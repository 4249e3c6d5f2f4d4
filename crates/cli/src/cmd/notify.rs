//! `--notify`: tells somebody that a run has ended, or that its figures became invalid.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::ArgMatches;
use fathom_device::threads;
use fathom_flow::ShellEnd;
use fathom_model::{Exit, RunStatus, VerdictLevel, text};
use fathom_record::{RecordError, RunSummary};
use fathom_report::metrics::RunMetrics;

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
    /// Run this in a shell when the run has ended, however it did, and once when its figures
    /// become invalid: $FATHOM_MESSAGE says how, and $FATHOM_RUN, $FATHOM_STATUS,
    /// $FATHOM_VERDICT and others do one by one
    #[arg(id = NOTIFY, long = NOTIFY, value_name = "COMMAND")]
    _notify: Option<String>,
}

/// What this command line says.
pub fn asked(matches: &ArgMatches) -> Option<String> {
    let own = |at: &ArgMatches| at.try_get_one::<String>(NOTIFY).ok().flatten().cloned();
    innermost(matches, &own)
}

/// Those who are told while a run goes on that its figures have become invalid.
#[derive(Debug, Clone, Default)]
pub struct Notices {
    command: Option<String>,
    /// The record that was begun last.
    record: Arc<Mutex<PathBuf>>,
    /// Whoever is being told: nothing that measures waits for it.
    told: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Notices {
    /// What this command line asks for.
    pub fn of(matches: &ArgMatches) -> Self {
        Self {
            command: asked(matches),
            ..Self::default()
        }
    }

    /// Whether there is anybody to tell.
    pub fn is_asked(&self) -> bool {
        self.command.is_some()
    }

    /// A run begins, or goes on, in this record.
    pub fn begin(&self, record: &Path) {
        record.clone_into(&mut locked(&self.record));
    }

    /// The figures of this step are the first of the run that are invalid.
    pub fn invalid(&self, run: &RunMetrics, step: &str) {
        let Some(command) = self.command.clone() else {
            return;
        };
        let (name, of) = run.name();
        let at = match step {
            "" => String::new(),
            step => format!(" at step {step}"),
        };
        let notice = Notice {
            run: run.id().to_owned(),
            name: name.to_owned(),
            command: of.to_owned(),
            status: RunStatus::Running.to_string(),
            verdict: VerdictLevel::Invalid.name(),
            step: step.to_owned(),
            message: format!("{name} ({of}): figures became invalid{at}"),
            exit: String::new(),
            dir: locked(&self.record).clone(),
        };
        let tell = move || notice.give(&command);
        match threads::spawn("notify", tell) {
            Ok(telling) => locked(&self.told).push(telling),
            Err(error) => out::note(format_args!("fathom: --notify: {error}")),
        }
    }

    /// Waits until everybody has been told, which takes [`TIME_MAX`] at the most.
    pub fn await_all(&self) {
        let told = std::mem::take(&mut *locked(&self.told));
        for telling in told {
            let _ = telling.join();
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(|e| e.into_inner())
}

/// Tells of every run that this command has made, when it is to be told. That it cannot be
/// is said, and changes nothing.
pub fn tell(global: &Global, exit: Exit) {
    let Some(command) = &global.notify else {
        return;
    };
    global.metrics.await_notices();
    for record in global.requirement.records() {
        match Notice::of_end(&record, exit) {
            Ok(notice) => notice.give(command),
            Err(error) => out::note(format_args!("fathom: --notify: {error}")),
        }
    }
}

/// What is told of a run.
struct Notice {
    run: String,
    name: String,
    command: String,
    status: String,
    verdict: &'static str,
    /// The step at which it happened, of what happens while the run goes on.
    step: String,
    message: String,
    /// The exit code, once there is one.
    exit: String,
    dir: PathBuf,
}

impl Notice {
    fn of_end(record: &Path, exit: Exit) -> Result<Self, RecordError> {
        let run = RunSummary::read(record)?;
        let status = run.status.unwrap_or(RunStatus::Running).to_string();
        let verdict = verdict(record).map_or("", VerdictLevel::name);
        let mut message = format!("{} ({}): {status}", run.name, run.command);
        if !verdict.is_empty() {
            message += &format!(", figures {verdict}");
        }
        Ok(Self {
            run: run.id,
            name: run.name,
            command: run.command,
            status,
            verdict,
            step: String::new(),
            message,
            exit: exit.code().to_string(),
            dir: record.to_owned(),
        })
    }

    /// Runs the command. That it failed is said.
    fn give(&self, command: &str) {
        if let Err(why) = self.call(command) {
            out::note(format_args!("fathom: --notify: {why}"));
        }
    }

    fn call(&self, command: &str) -> Result<(), String> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).process_group(0);
        shell.stdin(Stdio::null());
        // Neither a document on stdout nor a screen is disturbed.
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        // Names of runs are values here, and never a part of what the shell reads.
        for (name, value) in [
            ("FATHOM_RUN", self.run.as_str()),
            ("FATHOM_NAME", &self.name),
            ("FATHOM_COMMAND", &self.command),
            ("FATHOM_STATUS", &self.status),
            ("FATHOM_VERDICT", self.verdict),
            ("FATHOM_STEP", &self.step),
            ("FATHOM_MESSAGE", &self.message),
            ("FATHOM_EXIT", &self.exit),
        ] {
            shell.env(name, text::line(value).as_ref());
        }
        shell.env("FATHOM_DIR", self.dir.canonicalize().unwrap_or_default());
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
}

/// Whether the run's figures are true, where it has any.
fn verdict(record: &Path) -> Option<VerdictLevel> {
    let doc = fathom_document::read(record).ok()?;
    doc.verdict.map(|verdict| verdict.level)
}
