//! From a definition to a plan and its runs: the quick series ([`quick`]) and
//! configured campaigns ([`plan`], [`run`]); what leads a
//! device to a known state ([`flow`]); [`fio_tests`] reads the results of
//! others'.
//!
//! Knows `kconfig`, `analysis`, `fleet`, `engine`, `device`, `record` and
//! `model`. Definitions are data (`campaigns/` at the top of the workspace),
//! embedded into the program.

pub mod check;
pub mod cluster;
mod definition;
mod error;
pub mod fio_tests;
pub mod flow;
pub mod folder;
pub mod generate;
mod matrix;
mod only;
pub mod plan;
pub mod provision;
pub mod quick;
pub mod run;

pub use error::{CampaignError, Fault, Place};
pub use folder::Folder;
pub use only::Only;
