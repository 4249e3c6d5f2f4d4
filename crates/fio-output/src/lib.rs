//! fio's outputs, of any age, read and written. This crate knows `model` and `device`, and runs no fio.
//!
//! - [`json`], [`terse`], [`normal`]: outputs into [`fathom_model::Results`]
//! - [`import`]: which of them a file holds; [`stream`]: an output while it arrives, and the
//!   formats it was written in; [`raw`]: kept as it came
//! - [`intervals`]: differences of two documents; [`failures`]: what went wrong
//! - [`mod@log`]: latency logs, at speed
//! - [`mod@write`]: [`fathom_model::Results`] of another engine in fio's formats

#![forbid(unsafe_code)]

pub mod failures;
pub mod import;
pub mod intervals;
pub mod json;
pub mod log;
pub mod messages;
pub mod normal;
pub mod raw;
pub mod stream;
pub mod terse;
pub mod version;
pub mod write;
