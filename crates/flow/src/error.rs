//! Why something does not run.

use fathom_engine::EngineError;
use fathom_engines::choice::NoEngine;
use fathom_fleet::local::FleetError;
use fathom_model::{Exit, FailureKind, Refused};
use fathom_record::RecordError;

/// Why something does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A job file or a setting is wrong.
    #[error("{0}")]
    Input(String),
    /// Refused so that no data is lost and no figure misleads.
    #[error("{0}")]
    Refused(Refused),
    /// Something needed is not there: a record, a device.
    #[error("{0}")]
    Missing(String),
    /// Something that was switched could not be put back.
    #[error("{0}")]
    NotPutBack(String),
    /// It ran, and came to no good end.
    #[error("{0}")]
    Failed(String),
    /// No engine runs the points.
    #[error("{0}\n  to do: {advice}", advice = .0.kind().advice())]
    Engine(NoEngine),
    /// The engine could not be asked for its command.
    #[error(transparent)]
    Command(#[from] EngineError),
    /// It was stopped before anything was done.
    #[error("interrupted before anything was done")]
    Interrupted,
    /// The record could not be written or read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The run was stopped because its record could not be written.
    #[error(transparent)]
    Run(#[from] FleetError),
}

impl RunError {
    /// The exit code that fits.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Input(_) => Exit::Input,
            Self::NotPutBack(_) | Self::Failed(_) => Exit::Failed,
            Self::Interrupted => Exit::Interrupted,
            Self::Refused(_) | Self::Record(RecordError::Busy { .. }) => Exit::Refused,
            Self::Missing(_) | Self::Command(_) => Exit::Missing,
            Self::Engine(none) => match none.kind() {
                FailureKind::FioMissing | FailureKind::EngineMissing => Exit::Missing,
                _ => Exit::Input,
            },
            Self::Record(_) | Self::Run(_) => Exit::Record,
        }
    }
}
