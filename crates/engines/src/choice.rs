//! Which engine runs jobs: fio where it is installed and has every option they
//! need, else the native one where it has, else none, with both reasons.

use std::fmt;

use fathom_device::threads;
use fathom_jobfile::spec;
use fathom_jobfile::table::table;
use fathom_model::io_engine::io_engine;
use fathom_model::{Failure, FailureKind, JobOption, JobSpec};

use fathom_engine_fio::inventory;
use fathom_engine_fio::parse_only::{BAD_OPTION, words_against};
use fathom_engine_fio::version::Program;

use crate::EngineName;

/// The engine that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chosen {
    /// fio.
    Fio,
    /// The native one.
    Native,
}

/// Why an engine does not run jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingCapability {
    /// What it is: nothing there, an I/O engine missing, an option not taken.
    pub kind: FailureKind,
    /// Sentences without a full stop.
    pub reasons: Vec<String>,
}

impl MissingCapability {
    /// A lack for one reason.
    pub fn new(kind: FailureKind, reason: impl Into<String>) -> Self {
        Self {
            kind,
            reasons: vec![reason.into()],
        }
    }

    /// An engine takes the jobs when nothing stands against it.
    ///
    /// # Errors
    /// The lack, when there is a reason.
    pub fn unless_none(kind: FailureKind, reasons: Vec<String>) -> Result<(), Self> {
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(Self { kind, reasons })
        }
    }
}

impl fmt::Display for MissingCapability {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.reasons.join("; "))
    }
}

impl From<Failure> for MissingCapability {
    /// A program that is not there; what to do about it is for the end of the message.
    fn from(failure: Failure) -> Self {
        let reason = match failure.subject {
            Some(subject) => format!("{subject}: {}", failure.message),
            None => failure.message,
        };
        Self::new(failure.kind, reason)
    }
}

/// No engine runs the jobs: each that was asked for, with its lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoEngine(pub Vec<(&'static str, MissingCapability)>);

impl NoEngine {
    /// The kind of the first lack: what is to be got, or mended, first.
    pub fn kind(&self) -> FailureKind {
        self.0
            .first()
            .map_or(FailureKind::Other, |(_, lack)| lack.kind)
    }
}

