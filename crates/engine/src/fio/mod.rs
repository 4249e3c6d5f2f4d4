//! fio: running it, and reading what it writes.
//!
//! Modules: [`guard`] (nothing of fio outlives Fathom).

pub mod guard;
