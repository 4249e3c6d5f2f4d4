//! The embedded engine: fio's job options on io_uring, libaio and plain calls,
//! with nothing to install. Linux only, as its ways to the kernel are.
//!
//! ```text
//! JobSpec ── options ──▶ Job ── files ──▶ Plan ─┐
//!   what was written       what it means        ├─▶ Worker (a thread each)
//!                          source, data, pace ──┘      │ draws I/Os, hands them to a
//!                                                      │ backend, counts in Stats
//!            run ◀── sampler, results ◀── Stats ◀──────┘
//!             └─ Events: samples every interval, results at the end
//! ```
//!
//! [`mod@options`] is the one table of what is supported; everything else is refused
//! by name before anything is touched. [`worker`] is the loop: after its start it
//! allocates nothing, takes no lock, writes nothing. [`stats`] is read by [`run`]
//! while it is written. [`engine_process`] puts it all in a process of its own. `unsafe` is in [`backend`], [`buffer`] and the
//! clocks of [`clock`].

mod backend;
mod buffer;
mod clock;
mod commands;
mod crc32c;
mod data;
mod disks;
mod dump;
mod engine_process;
mod files;
mod floor;
mod iolog_file;
mod job;
mod kernel;
mod log_file;
mod logs;
mod members;
mod numa;
mod offsets;
mod options;
mod output;
mod pace;
mod prio;
mod replay;
mod replay_plan;
mod results;
mod ring;
mod rng;
mod run;
mod sampler;
mod scheduler;
mod slot;
mod source;
mod stats;
mod steady;
mod this_thread;
mod thread;
mod usage;
mod verify;
mod worker;
mod zbd;
mod zones;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fathom_jobfile::resolve::of;
use fathom_model::{Event, JobSpec};

use clock::ClockAnchor;
use engine_process::EngineProcess;
use fathom_engine::checked::CheckedPaths;
use fathom_engine::{Control, Engine, EngineError, Outcome, Request, Sink, requested};
use files::FilePlace;
use output::ResultCapture;

pub use crate::unsupported::Unsupported;
pub use engine_process::entry;
pub use kernel::kernel_lacks;
pub use options::{Listed, io_engines, markdown, options, supports};

/// What results name as the engine's version.
pub fn version() -> String {
    format!("native-{}", env!("CARGO_PKG_VERSION"))
}

/// The embedded engine.
#[derive(Debug)]
pub struct Native {
    anchor: ClockAnchor,
    /// Where its process may be: `None` for one that runs in this process.
    process: Option<Mutex<Option<EngineProcess>>>,
}

impl Default for Native {
    fn default() -> Self {
        Self::new()
    }
}

impl Native {
    /// One that runs in this process. Reads the clocks a first time; by the
    /// first I/O they can be compared.
    pub fn new() -> Self {
        Self {
            anchor: ClockAnchor::now(),
            process: None,
        }
    }

    /// One whose I/O is done by a process of its own (see [`mod@engine_process`]), which
    /// starts now. Only for a program that calls [`entry`] before anything else
    /// in `main`. Where /proc is missing it runs in this process all the same.
    pub fn in_own_process() -> Self {
        Self {
            process: Some(Mutex::new(EngineProcess::start().ok())),
            ..Self::new()
        }
    }

    /// A process to run a request in, when it is to have one and it can be had.
    fn take_process(&self) -> Option<EngineProcess> {
        let started = self.process.as_ref()?.lock();
        let started = started.unwrap_or_else(PoisonError::into_inner).take();
        started.or_else(|| EngineProcess::start().ok())
    }
}

impl Engine for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn run(
        &self,
        request: &Request,
        control: &Control,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, EngineError> {
        if let Some(process) = self.take_process() {
            return process.run(request, control, sink);
        }
        let begun = Instant::now();
        let specs = requested::jobs(request, self.name())?;
        let jobs = resolve(&specs)?;
        let entropy = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos() as u64);
        let place = place(request, &specs);
        let members = members::expand(
            &jobs,
            &place,
            rng::mix(entropy, u64::from(std::process::id())),
        );
        let started = Event::EngineStarted {
            engine: self.name().to_owned(),
            version: Some(version()),
            argv: Vec::new(),
            pid: None,
        };
        if sink.event(started).is_break() {
            return Ok(Outcome::Interrupted);
        }
        let clock = self.anchor.clock();
        let mut kept = ResultCapture {
            sink,
            results: None,
        };
        let (outcome, batches) =
            run::NativeRun::new(request, control, &mut kept, clock, members, begun).go(&place);
        if let Some(results) = kept.results {
            output::keep(request, &jobs, &results, &batches, begun.elapsed())?;
        }
        Ok(outcome)
    }
}

/// Where a request's files are: what was checked, or what stands there now.
fn place(request: &Request, jobs: &[JobSpec]) -> FilePlace {
    let checked = match &request.checked {
        Some(checked) => checked.clone(),
        None => {
            // A job of which it cannot be told fails by itself.
            let uses = jobs
                .iter()
                .filter_map(|job| of(job, &request.work_dir).ok());
            CheckedPaths::of_uses(&uses.flatten().collect::<Vec<_>>())
        }
    };
    FilePlace {
        work_dir: request.work_dir.clone(),
        checked: Arc::new(checked),
    }
}

/// All jobs resolved, or everything that keeps them from it.
fn resolve(specs: &[JobSpec]) -> Result<Vec<(JobSpec, job::NativeJob)>, EngineError> {
    let mut jobs = Vec::new();
    let mut refused = Vec::new();
    for spec in specs {
        match options::resolve(spec) {
            Ok(job) => jobs.push((spec.clone(), job)),
            Err(reasons) => refused.extend(reasons.iter().map(ToString::to_string)),
        }
    }
    for (_, job) in &jobs {
        if let Some(name) = &job.order.wait_for
            && !specs
                .iter()
                .any(|spec| spec.name == *name && *name != job.name)
        {
            refused.push(format!(
                "job {}: wait_for: there is no other job '{name}'",
                job.name
            ));
        }
    }
    let mut iologs = BTreeSet::new();
    for (_, job) in &jobs {
        if let Some(log) = &job.logs.iolog
            && !iologs.insert(log)
        {
            refused.push(format!(
                "job {}: write_iolog: another job has the log '{log}' already",
                job.name
            ));
        }
    }
    if refused.is_empty() {
        Ok(jobs)
    } else {
        Err(requested::bad(refused.join("\n")))
    }
}
