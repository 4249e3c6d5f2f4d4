//! What people and programs read of a run.
//!
//! - [`table()`] is the document of a run as a person reads it.
//! - [`html`] writes a whole run as one page.
//! - [`shares`](fn@shares::shares) are the parts of the hosts in a run on several.
//! - [`compare`] puts runs side by side, [`history`] says where a figure changed.
//! - [`search`] and [`load_map`] draw what a run was made to answer.
//! - [`prio`] shows what priorities and limits did.
//! - [`steady`] says when a run was steady, [`purge`] what a purge came to,
//!   [`snia`] makes the pages of a test after SNIA's specification.
//! - [`explain`] says what limited each step of a run, [`metrics`] what it does now.
//! - [`query`] is every table that can be asked of runs, and its rows.
//!
//! Knows `document`, `sheet`, `analysis`, `record` and `model`.

#![forbid(unsafe_code)]

pub mod compare;
pub mod explain;
pub mod export;
pub mod gate;
pub mod graphs;
pub mod history;
pub mod html;
mod knee;
pub mod load_map;
pub mod metrics;
pub mod prio;
pub mod purge;
pub mod query;
pub mod search;
pub mod shares;
pub mod snia;
pub mod steady;
pub mod table;

pub use table::{campaign_table, figures_so_far, table};

#[cfg(test)]
mod tests;
