//! What happens in a run, in order: the one stream that feeds the record, the
//! terminal and every later judgement.

use serde::{Deserialize, Serialize};

use crate::document::RunStatus;
use crate::environment::Boot;
use crate::evidence::EvidenceInterval;
use crate::failure::Failure;
use crate::host::Host;
use crate::node::Volume;
use crate::point::Point;
use crate::result::Results;
use crate::sample::Sample;
use crate::stage::{Stage, StageEnd};
use crate::verdict::ReasonKind;

/// One line of a record's event log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Entry {
    /// When it happened, ms since 1970 UTC.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All jobs reported and none failed.
    Complete,
    /// Stopped from outside: whatever figures there are, it is run again when the
    /// run goes on.
    Interrupted,
    /// A job or the engine failed; the events name each failure.
    Failed,
}

impl Outcome {
    /// That of two parts of one step: it is as bad as the worse.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Interrupted, _) | (_, Self::Interrupted) => Self::Interrupted,
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Complete, Self::Complete) => Self::Complete,
        }
    }
}

/// Why a point was not measured, by what it means for the point.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SkipCause {
    /// It would add nothing, as those beside it show: no start measures it. Also in records
    /// that do not tell.
    #[default]
    NotNeeded,
    /// Its device did not come into the state that it is to be measured in, which is a
    /// result: only a new run measures it.
    NotReady,
    /// The limits of this start had no room for it: it is still to come, and the next start
    /// measures it.
    Postponed,
}

impl SkipCause {
    fn is_untold(&self) -> bool {
        *self == Self::NotNeeded
    }

    /// Whether nothing is left to do for the point in this record.
    pub fn is_settled(&self) -> bool {
        *self != Self::Postponed
    }
}

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A part of the run begins: one job file of several, one test of a
    /// series. The events up to its end belong to it.
    Step {
        /// Place, counted from 1.
        step: u32,
        /// Number of steps.
        of: u32,
        /// The job file's name, the test's name, the point's id.
        name: String,
        /// What is measured in it, when it is a point of a campaign.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        point: Option<Box<Point>>,
    },
    /// The step has ended: what follows belongs to the run, or to the next step.
    /// Without it the step was broken off by a kill.
    StepEnded {
        /// How.
        outcome: Outcome,
    },
    /// A stage of a flow begins: the steps up to its end belong to it.
    Stage {
        /// The stage.
        stage: Box<Stage>,
    },
    /// A stage has ended. A stage without this was interrupted.
    StageEnded {
        /// Its id.
        id: String,
        /// How.
        #[serde(flatten)]
        end: StageEnd,
    },
    /// A point of a campaign that was not measured. It is neither done nor failed.
    Skipped {
        /// The point.
        point: Box<Point>,
        /// One sentence.
        reason: String,
        /// What that means for the point.
        #[serde(default, skip_serializing_if = "SkipCause::is_untold")]
        cause: SkipCause,
    },
    /// The run goes on after it was killed, stopped or had ended: nothing was
    /// measured between the line before and this one.
    Resumed {
        /// How it had ended, where it said so; `None`: it was killed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<RunStatus>,
        /// Time since the last line before, in ms.
        gap_ms: u64,
    },
    /// The engine was started.
    EngineStarted {
        /// Name of the engine: `fio`, `native`, `sim`.
        engine: String,
        /// Its version, for example `fio-3.33`.
        version: Option<String>,
        /// The command as executed; empty for engines inside Fathom.
        argv: Vec<String>,
        /// Its process, if it has one of its own.
        pid: Option<u32>,
    },
    /// The jobs that samples refer to by place, in the engine's order.
    Jobs {
        /// Names; a name stands once for each member that reports on its own.
        names: Vec<String>,
        /// Where each of them runs, as [`Host::label`] has it, in the same order; empty when all run on this machine.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<String>,
    },
    /// The engine is laying out files or doing something else before its jobs run.
    Preparing {
        /// What it says it does.
        what: String,
    },
    /// Files are being laid out before jobs run: told once an interval.
    LayingOut {
        /// Bytes that have been written.
        done_bytes: u64,
        /// Bytes that are to be.
        of_bytes: u64,
    },
    /// One interval of one job and direction.
    Sample(Sample),
    /// All samples of one interval have been given; the record is flushed here.
    Interval {
        /// End of the interval, ms since the run's start.
        t_ms: u64,
        /// Expected time left in ms, where the engine knows.
        remaining_ms: Option<u64>,
    },
    /// What the machine did and was set to in an interval: it stands before the
    /// interval it is of.
    Evidence(Box<EvidenceInterval>),
    /// A full status that somebody asked for while the run went on.
    Status {
        /// What the engine would report if it ended now.
        results: Box<Results>,
    },
    /// What part each machine had in the step, when it ran on several.
    Hosts {
        /// The machines, in the order in which they were named.
        hosts: Vec<Host>,
    },
    /// All figures of the step are doubtful for a reason that they do not show
    /// themselves.
    Doubted {
        /// The reason.
        doubt: ReasonKind,
    },
    /// What lies under the data of the step's servers, and what it moved in the
    /// step by its own counters.
    Volumes {
        /// A volume, or several that share a device.
        volumes: Vec<Volume>,
    },
    /// Bytes were written by other means than the I/O of jobs: a purge, laying out
    /// a file. No sample has them.
    WrittenBeside {
        /// How many.
        bytes: u64,
    },
    /// What the kernel has counted as written to the run's devices, or by its
    /// processes where its targets are files, since this start of the run began.
    KernelCounted {
        /// How many bytes.
        written_bytes: u64,
    },
    /// In which boot of the machine the steps behind it are measured: told where that
    /// matters, anew in each start of the run.
    Booted(Boot),
    /// Something worth a line that is not an error.
    Note {
        /// One sentence.
        text: String,
    },
    /// Something went wrong; the run may go on.
    Failure(Failure),
    /// The engine's figures at its end. Several job files give several of these.
    Finished {
        /// The figures.
        results: Box<Results>,
    },
    /// The last line of a record, or the last before it was resumed. A record
    /// that does not end with it was interrupted.
    Ended {
        /// How the run ended.
        status: RunStatus,
    },
}
