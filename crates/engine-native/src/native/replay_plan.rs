//! What a member replays: a log, as it was read before the run.

use std::path::PathBuf;
use std::sync::Arc;

use fathom_jobfile::iolog::IologOp;

use super::job::ReplayOptions;

/// One entry of a log as a job does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplayStep {
    pub(super) op: IologOp,
    pub(super) file: u32,
    /// In bytes; of a wait ms since the start.
    pub(super) offset: u64,
    pub(super) len: u32,
    /// Time since the entry before.
    pub(super) delay_us: u64,
}

/// A log that a member replays.
#[derive(Debug, Clone)]
pub(super) struct ReplayPlan {
    pub(super) options: ReplayOptions,
    pub(super) path: PathBuf,
    /// `None`: they are read again while they are done.
    pub(super) steps: Option<Arc<Vec<ReplayStep>>>,
    pub(super) writes: LoggedWrites,
}

/// The writes of a log, which verify keeps until they are read back.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LoggedWrites {
    pub(super) count: u64,
    /// Bytes that divide all of their offsets and lengths.
    pub(super) granule: u64,
}
