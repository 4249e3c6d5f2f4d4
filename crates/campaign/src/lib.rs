//! From a definition to a plan and its runs.
//!
//! - [`quick`]: the quick series; [`plan`], [`run`]: configured campaigns.
//! - [`flow`]: what leads a device to a known state and measures in it, stage
//!   after stage; its stages are purges ([`mod@purge`]), waits ([`energized`]),
//!   pre-conditioning ([`precondition`]), and tests after SNIA's specification
//!   ([`snia`]). [`provision`] leads many drives there at once.
//! - [`ledger`]: what was done to a device, from which its [`state`] is judged;
//!   [`budget`]: what a plan costs it.
//! - [`study`]: plan files: steps of any kind in order, loops, and conditions on
//!   the figures.
//! - [`ab`]: which of some settings is faster, in pairs.
//! - [`soak`]: a job that is repeated for hours.
//! - [`prio`]: priorities and Command Duration Limits over queue depths.
//! - [`fio_tests`] reads the results of others' campaigns.
//!
//! Knows `kconfig`, `analysis`, `fleet`, `engine`, `device`, `record` and
//! `model`. Definitions are data (`campaigns/` at the top of the workspace),
//! embedded into the program.

#![forbid(unsafe_code)]

pub mod ab;
pub mod budget;
pub mod check;
mod definition;
pub mod energized;
mod error;
pub mod find;
pub mod fio_tests;
pub mod flow;
pub mod folder;
pub mod generate;
pub mod imported;
pub mod ledger;
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
pub mod state;
pub mod study;
mod write_budget;
pub mod xdg;

pub use error::{CampaignError, Fault, FilePosition};
pub use folder::Folder;
pub use ledger::Ledgers;
pub use only::Only;
