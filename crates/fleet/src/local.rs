//! Runs steps on this machine: one stream of events into the record and to an
//! observer.

use std::path::PathBuf;
use std::time::Instant;

use fathom_engine::{Control, Engine, EngineError, Flow, Outcome, Request, Sink};
use fathom_model::{Event, Failure, FailureKind, RunStatus};
use fathom_record::{RecordError, Writer};

/// One step of a run: what the engine is asked for, under a name.
#[derive(Debug, Clone)]
pub struct StepRequest {
    /// Name of the step: the job file's, the test's.
    pub name: String,
    /// What to run.
    pub request: Request,
}

/// Why a run could not be kept to its end. What was written until then stays.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The record could not be written.
    #[error("the run was stopped, its record cannot be written: {source}")]
    Record {
        /// The record's folder.
        dir: PathBuf,
        /// What happened.
        source: RecordError,
    },
}

/// Runs the steps one after the other and closes the record. A step that fails
/// does not keep the next one from running; a stop does.
///
/// # Errors
/// When the record could not be written; the run was stopped then.
pub fn run(
    engine: &dyn Engine,
    steps: &[StepRequest],
    writer: Writer,
    control: &Control,
    observer: &mut dyn FnMut(&Event),
) -> Result<(PathBuf, RunStatus), FleetError> {
    let mut both = Both {
        writer,
        observer,
        error: None,
        offset_ms: 0,
    };
    let started = Instant::now();
    let mut status = RunStatus::Complete;
    for (place, step) in (1..).zip(steps) {
        both.offset_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        both.event(Event::Step {
            step: place,
            of: u32::try_from(steps.len()).unwrap_or(u32::MAX),
            name: step.name.clone(),
            point: None,
        });
        let outcome = engine
            .run(&step.request, control, &mut both)
            .unwrap_or_else(|error| {
                both.event(Event::Failure(failure_of(error)));
                Outcome::Failed
            });
        match outcome {
            Outcome::Complete => {}
            Outcome::Failed => status = RunStatus::Failed,
            Outcome::Interrupted => {
                status = RunStatus::Interrupted;
                break;
            }
        }
        if both.error.is_some() {
            break;
        }
    }
    both.close(status)
}

fn failure_of(error: EngineError) -> Failure {
    match error {
        EngineError::Failed(failure) => failure,
        EngineError::File { path, source } => {
            let failure = Failure::new(FailureKind::Open, source.to_string());
            let failure = failure.about(path.display().to_string());
            match source.raw_os_error() {
                Some(errno) => failure.with_errno(errno),
                None => failure,
            }
        }
    }
}

/// Gives each event to the record first, then to the observer.
struct Both<'o> {
    writer: Writer,
    observer: &'o mut dyn FnMut(&Event),
    /// The first event that could not be recorded.
    error: Option<RecordError>,
    /// Begin of the step: the engine counts from there.
    offset_ms: u64,
}

impl Sink for Both<'_> {
    fn event(&mut self, mut event: Event) -> Flow {
        match &mut event {
            Event::Sample(sample) => sample.t_ms += self.offset_ms,
            Event::Interval { t_ms, .. } => *t_ms += self.offset_ms,
            _ => {}
        }
        let written = self.writer.append(&event);
        (self.observer)(&event);
        if let (Err(error), None) = (written, &self.error) {
            let what = format!("the record could not be written: {error}");
            (self.observer)(&Event::Failure(Failure::new(FailureKind::Record, what)));
            self.error = Some(error);
        }
        match self.error {
            Some(_) => Flow::Stop,
            None => Flow::Continue,
        }
    }
}

impl Both<'_> {
    fn close(self, status: RunStatus) -> Result<(PathBuf, RunStatus), FleetError> {
        let status = match self.error {
            Some(_) => RunStatus::Failed,
            None => status,
        };
        let dir = self.writer.dir().to_owned();
        let finished = self.writer.finish(status);
        (self.observer)(&Event::Ended { status });
        match (self.error, finished) {
            (Some(source), _) | (None, Err(source)) => Err(FleetError::Record { dir, source }),
            (None, Ok(dir)) => Ok((dir, status)),
        }
    }
}
