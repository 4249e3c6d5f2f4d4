//! Benchmarks with servers on the nodes of a Kubernetes cluster.
//!
//! What is asked for ([`Given`], [`Parameters`]), the objects that are made for
//! it ([`manifests`]) and the jobs that run there ([`jobs`]) need no cluster in
//! sight; [`run`](fn@run) does it, phase after phase, and removes all that it made.
//!
//! Knows `analysis`, `fleet`, `engine`, `device`, `record` and `model`.

#![forbid(unsafe_code)]

#[cfg(feature = "kube")]
mod agent_phase;
pub mod background_load;
#[cfg(feature = "kube")]
mod caches;
#[cfg(feature = "kube")]
mod ceph;
#[cfg(feature = "kube")]
mod cluster_run;
#[cfg(feature = "kube")]
mod error;
#[cfg(feature = "kube")]
mod files;
#[cfg(feature = "kube")]
mod fio_phase;
#[cfg(feature = "kube")]
mod hosts;
pub mod image;
mod input;
mod inventory;
pub mod jobs;
#[cfg(feature = "kube")]
mod kinds;
#[cfg(feature = "kube")]
mod kubuculum;
#[cfg(feature = "kube")]
mod liveness;
pub mod manifests;
mod node_label;
mod parameters;
pub mod pod;
#[cfg(feature = "kube")]
mod removal;
pub mod resources;
pub mod rights;
#[cfg(feature = "kube")]
mod run;
mod size;
#[cfg(feature = "kube")]
mod start;
#[cfg(feature = "kube")]
mod statistics;
#[cfg(feature = "kube")]
mod surroundings;
pub mod trouble;
#[cfg(feature = "kube")]
mod volumes;
#[cfg(feature = "kube")]
mod written_bytes;
mod yaml;

#[cfg(feature = "kube")]
pub use error::ClusterError;
pub use input::InputError;
pub use inventory::read as read_inventory;
pub use parameters::{BenchWorkload, DropCaches, Given, Parameters, Runs};
#[cfg(feature = "kube")]
pub use removal::cleanup;
#[cfg(feature = "kube")]
pub use run::{ClusterPlan, check_rights, run};
pub use size::GibSize;
pub use yaml::to_yaml;
