//! Which engine runs jobs, and the one that was chosen.

pub mod choice;
pub mod select;
