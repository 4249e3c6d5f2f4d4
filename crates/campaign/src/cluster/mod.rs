//! Benchmarks with servers on the nodes of a Kubernetes cluster: what is asked
//! for ([`Given`], [`Parameters`]) and the objects that are made for it
//! ([`manifests`]), without a cluster in sight.

mod inventory;
pub mod jobs;
pub mod manifests;
mod parameters;
mod yaml;

pub use inventory::read as read_inventory;
pub use parameters::{DropCaches, Given, Parameters, Runs, Workload};
pub use yaml::to_yaml;
