//! `fathom cluster` on a real Kubernetes: run by `make test-cluster`, which starts one.

mod broken;
mod cluster;
mod whole;
