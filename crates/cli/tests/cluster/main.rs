//! `fathom cluster` on a real Kubernetes: run by `make test-cluster`, which starts one.
#![allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod broken;
mod calm;
mod cluster;
mod foreign;
mod native;
mod recorder;
mod recording;
mod rights;
mod stats;
mod stopped;
#[path = "../exchanges/tape.rs"]
mod tape;
mod whole;
