//! What a command would do, of every command: each stage and step with its commands and
//! job files. Nothing is run.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use fathom_engines::select::EngineHandle;
use fathom_flow::budget::{self, Cost, Endurance};
use fathom_flow::error::RunError;
use fathom_flow::{Act, Case, JobStep, Ready, Task, Work};
use fathom_jobfile::shell_quote;
use fathom_model::ledger::Pattern;
use fathom_model::{Exit, units};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::failed;
use super::{ExitError, Global};
use crate::out;

/// The engine of several machines that each choose their own.
const EACH_CHOOSES: &str = "auto";

/// What an act would execute: on a simulated device nothing.
pub fn commands_of(act: &dyn Act, selected: &EngineHandle) -> Vec<String> {
    match selected.is_simulated() {
        true => vec!["# simulated: nothing is executed".to_owned()],
        false => act.commands(),
    }
}

/// Told as it is found: line by line, or in one document at the end.
pub struct DryRun<'g> {
    global: &'g Global,
    /// What is in the document beside the steps, the command sets.
    pub document: DryDocument,
    /// What the next steps are done to, where there are several devices.
    pub device: Option<PathBuf>,
    /// Whether the text of each job file stands below its command.
    pub shows_texts: bool,
}

impl<'g> DryRun<'g> {
    /// Of nothing yet.
    pub fn new(global: &'g Global) -> Self {
        Self {
            global,
            document: DryDocument {
                schema: "fathom.dry-run/1",
                engine: None,
                steps: Vec::new(),
                layouts: Vec::new(),
                drives: None,
                hosts: None,
            },
            device: None,
            shows_texts: true,
        }
    }

    /// The folder of records.
    pub fn runs_dir(&self) -> &'g Path {
        &self.global.runs
    }

    /// What is said above the steps that follow; the document does not have it.
    pub fn line(&self, text: impl Display) {
        if !self.global.json {
            out::line(text);
        }
    }

    /// A stage or step, with its files below the folder `record`.
    pub fn task(
        &mut self,
        task: &Task,
        selected: &EngineHandle,
        record: &Path,
    ) -> anyhow::Result<()> {
        self.head(task);
        let id = &task.stage.id;
        match &task.work {
            Work::Act(act) => self.act(id, &commands_of(act.as_ref(), selected)),
            Work::Skip(reason) => self.act(id, &[format!("# left out: {reason}")]),
            Work::Job(step) => self.step(id, step, selected, record)?,
            Work::Cells(cells) => {
                for cell in cells {
                    let (name, text) = (&cell.point.id, cell.job_text.clone());
                    let step = JobStep::new((1, 1), name, text, &[]);
                    self.step(id, &step, selected, record)?;
                }
            }
            work => {
                for text in work.job_texts() {
                    let step = JobStep::new((1, 1), id, text.to_owned(), &[]);
                    self.step(id, &step, selected, record)?;
                }
            }
        }
        Ok(())
    }

    /// What stands above the commands of a stage or step.
    pub fn head(&self, task: &Task) {
        let stage = &task.stage;
        let time = task.work.least_time();
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let time = match &task.work {
            _ if ms == 0 => String::new(),
            Work::Settle(settle) if !settle.criteria.is_empty() => {
                format!(", {} at least", units::duration(ms))
            }
            _ => format!(", {}", units::duration(ms)),
        };
        self.line(format_args!("# {}: {}{time}", stage.id, stage.title));
    }

    /// What is done by other means than an engine: its commands, as a person would type
    /// them.
    pub fn act(&mut self, name: &str, commands: &[String]) {
        commands.iter().for_each(|command| self.line(command));
        self.push(name, commands, None);
    }

    fn step(
        &mut self,
        name: &str,
        step: &JobStep,
        selected: &EngineHandle,
        record: &Path,
    ) -> anyhow::Result<()> {
        let job_file = record.join("jobs").join(&step.job_file);
        let request = step.request(job_file.clone(), record.join("raw").join(&step.raw));
        let argv = selected.command(&request);
        let argv = argv.map_err(|error| failed(RunError::from(error)))?;
        self.job(name, (&job_file, &step.text), selected, &argv);
        Ok(())
    }

    /// A job file, and what would be executed for it: nothing by an engine inside Fathom.
    pub fn job(
        &mut self,
        name: &str,
        (job_file, text): (&Path, &str),
        selected: &EngineHandle,
        argv: &[String],
    ) {
        let path = job_file.display();
        match argv {
            [] => {
                self.line(match selected.engine().name() {
                    EACH_CHOOSES => format!("# the engine that each machine chooses runs {path}"),
                    engine => format!("# the {engine} engine runs {path}"),
                });
            }
            argv => self.line(quoted(argv)),
        }
        if self.shows_texts {
            self.line(format_args!("# {path}:"));
            text.lines()
                .for_each(|line| self.line(format_args!("#   {line}")));
        }
        self.push(name, argv, Some(text));
    }

    fn push(&mut self, name: &str, command: &[String], job_file: Option<&str>) {
        if self.global.json {
            self.document.steps.push(DryStep {
                name: name.to_owned(),
                command: command.to_vec(),
                job_file: job_file.map(str::to_owned),
                device: self.device.clone(),
            });
        }
    }

    /// Writes the document and ends as the run itself would.
    pub fn end(self, refusal: Option<ExitError>) -> anyhow::Result<Exit> {
        if self.global.json {
            out::json(&self.document)?;
        }
        refusal.map_or(Ok(Exit::Success), |refusal| Err(refusal.into()))
    }
}

