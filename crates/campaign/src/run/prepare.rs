//! Everything about a plan that can be checked before anything is opened: its
//! job files, the engine that runs them, what they would write to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fathom_device::safety::{Confirmations, Judge, Refusal};
use fathom_engine::choice::{self, Lack, Wish};
use fathom_engine::fio::preflight;
use fathom_engine::fio::version::Program;
use fathom_engine::jobfile::{JobFile, Severity, spec, variable};
use fathom_engine::native;
use fathom_engine::resolve::{self, Action, PathUse};
use fathom_engine::select::Selected;
use fathom_engine::sim::Sim;
use fathom_model::{FailureKind, JobSpec};

use super::RunError;
use crate::flow::{History, Luck, Script, outlook};
use crate::plan::{Plan, Step};
use crate::precondition;

/// Faults of one kind that are told: the rest are hardly others.
const TOLD_MAX: usize = 10;

/// A job file as it is run.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) text: String,
    pub(crate) jobs: Vec<JobSpec>,
}

/// Reads the job file of a step.
///
/// # Errors
/// What is wrong with it, with line and column.
pub(super) fn job(plan: &Plan, step: &Step) -> Result<Job, String> {
    read(&step.job_text, &plan.folder.join(&step.job_file))
}

/// Reads the text of a job file; `path` is for messages.
///
/// # Errors
/// What is wrong with it, with line and column.
pub(crate) fn read(text: &str, path: &Path) -> Result<Job, String> {
    let mut checked = JobFile::parse(text, path, &variable);
    let is_error = |severity: Severity| severity == Severity::Error;
    if let Some(error) = checked.diagnostics.iter().find(|d| is_error(d.severity)) {
        return Err(error.to_string());
    }
    preflight::forbid_creation(&mut checked.file);
    let jobs = checked.file.jobs();
    if jobs.is_empty() {
        return Err(format!("{}: there is no job in it", path.display()));
    }
    Ok(Job {
        text: checked.file.render(),
        jobs,
    })
}

/// What all job files of a plan want.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    /// Every path the jobs use, and whether they write to it.
    targets: BTreeMap<PathBuf, bool>,
    /// Files that are laid out before they are read.
    laid_out: BTreeMap<PathBuf, PathUse>,
    /// Files that the engine writes text to.
    logs: BTreeSet<PathBuf>,
    /// What keeps the targets from being measured.
    unusable: BTreeSet<String>,
    native_lacks: BTreeSet<String>,
    sim_lacks: BTreeSet<String>,
    /// One job file of each kind: fio is asked about these.
    kinds: BTreeMap<Vec<String>, (Vec<JobSpec>, String)>,
}

