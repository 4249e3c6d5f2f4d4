//! The integration tests of this crate in one binary: each that is linked costs
//! more than most of its tests take.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod campaign;
mod flow;
mod run;
