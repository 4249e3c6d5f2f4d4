//! The integration tests of this crate in one binary: each that is linked costs
//! more than most of its tests take.
#![allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod fio;
mod fuzz_seeds;
#[cfg(target_os = "linux")]
mod native;
