//! Flows on simulated devices: what each device comes to is known beforehand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod resume;
mod support;
mod verdicts;
