//! The native engine on real files, and beside the real fio.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod beside_fio;
mod content;
mod engines;
mod failures;
mod flow;
mod iolog;
mod limits;
mod options;
mod places;
mod reports;
mod verify;
mod walk;
mod zones;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_engine::{Control, Engine, EngineError, Outcome, Request, Sink};
use fathom_engine_native::Native;
use fathom_model::{DirectionResult, Event, Failure, Results};

/// Everything a run said.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) events: Vec<Event>,
    /// Called with each event; may stop the run.
    pub(crate) control: Control,
    pub(crate) stop_after_samples: Option<usize>,
    pub(crate) stop_after_status: bool,
    /// Asked twice: whoever does that does not want to wait.
    pub(crate) stop_twice_after_intervals: Option<usize>,
}

impl Sink for Seen {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        self.events.push(event);
        let count = |is: fn(&Event) -> bool| self.events.iter().filter(|e| is(e)).count();
        let samples = count(|event| matches!(event, Event::Sample(_)));
        let statuses = count(|event| matches!(event, Event::Status { .. }));
        let intervals = count(|event| matches!(event, Event::Interval { .. }));
        if self.stop_after_samples.is_some_and(|most| samples >= most)
            || self.stop_after_status && statuses > 0
        {
            self.control.stop();
        }
        if self
            .stop_twice_after_intervals
            .is_some_and(|most| intervals >= most)
        {
            self.control.stop();
            self.control.stop();
        }
        ControlFlow::Continue(())
    }
}

impl Seen {
    pub(crate) fn results(&self) -> &Results {
        let finished = self.events.iter().find_map(|event| match event {
            Event::Finished { results } => Some(results),
            _ => None,
        });
        finished.expect("a run ends with its results")
    }

    pub(crate) fn failures(&self) -> Vec<&Failure> {
        let failures = self.events.iter().filter_map(|event| match event {
            Event::Failure(failure) => Some(failure),
            _ => None,
        });
        failures.collect()
    }

    pub(crate) fn write(&self, job: usize) -> &DirectionResult {
        self.results().jobs[job].write.as_ref().unwrap()
    }

    pub(crate) fn read(&self, job: usize) -> &DirectionResult {
        self.results().jobs[job].read.as_ref().unwrap()
    }
}

/// Runs a job file in a folder.
pub(crate) fn request(job_file: PathBuf, dir: &Path) -> Request {
    Request {
        job_file,
        sections: Vec::new(),
        extra_args: Vec::new(),
        work_dir: dir.to_owned(),
        raw_dir: dir.to_owned(),
        interval: Duration::from_millis(100),
        deadline: Some(Duration::from_secs(300)),
        fio: None,
        checked: None,
    }
}

/// Runs a job file's text in a folder.
pub(crate) fn try_run(dir: &Path, text: &str, seen: &mut Seen) -> Result<Outcome, EngineError> {
    let job_file = dir.join("job.fio");
    std::fs::write(&job_file, text).unwrap();
    let request = request(job_file, dir);
    let control = seen.control.clone();
    Native::new().run(&request, &control, seen)
}

/// Runs a job file that must succeed.
pub(crate) fn run(dir: &Path, text: &str) -> Seen {
    let mut seen = Seen::default();
    let outcome = try_run(dir, text, &mut seen).unwrap();
    assert_eq!(outcome, Outcome::Complete, "{:?}", seen.failures());
    seen
}

/// A folder on a disk: /tmp may be a tmpfs, which knows no O_DIRECT.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}
