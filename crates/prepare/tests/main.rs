//! The integration tests of this crate in one binary.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod purge;
