//! Interpretations of SNIA's Solid State Storage Performance Test Specification
//! (SSS PTS 2.0.x): what such a test is made of, and what came of it.
//!
//! A [`Setup`] says which cells a round has, which of them are tracked, and when
//! it ends; it stands in the record, so that a record explains itself. A
//! [`RoundCollector`] gathers the rounds while events go by, live and again from any
//! record, and [`Findings`] judge them. None of this is a SNIA test, and SNIA
//! has not endorsed it: [`NOTICE`] stands wherever a figure of it is shown.

mod collect;
mod find;
mod setup;

pub use collect::{CellFigures, Interruption, RoundCollector, SniaCell, SniaRound};
pub use find::{
    AllCells, CellSummary, Determination, Findings, PartEnding, Passed, Saturation, TestPart,
    Tracked, find,
};
pub use setup::{
    CacheSetting, CellRule, DriveClass, HISTOGRAM, RoundLimits, Setup, SniaTest, TrackedVariable,
};

/// What stands on every page and screen of these tests.
pub const NOTICE: &str = "An interpretation of SNIA SSS PTS 2.0.x by Fathom: not a SNIA test, \
                          not certified or endorsed by SNIA.";

#[cfg(test)]
mod tests;
