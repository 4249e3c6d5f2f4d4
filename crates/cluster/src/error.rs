//! Why a benchmark in a cluster fails.

use std::path::PathBuf;

use fathom_fleet::kube::KubeError;
use fathom_fleet::local::FleetError;
use fathom_record::RecordError;

/// Why a benchmark in a cluster did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The cluster.
    #[error(transparent)]
    Kube(KubeError),
    /// Somebody else's object has a name that the run needs.
    #[error(
        "in namespace {namespace} there is {kind} {name}, which Fathom did not make ({owner}); it was not touched\n  to do: take another --namespace, or ask its owner to remove it"
    )]
    Foreign {
        /// Where.
        namespace: String,
        /// `Service`, …
        kind: String,
        /// Its name.
        name: String,
        /// Its labels, and what owns it.
        owner: String,
    },
    /// Rights are missing; nothing was made.
    #[error("nothing was made, because in namespace {namespace} one may not {}\n  to do: ask whoever runs the cluster for these rights (docs/CLUSTER.md has a Role with all of them)", .missing.join(", "))]
    Rights {
        /// Where.
        namespace: String,
        /// `create pods/exec`, …
        missing: Vec<String>,
    },
    /// Pods did not start.
    #[error("the {part} did not start:\n  - {}", .troubles.join("\n  - "))]
    Start {
        /// `servers`, `client`.
        part: &'static str,
        /// In the cluster's words.
        troubles: Vec<String>,
    },
    /// What others made, or another run, stands where this one would be.
    #[error(
        "in namespace {namespace} there is {what} already\n  to do: wait for its end; if it is dead: fathom cluster cleanup --namespace {namespace}; or take another --namespace"
    )]
    Occupied {
        /// Where.
        namespace: String,
        /// `run-1`'s StatefulSet server-fio, …
        what: String,
    },
    /// A command in a pod did not do what it should.
    #[error("{0}")]
    Command(String),
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// The record could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file of the record could not be written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The run ended because its record could not be written.
    #[error(transparent)]
    Run(#[from] FleetError),
}

impl From<KubeError> for ClusterError {
    fn from(error: KubeError) -> Self {
        match error {
            KubeError::Interrupted => Self::Interrupted,
            other => Self::Kube(other),
        }
    }
}
