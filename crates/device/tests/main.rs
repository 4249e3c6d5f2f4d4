//! The integration tests of this crate in one binary: each that is linked costs
//! more than most of its tests take.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod cdl;
mod evidence;
mod health;
mod node;
#[cfg(target_os = "linux")]
mod purge;
mod recorded;
mod safety;
mod signatures;
mod stack;
mod switches;
mod tree;
