//! Benchmarks with servers on the nodes of a Kubernetes cluster: what is asked
//! for ([`Given`], [`Parameters`]) and the objects that are made for it
//! ([`manifests`]), without a cluster in sight.

pub mod calm;
#[cfg(feature = "kube")]
mod ceph;
#[cfg(feature = "kube")]
mod driven;
#[cfg(feature = "kube")]
mod files;
#[cfg(feature = "kube")]
mod going;
#[cfg(feature = "kube")]
mod heard;
#[cfg(feature = "kube")]
mod hosts;
pub mod image;
mod inventory;
pub mod jobs;
#[cfg(feature = "kube")]
mod kept;
pub mod manifests;
#[cfg(feature = "kube")]
mod named;
mod parameters;
#[cfg(feature = "kube")]
mod phase;
pub mod pod;
#[cfg(feature = "kube")]
mod removal;
pub mod resources;
pub mod rights;
mod size;
#[cfg(feature = "kube")]
mod start;
#[cfg(feature = "kube")]
mod statistics;
pub mod trouble;
#[cfg(feature = "kube")]
mod volumes;
#[cfg(feature = "kube")]
mod whole;
mod yaml;

#[cfg(feature = "kube")]
pub use going::{ClusterError, Wish, check_rights, run};
pub use inventory::read as read_inventory;
pub use parameters::{DropCaches, Given, Parameters, Runs, Workload};
#[cfg(feature = "kube")]
pub use removal::cleanup;
pub use size::GibSize;
pub use yaml::to_yaml;
