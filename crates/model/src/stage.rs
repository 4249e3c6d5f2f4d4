//! The parts of a flow that leads a device to a known state and measures in it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One part of such a flow. The steps between its begin and its end belong to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stage {
    /// Unique in the flow and the same when the flow is resumed: `purge`,
    /// `fill-seq-2`, `settle-rand`, `round-07`.
    pub id: String,
    /// What it does to the device.
    pub kind: StageKind,
    /// One line for a person.
    pub title: String,
    /// Which round it is, counted from 1, where it is one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
}

/// What a stage does to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// Waits until the device has been powered as long as it needs.
    Energize,
    /// Takes all data away, so that the device is as new.
    Purge,
    /// Writes its range so many times (workload-independent pre-conditioning).
    Fill,
    /// Writes until a rule of steady state holds (workload-dependent
    /// pre-conditioning).
    Settle,
    /// Measures the cells of one round.
    Round,
    /// Measures in the state that was reached.
    Measure,
    /// Runs a command of the user's.
    Command,
    /// Switches something of the device or machine, until this start of the run
    /// ends: then it is put back.
    Switch,
}

impl fmt::Display for StageKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Energize => "energize",
            Self::Purge => "purge",
            Self::Fill => "fill",
            Self::Settle => "settle",
            Self::Round => "round",
            Self::Measure => "measure",
            Self::Command => "command",
            Self::Switch => "switch",
        })
    }
}

/// How a stage ended. One that was stopped with its run has no end; it is done anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum StageEnd {
    /// It did what it promised.
    Done,
    /// It was not needed.
    Skipped {
        /// Why, in one sentence.
        reason: String,
    },
    /// It ran to its limit without attaining steady state: a result, no error.
    NotAttained {
        /// The numbers, in one sentence.
        reason: String,
    },
    /// It did not do what it promised.
    Failed {
        /// What happened, in one sentence.
        reason: String,
    },
    /// It needs something that somebody else does, and the run has stopped for it. The next
    /// start does it anew.
    Waits {
        /// What for, in one sentence.
        reason: String,
    },
    /// A limit has stopped it, and the run goes on without it. The next start does it
    /// anew.
    Interrupted {
        /// Which limit, in one sentence.
        reason: String,
    },
}
