//! fio's job files: read, checked, resolved, written again.
//!
//! Two levels: [`JobFile`] is what was written (sections and lines in order,
//! each with its place, comments kept), [`JobSpec`] is what runs (globals
//! applied, variables expanded). Nothing here needs fio; that both agree with
//! it is tested against the real one.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use fathom_model::{JobOption, JobSpec, Origin};

mod check;
mod cmdline;
mod diagnostic;
mod environment;
mod expand;
pub mod iolog;
mod kind;
mod parameter;
pub mod preflight;
mod replay;
pub mod resolve;
mod source;
pub mod spec;
mod syntax;
pub mod table;
mod target;
pub mod variables;
mod written;

pub use cmdline::{cmdline, shell_quote};
pub use diagnostic::{Diagnostic, Severity};
pub use environment::is_variable_name;
pub use replay::{Replay, replay};
pub use source::{Keyword, Sources};
pub use target::{
    FIRST_DUMP, Role, TargetUse, below, first_dump, first_verify_state, folders, is_write,
    log_kinds, makes_names, numbered, reaches_files, runs_programs, split_names, targets,
};

/// A job file as written.
#[derive(Debug, Clone)]
pub struct JobFile {
    path: PathBuf,
    /// Comments and blank lines above the first section.
    preamble: Vec<String>,
    sections: Vec<Section>,
    variables: BTreeSet<String>,
}

/// A section and its lines.
#[derive(Debug, Clone)]
pub struct Section {
    /// Name between the brackets.
    pub name: String,
    /// Where its header stands.
    pub origin: Origin,
    /// Its lines in order.
    pub entries: Vec<JobLine>,
}

/// What an option's value becomes, by its name in fio and the jobs that see it.
pub type ValueMap<'m> =
    dyn FnMut(&str, Range<usize>, &JobOption) -> io::Result<Option<String>> + 'm;

/// A line of a section.
#[derive(Debug, Clone)]
pub enum JobLine {
    /// An option.
    Option {
        /// The option, expanded.
        option: JobOption,
        /// The line that says so in a job file.
        text: String,
    },
    /// A comment or a blank line.
    Comment(String),
}

impl JobLine {
    fn of(option: &JobOption) -> Self {
        let text = match &option.value {
            Some(value) => format!("{}={value}", option.name),
            None => option.name.clone(),
        };
        let option = option.clone();
        Self::Option { option, text }
    }
}

impl Section {
    /// Whether its options are defaults of the jobs below rather than a job.
    pub fn is_global(&self) -> bool {
        // init.c compares the first six letters only.
        self.name.starts_with("global")
    }

    /// Its options in order.
    pub fn options(&self) -> impl Iterator<Item = &JobOption> {
        self.entries.iter().filter_map(|entry| match entry {
            JobLine::Option { option, .. } => Some(option),
            JobLine::Comment(_) => None,
        })
    }
}

/// A job file and what is wrong with it.
#[derive(Debug, Clone)]
pub struct CheckedJobFile {
    /// What could be understood.
    pub file: JobFile,
    /// Everything that was found, in the order of the lines.
    pub diagnostics: Vec<Diagnostic>,
}

impl CheckedJobFile {
    /// Whether anything keeps the jobs from running.
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

impl JobFile {
    fn empty(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            preamble: Vec::new(),
            sections: Vec::new(),
            variables: BTreeSet::new(),
        }
    }