impl fmt::Display for NoEngine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let [(_, lack), others @ ..] = &self.0[..]
            && others.iter().all(|(_, other)| other == lack)
        {
            return f.write_str(&lack.reasons.join("\n"));
        }
        f.write_str("no engine here runs this")?;
        for (engine, lack) in &self.0 {
            for reason in &lack.reasons {
                write!(f, "\n  {engine}: {reason}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for NoEngine {}

/// Chooses; each function looks whether its engine can, and is called only when
/// that matters. With the native engine comes why it was not fio, when fio had
/// been taken otherwise.
///
/// # Errors
/// The lacks of all engines that were asked for.
pub fn choose(
    wish: EngineName,
    fio: impl FnOnce() -> Result<(), MissingCapability>,
    native: impl FnOnce() -> Result<(), MissingCapability>,
) -> Result<(Chosen, Option<MissingCapability>), NoEngine> {
    let mut lacks = Vec::new();
    if wish != EngineName::Native {
        match fio() {
            Ok(()) => return Ok((Chosen::Fio, None)),
            Err(lack) => lacks.push(("fio", lack)),
        }
    }
    if wish != EngineName::Fio {
        match native() {
            Ok(()) => return Ok((Chosen::Native, lacks.pop().map(|(_, lack)| lack))),
            Err(lack) => lacks.push(("native", lack)),
        }
    }
    Err(NoEngine(lacks))
}

/// Whether the native engine runs these jobs; touches nothing.
///
/// # Errors
/// Every option that it does not take, with its line.
pub fn native_runs(jobs: &[JobSpec]) -> Result<(), MissingCapability> {
    let refused = fathom_engine_native::supports(jobs)
        .err()
        .unwrap_or_default();
    let reasons = refused.iter().map(ToString::to_string).collect();
    MissingCapability::unless_none(FailureKind::BadOption, reasons)?;
    kernel_runs(jobs)
}

/// Whether the kernel offers the I/O engines of these jobs, whoever uses them.
fn kernel_runs(jobs: &[JobSpec]) -> Result<(), MissingCapability> {
    MissingCapability::unless_none(
        FailureKind::EngineMissing,
        fathom_engine_native::kernel_lacks(jobs),
    )
}

/// Whether the jobs hold nothing that a fio in use may lack: usual engines, and
/// options that the table of fio 3.33 has without a later version. Most jobs
/// are like this, and asking fio would cost more than all else of a run.
fn are_usual(jobs: &[JobSpec]) -> bool {
    let usual = |option: &JobOption| {
        let mut specs = table().find(&option.name).peekable();
        specs.peek().is_some()
            && specs.all(|spec| {
                spec.since.is_none() && spec.choices.iter().all(|(_, since)| since.is_none())
            })
    };
    let is_usual = |job| io_engine(spec::engine(job)).is_some_and(|row| row.is_usual);
    jobs.iter()
        .all(|job| is_usual(job) && job.options.iter().all(usual))
}

/// Whether this fio, and the kernel, have every option and I/O engine of the jobs: known at once
/// of usual jobs, else asked of fio itself (about 20 ms, most of it fio's
/// start). `job_file` is their text, `extra_args` what fio gets on its command line.
///
/// # Errors
/// What it lacks, with its line where that is known.
pub fn fio_runs(
    program: &Program,
    jobs: &[JobSpec],
    job_file: &str,
    extra_args: &[String],
) -> Result<(), MissingCapability> {
    kernel_runs(jobs)?;
    if are_usual(jobs) {
        return Ok(());
    }
    let cannot = |error: std::io::Error| {
        let reason = format!("{} cannot be run: {error}", program.path.display());
        MissingCapability::new(FailureKind::FioMissing, reason)
    };
    // Side by side: each question costs a start of fio.
    let (words, missing) = std::thread::scope(|scope| {
        let ask = || missing_engines(program, jobs);
        let missing = threads::spawn_scoped(scope, "enghelp", ask);
        let words = words_against(program, job_file, extra_args);
        // Where there is no thread to be had, one after the other.
        let missing = missing.map_or_else(|_| Ok(ask()), |thread| thread.join());
        (words, missing)
    });
    let reasons = words
        .map_err(cannot)?
        .into_iter()
        .map(|words| with_place(words, jobs));
    MissingCapability::unless_none(FailureKind::BadOption, reasons.collect())?;
    let missing = missing.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    MissingCapability::unless_none(FailureKind::EngineMissing, missing)
}

/// A sentence for each I/O engine of the jobs that this fio cannot load.
fn missing_engines(program: &Program, jobs: &[JobSpec]) -> Vec<String> {
    let mut engines: Vec<&str> = jobs.iter().map(spec::engine).collect();
    engines.sort_unstable();
    engines.dedup();
    // Engines in files of their own are not in fio's list.
    engines.retain(|engine| !engine.contains('/') && *engine != "external");
    engines.retain(|engine| matches!(inventory::options(program, engine), Ok(None)));
    engines
        .iter()
        .map(|engine| format!("this fio has no I/O engine {engine}, or cannot load it"))
        .collect()
}

/// `Bad option <name=value>` with the line on which it stands.
fn with_place(words: String, jobs: &[JobSpec]) -> String {
    let name = words
        .strip_prefix(BAD_OPTION)
        .and_then(|rest| rest.split(['=', '>']).next());
    let found = name.and_then(|name| jobs.iter().find_map(|job| job.option(name)));
    match found {
        Some(option) => format!(
            "{}: {}: this fio does not have this option",
            option.origin, option.name
        ),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_jobfile::JobFile;

    fn lack(reason: &str) -> Result<(), MissingCapability> {
        Err(MissingCapability::new(FailureKind::FioMissing, reason))
    }

    #[test]
    fn fio_goes_first_and_a_wish_goes_before() {
        let never = || -> Result<(), MissingCapability> { panic!("must not be asked") };
        assert_eq!(
            choose(EngineName::Auto, || Ok(()), never).unwrap().0,
            Chosen::Fio
        );
        let (chosen, why) = choose(EngineName::Auto, || lack("not here"), || Ok(())).unwrap();
        assert_eq!(
            (chosen, why.unwrap().to_string()),
            (Chosen::Native, "not here".to_owned())
        );
        assert_eq!(
            choose(EngineName::Native, never, || Ok(())).unwrap(),
            (Chosen::Native, None)
        );
        let only = choose(EngineName::Fio, || lack("not here"), never).unwrap_err();
        assert_eq!(only.to_string(), "not here");
    }

    #[test]
    fn without_any_engine_both_reasons_are_told() {
        let jobs = |reason: &str| Err(MissingCapability::new(FailureKind::BadOption, reason));
        let none = choose(
            EngineName::Auto,
            || lack("not here"),
            || jobs("x.fio:3:1: no"),
        )
        .unwrap_err();
        assert_eq!(none.kind(), FailureKind::FioMissing);
        assert_eq!(
            none.to_string(),
            "no engine here runs this\n  fio: not here\n  native: x.fio:3:1: no"
        );
        let wrong = choose(EngineName::Auto, || jobs("bogus"), || jobs("bogus")).unwrap_err();
        assert_eq!(wrong.kind(), FailureKind::BadOption);
    }

    /// Found by measuring: every run under auto began with two starts of fio.
    #[test]
    fn usual_jobs_need_no_question() {
        let usual = |text: &str| {
            are_usual(
                &JobFile::parse(text, "t.fio".as_ref(), &|_| None)
                    .file
                    .jobs(),
            )
        };
        assert!(usual(
            "[a]\nrw=randread\nioengine=libaio\niodepth=4\nsize=1m\n"
        ));
        assert!(!usual("[a]\nbogus=1\nsize=1m\n"));
        assert!(!usual("[a]\nioengine=rbd\nsize=1m\n"));
        assert!(!usual("[a]\nlog_issue_time=1\nsize=1m\n"));
    }

    #[test]
    fn fio_is_asked_for_options_and_engines() {
        let name = "fio_is_asked_for_options_and_engines";
        let Ok(program) = Program::find(None) else {
            return fathom_testkit::skip(name, "fio is not installed");
        };
        let runs = |text: &str| {
            let file = JobFile::parse(text, "test.fio".as_ref(), &|_| None).file;
            fio_runs(&program, &file.jobs(), text, &[]).map_err(|lack| lack.to_string())
        };
        assert_eq!(runs("[a]\nrw=read\nsize=4k\n"), Ok(()));
        let refused = runs("[a]\nsize=4k\nbogus=1\nnothing=2\n").unwrap_err();
        assert!(
            refused.contains("test.fio:3:1: bogus: this fio does not have this option"),
            "{refused}"
        );
        let refused = runs("[a]\nsize=4k\nioengine=none_such\n").unwrap_err();
        assert!(refused.contains("none_such"), "{refused}");
        assert!(!std::path::Path::new("a.0.0").exists());
    }
}
