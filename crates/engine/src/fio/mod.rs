//! The engine fio: started as a process, watched while it runs, read at its end.
//!
//! - [`guard`]: nothing of fio outlives Fathom
//! - [`json`], [`terse`], [`normal`]: fio's outputs of any age into [`fathom_model::Results`]
//! - [`import`]: which of them a file holds

pub mod guard;
pub mod import;
pub mod json;
pub mod normal;
pub mod terse;
