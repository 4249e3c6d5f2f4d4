//! The engine fio: started as a process, watched while it runs, read at its end.
//!
//! - [`guard`]: nothing of fio outlives Fathom
//! - [`json`]: fio's outputs of any age into [`fathom_model::Results`]

pub mod guard;
pub mod json;
