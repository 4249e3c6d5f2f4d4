//! Kconfig campaigns: from a definition to job files, a plan and its run.
//!
//! Definitions are data (`campaigns/` at the top of the workspace). [`plan`] resolves a
//! configured [`Folder`] to steps, [`generate`] writes their job files, and [`run`] makes a
//! script of `flow` of them.

#![forbid(unsafe_code)]

pub mod check;
mod definition;
pub mod error;
pub mod folder;
pub mod generate;
mod matrix;
mod only;
pub mod plan;
pub mod run;

pub use error::CampaignError;
pub use folder::Folder;
pub use only::Only;
