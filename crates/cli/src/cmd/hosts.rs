//! `--hosts`: what the commands that run on several machines at once share. Each
//! machine runs the very command (`fathom agent`); what is here calls it there
//! and makes one record of what all tell.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_device::{open_files, regular};
use fathom_engine::Control;
use fathom_fleet::hosts::wire::Word;
use fathom_fleet::hosts::{self, HostsJob, kept};
use fathom_fleet::local::FleetError;
use fathom_flow::RunOptions;
use fathom_model::{Event, Exit, RunDocument, RunStatus};
use fathom_record::{EVENTS, Header, Writer};
use fathom_sheet::style::{Style, Tone};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::dry::{DryHosts, DryRun, SentFile, quoted};
use super::job::request::JobPlan;
use super::planned::{RequestKind, sent};
use super::screen::observed_in_place;
use super::{ExitError, Global};
use crate::live::{LiveLines, LiveOptions};
use crate::{out, signals};

mod shared;
mod variables;

pub use shared::SharedHosts;
pub use variables::{HostVariable, HostVariables};

/// Open files of a run on several machines: those of each, and all others, those
/// of connections that are being made among them.
const OPEN_FILES_EACH: u64 = 2;
const OPEN_FILES: u64 = 64;
/// Longest host file that is read.
const HOST_FILE_BYTES_MAX: u64 = 256 << 10;

/// Several machines instead of this one.
#[derive(Debug, Clone, Default, Serialize, Deserialize, clap::Args)]
#[serde(default)]
#[command(next_help_heading = "On several machines")]
pub struct HostArgs {
    /// Run on these machines at once, over ssh: hosts with commas, or a file with
    /// one a line; nothing has to be installed there but what the engine needs
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Go on when machines are lost or refuse, as long as so many take part to the
    /// end [default: all]
    #[arg(long, value_name = "N", requires = "hosts")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_hosts: Option<u32>,
    /// Let one machine take part under several names: it counts several times
    #[arg(long, requires = "hosts")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_same_host: bool,
    /// What the host file of the last start said of variables.
    #[arg(skip)]
    #[serde(skip_serializing_if = "HostVariables::is_empty")]
    pub variables: HostVariables,
}

