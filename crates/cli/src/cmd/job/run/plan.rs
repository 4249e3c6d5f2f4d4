//! From the command line to the steps of a run, everything checked that can be
//! checked before anything is opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_device::regular;
use fathom_device::safety::{Confirmations, WriteJudge};
use fathom_engine::existing::{self, Owner};
use fathom_engine::requested::passed_value;
use fathom_engine_fio::client::Servers;
use fathom_engines::choice::MissingCapability;
use fathom_flow::RunOptions;
use fathom_flow::error::RunError;
use fathom_jobfile::resolve::{self, JobPathUse, PathUse};
use fathom_jobfile::variables::variable;
use fathom_jobfile::{CheckedJobFile, JobFile, Severity, preflight, targets};
use fathom_model::{Exit, JobOption, JobSpec, Refused};

use super::{Args, globals};
use crate::cmd::ExitError;
use crate::cmd::hosts::HostVariables;
use crate::cmd::job::request::{JobPlan, JobText};
use crate::cmd::job::{Setting, accept, apply};

/// No job file is longer; the reader of job files has a limit of its own.
const JOB_FILE_BYTES_MAX: u64 = 64 << 20;

/// What is to run.
pub struct Plan {
    /// One a job file.
    pub steps: Vec<JobFileStep>,
    /// fio's own options, without its `--section`.
    pub passed: Vec<String>,
    /// Sections asked for on either side of the `--`; all when empty.
    pub sections: Vec<String>,
    /// What Fathom added or wants known.
    pub notes: Vec<String>,
    /// Where other machines run it, which replace variables themselves.
    elsewhere: Option<HostVariables>,
}

/// One job file.
pub struct JobFileStep {
    /// Name: the file's without its ending, or the first job's.
    pub name: String,
    /// Name of the file in the record.
    pub file_name: String,
    /// The text as it will run: variables and included files resolved.
    pub text: String,
    /// The bytes as the user wrote them; `None` for a command line.
    pub written: Option<Vec<u8>>,
    /// The jobs that run.
    pub jobs: Vec<JobSpec>,
}

impl JobFileStep {
    /// A job file that lies on fio servers.
    fn remote(name: &str, text: &str) -> Self {
        Self {
            file_name: format!("{}.fio", file_name_of(name)),
            name: name.to_owned(),
            text: text.to_owned(),
            written: None,
            jobs: Vec::new(),
        }
    }
}

impl Plan {
    /// Reads and checks what the command line names.
    ///
    /// # Errors
    /// An [`ExitError`] that says what is wrong; nothing was opened for writing.
    pub fn make(args: &Args, files: &[PathBuf], servers: Option<&Servers>) -> anyhow::Result<Self> {
        Self::made(args, files, servers, None)
    }

    /// The same for machines that read the job files themselves and have, or are
    /// given, values of their variables: job files stay as they were written.
    ///
    /// # Errors
    /// As [`Plan::make`].
    pub fn elsewhere(args: &Args, variables: &HostVariables) -> anyhow::Result<Self> {
        Self::made(args, &args.files, None, Some(variables.clone()))
    }

    fn made(
        args: &Args,
        files: &[PathBuf],
        servers: Option<&Servers>,
        elsewhere: Option<HostVariables>,
    ) -> anyhow::Result<Self> {
        let split = globals::split(&args.fio_options).map_err(|m| exit(Exit::Usage, m))?;
        let (passed, sections) = without_sections(split.passed);
        let mut plan = Self {
            steps: Vec::new(),
            passed,
            sections: args.section.iter().cloned().chain(sections).collect(),
            notes: Vec::new(),
            elsewhere,
        };
        if let Some(path) = servers.and_then(|servers| servers.remote_job.as_ref()) {
            plan.add_remote(path);
        } else if files.is_empty() {
            if split.job.is_empty() {
                let what = "nothing to run: give a job file, or a job as fio options after --\n  \
                            to do: fathom job run -- --name=a --rw=randread --size=64m";
                return Err(exit(Exit::Usage, what));
            }
            let checked = JobFile::from_cmdline(&split.job);
            plan.add(args, checked, None)?;
        } else if let Some(stray) = split.job.first() {
            let bare = stray.trim_start_matches('-');
            let what = format!(
                "{stray} belongs to a job, and the jobs are those of the file\n  to do: --set {bare} changes it in every job"
            );
            return Err(exit(Exit::Usage, what));
        }
        for path in files {
            let bytes = regular::read(path, JOB_FILE_BYTES_MAX)
                .map_err(|e| exit(Exit::Input, format!("{}: {e}", path.display())))?;
            let checked = plan.read(path)?;
            plan.add(args, checked, Some(bytes))?;
        }
        plan.name_files();
        if servers.is_some() {
            // Servers are given the jobs that run, and no others.
            plan.sections.clear();
        }
        Ok(plan)
    }

