//! What people and programs read of a run: one document, and its table.
//!
//! [`document()`] makes the [`fathom_model::RunDocument`] of a record, finished
//! or not: the same one that `--json` prints. [`table()`] is that document as a
//! person reads it. [`groups()`] and [`doubts()`] are the judgements in between,
//! pure functions of the figures. Knows `record` and `model`.

mod clean;
pub mod document;
pub mod doubts;
pub mod groups;
pub mod samples;

pub use document::{document, with_histograms};
pub use doubts::doubts;
pub use groups::groups;

#[cfg(test)]
mod tests;
