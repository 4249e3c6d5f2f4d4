//! Runs steps on this machine: one stream of events into the record and to an
//! observer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use fathom_engine::{Control, Engine, EngineError, Flow, Lead, Outcome, Request, Sink};
use fathom_model::{Event, Failure, FailureKind, RunStatus};
use fathom_record::{RecordError, Writer};

use crate::{MaxErrors, TargetCheck};

/// One step of a run: what the engine is asked for, under a name.
#[derive(Debug, Clone)]
pub struct StepRequest {
    /// Name of the step: the job file's, the test's.
    pub name: String,
    /// What to run.
    pub request: Request,
    /// Most failed I/Os of each job; `None`: as many as the job goes past.
    pub max_errors: Option<MaxErrors>,
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
/// does not keep the next one from running; a stop does. `targets` is `None` for jobs
/// that touch nothing of this machine.
///
/// # Errors
/// When the record could not be written; the run was stopped then.
pub fn run(
    engine: &dyn Engine,
    steps: &[StepRequest],
    writer: Writer,
    targets: Option<TargetCheck>,
    control: &Control,
    observer: &mut dyn FnMut(&Event),
) -> Result<(PathBuf, RunStatus), FleetError> {
    let mut session = Session::new(writer, targets, control, observer, 0);
    let started = Instant::now();
    let of = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let mut status = RunStatus::Complete;
    for (step, request) in (1..).zip(steps) {
        session.at(u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX));
        let name = request.name.clone();
        let point = None;
        session.event(Event::Step {
            step,
            of,
            name,
            point,
        });
        let mut exceeded = Vec::new();
        let counts_failed = engine.name() != "native";
        let mut watch = |event: &Event| {
            if let (Event::Finished { results }, Some(most)) = (event, request.max_errors) {
                exceeded = most.exceeded(results, counts_failed);
            }
            Flow::Continue
        };
        let outcome = session.run_until(engine, &request.request, control, &mut watch);
        match session.judge(outcome, exceeded) {
            Outcome::Complete => {}
            Outcome::Failed => status = RunStatus::Failed,
            Outcome::Interrupted => {
                status = RunStatus::Interrupted;
                break;
            }
        }
        if !session.is_recorded() {
            break;
        }
    }
    session.close(status)
}

fn note_refusal(failure: &Failure, control: &Control) {
    if failure.kind == FailureKind::Refused {
        control.refuse();
    }
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

/// A run in progress whose steps are decided one by one: gives each event to the
/// record first, then to the observer.
pub struct Session<'o> {
    writer: Writer,
    observer: &'o mut dyn FnMut(&Event),
    /// The first event that could not be recorded.
    error: Option<RecordError>,
    /// Begin of the step: the engine counts from there.
    offset_ms: u64,
    /// End of the last interval.
    t_ms: u64,
    /// `None`: what the steps use is not of this machine.
    targets: Option<TargetCheck>,
    /// Who leads it, where it is one of several.
    lead: Option<Arc<dyn Lead>>,
    /// The step that was told last and has not begun yet. The steps of a stage
    /// are nobody's but this machine's: they are not waited with.
    step: Option<u32>,
    in_stage: bool,
}

impl Sink for Session<'_> {
    fn event(&mut self, event: Event) -> Flow {
        self.take(event, &mut |_| Flow::Continue)
    }
}

/// A session whose step somebody watches.
struct Watched<'w, 'o> {
    session: &'w mut Session<'o>,
    watch: &'w mut dyn FnMut(&Event) -> Flow,
}

impl Sink for Watched<'_, '_> {
    fn event(&mut self, event: Event) -> Flow {
        self.session.take(event, self.watch)
    }
}

impl<'o> Session<'o> {
    /// A run into `writer`'s record under `control`, at `t_ms` of the run's own time: 0 for a new
    /// one, the end of the last interval for one that is continued. `targets` is asked before
    /// each step; `None` where the steps use nothing of this machine.
    pub fn new(
        writer: Writer,
        targets: Option<TargetCheck>,
        control: &Control,
        observer: &'o mut dyn FnMut(&Event),
        t_ms: u64,
    ) -> Self {
        let lead = control.lead().cloned();
        if let Some(lead) = &lead {
            lead.record(writer.dir());
        }
        Self {
            writer,
            observer,
            error: None,
            offset_ms: t_ms,
            t_ms,
            targets,
            lead,
            step: None,
            in_stage: false,
        }
    }

    /// The record that is written.
    #[must_use]
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Whether paths may still be written to, before a step is begun at all.
    ///
    /// # Errors
    /// A failure that says why not, or that a device is gone.
    pub fn look(&self, paths: &[PathBuf], control: &Control) -> Result<(), Failure> {
        let looked = self.targets.as_ref().map_or(Ok(()), |it| it.look(paths));
        looked.inspect_err(|failure| note_refusal(failure, control))
    }

