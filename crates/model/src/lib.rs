//! The nouns of Fathom and their wire types; every other crate speaks in these.
//!
//! This crate knows no other crate of the workspace. It does no I/O: it holds
//! units ([`units`]), what was asked ([`job`], [`point`], [`stage`]), what was seen while it ran
//! ([`sample`], [`event`], [`mod@log`]), what came out ([`result`], [`histogram`]), where it
//! ran ([`environment`], [`host`]), what was done to a device before ([`ledger`]), what went wrong ([`failure`]), what makes a figure
//! doubtful ([`verdict`]), the one document that
//! `--json` prints ([`document`]) and the exit codes ([`exit`]).
//! This crate knows no other crate of the workspace. It does no I/O. It holds
//! - units ([`units`]) and foreign text made fit to be shown ([`text`]);
//! - what was asked ([`job`], [`point`], [`stage`]);
//! - what was seen while it ran ([`sample`], [`event`], [`evidence`], [`mod@log`]);
//! - what came out ([`result`], [`histogram`]);
//! - where it ran ([`environment`]) and what the machines did meanwhile ([`node`]);
//! - what was done to a device before ([`ledger`], [`purge`], [`switches`]);
//! - what went wrong ([`failure`]) and what makes a figure doubtful ([`verdict`]),
//!   how far it can be trusted ([`certainty`]);
//! - the one document that `--json` prints ([`document`]) and the exit codes
//!   ([`exit`]).

#![forbid(unsafe_code)]

pub mod certainty;
pub mod document;
pub mod environment;
pub mod event;
pub mod evidence;
pub mod exit;
pub mod failure;
pub mod histogram;
pub mod host;
pub mod io_engine;
pub mod job;
pub mod ledger;
pub mod log;
pub mod mix;
pub mod node;
pub mod percentiles;
pub mod phase;
pub mod point;
pub mod purge;
pub mod refusal;
mod remedies;
pub mod result;
pub mod sample;
pub mod stack;
pub mod stage;
mod step_ends;
pub mod switches;
pub mod text;
pub mod units;
pub mod value;
pub mod verdict;

pub use certainty::{Certainty, LatencyCertainty, PercentileCertainty, RateCertainty};
pub use document::{RunDocument, RunStatus};
pub use environment::Environment;
pub use event::{Entry, Event, Outcome, SkipCause};
pub use evidence::{EvidenceInterval, EvidenceSum};
pub use exit::Exit;
pub use failure::{Failure, FailureKind, split_advice};
pub use histogram::Histogram;
pub use host::{Clock, Host};
pub use job::{JobOption, JobSpec, Origin};
pub use ledger::{LedgerEntry, LedgerEvent, Pattern};
pub use log::{LogEntry, LogKind, PrioColumn};
pub use node::{NodeSample, NodeUse, Volume};
pub use phase::DevicePhase;
pub use point::Point;
pub use purge::{
    ExpectedContent, HiddenCapacity, Issued, PassedOver, PurgeDocument, Purged, Verification,
};
pub use refusal::{RefusalDocument, RefusalFinding, Refused};
pub use result::{Direction, DirectionResult, DiskUse, GroupResult, JobResult, Latency, Results};
pub use sample::{Moments, Sample};
pub use stack::{LayerKind, StackLayer};
pub use stage::{Stage, StageEnd, StageKind};
pub use step_ends::{StepEnds, with_step_ends};
pub use switches::{FormerPage, SettingValue, SwitchState};
pub use verdict::{FigureVerdict, ReasonKind, VerdictLevel, VerdictReason};