impl HostArgs {
    /// Whether they are asked for.
    pub fn is_given(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// The machines, and how many must take part to the end.
    pub fn names(&self) -> anyhow::Result<(Vec<String>, usize)> {
        let (names, _) = listed(&self.hosts)?;
        let least = least(&names, self.min_hosts, "--min-hosts")?;
        Ok((names, least))
    }

    /// The machines, and what each is to do: a plan, whose own record is kept.
    pub fn job<R: RequestKind>(
        &self,
        request: &R,
        steps: Vec<String>,
    ) -> anyhow::Result<(Vec<String>, HostsJob)> {
        if request.clone().options().is_simulated() {
            return Err(usage("a simulation needs no other machines"));
        }
        let (names, least) = self.names()?;
        let job = HostsJob {
            plan: sent(request)?,
            steps,
            least,
            allow_same_host: self.allow_same_host,
            own_records: true,
            variables: self.variables()?.into_map(),
            ..HostsJob::default()
        };
        Ok((names, job))
    }

    /// Runs jobs that are repeated on the machines, each step of these names at once.
    pub fn repeated<R: RequestKind>(
        &self,
        global: &Global,
        (request, job): (&R, &JobPlan),
        command: &str,
        steps: Vec<String>,
        dry_run: bool,
    ) -> anyhow::Result<HostedRun> {
        let (names, hosts_job) = self.job(request, steps)?;
        let files = job.files.iter();
        let files = files.map(|file| (file.file_name.clone(), file.text.clone()));
        let hosted = HostedPlan {
            names: &names,
            job: &hosts_job,
            name: &job.name,
            command,
            options: &job.options,
            job_files: files.collect(),
            notes: Vec::new(),
        };
        hosted.run(global, dry_run)
    }

    /// What is known of variables, where the jobs run on other machines.
    pub fn elsewhere(&self) -> anyhow::Result<Option<HostVariables>> {
        self.is_given().then(|| self.variables()).transpose()
    }

    /// What is known of variables for each of them.
    pub fn variables(&self) -> anyhow::Result<HostVariables> {
        let (_, variables) = listed(&self.hosts)?;
        Ok(match variables.is_empty() {
            true => self.variables.clone(),
            false => variables,
        })
    }
}

/// An error of the command line.
pub fn usage(message: impl std::fmt::Display) -> anyhow::Error {
    ExitError::new(Exit::Usage, message).into()
}

/// Refuses options, by name, that make no sense on several machines.
pub fn refuse(options: &[(bool, &str)]) -> anyhow::Result<()> {
    match options.iter().find(|(given, _)| *given) {
        Some((_, why)) => Err(usage(format!("with --hosts: {why}"))),
        None => Ok(()),
    }
}

/// How many machines must take part to the end: all, unless said otherwise.
pub fn least(names: &[String], min: Option<u32>, option: &str) -> anyhow::Result<usize> {
    let least = min.map_or(names.len(), |n| n as usize);
    if least > names.len() {
        let there = names.len();
        return Err(usage(format!("{option} {least}: there are {there} hosts")));
    }
    Ok(least)
}

/// The machines that `--hosts` names, each once, and what host files say of their
/// variables.
pub fn listed(values: &[String]) -> anyhow::Result<(Vec<String>, HostVariables)> {
    let mut names: Vec<String> = Vec::new();
    let mut variables = HostVariables::default();
    for value in values {
        let path = Path::new(value);
        let found = match path.is_file() {
            true => of_file(path, &mut variables).map_err(usage)?,
            false => vec![value.trim().to_owned()],
        };
        for name in found {
            let is_name = |c: char| !c.is_whitespace() && !c.is_control();
            if name.is_empty() || name.starts_with('-') || !name.chars().all(is_name) {
                return Err(usage(format!("--hosts: {name:?} is no host")));
            }
            if names.contains(&name) {
                return Err(usage(format!("--hosts: {name} is named twice")));
            }
            names.push(name);
        }
    }
    Ok((names, variables))
}

fn of_file(path: &Path, variables: &mut HostVariables) -> Result<Vec<String>, String> {
    let shown = path.display();
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    let bytes = regular::read(path, HOST_FILE_BYTES_MAX).map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{shown} is no text"))?;
    let mut names = Vec::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(name) = words.next().filter(|name| !name.starts_with('#')) else {
            continue;
        };
        let taken = variables.columns(name, words);
        taken.map_err(|wrong| format!("{shown}: {wrong}"))?;
        names.push(name.to_owned());
    }
    match names.is_empty() {
        true => Err(format!("{shown} names no host")),
        false => Ok(names),
    }
}

/// The header of a record of several machines.
pub fn header(
    (name, command): (&str, &str),
    options: &RunOptions,
    names: &[String],
    job: &HostsJob,
) -> Header {
    let mut header = Header::new(name, command);
    header.label.clone_from(&options.label);
    header.environment = Some(fathom_device::environment(&[]));
    header.variables = fathom_jobfile::variables::read();
    let words: Vec<_> = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    header.facts.insert("command".into(), json!(words));
    header.facts.insert(kept::FACTS.into(), json!(names));
    if !job.variables.is_empty() {
        let variables = json!(job.variables);
        header.facts.insert("variables".into(), variables);
    }
    header
}

/// A plan that runs on several machines at once.
pub struct HostedPlan<'h> {
    /// The machines.
    pub names: &'h [String],
    pub job: &'h HostsJob,
    /// Name of the run.
    pub name: &'h str,
    /// The command in records.
    pub command: &'h str,
    /// The options of the run.
    pub options: &'h RunOptions,
    /// Job files that its record keeps: name and text.
    pub job_files: Vec<(String, String)>,
    /// What is to be known of the run.
    pub notes: Vec<String>,
}

