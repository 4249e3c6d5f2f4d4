//! From a definition to a plan and its runs: the quick series ([`quick`]) and
//! configured campaigns ([`plan`], [`run`]). What was done to a device is kept in its
//! [`ledger`], from which its [`state`] is judged. [`fio_tests`] reads the results of
//! configured campaigns ([`plan`], [`run`]), devices purged as configured ([`mod@purge`]); what leads a
//! device to a known state ([`flow`]); [`fio_tests`] reads the results of
//! others'.
//!
//! Knows `kconfig`, `analysis`, `fleet`, `engine`, `device`, `record` and
//! `model`. Definitions are data (`campaigns/` at the top of the workspace),
//! embedded into the program.

pub mod budget;
pub mod check;
pub mod cluster;
mod definition;
pub mod energized;
mod error;
pub mod fio_tests;
pub mod flow;
pub mod folder;
pub mod generate;
pub mod ledger;
mod matrix;
mod only;
pub mod plan;
pub mod precondition;
pub mod purge;
pub mod quick;
pub mod run;
pub mod state;

pub use error::{CampaignError, Fault, Place};
pub use folder::Folder;
pub use ledger::Ledgers;
pub use only::Only;
