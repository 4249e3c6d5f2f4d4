//! Everything about a plan that can be checked before anything is opened: its
//! job files, the engine that runs them, what they would write to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fathom_device::safety::{Confirmations, Refusal, WriteJudge};
use fathom_engine::existing::{self, Owner};
use fathom_engine_fio::version::Program;
use fathom_engines::choice::{self, MissingCapability, NoEngine};

use fathom_engine_sim::Sim;
use fathom_engines::select::EngineHandle;
use fathom_jobfile::resolve::{self, JobPathUse, PathUse};
use fathom_jobfile::variables::variable;
use fathom_jobfile::{JobFile, Severity, preflight, spec};
use fathom_model::{FailureKind, JobSpec, Refused};

use crate::error::RunError;
use crate::identity::UsedPaths;
use crate::{Case, History, RunOptions, Script, Task, Work, outlook};

/// Faults of one kind that are told: the rest are hardly others.
const TOLD_MAX: usize = 10;

/// A job file as it is run.
#[derive(Debug)]
pub struct PreparedJob {
    /// Its text, as it is kept.
    pub text: String,
    /// Its jobs.
    pub jobs: Vec<JobSpec>,
}

/// Reads the text of a job file; `path` is for messages.
///
/// # Errors
/// What is wrong with it, with line and column.
pub fn read(text: &str, path: &Path) -> Result<PreparedJob, String> {
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
    Ok(PreparedJob {
        text: checked.file.render(),
        jobs,
    })
}

/// Reads the job files of tasks, each once, with the folder that they run in.
fn each_job(
    tasks: &[Task],
    folder: &Path,
    take: &mut dyn FnMut(PreparedJob, &Path),
) -> Result<(), RunError> {
    let mut seen = BTreeSet::new();
    for task in tasks {
        let own = match &task.work {
            Work::Job(step) => step.work_dir.as_deref(),
            _ => None,
        };
        for text in task.work.job_texts() {
            if seen.insert(text.to_owned()) {
                let name = Path::new(&task.stage.id);
                let job = read(text, name).map_err(RunError::Input)?;
                take(job, own.unwrap_or(folder));
            }
        }
    }
    Ok(())
}

/// What the paths that the jobs of a flow use behind this history lead to.
///
/// # Errors
/// The faults of the job files.
pub fn used_paths(
    script: &dyn Script,
    history: &History,
    folder: &Path,
) -> Result<UsedPaths, RunError> {
    let mut paths = BTreeSet::new();
    let tasks = outlook(script, history, Case::Best).0;
    each_job(&tasks, folder, &mut |job, folder| {
        let uses = resolve::all(&job.jobs, folder).unwrap_or_default();
        let uses = uses.into_iter().filter(|it| it.action != JobPathUse::Log);
        paths.extend(uses.map(|used| used.path));
    })?;
    Ok(UsedPaths::of(paths.iter().map(PathBuf::as_path)))
}

/// What all job files of a plan want.
#[derive(Debug, Default)]
pub struct Wants {
    /// Every path the jobs use, and whether they write to it.
    targets: BTreeMap<PathBuf, bool>,
    /// Files that are laid out before they are read.
    laid_out: BTreeMap<PathBuf, PathUse>,
    /// Folders that are made on the way: what is in one is judged once it is there,
    /// before each step.
    pub made: Vec<PathBuf>,
    /// Jobs that would delete, replace or lengthen files that are there, and their folder,
    /// until it is known which of them are the run's own.
    of_others: Vec<(Vec<JobSpec>, PathBuf)>,
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
    /// Adds what the job files of a flow want behind this history, if it goes so.
    ///
    /// # Errors
    /// The faults of the job files.
    pub fn add_flow(
        &mut self,
        script: &dyn Script,
        (history, case): (&History, Case),
        folder: &Path,
    ) -> Result<(), RunError> {
        let tasks = outlook(script, history, case).0;
        for task in &tasks {
            if let Work::Act(act) = &task.work {
                self.made.extend(act.makes().map(Path::to_owned));
            }
        }
        each_job(&tasks, folder, &mut |job, folder| self.add(job, folder))
    }