impl HostedPlan<'_> {
    /// Runs it, into one record of what all machines tell, or only shows it.
    pub fn run(self, global: &Global, dry_run: bool) -> anyhow::Result<HostedRun> {
        if dry_run {
            return self::dry_run(global, self.names, self.job).map(HostedRun::Shown);
        }
        let control = signals::control()?;
        let begin = || {
            let header = header(
                (self.name, self.command),
                self.options,
                self.names,
                self.job,
            );
            let writer = Writer::create(&global.runs, &header).map_err(record_error)?;
            if !self.job_files.is_empty() {
                let folder = writer.jobs_dir().map_err(record_error)?;
                for (name, text) in &self.job_files {
                    let path = folder.join(name);
                    std::fs::write(&path, text)
                        .map_err(|e| record_error(format!("{}: {e}", path.display())))?;
                }
            }
            Ok((writer, self.notes))
        };
        let (dir, status) = drive(global, self.names, self.job, &control, begin)?;
        Ok(HostedRun::Ended(dir, exit_of(status)))
    }
}

/// What came of a plan on several machines.
pub enum HostedRun {
    /// It was only shown.
    Shown(Exit),
    /// Its record, and how it ended.
    Ended(PathBuf, Exit),
}

impl HostedRun {
    /// Has what was measured shown; gives the exit code.
    pub fn show(self, show: &dyn Fn(&Path) -> anyhow::Result<()>) -> anyhow::Result<Exit> {
        match self {
            Self::Shown(exit) => Ok(exit),
            Self::Ended(dir, exit) => {
                show(&dir)?;
                Ok(exit)
            }
        }
    }
}

/// Runs the command on all machines; `begin` makes the record, once they are
/// connected, and gives what is to be told first.
pub fn drive(
    global: &Global,
    names: &[String],
    job: &HostsJob,
    control: &Control,
    begin: impl FnOnce() -> anyhow::Result<(Writer, Vec<String>)>,
) -> anyhow::Result<(PathBuf, RunStatus)> {
    if !global.quiet {
        out::note(format_args!("connecting to {} machines", names.len()));
    }
    may_have_open(names.len())?;
    let machines = fathom_fleet::ssh::connect(names, control);
    if control.stop_requests() > 0 {
        return Err(interrupted());
    }
    let (mut writer, notes) = begin()?;
    let mut lines = LiveLines::new(LiveOptions::new(global.quiet, global.color));
    observed_in_place(global, |begun, observer| {
        begun(writer.dir());
        let mut observe = |event: &Event| {
            lines.take(event);
            observer(event);
        };
        for text in notes {
            let note = Event::Note { text };
            writer.append(&note).map_err(record_error)?;
            observe(&note);
        }
        let done = hosts::run(machines, job, writer, control, &mut observe);
        done.map_err(|error @ FleetError::Record { .. }| record_error(error))
    })
}

/// The error of a command that was stopped before anything was run.
pub fn interrupted() -> anyhow::Error {
    let what = "interrupted while connecting: nothing was run";
    ExitError::new(Exit::Interrupted, what).into()
}

fn record_error(error: impl std::fmt::Display) -> anyhow::Error {
    ExitError::new(Exit::Record, error).into()
}

/// Refuses more machines than this process may have connections to.
pub fn may_have_open(machines: usize) -> anyhow::Result<()> {
    let limit = open_files::raise();
    let needed = OPEN_FILES + OPEN_FILES_EACH * machines as u64;
    if limit >= needed {
        return Ok(());
    }
    let message = format!(
        "{machines} machines take {needed} open files, and this process may have {limit}\n  to do: raise the limit ('ulimit -Hn'), or take fewer machines"
    );
    Err(ExitError::new(Exit::Missing, message).into())
}

/// The exit code of a run.
pub fn exit_of(status: RunStatus) -> Exit {
    match status {
        RunStatus::Complete => Exit::Success,
        RunStatus::Interrupted => Exit::Interrupted,
        RunStatus::Failed | RunStatus::Running => Exit::Failed,
    }
}

