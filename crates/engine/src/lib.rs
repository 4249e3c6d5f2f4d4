//! Engines: what turns a job into I/O.
//!
//! An [`Engine`] runs one job file from start to end and hands every
//! [`Event`] to a [`Sink`] as it happens; it never prints and keeps no
//! results. This crate knows `model`, `device`, `jobfile` and
//! `fio-output`.

#![forbid(unsafe_code)]

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fathom_model::{Event, RunStatus};
use serde::{Deserialize, Serialize};

use checked::CheckedPaths;

pub use fathom_model::Outcome;

// Elsewhere files that are there are opened, and no more.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports))]
pub mod checked;
pub mod existing;
pub mod expect;
pub mod guard;
pub mod idle;
pub mod layout;
pub mod requested;

/// Takes the events of a run in order.
pub trait Sink {
    /// Takes one event. [`ControlFlow::Break`] ends the run as an interrupt would:
    /// the record could not be written.
    fn event(&mut self, event: Event) -> ControlFlow<()>;
}

/// What an engine is to run.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Request {
    /// The job file to run, as it stands in the record.
    pub job_file: PathBuf,
    /// Sections to run; empty means all.
    pub sections: Vec<String>,
    /// Options of the engine's own command line, passed on as they are.
    pub extra_args: Vec<String>,
    /// Folder the engine runs in, as for a plain `fio` command: relative file
    /// names of the job and its logs are meant from here.
    pub work_dir: PathBuf,
    /// Folder for the engine's raw outputs.
    pub raw_dir: PathBuf,
    /// Time between two samples.
    pub interval: Duration,
    /// Longest time the run may take; `None` is no limit.
    pub deadline: Option<Duration>,
    /// The program that the engine fio runs, where it is not that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio: Option<PathBuf>,
    /// What the paths of its jobs led to when they were checked; nothing else is opened.
    /// `None`: the engine follows them before it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<CheckedPaths>,
}

/// Why an engine gave up before or while running; failures of jobs are events.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine cannot run here, or ended in a way that left no figures.
    #[error("{0}")]
    Failed(fathom_model::Failure),
    /// A file of the run could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Runs jobs.
pub trait Engine: fmt::Debug {
    /// `fio`, `native` or `sim`.
    fn name(&self) -> &'static str;

    /// The time on the engine's clock, from a fixed moment on: the machine's,
    /// unless time itself is simulated.
    fn now(&self) -> Duration {
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        BEGIN.get_or_init(Instant::now).elapsed()
    }

    /// Lets time pass on the engine's clock, without I/O.
    fn pass(&self, time: Duration) {
        std::thread::sleep(time);
    }

    /// Runs one job file to its end.
    ///
    /// # Errors
    /// When the engine cannot be started or leaves no figures at all.
    fn run(
        &self,
        request: &Request,
        control: &Control,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, EngineError>;
}

/// Where a run that is one of several on as many machines waits before each step:
/// it is told everything that happens, and says when the steps begin.
pub trait StepBarrier: fmt::Debug + Send + Sync {
    /// The run's record was begun, or is gone on with, in this folder.
    fn record(&self, dir: &Path);

    /// This happened; its times are ms since the begin of its step.
    fn event(&self, event: &Event);

    /// Waits until all may begin the step that was told last, by its place. Step 0
    /// is the begin itself: everything has been checked, and nothing changed.
    /// False: the run ends.
    fn may_begin(&self, step: u32) -> bool;

    /// The record was closed.
    fn closed(&self, status: RunStatus);
}

/// Tells a running engine from outside (a signal, a trigger file) what to do.
#[derive(Debug, Clone, Default)]
pub struct Control {
    stop: Arc<AtomicU8>,
    /// The same, of one step alone.
    step_stop: Arc<AtomicBool>,
    status_requests: Arc<AtomicU32>,
    refused: Arc<AtomicBool>,
    step_barrier: Option<Arc<dyn StepBarrier>>,
}

impl Control {
    /// The same, of a run whose steps begin together with those of others.
    #[must_use]
    pub fn with_barrier(self, barrier: Arc<dyn StepBarrier>) -> Self {
        let step_barrier = Some(barrier);
        Self {
            step_barrier,
            ..self
        }
    }

    /// Where the run waits for others before a step, if it is one of several.
    pub fn step_barrier(&self) -> Option<&Arc<dyn StepBarrier>> {
        self.step_barrier.as_ref()
    }

    /// To be asked once everything has been checked and before anything is
    /// changed: waits for the other machines, where there are any, because what
    /// one of them refuses none may do. False: the run ends.
    pub fn all_are_ready(&self) -> bool {
        let barrier = self.step_barrier.as_ref();
        barrier.is_none_or(|barrier| barrier.may_begin(0))
    }

    /// Asks the run to end; asking again asks harder (the engine is killed).
    pub fn stop(&self) {
        let _ = self
            .stop
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_add(1));
    }

    /// Forgets that the run was asked to end: it has, and another one follows.
    pub fn begin_anew(&self) {
        self.stop.store(0, Ordering::SeqCst);
    }

    /// For one step of the run: it can be ended alone.
    pub fn of_step(&self) -> Self {
        let step_stop = Arc::default();
        Self {
            step_stop,
            ..self.clone()
        }
    }

    /// Asks the step to end, where this is of one; the run goes on.
    pub fn end_step(&self) {
        self.step_stop.store(true, Ordering::SeqCst);
    }

    /// How often [`Control::stop`] was called.
    pub fn stop_requests(&self) -> u8 {
        let of_step = self.step_stop.load(Ordering::SeqCst);
        let of_run = self.stop.load(Ordering::SeqCst);
        of_run.saturating_add(u8::from(of_step))
    }

    /// Notes that a step was refused, for the safety of data or because its figures
    /// would mislead.
    pub fn refuse(&self) {
        self.refused.store(true, Ordering::SeqCst);
    }

    /// Whether a step was.
    pub fn is_refused(&self) -> bool {
        self.refused.load(Ordering::SeqCst)
    }

    /// Asks for an [`Event::Status`] while the run goes on.
    pub fn request_status(&self) {
        self.status_requests.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes one request for a status, if there is any.
    pub fn take_status_request(&self) -> bool {
        self.status_requests
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
            .is_ok()
    }
}
