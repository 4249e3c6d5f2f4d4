//! Fixed procedures: which jobs run, in which order, is theirs, and not the user's.
//!
//! - [`snia`]: tests after SNIA's specification.
//! - [`prio`]: priorities and Command Duration Limits over queue depths.
//! - [`quick`]: the quick series, here or over ssh.

#![forbid(unsafe_code)]

pub mod prio;
pub mod quick;
pub mod snia;
