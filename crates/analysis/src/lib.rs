//! Pure functions over records: the same code judges live and, later, again.
//!
//! - [`estimate`] says how sure a mean over repetitions is, [`certainty`] how sure the
//!   figures of one run are: by [`correlated`], [`level_shift`] and [`student`]. [`mod@compare`] says whether
//!   runs are faster than others, [`mod@change_points`] where a history changed.
//! - [`groups`](mod@groups) adds up jobs, [`hosts`] machines, [`rate`] what they did in
//!   an interval.
//! - [`series`] gathers the points of a campaign from its events into curves,
//!   [`best`](mod@best) finds their best points, and [`guard`] says when a curve
//!   only gets worse, [`knee_search`] which of its points its knee needs.
//! - [`paired`] judges two settings that are measured in pairs, after each.
//! - [`find`] searches how much load is enough, or keeps a latency.
//! - [`steady_state`] says when a device has settled, [`snia`] what came of a
//!   test after SNIA's specification, [`nodes`] what the machines did in a step.
//! - [`step_evidence`] adds up what was seen beside a step's figures; by it [`verdict`]
//!   says whether these are true, and [`volumes`] how much of a volume's reads it served.
//! - [`latlog`] makes statistics of latency logs, [`priority`] those of
//!   priorities and duration limits.
//!
//! Knows only `model`: it reads no files and no clocks.

#![forbid(unsafe_code)]

pub mod best;
pub mod certainty;
pub mod change_points;
pub mod compare;
pub mod correlated;
pub mod estimate;
pub mod find;
pub mod groups;
pub mod guard;
pub mod hosts;
pub mod knee_search;
pub mod latlog;
pub mod level_shift;
pub mod nodes;
pub mod paired;
pub mod priority;
#[cfg(test)]
mod random;
pub mod rate;
pub mod series;
pub mod snia;
pub mod steady_state;
pub mod step_evidence;
pub mod student;
pub mod verdict;
pub mod volumes;

pub use best::{Best, Knee, best, knee, measured_of};
pub use estimate::Estimate;
pub use groups::groups;
pub use series::{
    Curve, PointResult, RepeatedFigures, Sweep, SweepCollector, SweepOutcome, engines_of,
};
