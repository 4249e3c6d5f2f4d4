//! The engine fio: started as a process, watched while it runs, read at its end.
//!
//! - [`guard`]: nothing of fio outlives Fathom
//! - [`json`]: fio's outputs of any age into [`fathom_model::Results`]

pub mod failures;
pub mod guard;
pub mod intervals;
pub mod json;
mod messages;
pub mod stream;
pub mod version;
