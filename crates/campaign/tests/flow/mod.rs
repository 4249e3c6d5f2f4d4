//! Flows on simulated devices: what each device comes to is known beforehand.

mod resume;
mod scripted;
mod support;
mod verdicts;