/// What `--dry-run --json` prints, of every command; `fathom purge` has its own.
#[derive(Serialize, JsonSchema)]
pub struct DryDocument {
    schema: &'static str,
    /// `fio`, `native`, `sim`; null: each machine says.
    pub engine: Option<String>,
    steps: Vec<DryStep>,
    /// Files that would be laid out first, in words.
    pub layouts: Vec<String>,
    /// Of `fathom provision`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drives: Option<Vec<DryDrive>>,
    /// What `--hosts` would send.
    #[serde(flatten)]
    pub hosts: Option<DryHosts>,
}

/// A stage or step.
#[derive(Serialize, JsonSchema)]
struct DryStep {
    name: String,
    /// Words of the command; of an act each command is one; empty where Fathom does it.
    command: Vec<String>,
    /// The text of the job file.
    job_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<PathBuf>,
}

/// A drive of a provision.
#[derive(Serialize, JsonSchema)]
pub struct DryDrive {
    pub path: PathBuf,
    pub workload: Pattern,
    /// What it costs, in words.
    pub cost: String,
}

/// What goes to the machines.
#[derive(Serialize, JsonSchema)]
pub struct DryHosts {
    pub hosts: Vec<String>,
    /// The command there.
    pub command: Vec<String>,
    /// Null: the command alone says it.
    pub plan: Value,
    /// Variables of job files, by machine.
    pub variables: Value,
    pub files: Vec<SentFile>,
}

/// A file that goes along.
#[derive(Serialize, JsonSchema)]
pub struct SentFile {
    pub name: String,
    pub text: String,
}

/// Words as a person would type them.
pub fn quoted(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| shell_quote(word)).collect();
    quoted.join(" ")
}

/// Shows what is left of a plan, also when it would be refused.
pub fn show(global: &Global, ready: &Ready<'_>) -> anyhow::Result<Exit> {
    show_on(global, ready, |_| Ok(()))
}

/// The same, with what `tell` says first.
pub fn show_on(
    global: &Global,
    ready: &Ready<'_>,
    tell: impl FnOnce(&mut DryRun) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    let tasks = ready.left(Case::Best);
    let mut dry = DryRun::new(global);
    tell(&mut dry)?;
    for task in &tasks {
        dry.task(task, ready.selected(), &global.runs.join("RUN"))?;
        if out::is_stopped() {
            break;
        }
    }
    let layouts = ready.layouts();
    for text in layouts.iter().filter(|_| !tasks.is_empty()) {
        dry.line(format_args!("# {text}"));
    }
    if !global.json {
        out::note(match tasks.is_empty() {
            true => "Nothing is left to do.".to_owned(),
            false => budget::sentence(&cost(&tasks), &Endurance::default()),
        });
    }
    let engine = ready.selected().engine().name();
    dry.document.engine = (engine != EACH_CHOOSES).then(|| engine.to_owned());
    dry.document.layouts = layouts.to_vec();
    dry.end(ready.refusal().map(ExitError::from))
}

fn cost(tasks: &[Task]) -> Cost {
    Cost::of_parts(tasks.iter().map(|Task { work, .. }| {
        let bytes = work.write_bytes(Case::Best, None);
        (work.time(Case::Best, None), bytes)
    }))
}