impl Wants {
    /// Reads all job files, each once.
    ///
    /// # Errors
    /// The faults of the job files.
    pub(super) fn of(plan: &Plan, folder: &Path) -> Result<Self, RunError> {
        let mut wants = Self::default();
        let mut seen = BTreeSet::new();
        let mut faults = Vec::new();
        for step in &plan.steps {
            if !seen.insert(&step.job_file) {
                continue;
            }
            match job(plan, step) {
                Ok(job) => wants.add(job, folder),
                Err(fault) => faults.push(fault),
            }
        }
        let preparation = plan.preparation.precondition.iter();
        for file in preparation.flat_map(precondition::files) {
            match read(&file.text, &file.path) {
                Ok(job) => wants.add(job, folder),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() {
            return Ok(wants);
        }
        Err(RunError::Input(first(faults)))
    }

    /// Adds what the job files of a flow want.
    ///
    /// # Errors
    /// The faults of the job files.
    pub(super) fn add_flow(&mut self, script: &dyn Script, folder: &Path) -> Result<(), RunError> {
        let mut seen = BTreeSet::new();
        for task in outlook(script, &History::default(), Luck::Best).0 {
            for text in task.work.job_texts() {
                if seen.insert(text.to_owned()) {
                    let name = Path::new(&task.stage.id);
                    self.add(read(text, name).map_err(RunError::Input)?, folder);
                }
            }
        }
        Ok(())
    }

    /// Adds what a job file wants.
    pub(crate) fn add(&mut self, job: Job, folder: &Path) {
        for refusal in preflight::refusals(&job.jobs, folder) {
            self.unusable.insert(refusal.to_string());
        }
        // What cannot be told is among the refusals already.
        for used in resolve::all(&job.jobs, folder).unwrap_or_default() {
            if used.action == Action::Log {
                self.logs.insert(used.path);
                continue;
            }
            *self.targets.entry(used.path.clone()).or_default() |= used.action == Action::Write;
            if let Action::LayOut { .. } = used.action {
                self.laid_out.insert(used.path.clone(), used);
            }
        }
        // The same option is lacking in hundreds of files.
        if self.native_lacks.len() < TOLD_MAX
            && let Err(refused) = native::supports(&job.jobs)
        {
            self.native_lacks
                .extend(refused.iter().map(ToString::to_string));
        }
        self.sim_lacks
            .extend(Sim::runs(&job.jobs).err().unwrap_or_default());
        let mut kind = Vec::new();
        for spec in &job.jobs {
            kind.extend(spec.options.iter().map(|option| option.name.clone()));
            kind.push(spec::engine(spec).to_owned());
        }
        self.kinds.entry(kind).or_insert((job.jobs, job.text));
    }

    /// The paths that the jobs write to.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Path> {
        let written = self.targets.iter().filter(|&(_, writes)| *writes);
        written.map(|(path, _)| path.as_path())
    }

    /// Chooses the engine for all steps; with it what is to be known of the choice.
    ///
    /// # Errors
    /// What no engine has.
    pub(crate) fn engine(
        &self,
        wish: &str,
        fio: Option<&Path>,
        sim: Option<&Path>,
    ) -> Result<(Selected, Option<String>), RunError> {
        let wish = match wish {
            "auto" => Wish::Auto,
            "fio" => Wish::Fio,
            "native" => Wish::Native,
            "sim" => return self.simulation(sim),
            other => {
                let what = format!("there is no engine '{other}': auto, fio, native");
                return Err(RunError::Input(what));
            }
        };
        let fio_runs = |program: &Program| {
            let lacks = self.kinds.values().filter_map(|(jobs, text)| {
                let lack = choice::fio_runs(program, jobs, text, &[]);
                lack.err()
            });
            let joined = lacks.reduce(|mut all, lack| {
                all.reasons.extend(lack.reasons);
                all
            });
            joined.map_or(Ok(()), Err)
        };
        let native_runs = || {
            Lack::unless_none(FailureKind::BadOption, told(&self.native_lacks))?;
            // What the kernel has is asked once for each kind of job.
            let mut kinds = self.kinds.values();
            kinds.try_for_each(|(jobs, _)| choice::native_runs(jobs))
        };
        let (selected, passed_over) =
            Selected::choose(wish, fio, fio_runs, native_runs).map_err(RunError::Engine)?;
        let note = passed_over.map(|lack| format!("{lack}; the native engine runs the points"));
        Ok((selected, note))
    }

    fn simulation(&self, sim: Option<&Path>) -> Result<(Selected, Option<String>), RunError> {
        let sim = Selected::simulation(sim).map_err(RunError::Engine)?;
        if self.sim_lacks.is_empty() {
            return Ok((sim, None));
        }
        Err(RunError::Input(first(told(&self.sim_lacks))))
    }

    /// Whether all targets are what they seem and may be written to.
    ///
    /// # Errors
    /// Everything that stands against it.
    pub(crate) fn check_targets(&self, destroy: &[String]) -> Result<(), RunError> {
        let mut refusals: Vec<String> = self.unusable.iter().cloned().collect();
        if refusals.is_empty() {
            let judge = Judge::new(&Confirmations(destroy.to_vec()));
            let laid_out = self.laid_out.keys().map(PathBuf::as_path);
            let written = self.written().chain(laid_out).map(|path| judge.write(path));
            let logs = self.logs.iter().map(|path| judge.output(path));
            for judged in written.chain(logs) {
                if let Err(refusal) = judged {
                    refusals.push(with_symbol(&refusal));
                }
            }
        }
        match refusals[..] {
            [] => Ok(()),
            _ => Err(RunError::Refused(first(refusals))),
        }
    }
}

/// A campaign has a place for the words too.
fn with_symbol(refusal: &Refusal) -> String {
    let symbol = "\n  the same word in CONFIG_DESTROY_CONFIRM holds for every run of this campaign";
    match refusal {
        Refusal::Unconfirmed(_) => format!("{refusal}{symbol}"),
        _ => refusal.to_string(),
    }
}

fn told(reasons: &BTreeSet<String>) -> Vec<String> {
    reasons.iter().cloned().collect()
}

/// The first of many lines.
fn first(mut lines: Vec<String>) -> String {
    let more = lines.len().saturating_sub(TOLD_MAX);
    lines.truncate(TOLD_MAX);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines.join("\n")
}
