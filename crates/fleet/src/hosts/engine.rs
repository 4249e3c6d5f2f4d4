//! Several machines as one engine: each job file runs on all of them at once, and what
//! they tell is what it tells. The machines stay connected until it is dropped.

use std::cell::RefCell;
use std::fmt;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fathom_engine::{Control, Engine, EngineError, Outcome, Request, Sink};
use fathom_model::{Event, Failure, FailureKind, RunStatus};
use serde_json::Value;

use super::{ConnectedHosts, Course, HostsJob, HostsSink, Machine};

/// A job file with its name, as the plan that each machine is sent.
pub type PlanOfJob = Box<dyn Fn(&Request, &str, String) -> serde_json::Result<Value>>;
/// Connects to the machines.
pub type ConnectAll = Box<dyn Fn(&Control) -> Vec<Machine>>;

/// Several machines that run each job file together.
pub struct HostsEngine {
    /// The engine that each of them was asked for.
    wish: &'static str,
    /// What every step has in common.
    job: HostsJob,
    plan: PlanOfJob,
    connect: ConnectAll,
    hosts: RefCell<Option<ConnectedHosts>>,
}

impl HostsEngine {
    /// Machines to which `connect` leads when the first job file runs.
    pub fn new(wish: &'static str, job: HostsJob, plan: PlanOfJob, connect: ConnectAll) -> Self {
        Self {
            wish,
            job,
            plan,
            connect,
            hosts: RefCell::new(None),
        }
    }
}

impl fmt::Debug for HostsEngine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut shown = f.debug_struct("HostsEngine");
        shown.field("job", &self.job).finish_non_exhaustive()
    }
}

impl Drop for HostsEngine {
    fn drop(&mut self) {
        if let Some(hosts) = self.hosts.take() {
            hosts.finish();
        }
    }
}

impl Engine for HostsEngine {
    fn name(&self) -> &'static str {
        self.wish
    }

    fn run(
        &self,
        request: &Request,
        control: &Control,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, EngineError> {
        let started = Instant::now();
        let path = &request.job_file;
        let text = fs::read_to_string(path).map_err(|source| EngineError::File {
            path: path.clone(),
            source,
        })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let plan = (self.plan)(request, &name, text).map_err(|error| {
            EngineError::Failed(Failure::new(FailureKind::Other, error.to_string()))
        })?;
        let job = HostsJob {
            plan,
            steps: vec![name.into_owned()],
            interval: request.interval,
            ..self.job.clone()
        };
        let mut hosts = self.hosts.borrow_mut();
        let hosts = match &mut *hosts {
            Some(hosts) => hosts,
            none => {
                let what = format!("connecting to {} machines", self.job.least);
                let _ = sink.event(Event::Preparing { what });
                let machines = (self.connect)(control);
                if control.stop_requests() > 0 {
                    return Ok(Outcome::Interrupted);
                }
                none.insert(ConnectedHosts::connect(machines).staying())
            }
        };
        let mut step = StepOfHosts {
            sink,
            raw_dir: request.raw_dir.clone(),
            offset_ms: 0,
            is_full: false,
        };
        let course = Course {
            record: &mut step,
            raw_dir: Some(request.raw_dir.clone()),
            started,
            before: 0,
            of: 1,
        };
        Ok(match hosts.drive(&job, course, control, &mut |_| {}) {
            RunStatus::Complete => Outcome::Complete,
            RunStatus::Interrupted => Outcome::Interrupted,
            RunStatus::Failed | RunStatus::Running => Outcome::Failed,
        })
    }
}

/// The one step of a job file, whose begin and end the run itself tells.
struct StepOfHosts<'s> {
    sink: &'s mut dyn Sink,
    raw_dir: PathBuf,
    /// How long after the begin of the step the machines have begun.
    offset_ms: u64,
    is_full: bool,
}

impl HostsSink for StepOfHosts<'_> {
    fn dir(&self) -> &Path {
        &self.raw_dir
    }

    fn event(&mut self, mut event: Event) {
        match &mut event {
            Event::Step { .. } | Event::StepEnded { .. } => return,
            Event::Sample(sample) => sample.t_ms += self.offset_ms,
            Event::Evidence(evidence) => evidence.t_ms += self.offset_ms,
            Event::Interval { t_ms, .. } => *t_ms += self.offset_ms,
            _ => {}
        }
        if self.sink.event(event) == ControlFlow::Break(()) {
            self.is_full = true;
        }
    }

    fn wants_more(&self) -> bool {
        !self.is_full
    }

    fn at(&mut self, t_ms: u64) {
        self.offset_ms = t_ms;
    }

    fn end_step(&mut self, _: Outcome) {}
}
