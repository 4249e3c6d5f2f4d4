//! One machine of a run, as the side that drives sees it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fathom_model::{Event, Host, RunStatus};

use super::allowance::Allowance;
use super::clock::ClockEstimate;
use super::kept::HostRecord;
use super::machine::{Connection, Machine};

/// Where a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPhase {
    /// The program is sent, or its checks are made.
    Preparing,
    /// It waits for the word.
    AtGate(HostGate),
    /// It runs a step.
    Running,
    /// It has ended.
    Over,
}

/// What a machine waits for, in the order in which it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostGate {
    /// The begin: it has checked everything and changed nothing.
    Begin,
    /// This step of the run, counted from 0.
    Step(usize),
}

/// One machine.
pub struct DrivenHost {
    pub label: String,
    pub host: Host,
    pub far: Option<Box<dyn Connection>>,
    /// Why it could not be reached, until that is told.
    pub unreached: Option<String>,
    pub phase: HostPhase,
    /// Whether it has a part in the step in progress that has not ended.
    pub in_step: bool,
    /// The step that it told last.
    pub step: Option<Event>,
    /// What it leaves out, and why.
    pub left_out: BTreeMap<String, String>,
    /// Its own record.
    pub kept: Option<HostRecord>,
    pub clock: ClockEstimate,
    /// The question that is open: its tag, and when it was asked.
    pub asked: Option<(u32, f64)>,
    pub asked_at: Option<Instant>,
    pub tag: u32,
    pub heard: Instant,
    /// Since when it is waited for.
    pub began: Instant,
    /// What it may send.
    pub allowance: Allowance,
    pub status: Option<RunStatus>,
    /// The first line that was none of Fathom's.
    pub stray: Option<String>,
    /// Which machine it is: its boot, and the mounts seen there.
    pub identity: Option<(String, String)>,
}

impl DrivenHost {
    /// A machine that nothing has been heard of.
    pub fn new(machine: &Machine, interval: Duration) -> Self {
        let name = &machine.name;
        Self {
            host: Host {
                name: name.to_owned(),
                node: machine.node.clone(),
                ..Host::default()
            },
            label: name.to_owned(),
            far: None,
            unreached: None,
            phase: HostPhase::Preparing,
            in_step: false,
            step: None,
            left_out: BTreeMap::new(),
            kept: None,
            clock: ClockEstimate::default(),
            asked: None,
            asked_at: None,
            tag: 0,
            heard: Instant::now(),
            began: Instant::now(),
            allowance: Allowance::new(interval),
            status: None,
            stray: None,
            identity: None,
        }
    }

    /// Of what it was told before nothing counts; who it is, and the number of the last
    /// question, stay.
    pub fn begin_anew(&mut self, interval: Duration) {
        (self.phase, self.in_step, self.status) = (HostPhase::Preparing, false, None);
        (self.step, self.kept, self.asked, self.asked_at) = (None, None, None, None);
        (self.host.start_ms, self.host.end_ms) = (None, None);
        self.left_out.clear();
        self.clock = ClockEstimate::default();
        self.allowance = Allowance::new(interval);
        (self.heard, self.began) = (Instant::now(), Instant::now());
    }

    /// What it waits for.
    pub fn gate(&self) -> Option<HostGate> {
        match self.phase {
            HostPhase::AtGate(gate) => Some(gate),
            _ => None,
        }
    }

    /// Whether it waits for the word.
    pub fn is_at_gate(&self) -> bool {
        self.gate().is_some()
    }
}
