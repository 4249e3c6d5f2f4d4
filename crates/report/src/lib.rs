//! What people and programs read of a run.
//!
//! - [`document()`] makes the [`fathom_model::RunDocument`] of a record, finished
//!   or not: the same one that `--json` prints. [`table()`] is that document as a
//!   person reads it, the judgements in between are pure functions
//!   of the figures.
//! - [`read_sweep()`] reads the curves of a campaign.
//! - [`html`] writes a whole run as one page.
//! - [`shares`](fn@shares::shares) are the parts of the hosts in a run on several.
//! - [`compare`] puts runs side by side, [`history`] says where a figure changed.
//! - [`answer`] is what a run was made to answer, [`search`] and [`load_map`] draw it.
//! - [`latlog`] shows statistics of latency logs, [`prio`] what priorities and
//!   limits did.
//! - [`steady`] says when a run was steady, [`purge`] what a purge came to,
//!   [`snia`] makes the pages of a test after SNIA's specification.
//! - [`explain`] says what limited each step of a run, [`metrics`] what it does now.
//! - [`query`] is every table that can be asked of runs, and its rows.
//! - [`grid`] and [`style`] set text for every table there is.
//!
//! Knows `analysis`, `record` and `model`.

pub mod answer;
mod attempts;
mod certainty;
pub mod chart;
mod clean;
pub mod compare;
pub mod document;
pub mod explain;
pub mod export;
mod folding;
pub mod gate;
pub mod graphs;
pub mod grid;
pub mod history;
pub mod html;
mod knee;
pub mod latlog;
pub mod load_map;
pub mod metrics;
mod nodes;
pub mod prio;
pub mod purge;
pub mod query;
pub mod samples;
pub mod search;
pub mod shares;
pub mod snia;
pub mod steady;
pub mod style;
pub mod sweep;
pub mod table;

pub use attempts::Counting;
pub use document::{document, drop_histograms, read, read_entries};
pub use style::Style;
pub use sweep::{CampaignRecord, read_sweep, sweep_of};
pub use table::{campaign_table, figures_so_far, table};

#[cfg(test)]
mod tests;