    fn add(
        &mut self,
        args: &Args,
        mut checked: CheckedJobFile,
        written: Option<Vec<u8>>,
    ) -> anyhow::Result<()> {
        let path = checked.file.path().to_owned();
        if args.strict {
            for diagnostic in &mut checked.diagnostics {
                diagnostic.severity = Severity::Error;
            }
        }
        let mut file = accept(checked, false)?;
        apply(&mut file, &args.set, args.strict, &|text, path| {
            self.parse(text, path)
        })?;
        if written.is_none() {
            // fio has the names that its command line gives among the jobs' options.
            let jobs = file.jobs();
            jobs.iter()
                .enumerate()
                .for_each(|(nth, job)| file.add(nth, &name_of(job)));
        }
        if self.elsewhere.is_none() {
            file = self.guarded(file);
        }
        if !args.clients.client.is_empty() {
            no_variables(&file)?;
            file.keep_sections(&self.sections);
        }
        let jobs = self.chosen(&file, &path)?;
        let Some(first) = jobs.first() else {
            let what = format!("{}: there is no job in it", path.display());
            return Err(exit(Exit::Input, what));
        };
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let name = match &written {
            Some(_) => stem.unwrap_or_else(|| first.name.clone()),
            None => first.name.clone(),
        };
        self.steps.push(JobFileStep {
            file_name: format!("{}.fio", file_name_of(&name)),
            name,
            text: file.render(),
            written,
            jobs,
        });
        Ok(())
    }

    /// A job file whose devices are never created as files.
    fn guarded(&mut self, mut file: JobFile) -> JobFile {
        for job in preflight::forbid_creation(&mut file) {
            self.notes.push(format!(
                "{job}: added allow_file_create=0, so that a device that vanishes is not created as a file"
            ));
        }
        file
    }

    /// The jobs of a file that run.
    fn chosen(&self, file: &JobFile, path: &Path) -> anyhow::Result<Vec<JobSpec>> {
        let mut jobs = file.jobs();
        let sections = &self.sections;
        for wanted in sections {
            if !jobs.iter().any(|job| job.name == *wanted) {
                let what = format!("{}: there is no section [{wanted}]", path.display());
                return Err(exit(Exit::Input, what));
            }
        }
        if !sections.is_empty() {
            jobs.retain(|job| sections.contains(&job.name));
        }
        Ok(jobs)
    }

    fn read(&self, path: &Path) -> anyhow::Result<CheckedJobFile> {
        let checked = match &self.elsewhere {
            Some(all) => JobFile::read_unexpanded(path, &|name| all.example(name)),
            None => JobFile::read(path, &variable),
        };
        checked.map_err(|error| {
            let what = format!("{}: {error}", path.display());
            ExitError::new(Exit::Input, what).into()
        })
    }

    fn parse(&self, text: &str, path: &Path) -> CheckedJobFile {
        match &self.elsewhere {
            Some(all) => {
                JobFile::parse_unexpanded(text.as_bytes(), path, &|name| all.example(name))
            }
            None => JobFile::parse(text, path, &variable),
        }
    }

    /// The variables that the job files name.
    pub fn variables(&self) -> BTreeSet<String> {
        let steps = self.steps.iter();
        let named = steps.flat_map(|step| {
            let path = Path::new(&step.file_name);
            self.parse(&step.text, path).file.variables().clone()
        });
        named.collect()
    }

    /// A job file that lies on the servers: what is in it is not known here.
    fn add_remote(&mut self, path: &str) {
        let name = Path::new(path).file_stem();
        let name = name.map_or("job".into(), |stem| stem.to_string_lossy());
        self.notes.push(format!(
            "{path} lies on the servers: what it writes to could not be checked"
        ));
        let text = format!("# {path} on each server was run\n");
        self.steps.push(JobFileStep::remote(&name, &text));
    }

    /// Several files get their place in front, which also tells namesakes apart.
    fn name_files(&mut self) {
        if self.steps.len() < 2 {
            return;
        }
        for (place, step) in (1..).zip(&mut self.steps) {
            step.file_name = format!("{place:02}-{}", step.file_name);
        }
    }

    /// Whether an engine runs every step.
    ///
    /// # Errors
    /// Everything that it lacks for them.
    pub fn all(
        &self,
        runs: impl Fn(&JobFileStep) -> Result<(), MissingCapability>,
    ) -> Result<(), MissingCapability> {
        let lacks = self.steps.iter().filter_map(|step| runs(step).err());
        let joined = lacks.reduce(|mut all, lack| {
            all.reasons.extend(lack.reasons);
            all
        });
        joined.map_or(Ok(()), Err)
    }

