//! Flows: what leads a device to a known state and measures in it, stage after
//! stage.
//!
//! A [`Script`] says what comes next from what has been done ([`History`]) and
//! from nothing else. The history is made of events alone, so that a run that
//! goes on, one that is resumed after a kill and one that is only watched agree
//! on it. [`Flow`] runs a script into a record of its own; a campaign's run does
//! it within its record. A stage that has ended is not done again; one that was
//! interrupted is done anew.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use fathom_engine::Control;
use fathom_engine::select::Selected;
use fathom_model::{Deed, Event, Pattern, Point, Stage, StageEnd};

pub mod acts;
mod alone;
mod book;
mod going;
mod history;
mod outlook;
mod settle;

pub use alone::{Finish, Flow, Ready};
pub use book::Book;
pub(crate) use going::{Clock, Runner, Stop};
pub use history::{Gap, History, Measured, Past};
pub(crate) use outlook::lead;
pub use outlook::{Luck, outlook};
pub use settle::{Criterion, Settled};

/// Decides, stage by stage, what is done to a device.
pub trait Script {
    /// What comes next. The same history gives the same answer: nothing else may
    /// be looked at, no clock and no device.
    fn next(&self, history: &History) -> Next;
}

/// What comes next.
#[derive(Debug, Clone)]
pub enum Next {
    /// This stage. It must not have ended in the history.
    Do(Task),
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
    Settle(Settle),
    /// Points are measured one after the other. Of interrupted ones all are
    /// measured anew.
    Cells(Vec<Cell>),
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
pub struct Settle {
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
pub struct Cell {
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

    /// Does it. On a simulated device nothing is touched.
    fn run(&self, doing: &mut Doing<'_>) -> Acted;
}

/// What an [`Act`] gets to do its work with.
pub struct Doing<'d> {
    /// What runs the jobs of the flow: tells whether the device is simulated.
    pub selected: &'d Selected,
    /// To be looked at often: somebody may want to stop.
    pub control: &'d Control,
    /// Takes events of the stage: [`Event::Preparing`] says what is done right
    /// now, [`Event::Note`] what is to be kept.
    pub tell: &'d mut dyn FnMut(Event),
}

/// What came of an [`Act`].
#[derive(Debug, Clone, PartialEq)]
pub enum Acted {
    /// It has ended.
    Ended {
        /// How.
        end: StageEnd,
        /// What stands in the device's ledger from now on.
        deed: Option<Deed>,
    },
    /// It was stopped before its end.
    Interrupted {
        /// What stands in the device's ledger from now on.
        deed: Option<Deed>,
    },
}

impl Settle {
    /// Its rules with their limits: what a ledger says, and what is wanted of one
    /// ([`crate::state::Wanted::rule`]).
    #[must_use]
    pub fn rule_text(&self) -> String {
        let all: Vec<String> = self.criteria.iter().map(ToString::to_string).collect();
        all.join("; ")
    }
}
