//! Errors with the exit code that a command ends with, and what is written where the user says.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use fathom_device::threads::NoThread;
use fathom_fleet::named_file;
use fathom_flow::error::RunError;
use fathom_model::{Exit, RefusalFinding};

/// An error that carries the exit code it is to end with.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExitError {
    pub exit: Exit,
    pub message: String,
    /// What was found of devices and files, of a refusal.
    pub findings: Vec<RefusalFinding>,
}

impl ExitError {
    pub fn new(exit: Exit, message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        Self {
            exit,
            message,
            findings: Vec::new(),
        }
    }

    /// A refusal, with what was found of devices and files.
    pub fn with_findings(self, findings: Vec<RefusalFinding>) -> Self {
        Self { findings, ..self }
    }
}

/// The exit code of an error: its own, or plain failure.
pub fn exit_for(error: &anyhow::Error) -> Exit {
    if error.is::<NoThread>() {
        return Exit::Missing;
    }
    if let Some(error) = error.downcast_ref::<ExitError>() {
        return error.exit;
    }
    match named_file::Refused::among(error.chain()) {
        Some(_) => Exit::Refused,
        None => Exit::Failed,
    }
}

impl From<&RunError> for ExitError {
    /// With the exit code it is to end with.
    fn from(error: &RunError) -> Self {
        let findings = match error {
            RunError::Refused(refused) => refused.findings.clone(),
            _ => Vec::new(),
        };
        Self::new(error.exit(), error).with_findings(findings)
    }
}

/// With the exit code it is to end with.
pub fn failed(error: RunError) -> ExitError {
    ExitError::from(&error)
}

/// Whether a command may write what it makes to a path that the user named.
///
/// # Errors
/// Exit 4: a device, or a file that is in use as one.
pub fn may_write(path: &Path) -> anyhow::Result<()> {
    named_file::may_write(path).map_err(|message| ExitError::new(Exit::Refused, message).into())
}

/// Writes what a command makes to a path that the user named, whole or not at all: another
/// program may be reading the one of before.
///
/// # Errors
/// Those of [`may_write`], and of the file.
pub fn write_named(path: &Path, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
    may_write(path)?;
    let written = named_file::write(path, |file| file.write_all(bytes.as_ref()));
    written.with_context(|| format!("cannot write {}", path.display()))
}