    /// Reads a job file and what it includes; `env` gives the variables.
    ///
    /// # Errors
    /// When `path` itself cannot be read; everything else is a diagnostic.
    pub fn read(
        path: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<CheckedJobFile, io::Error> {
        let bytes = source::read_limited(path)?;
        Ok(syntax::parse(
            &bytes,
            path,
            &source::DiskSources { env, defers: false },
        ))
    }

    /// Parses a text that came from `path`; files it includes are read.
    pub fn parse(text: &str, path: &Path, env: &dyn Fn(&str) -> Option<String>) -> CheckedJobFile {
        syntax::parse(
            text.as_bytes(),
            path,
            &source::DiskSources { env, defers: false },
        )
    }

    /// Parses a text with variables and included files from `sources`; does no I/O itself.
    pub fn parse_with(text: &[u8], path: &Path, sources: &dyn Sources) -> CheckedJobFile {
        syntax::parse(text, path, sources)
    }

    /// Reads the options of a fio command line (without the `fio`).
    pub fn from_cmdline(args: &[String]) -> CheckedJobFile {
        cmdline::parse(args)
    }

    /// The file's path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its sections in order, globals included.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// The jobs in order, the globals above each applied.
    pub fn jobs(&self) -> Vec<JobSpec> {
        let mut globals: Vec<JobOption> = Vec::new();
        let mut jobs = Vec::new();
        for section in &self.sections {
            if section.is_global() {
                globals.extend(section.options().cloned());
            } else {
                jobs.push(JobSpec {
                    name: section.name.clone(),
                    options: globals.iter().chain(section.options()).cloned().collect(),
                });
            }
        }
        jobs
    }

    /// Sets an option in every job, in place of all that was written for it
    /// under any of its names (fio would add a second `filename` to the first).
    pub fn set(&mut self, key: &str, value: Option<&str>) {
        self.set_where(&|section| !section.is_global(), true, key, value);
    }

    /// As [`JobFile::set`], in the jobs of this name only.
    pub fn set_in(&mut self, job: &str, key: &str, value: Option<&str>) {
        let is_it = |section: &Section| !section.is_global() && section.name == job;
        self.set_where(&is_it, false, key, value);
    }

    /// Sets an option in some sections, and takes what the others have of it away.
    fn set_where(
        &mut self,
        is_set: &dyn Fn(&Section) -> bool,
        is_only: bool,
        key: &str,
        value: Option<&str>,
    ) {
        let option = JobOption {
            name: key.to_owned(),
            value: value.map(str::to_owned),
            origin: Origin::Fathom {
                reason: "--set".to_owned(),
            },
        };
        let line = JobLine::of(&option);
        let name = table::table().canonical(key);
        for section in &mut self.sections {
            let sets = is_set(section);
            section.entries.retain(|entry| match entry {
                JobLine::Option { option, .. } if sets || is_only => {
                    table::table().canonical(&option.name) != name
                }
                _ => true,
            });
            if sets {
                section.entries.push(line.clone());
            }
        }
    }

    /// Adds an option at the end of the `nth` job (counted from 0, as [`JobFile::jobs`]
    /// gives them).
    pub fn add(&mut self, nth: usize, option: &JobOption) {
        if let Some(section) = self.job_section(nth) {
            section.entries.push(JobLine::of(option));
        }
    }

    /// As [`JobFile::add`], in front of what the job has.
    pub fn add_first(&mut self, nth: usize, option: &JobOption) {
        if let Some(section) = self.job_section(nth) {
            section.entries.insert(0, JobLine::of(option));
        }
    }

    fn job_section(&mut self, nth: usize) -> Option<&mut Section> {
        let sections = self.sections.iter_mut();
        sections.filter(|section| !section.is_global()).nth(nth)
    }

    /// Gives options other values: of each is asked with its name in fio, the jobs that
    /// see it (as [`JobFile::jobs`] gives them) and what was written. `None` leaves it.
    ///
    /// # Errors
    /// The first that `map` gives.
    pub fn map_values(&mut self, map: &mut ValueMap<'_>) -> io::Result<()> {
        let is_job = |section: &&Section| !section.is_global();
        let all = self.sections.iter().filter(is_job).count();
        let mut before = 0;
        for section in &mut self.sections {
            let users = match section.is_global() {
                true => before..all,
                false => before..before + 1,
            };
            before += usize::from(!section.is_global());
            for entry in &mut section.entries {
                let JobLine::Option { option, text } = entry else {
                    continue;
                };
                let name = table::table().canonical(&option.name).to_owned();
                if let Some(value) = map(&name, users.clone(), option)? {
                    *text = format!("{}={value}", option.name);
                    option.value = Some(value);
                }
            }
        }
        Ok(())
    }

    /// Keeps only the job sections with these names (all when there are none
    /// given) and the globals.
    pub fn keep_sections(&mut self, names: &[String]) {
        if !names.is_empty() {
            self.sections
                .retain(|section| section.is_global() || names.contains(&section.name));
        }
    }

    /// The file's text: lines as written, variables expanded, included files
    /// in their place, so that it means the same wherever it lies.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let mut line = |content: &str| {
            text.push_str(content);
            text.push('\n');
        };
        for comment in &self.preamble {
            line(comment);
        }
        for section in &self.sections {
            line(&format!("[{}]", section.name));
            for entry in &section.entries {
                match entry {
                    JobLine::Option { text, .. } | JobLine::Comment(text) => line(text),
                }
            }
        }
        text
    }
}
