//! Flows: what leads a device to a known state and measures in it, stage after
//! stage.
//!
//! A [`Script`] says what comes next from what has been done ([`History`]) and
//! from nothing else. The history is made of events alone, so that a run that
//! goes on, one that is resumed after a kill and one that is only watched agree
//! on it. [`Flow`] runs a script into a record. A stage that has ended is not done again; one that was
//! interrupted is done anew. This crate does not depend on any kind of run.

#![forbid(unsafe_code)]

use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use fathom_engine::Control;
use fathom_engines::select::EngineHandle;
use fathom_model::{Event, Failure, LedgerEvent, Pattern, Point, Stage, StageEnd};

pub mod budget;
mod command;
pub mod device_state;
pub mod device_watch;
pub mod error;
mod executor;
mod figures;
pub mod file_names;
mod followers;
mod history;
pub mod identity;
mod jobs;
pub mod ledger;
mod ledger_scope;
pub mod load;
pub mod options;
mod outlook;
pub mod past;
pub mod plan_log;
pub mod progress;
mod runner;
pub mod stages;
mod steady_load;
mod step;
mod tally;
pub mod undo;
pub mod wants;
mod write_budget;
pub mod xdg;

pub use command::{ShellCommand, ShellEnd};
pub use executor::{Checked, Finish, Flow, KeptPlan, Ready};
pub use executor::{Extras, PastStarts};
pub use figures::{LatencyFigures, StepFigures};
pub use followers::RunLog;
pub use history::{EndedStep, Gap, History, LeftOut, MeasuredStep, Past};
pub use jobs::{Jobs, OneStage};
pub use ledger_scope::LedgerScope;
pub use options::RunOptions;
pub use outlook::lead;
pub use outlook::{Case, outlook};
pub use runner::StepWatch;
use runner::{Runner, Stop, Switched};
pub use steady_load::{Criterion, Settled};
pub use step::{JobStep, last_try};
pub use tally::{EndedPoint, PointOutcome, Tally};
pub use undo::Undo;

/// Decides, stage by stage, what is done to a device.
pub trait Script {
    /// What comes next. The same history gives the same answer: nothing else may
    /// be looked at, no clock and no device.
    fn next(&self, history: &History) -> Next;

    /// Whether what the limits leave no room for is left out, and the rest is done; else
    /// the run stops there.
    fn leaves_out(&self) -> bool {
        false
    }

    /// Whether steps have failed when it has come to its end.
    fn has_failed(&self, history: &History) -> bool {
        history.has_failed_steps()
    }

    /// Who looks at the next step while it runs, and may end it.
    fn watch(&self, _: &JobStep, _: &History) -> Option<Box<dyn StepWatch>> {
        None
    }

    /// Time between two samples of a stage; `None`: that of the run.
    fn interval_of(&self, _: &Stage) -> Option<Duration> {
        None
    }
}

/// What comes next.
#[derive(Debug, Clone)]
pub enum Next {
    /// This stage, or step. It must not have ended in the history.
    Do(Task),
    /// This stage, for the task behind it: where the limits leave no room for that, it is
    /// not begun.
    Prepare(Task, Box<Task>),
    /// Nothing is measured of this point, for this reason.
    LeaveOut(Box<Point>, String),
    /// As [`Next::LeaveOut`], of the point of this task; where the limits leave no room for
    /// it, that is the reason.
    Unready(Box<Task>, String),
    /// This is noted. It must not have been in this start of the run.
    Note(String),
    /// Nothing: this failure, of which the record is told, stops the run.
    Fail(Failure),
    /// Nothing.
    End(Ending),
}

/// How a flow ends when nobody stops it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It did what it was to do.
    Complete,
    /// Steady state was not attained, and what would follow needs it: a result,
    /// no error. The numbers, in one sentence.
    NotAttained(String),
    /// A stage did not do what it promised. Which and why, in one sentence.
    Failed(String),
}

impl Ending {
    /// A script that asks again for what has been would never end.
    fn asked_again(what: &str) -> Self {
        Self::Failed(format!("the flow asked again for {what}, which has ended"))
    }
}

/// A stage with what is done in it.
#[derive(Debug, Clone)]
pub struct Task {
    /// The stage.
    pub stage: Stage,
    /// What is done.
    pub work: Work,
}

