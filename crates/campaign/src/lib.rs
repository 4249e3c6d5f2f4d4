//! From a definition to a plan and its runs.
//!
//! - [`quick`]: the quick series; [`plan`], [`run`]: configured campaigns.
//! - What leads a device to a known state: purges ([`mod@purge`]), waits ([`energized`]),
//!   pre-conditioning ([`precondition`]); tests after SNIA's specification ([`snia`]).
//!   [`provision`] leads many drives there at once.
//! - [`study`]: plan files: steps of any kind in order, loops, and conditions on
//!   the figures.
//! - [`ab`]: which of some settings is faster, in pairs.
//! - [`soak`]: a job that is repeated for hours.
//! - [`prio`]: priorities and Command Duration Limits over queue depths.
//!
//! Each is a script of `flow`. Definitions are data (`campaigns/` at the top of the workspace),
//! embedded into the program.

#![forbid(unsafe_code)]

pub mod ab;
pub mod acts;
pub mod check;
mod definition;
pub mod energized;
mod error;
pub mod find;
pub mod folder;
pub mod generate;
mod matrix;
mod only;
pub mod plan;
pub mod precondition;
pub mod prio;
pub mod provision;
pub mod purge;
pub mod quick;
pub mod run;
pub mod snia;
pub mod soak;
pub mod study;

pub use error::{CampaignError, Fault, FilePosition};
pub use folder::Folder;
pub use only::Only;