/// Shows what each machine would be told.
pub fn dry_run(global: &Global, names: &[String], job: &HostsJob) -> anyhow::Result<Exit> {
    let agent = (!job.plan.is_null()).then_some("agent");
    let shown = job.args.iter().map(Word::shown);
    let words = ["fathom"].into_iter().chain(agent).chain(shown);
    let words: Vec<String> = words.map(str::to_owned).collect();
    let mut dry = DryRun::new(global);
    connections(&dry, names, &words, &job.variables);
    for step in &job.steps {
        dry.line(format_args!("# step: {step}"));
        dry.act(step, &[]);
    }
    let text_of = |title: &str, text: &str| {
        dry.line(format_args!("# {title}:"));
        let lines = text.lines();
        lines.for_each(|line| dry.line(format_args!("#   {line}")));
    };
    if !job.plan.is_null() {
        text_of(
            "the plan that is sent",
            &serde_json::to_string_pretty(&job.plan)?,
        );
    }
    for (name, text) in &job.files {
        match name.ends_with(".fio") {
            true => text_of(name, text),
            false => dry.line(format_args!("# {name}: {} lines", text.lines().count())),
        }
    }
    let file = |(name, text): &(String, String)| SentFile {
        name: name.clone(),
        text: text.clone(),
    };
    dry.document.hosts = Some(DryHosts {
        hosts: names.to_vec(),
        command: words,
        plan: job.plan.clone(),
        variables: serde_json::to_value(&job.variables)?,
        files: job.files.iter().map(file).collect(),
    });
    dry.end(None)
}

/// Shows how each machine is reached, and what it is told of variables.
fn connections(
    dry: &DryRun<'_>,
    names: &[String],
    words: &[String],
    variables: &BTreeMap<String, BTreeMap<String, String>>,
) {
    for name in names {
        dry.line(format_args!("ssh {name} {}", quoted(words)));
    }
    for (name, variables) in variables {
        for (variable, value) in variables {
            dry.line(format_args!("# {name}: {variable}={value}"));
        }
    }
}

/// The records that the machines made, as far as they came to make one, in the
/// order of `names`.
pub fn records(dir: &Path, names: &[String]) -> Vec<(String, PathBuf)> {
    let folder = |name: &String| {
        let folder = dir.join(kept::FOLDER).join(kept::folder_name(name));
        folder
            .join(EVENTS)
            .is_file()
            .then(|| (name.clone(), folder))
    };
    names.iter().filter_map(folder).collect()
}

/// What `--json` prints: the document of the run, and of each machine what
/// stands for it alone.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Document {
    #[serde(flatten)]
    run: RunDocument,
    parts: Vec<Part>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Part {
    host: String,
    /// Its record.
    record: PathBuf,
    /// What the command says of it, under the command's name.
    #[serde(flatten)]
    own: BTreeMap<&'static str, Value>,
}

/// Prints the document.
pub fn json(
    dir: &Path,
    names: &[String],
    command: &'static str,
    own: impl Fn(&Path) -> anyhow::Result<Value>,
) -> anyhow::Result<()> {
    let mut run = fathom_document::read(dir)?;
    fathom_document::drop_histograms(&mut run);
    let parts = records(dir, names)
        .into_iter()
        .map(|(host, record)| {
            let own = BTreeMap::from([(command, own(&record)?)]);
            Ok(Part { host, record, own })
        })
        .collect::<anyhow::Result<_>>()?;
    out::json(&Document { run, parts })
}

/// What stands below the figures: failures, notes, and where the records are.
pub fn closing(run: &RunDocument, dir: &Path, names: &[String], style: Style) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, tone: Tone, value: &str| {
        let name = style.paint(Tone::Faint, &format!("{name:<8}"));
        text.push_str(&format!("{name} {}\n", style.paint(tone, value)));
    };
    for failure in &run.failures {
        fact("failure", Tone::Bad, &failure.sentence());
    }
    for note in &run.notes {
        fact("note", Tone::Doubtful, note);
    }
    fact("record", Tone::Plain, &dir.display().to_string());
    let records = records(dir, names);
    if let Some((_, first)) = records.first() {
        let all = match records.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let text = format!("{}{all}: each machine's own", first.display());
        fact("", Tone::Plain, &text);
    }
    text
}
