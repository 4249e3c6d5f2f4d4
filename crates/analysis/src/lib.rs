//! Pure functions over records: the same code judges live and, later, again.
//!
//! [`estimate`] says how sure a mean is; [`series`] gathers the points of a
//! campaign from its events into curves; [`guard`] says when a curve only gets
//! worse; [`rate`] adds up what the jobs did in an interval. Knows only `model`: it reads no files and no clocks.

pub mod estimate;
pub mod guard;
pub mod rate;
pub mod series;

pub use estimate::Estimate;
pub use series::{Figures, Outcome, PointResult, Series, Sweep};