    /// Lets other programs claim the devices that the steps write to, until the next
    /// step does.
    pub fn release_targets(&mut self) {
        if let Some(targets) = &mut self.targets {
            targets.release();
        }
    }

    /// Says where in the run's time the next step begins, in ms.
    pub fn at(&mut self, t_ms: u64) {
        self.offset_ms = t_ms;
    }

    /// End of the last interval, in ms of the run's time.
    #[must_use]
    pub fn t_ms(&self) -> u64 {
        self.t_ms
    }

    /// Whether everything so far could be recorded: else the run must end.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.error.is_none()
    }

    /// Puts an event into the run's time, records it and shows it to everybody.
    fn take(&mut self, mut event: Event, watch: &mut dyn FnMut(&Event) -> Flow) -> Flow {
        if let Some(lead) = &self.lead {
            lead.event(&event);
        }
        match &mut event {
            Event::Sample(sample) => sample.t_ms += self.offset_ms,
            Event::Interval { t_ms, .. } => {
                *t_ms += self.offset_ms;
                self.t_ms = *t_ms;
            }
            Event::Stage { .. } => self.in_stage = true,
            Event::StageEnded { .. } => self.in_stage = false,
            Event::Step { step, .. } => self.step = (!self.in_stage).then_some(*step),
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
            None => watch(&event),
        }
    }

    /// Runs one step to its end. An engine that cannot be started has failed.
    pub fn run(&mut self, engine: &dyn Engine, request: &Request, control: &Control) -> Outcome {
        self.run_until(engine, request, control, &mut |_| Flow::Continue)
    }

    /// As [`Session::run`], but `watch` is shown every event once it is recorded
    /// and can end the step: as an interrupt would, and that is its outcome.
    pub fn run_until(
        &mut self,
        engine: &dyn Engine,
        request: &Request,
        control: &Control,
        watch: &mut dyn FnMut(&Event) -> Flow,
    ) -> Outcome {
        // Before the others are waited for: who refuses, or lays out for minutes, does so
        // while nobody measures.
        let checked = self.check_targets(request, control);
        if !self.may_begin() {
            return Outcome::Interrupted;
        }
        if let Err(failure) = checked {
            note_refusal(&failure, control);
            self.event(Event::Failure(failure));
            return Outcome::Failed;
        }
        if control.stop_requests() > 0 {
            return Outcome::Interrupted;
        }
        let mut watched = Watched {
            session: &mut *self,
            watch,
        };
        let outcome = engine.run(request, control, &mut watched);
        outcome.unwrap_or_else(|error| {
            self.event(Event::Failure(failure_of(error)));
            Outcome::Failed
        })
    }

    /// What came of a step whose jobs had these failed I/Os too many.
    fn judge(&mut self, outcome: Outcome, exceeded: Vec<Failure>) -> Outcome {
        if outcome == Outcome::Interrupted || exceeded.is_empty() {
            return outcome;
        }
        for failure in exceeded {
            self.event(Event::Failure(failure));
        }
        Outcome::Failed
    }

    fn check_targets(&mut self, request: &Request, control: &Control) -> Result<(), Failure> {
        let Some(targets) = &mut self.targets else {
            return Ok(());
        };
        let prepared = targets.before(request, control)?;
        for text in prepared.notes {
            self.event(Event::Note { text });
        }
        if prepared.laid_out_bytes > 0 {
            let bytes = prepared.laid_out_bytes;
            self.event(Event::WrittenBeside { bytes });
        }
        Ok(())
    }

    /// Waits for the other machines before a step, where there are any.
    fn may_begin(&mut self) -> bool {
        let (Some(lead), Some(step)) = (&self.lead, self.step.take()) else {
            return true;
        };
        let waits = Instant::now();
        let may = lead.may_begin(step);
        self.offset_ms += u64::try_from(waits.elapsed().as_millis()).unwrap_or(u64::MAX);
        may
    }

    /// Writes the last line and closes the record.
    ///
    /// # Errors
    /// When something of the run could not be recorded.
    pub fn close(self, status: RunStatus) -> Result<(PathBuf, RunStatus), FleetError> {
        let status = match self.error {
            Some(_) => RunStatus::Failed,
            None => status,
        };
        let dir = self.writer.dir().to_owned();
        let finished = self.writer.finish(status);
        (self.observer)(&Event::Ended { status });
        if let Some(lead) = &self.lead {
            lead.closed(status);
        }
        match (self.error, finished) {
            (Some(source), _) | (None, Err(source)) => Err(FleetError::Record { dir, source }),
            (None, Ok(dir)) => Ok((dir, status)),
        }
    }
}
