//! Questions to a job of the user's.
//!
//! - [`find`]: which load it sustains within limits.
//! - [`ab`]: which of some settings is faster, in pairs.
//! - [`soak`]: how it does over hours.

#![forbid(unsafe_code)]

pub mod ab;
pub mod find;
pub mod soak;