    /// Every path the jobs use, each once and from the root on; the folder the
    /// run is in where a job names none.
    pub fn targets(&self, work_dir: &Path) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for job in self.steps.iter().flat_map(|step| &step.jobs) {
            for path in targets(job)
                .into_iter()
                .map(|target| work_dir.join(target.path))
            {
                // Without the `.` in it, and the slash behind.
                let path: PathBuf = path.components().collect();
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        if paths.is_empty() {
            paths.push(work_dir.to_owned());
        }
        paths
    }

    /// What will be laid out before it is read.
    pub fn layouts(&self, work_dir: &Path) -> Vec<String> {
        let steps = self.steps.iter();
        let uses = steps.filter_map(|step| resolve::all(&step.jobs, work_dir).ok());
        uses.flatten().filter_map(|used| used.layout()).collect()
    }

    /// What stands against writing to the targets: that they are not what they seem, or
    /// may not be written to.
    pub fn against_targets(&self, work_dir: &Path, owner: Owner<'_>) -> Option<RunError> {
        let mut refusals = Vec::new();
        let mut findings = Vec::new();
        let mut refuse = |refusal: String| {
            if !refusals.contains(&refusal) {
                refusals.push(refusal);
            }
        };
        let judge = WriteJudge::new(&Confirmations(owner.destroy.to_vec()));
        for output in self.outputs(work_dir) {
            let output = work_dir.join(output);
            let judged = judge.output(&output).map_err(|refusal| refusal.to_string());
            if let Err(refusal) = judged.and_then(|()| existing::check_log(&output)) {
                refuse(refusal);
            }
        }
        if let Some(trigger) = passed_value(&self.passed, "trigger-file")
            && work_dir.join(trigger).exists()
        {
            refuse(format!(
                "{trigger} already exists: fio removes its trigger file as soon as it sees it; nothing was written\n  to do: name a file that does not exist yet"
            ));
        }
        for step in &self.steps {
            let unusable = preflight::refusals(&step.jobs, work_dir);
            unusable
                .iter()
                .for_each(|failure| refuse(failure.to_string()));
            let told = |used: &PathUse| {
                let path = used.named.display().to_string();
                unusable.iter().any(|it| it.subject.as_ref() == Some(&path))
            };
            if let Err(refusal) = existing::check(&step.jobs, work_dir, owner) {
                refuse(refusal);
            }
            // What cannot be told is among the refusals already.
            let uses = resolve::all(&step.jobs, work_dir).unwrap_or_default();
            for used in uses.iter().filter(|used| !told(used)) {
                let judged = match used.action {
                    JobPathUse::Read => Ok(()),
                    JobPathUse::Log => judge.output(&used.path),
                    JobPathUse::LayOut { .. } | JobPathUse::Write => judge.write(&used.path),
                };
                if let Err(refusal) = judged {
                    findings.extend(refusal.findings());
                    refuse(refusal.to_string());
                }
            }
        }
        (!refusals.is_empty()).then(|| {
            RunError::Refused(Refused {
                text: refusals.join("\n"),
                findings,
            })
        })
    }

    /// What fio's own options write: logs, and verify states in a folder of their own.
    fn outputs(&self, work_dir: &Path) -> Vec<PathBuf> {
        let has_log = self
            .passed
            .iter()
            .any(|arg| arg.ends_with("-bandwidth-log"));
        // libfio.c, setup_log for all jobs together.
        let names = ["read", "write", "trim"].iter();
        let names = names.map(|way| PathBuf::from(format!("agg-{way}_bw.log")));
        let mut outputs: Vec<PathBuf> = names.filter(|_| has_log).collect();
        if let Some(folder) = passed_value(&self.passed, "aux-path") {
            let jobs = self.steps.iter().flat_map(|step| &step.jobs);
            outputs.extend(jobs.flat_map(|job| resolve::states(job, &work_dir.join(folder))));
        }
        outputs
    }

    /// The paths that the jobs write to.
    pub fn written(&self, work_dir: &Path) -> Vec<PathBuf> {
        let steps = self.steps.iter();
        let uses = steps.filter_map(|step| resolve::all(&step.jobs, work_dir).ok());
        let written = uses
            .flatten()
            .filter(|used| used.action == JobPathUse::Write);
        written.map(|used| used.path).collect()
    }

    /// The same plan, read again: from a record, or from another machine.
    ///
    /// # Errors
    /// What is wrong with its job files here.
    pub fn of(kept: &JobPlan) -> anyhow::Result<Self> {
        let mut plan = Self {
            steps: Vec::new(),
            passed: kept.passed.clone(),
            sections: kept.sections.clone(),
            notes: kept.notes.clone(),
            elsewhere: kept.hosts.as_ref().map(|hosts| hosts.variables.clone()),
        };
        for file in &kept.files {
            if kept
                .servers
                .as_ref()
                .is_some_and(|it| it.remote_job.is_some())
            {
                plan.steps.push(JobFileStep::remote(&file.name, &file.text));
                continue;
            }
            let checked = plan.parse(&file.text, Path::new(&file.file_name));
            let mut job_file = accept(checked, true)?;
            if plan.elsewhere.is_none() {
                job_file = plan.guarded(job_file);
            }
            let jobs = plan.chosen(&job_file, Path::new(&file.file_name))?;
            plan.steps.push(JobFileStep {
                name: file.name.clone(),
                file_name: file.file_name.clone(),
                text: job_file.render(),
                written: None,
                jobs,
            });
        }
        Ok(plan)
    }

    /// As it is kept in a record and sent to other machines.
    pub fn kept(&self, args: &Args, servers: Option<Servers>) -> anyhow::Result<JobPlan> {
        let times = (args.interval, args.timeout);
        Ok(self.with(args.name.clone(), args.run.options()?, times, servers))
    }

    /// The same, with its name, and how it is run.
    pub fn with(
        &self,
        name: Option<String>,
        options: RunOptions,
        (interval, timeout): (Duration, Option<Duration>),
        servers: Option<Servers>,
    ) -> JobPlan {
        let first = self.steps.first().map_or("job", |step| step.name.as_str());
        let files = self.steps.iter().map(|step| JobText {
            name: step.name.clone(),
            file_name: step.file_name.clone(),
            text: step.text.clone(),
        });
        JobPlan {
            name: name.unwrap_or_else(|| first.to_owned()),
            files: files.collect(),
            passed: self.passed.clone(),
            sections: self.sections.clone(),
            notes: self.notes.clone(),
            interval,
            timeout,
            work_dir: None,
            options,
            servers,
            device: None,
            hosts: None,
        }
    }

    /// One job file, with these settings in all its jobs; `elsewhere` where other
    /// machines run it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_file(
        path: &Path,
        settings: &[Setting],
        elsewhere: Option<HostVariables>,
    ) -> anyhow::Result<Self> {
        let mut plan = Self {
            steps: Vec::new(),
            passed: Vec::new(),
            sections: Vec::new(),
            notes: Vec::new(),
            elsewhere,
        };
        let mut file = accept(plan.read(path)?, false)?;
        let parse = |text: &str, path: &Path| plan.parse(text, path);
        apply(&mut file, settings, false, &parse)?;
        if plan.elsewhere.is_none() {
            file = plan.guarded(file);
        }
        let jobs = plan.chosen(&file, path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        plan.steps.push(JobFileStep {
            file_name: format!("{}.fio", file_name_of(&name)),
            name: name.into_owned(),
            text: file.render(),
            written: None,
            jobs,
        });
        Ok(plan)
    }
}

/// A job's name as an option.
fn name_of(job: &JobSpec) -> JobOption {
    JobOption {
        name: "name".to_owned(),
        value: Some(job.name.clone()),
        origin: fathom_model::Origin::Fathom {
            reason: "--name".to_owned(),
        },
    }
}

/// Refuses a variable that could not be replaced here: a fio server would take
/// its own for it.
fn no_variables(file: &JobFile) -> anyhow::Result<()> {
    let left = JobFile::parse(&file.render(), file.path(), &variable);
    match left.file.variables().first() {
        None => Ok(()),
        Some(name) => Err(exit(
            Exit::Input,
            format!(
                "{}: the value of {name} cannot be sent to fio servers: it has a ; or # in it, a control character, or a blank at its end",
                file.path().display()
            ),
        )),
    }
}

/// fio's own options, and the sections that they ask for: who has to report at
/// the end depends on these.
fn without_sections(options: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut others, mut sections) = (Vec::new(), Vec::new());
    let mut options = options.into_iter();
    while let Some(option) = options.next() {
        match option.trim_start_matches('-').split_once('=') {
            Some(("section", name)) => sections.push(name.to_owned()),
            None if option.trim_start_matches('-') == "section" => sections.extend(options.next()),
            _ => others.push(option),
        }
    }
    (others, sections)
}

/// A name without slashes and spaces.
fn file_name_of(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_alphanumeric() || "._-+".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect()
}

fn exit(exit: Exit, message: impl Into<String>) -> anyhow::Error {
    ExitError::new(exit, message.into()).into()
}