    /// Every path that the jobs use.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.targets.keys().map(PathBuf::as_path)
    }

    /// Adds what a job file wants.
    pub fn add(&mut self, job: PreparedJob, folder: &Path) {
        for refusal in preflight::refusals(&job.jobs, folder) {
            let subject = refusal.subject.as_deref().unwrap_or_default();
            if self.made_for(Path::new(subject)).is_none() {
                self.unusable.insert(refusal.to_string());
            }
        }
        // What cannot be told is among the refusals already.
        let uses = resolve::all(&job.jobs, folder).unwrap_or_default();
        let is_made = uses.iter().any(|used| self.made_for(&used.path).is_some());
        if !is_made && existing::check(&job.jobs, folder, Owner::of_nothing()).is_err() {
            self.of_others.push((job.jobs.clone(), folder.to_owned()));
        }
        for used in uses {
            if used.action == JobPathUse::Log {
                self.logs.insert(used.path);
                continue;
            }
            if let Some(made) = self.made_for(&used.path).map(Path::to_owned) {
                *self.targets.entry(made).or_default() |= used.action == JobPathUse::Write;
                continue;
            }
            *self.targets.entry(used.path.clone()).or_default() |= used.action == JobPathUse::Write;
            if let JobPathUse::LayOut { .. } = used.action {
                self.laid_out.insert(used.path.clone(), used);
            }
        }
        // The same option is lacking in hundreds of files.
        if self.native_lacks.len() < TOLD_MAX
            && let Err(refused) = fathom_engine_native::supports(&job.jobs)
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

    /// The folder that is not there yet and will be made for this path.
    fn made_for(&self, path: &Path) -> Option<&Path> {
        let mut made = self.made.iter();
        let folder = made.find(|folder| path.starts_with(folder))?;
        (!folder.exists()).then_some(folder)
    }

    /// The paths that the jobs write to.
    pub fn written(&self) -> impl Iterator<Item = &Path> {
        let written = self.targets.iter().filter(|&(_, writes)| *writes);
        written.map(|(path, _)| path.as_path())
    }

    /// Chooses the engine for all steps; with it what is to be known of the choice.
    ///
    /// # Errors
    /// What no engine has.
    pub fn engine(&self, options: &RunOptions) -> Result<(EngineHandle, Option<String>), RunError> {
        if options.is_simulated() && !self.sim_lacks.is_empty() {
            return Err(RunError::Input(first(told(&self.sim_lacks))));
        }
        let fio_runs = |program: &Program| self.fio_runs(program);
        let native_runs = || {
            MissingCapability::unless_none(FailureKind::BadOption, told(&self.native_lacks))?;
            // What the kernel has is asked once for each kind of job.
            let mut kinds = self.kinds.values();
            kinds.try_for_each(|(jobs, _)| choice::native_runs(jobs))
        };
        let sim = || EngineHandle::simulation(options.sim(0));
        let fio = options.fio.as_deref();
        let chosen = EngineHandle::choose(options.engine(), fio, fio_runs, native_runs, sim);
        let (selected, passed_over) = chosen.map_err(RunError::Engine)?;
        let note = passed_over.map(|lack| format!("{lack}; the native engine runs the points"));
        Ok((selected, note))
    }

    fn fio_runs(&self, program: &Program) -> Result<(), MissingCapability> {
        let lacks = self.kinds.values().filter_map(|(jobs, text)| {
            let lack = choice::fio_runs(program, jobs, text, &[]);
            lack.err()
        });
        let joined = lacks.reduce(|mut all, lack| {
            all.reasons.extend(lack.reasons);
            all
        });
        joined.map_or(Ok(()), Err)
    }

    /// Asks this fio whether it has everything, where no other engine was to be chosen.
    ///
    /// # Errors
    /// What it lacks.
    pub fn must_run_by_fio(&self, fio: Option<&Path>) -> Result<(), RunError> {
        let program = Program::find(fio).map_err(MissingCapability::from);
        let lacks = program.and_then(|program| self.fio_runs(&program));
        lacks.map_err(|mut lack| {
            // The job is not one of the user's: this fio will not do.
            if lack.kind == FailureKind::BadOption {
                lack.kind = FailureKind::EngineMissing;
            }
            RunError::Engine(NoEngine(vec![("fio", lack)]))
        })
    }

    /// Whether all targets are what they seem and may be written to; `told` turns a refusal into
    /// text.
    ///
    /// # Errors
    /// Everything that stands against it.
    pub fn check_targets(
        &self,
        owner: Owner<'_>,
        told: impl Fn(&Refusal) -> String,
    ) -> Result<(), RunError> {
        let mut refusals: Vec<String> = self.unusable.iter().cloned().collect();
        let mut findings = Vec::new();
        if refusals.is_empty() {
            let judge = WriteJudge::new(&Confirmations(owner.destroy.to_vec()));
            let laid_out = self.laid_out.keys().map(PathBuf::as_path);
            let written = self.written().chain(laid_out).map(|path| judge.write(path));
            let logs = self.logs.iter().map(|path| judge.output(path));
            for judged in written.chain(logs) {
                if let Err(refusal) = judged {
                    refusals.push(told(&refusal));
                    findings.extend(refusal.findings());
                }
            }
            let of_others = self.of_others.iter();
            let judged = of_others.map(|(jobs, folder)| existing::check(jobs, folder, owner));
            let of_others: BTreeSet<String> = judged.filter_map(Result::err).collect();
            refusals.extend(of_others);
        }
        match refusals[..] {
            [] => Ok(()),
            _ => Err(RunError::Refused(Refused {
                text: first(refusals),
                findings,
            })),
        }
    }
}

fn told(reasons: &BTreeSet<String>) -> Vec<String> {
    reasons.iter().cloned().collect()
}

/// The first of many lines.
pub fn first(mut lines: Vec<String>) -> String {
    let more = lines.len().saturating_sub(TOLD_MAX);
    lines.truncate(TOLD_MAX);
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines.join("\n")
}
