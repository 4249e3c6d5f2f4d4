//! The native engine where there is none: it is written for Linux. The same
//! names as in `native`, so that no caller need ask for the system.

use fathom_engine::{Control, Engine, EngineError, Outcome, Request, Sink};
use fathom_model::{Failure, FailureKind, JobSpec};

pub use crate::unsupported::Unsupported;

const NOT_HERE: &str = "the native engine is for Linux only";

/// Stands for the engine; runs nothing.
#[derive(Debug, Default)]
pub struct Native;

impl Native {
    /// The engine that runs nothing.
    pub fn new() -> Self {
        Self
    }

    /// The same.
    pub fn in_own_process() -> Self {
        Self
    }
}

/// No process is one of its own.
pub fn entry(_: impl Iterator<Item = std::ffi::OsString>) -> Option<std::process::ExitCode> {
    None
}

impl Engine for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn run(&self, _: &Request, _: &Control, _: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let failure = Failure::new(FailureKind::EngineMissing, NOT_HERE);
        Err(EngineError::Failed(failure))
    }
}

/// What results would name as the engine's version.
pub fn version() -> String {
    format!("native-{}", env!("CARGO_PKG_VERSION"))
}

/// An option of the native engine: there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// What it is about.
    pub group: &'static str,
    /// Its names.
    pub names: &'static [&'static str],
    /// What differs from fio.
    pub differs: &'static str,
    /// Whether it changes nothing.
    pub idle: bool,
}

/// No options.
pub fn options() -> impl Iterator<Item = Listed> {
    std::iter::empty()
}

/// No I/O engines.
pub fn io_engines() -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}

/// No table.
pub fn markdown() -> String {
    format!("{NOT_HERE}\n")
}

/// No kernel is asked.
pub fn kernel_lacks(_: &[JobSpec]) -> Vec<String> {
    Vec::new()
}

/// No job runs.
///
/// # Errors
/// Every job.
pub fn supports(jobs: &[JobSpec]) -> Result<(), Vec<Unsupported>> {
    let refused = |job: &JobSpec| Unsupported {
        job: job.name.clone(),
        option: "engine".to_owned(),
        origin: None,
        reason: NOT_HERE.to_owned(),
    };
    Err(jobs.iter().map(refused).collect())
}