/// What is done in a stage.
#[derive(Debug, Clone)]
pub enum Work {
    /// Something other than I/O of an engine: a purge, a wait.
    Act(Rc<dyn Act>),
    /// A range is written once.
    Fill(Fill),
    /// A load runs until it is steady, or its time is over.
    Settle(SteadyLoad),
    /// Points are measured one after the other. Of interrupted ones all are
    /// measured anew.
    Cells(Vec<RoundPoint>),
    /// A job file is run by itself: no stage is told of.
    Job(Box<JobStep>),
    /// Nothing, for this reason: the stage is there to say so.
    Skip(String),
}

/// A range that is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Fill {
    /// A job file of fio's language that ends when its range is written.
    pub job_text: String,
    /// The order of its writes.
    pub pattern: Pattern,
    /// Size of one write in bytes.
    pub bs_bytes: u64,
    /// The part of the device that is written, in percent.
    pub range_percent: f64,
    /// Bytes that will have been written, where the range is known.
    pub bytes: Option<u64>,
}

/// A load that runs until it is steady.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyLoad {
    /// A job file of fio's language, with a runtime: that is its limit.
    pub job_text: String,
    /// The order of its writes.
    pub pattern: Pattern,
    /// Size of one I/O in bytes.
    pub bs_bytes: u64,
    /// The part of the device that is written to, in percent.
    pub range_percent: f64,
    /// What has to hold, all on this one run of I/O. Without any it runs for its
    /// whole time.
    pub criteria: Vec<Criterion>,
    /// Time between two samples, where the criteria want another than the run's.
    pub interval: Option<Duration>,
    /// The least time after which it can be steady.
    pub least: Duration,
    /// The most time it takes.
    pub most: Duration,
}

/// One point of a round.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundPoint {
    /// What is measured; its repetition is the number of the round.
    pub point: Point,
    /// A job file of fio's language, with a runtime.
    pub job_text: String,
    /// How long it takes.
    pub time: Duration,
    /// The part of its I/O that writes, 0 to 1.
    pub write_share: f64,
}

/// What is done to a device by other means than an engine's I/O.
pub trait Act: fmt::Debug {
    /// The commands it executes, each as a person would write it.
    fn commands(&self) -> Vec<String>;

    /// How long it takes at most, where that is known.
    fn time(&self) -> Option<Duration> {
        None
    }

    /// Bytes that it writes to the device.
    fn bytes(&self) -> u64 {
        0
    }

    /// The folder that it makes for what comes behind it, and has judged.
    fn makes(&self) -> Option<&Path> {
        None
    }

    /// What puts back what it switches, as things stand before it is done; `None`:
    /// what it does stays done. It is kept on the disk first, and put back when this
    /// start of the run ends, or by whoever comes after a kill.
    ///
    /// # Errors
    /// Why nobody could put it back: it is not done then.
    fn undo(&self) -> Result<Option<Undo>, String> {
        Ok(None)
    }

    /// Does it. On a simulated device nothing is touched.
    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult;
}

/// What an [`Act`] gets to do its work with.
pub struct ActionContext<'d> {
    /// What runs the jobs of the flow: tells whether the device is simulated.
    pub selected: &'d EngineHandle,
    /// To be looked at often: somebody may want to stop.
    pub control: &'d Control,
    /// The folder of the record.
    pub record: &'d Path,
    /// The ledgers: what is done to the device itself is entered from the result.
    pub book: &'d LedgerScope,
    /// Takes events of the stage: [`Event::Preparing`] says what is done right
    /// now, [`Event::Note`] what is to be kept.
    pub tell: &'d mut dyn FnMut(Event),
}

/// What came of an [`Act`].
#[derive(Debug, Clone, PartialEq)]
pub enum ActionResult {
    /// It has ended.
    Ended {
        /// How.
        end: StageEnd,
        /// What stands in the device's ledger from now on.
        deed: Option<LedgerEvent>,
    },
    /// It was stopped before its end.
    Interrupted {
        /// What stands in the device's ledger from now on.
        deed: Option<LedgerEvent>,
    },
}

impl Task {
    /// What it measures by itself.
    fn point(&self) -> Option<Box<Point>> {
        match &self.work {
            Work::Job(step) => step.point.clone().map(Box::new),
            _ => None,
        }
    }

    /// Whether it has ended in the history.
    pub fn has_ended(&self, history: &History) -> bool {
        match &self.work {
            Work::Job(step) => history.ended_step(step.number).is_some(),
            _ => history.ended(&self.stage.id).is_some(),
        }
    }
}

impl SteadyLoad {
    /// Its rules with their limits: what a ledger says, and what is wanted of one
    /// ([`crate::device_state::WantedState::rule`]).
    pub fn rule_text(&self) -> String {
        let all: Vec<String> = self.criteria.iter().map(ToString::to_string).collect();
        all.join("; ")
    }
}
