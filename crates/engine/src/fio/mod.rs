//! The engine fio: started as a process, watched while it runs, read at its end.
//!
//! - [`run`]: spawn, guard, interval documents, stop, failures
//! - [`json`], [`terse`], [`normal`]: fio's outputs of any age into [`fathom_model::Results`]
//! - [`import`]: which of them a file holds
//! - [`inventory`]: engines and options this fio has

pub mod import;
pub mod json;
pub mod normal;
pub mod terse;
