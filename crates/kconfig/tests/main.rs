//! The integration tests of this crate in one binary: each that is linked costs
//! more than most of its tests take.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod campaigns;
mod fuzz_seeds;
mod hostile;
mod language;
mod oracle;
#[path = "support/random.rs"]
mod random;
mod refusals;
