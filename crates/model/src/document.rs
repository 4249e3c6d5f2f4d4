//! The one document that `--json` prints for a run. Its schema is versioned and
//! described in docs/FORMAT.md.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::failure::Failure;
use crate::host::Host;
use crate::node::{NodeUse, Volume};
use crate::result::{DiskUse, GroupResult, JobResult};
use crate::verdict::FigureVerdict;

/// Name and version of [`RunDocument`]'s schema.
pub const RUN_SCHEMA: &str = "fathom.run/1";

/// How a run ended.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Everything that was asked for was measured.
    Complete,
    /// Stopped from outside, or killed; what was measured until then is kept.
    Interrupted,
    /// At least one job, or the engine, failed.
    Failed,
    /// It still goes on; never written to a record.
    #[default]
    Running,
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Running => "running",
        })
    }
}

/// A run, whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunDocument {
    /// [`RUN_SCHEMA`].
    pub schema: String,
    /// Name of the record folder.
    pub id: String,
    /// The run's name: the job file's or the command's.
    pub name: String,
    /// The command that made the run: `job run`, `quick`, `import`. An import's
    /// start and end are those of the import, not of the measurement.
    #[serde(default)]
    pub command: String,
    /// What its user calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// How it ended.
    pub status: RunStatus,
    /// Start, RFC 3339 UTC with milliseconds.
    pub started: String,
    /// End; absent when the run was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Engine: `fio`, `native`, `sim`.
    pub engine: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_version: Option<String>,
    /// Where the figures are of a run that did not end by itself: taken from the
    /// samples up to the last whole interval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_samples: bool,
    /// Whether the figures are true: the worst of them, and each reason once; absent where
    /// there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FigureVerdict>,
    /// The jobs.
    pub jobs: Vec<JobResult>,
    /// Steps that made a device ready, among those of the jobs: their figures are no
    /// results.
    #[serde(skip)]
    pub preparations: BTreeSet<String>,
    /// Aggregates per reporting group and direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupResult>,
    /// Block devices under the jobs' files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskUse>,
    /// The machines, when the jobs ran on several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Host>,
    /// What lies under the data of servers, and what it moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// What the nodes did meanwhile, where statistics were taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeUse>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// What is to know of the figures, a sentence each: first what makes some
    /// of them doubtful, then what the engine said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Where it ran; absent for imported results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
}
