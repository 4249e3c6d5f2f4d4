//! From the command line to the steps of a run, everything checked that can be
//! checked before anything is opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fathom_device::Hold;
use fathom_device::safety::{Confirmations, Judge};
use fathom_engine::choice::Lack;
use fathom_engine::fio::client::Servers;
use fathom_engine::fio::preflight;
use fathom_engine::jobfile::{Checked, JobFile, Severity, targets, variable};
use fathom_engine::regular;
use fathom_engine::resolve::{self, Action, PathUse};
use fathom_model::{Exit, JobSpec};

use super::{Args, globals};
use crate::cmd::ExitError;
use crate::cmd::hosts::HostVariables;
use crate::cmd::job::{accept, apply};

/// No job file is longer; the reader of job files has a limit of its own.
const JOB_FILE_BYTES_MAX: u64 = 64 << 20;

/// What is to run.
pub struct Plan {
    /// One a job file.
    pub steps: Vec<Step>,
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
pub struct Step {
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
            let checked = match &plan.elsewhere {
                Some(all) => JobFile::read_unexpanded(path, &|name| all.example(name)),
                None => JobFile::read(path, &variable),
            };
            let checked = checked.with_context(|| path.display().to_string())?;
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
        mut checked: Checked,
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
        let devices = match self.elsewhere {
            Some(_) => Vec::new(),
            None => preflight::forbid_creation(&mut file),
        };
        for job in devices {
            self.notes.push(format!(
                "{job}: added allow_file_create=0, so that a device that vanishes is not created as a file"
            ));
        }
        if !args.clients.client.is_empty() {
            no_variables(&file)?;
            file.keep_sections(&self.sections);
        }
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
        let Some(first) = jobs.first() else {
            return Err(exit(
                Exit::Input,
                format!("{}: there is no job in it", path.display()),
            ));
        };
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        let name = match &written {
            Some(_) => stem.unwrap_or_else(|| first.name.clone()),
            None => first.name.clone(),
        };
        self.steps.push(Step {
            file_name: format!("{}.fio", file_name_of(&name)),
            name,
            text: file.render(),
            written,
            jobs,
        });
        Ok(())
    }

    fn parse(&self, text: &str, path: &Path) -> Checked {
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
        self.steps.push(Step {
            file_name: format!("{}.fio", file_name_of(&name)),
            name: name.into_owned(),
            text: format!("# {path} on each server was run\n"),
            written: None,
            jobs: Vec::new(),
        });
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
    pub fn all(&self, runs: impl Fn(&Step) -> Result<(), Lack>) -> Result<(), Lack> {
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

    /// Whether all targets are what they seem and may be written to.
    ///
    /// # Errors
    /// Exit 4 with everything that stands against it.
    pub fn check_targets(&self, work_dir: &Path, destroy: &[String]) -> anyhow::Result<()> {
        let mut refusals = Vec::new();
        let mut refuse = |refusal: String| {
            if !refusals.contains(&refusal) {
                refusals.push(refusal);
            }
        };
        let judge = Judge::new(&Confirmations(destroy.to_vec()));
        for output in self.outputs() {
            if let Err(refusal) = judge.output(&work_dir.join(output)) {
                refuse(refusal.to_string());
            }
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
            // What cannot be told is among the refusals already.
            let uses = resolve::all(&step.jobs, work_dir).unwrap_or_default();
            for used in uses.iter().filter(|used| !told(used)) {
                let judged = match used.action {
                    Action::Read => Ok(()),
                    Action::Log => judge.output(&used.path),
                    Action::LayOut { .. } | Action::Write => judge.write(&used.path),
                };
                if let Err(refusal) = judged {
                    refuse(refusal.to_string());
                }
            }
        }
        match refusals[..] {
            [] => Ok(()),
            _ => Err(exit(Exit::Refused, refusals.join("\n"))),
        }
    }

    /// What fio's own options write.
    fn outputs(&self) -> Vec<PathBuf> {
        let has_log = self
            .passed
            .iter()
            .any(|arg| arg.ends_with("-bandwidth-log"));
        // libfio.c, setup_log for all jobs together.
        let names = ["read", "write", "trim"].iter();
        let names = names.map(|way| PathBuf::from(format!("agg-{way}_bw.log")));
        names.filter(|_| has_log).collect()
    }

    /// The paths that the jobs write to.
    pub fn written(&self, work_dir: &Path) -> Vec<PathBuf> {
        let steps = self.steps.iter();
        let uses = steps.filter_map(|step| resolve::all(&step.jobs, work_dir).ok());
        let written = uses.flatten().filter(|used| used.action == Action::Write);
        written.map(|used| used.path).collect()
    }

    /// Keeps the devices that the jobs write to from others while they run.
    ///
    /// # Errors
    /// The refusal, when somebody else keeps one.
    pub fn hold(&self, work_dir: &Path) -> anyhow::Result<Hold> {
        Hold::of(self.written(work_dir).iter().map(PathBuf::as_path))
            .map_err(|refusal| exit(Exit::Refused, refusal.to_string()))
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
    ExitError {
        exit,
        message: message.into(),
    }
    .into()
}
