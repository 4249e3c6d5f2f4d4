//! Tests after SNIA's specification on simulated devices whose verdict is known
//! beforehand, and stopped and resumed at every stage.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod config;
mod resume;
mod support;
mod verdicts;
