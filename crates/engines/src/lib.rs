//! Which engine runs jobs, and the one that was chosen.

#![forbid(unsafe_code)]

pub mod choice;
mod name;
pub mod select;

pub use name::EngineName;
