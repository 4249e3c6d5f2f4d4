//! What leads a device to a known state, and the Kconfig symbols that control it.
//!
//! - [`mod@purge`], [`energized`] (the wait until it is powered long enough),
//!   [`precondition`]; [`acts`] makes actions of a flow of them.
//! - [`provision`]: many drives at once.
//! - [`settings`], [`preparation`]: what the symbols say, read by [`symbols`]; [`shipped`]: the configuration that
//!   Fathom carries.

#![forbid(unsafe_code)]

pub mod acts;
pub mod energized;
pub mod here;
pub mod logs;
pub mod precondition;
pub mod preparation;
pub mod provision;
pub mod purge;
pub mod settings;
pub mod shipped;
pub mod symbols;
