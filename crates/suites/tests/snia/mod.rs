//! Tests after SNIA's specification on simulated devices whose verdict is known
//! beforehand, and stopped and resumed at every stage.

mod config;
mod resume;
mod support;
mod verdicts;
