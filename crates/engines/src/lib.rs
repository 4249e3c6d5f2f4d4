//! Which engine runs jobs, and the one that was chosen.

#![forbid(unsafe_code)]

pub mod choice;
pub mod select;
