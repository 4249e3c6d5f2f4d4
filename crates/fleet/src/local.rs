//! Runs steps on this machine: one stream of events into the record and to an
//! observer.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use fathom_device::evidence::Sampler;
use fathom_device::{Sys, threads, writeback};
use fathom_engine::checked::CheckedPaths;
use fathom_engine::idle::idle_jobs;
use fathom_engine::{Control, Engine, EngineError, Outcome, Request, Sink, StepBarrier};
use fathom_model::{Event, Failure, FailureKind, RunStatus, units};
use fathom_record::{RecordError, Writer};

use crate::device_errors::explained;
use crate::{MaxErrors, TargetCheck};

/// How often somebody who wants the step to end is looked for while dirty data is written.
const STOP_LOOK: Duration = Duration::from_millis(100);
/// A step that begins so much later for that says why.
const WRITE_BACK_TOLD: Duration = Duration::from_secs(1);

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
    /// `None`: what the steps use is not of this machine.
    targets: Option<TargetCheck>,
    /// Who leads it, where it is one of several.
    lead: Option<Arc<dyn StepBarrier>>,
    /// The step that was told last and has not begun yet. The steps of a stage
    /// are nobody's but this machine's: they are not waited with.
    step: Option<u32>,
    in_stage: bool,
    /// Whether a step is in progress.
    is_in_step: bool,
    max_errors: Option<MaxErrors>,
    /// Devices whose earlier writes are unknown.
    without_history: Vec<String>,
    /// What the machine does while the step runs; `None` where it uses nothing of this
    /// machine.
    sampler: Option<Sampler>,
}

impl Sink for Session<'_> {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        self.take(event, &mut |_| ControlFlow::Continue(()))
    }
}

/// A session whose step somebody watches.
struct WatchedSession<'w, 'o> {
    session: &'w mut Session<'o>,
    watch: &'w mut dyn FnMut(&Event) -> ControlFlow<()>,
    /// What the step reads and writes of this machine.
    paths: &'w [PathBuf],
}

impl Sink for WatchedSession<'_, '_> {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        match event {
            Event::EngineStarted { pid: Some(pid), .. } => {
                if let Some(sampler) = &mut self.session.sampler {
                    sampler.watch(pid);
                }
            }
            Event::Interval { .. } => self.session.read_evidence(false),
            // Behind the figures the engine does nothing more.
            Event::Finished { .. } => self.session.read_evidence(true),
            _ => {}
        }
        let event = match event {
            Event::Failure(failure) => Event::Failure(explained(failure, self.paths)),
            event => event,
        };
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
        let lead = control.step_barrier().cloned();
        if let Some(lead) = &lead {
            lead.record(writer.dir());
        }
        Self {
            writer,
            observer,
            error: None,
            offset_ms: t_ms,
            targets,
            lead,
            step: None,
            in_stage: false,
            is_in_step: false,
            max_errors: None,
            without_history: Vec::new(),
            sampler: None,
        }
    }

    /// Most failed I/Os of each job of the steps that follow; `None`: as many as the
    /// job goes past.
    pub fn limit_errors(&mut self, most: Option<MaxErrors>) {
        self.max_errors = most;
    }

    /// The earlier writes to these devices are unknown.
    pub fn without_history(&mut self, devices: Vec<String>) {
        self.without_history = devices;
    }

    /// The record that is written.
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

    /// Whether everything so far could be recorded: else the run must end.
    pub fn is_recorded(&self) -> bool {
        self.error.is_none()
    }

    /// Puts an event into the run's time, records it and shows it to everybody.
    fn take(
        &mut self,
        mut event: Event,
        watch: &mut dyn FnMut(&Event) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if let Some(lead) = &self.lead {
            lead.event(&event);
        }
        match &mut event {
            Event::Sample(sample) => sample.t_ms += self.offset_ms,
            Event::Evidence(evidence) => evidence.t_ms += self.offset_ms,
            Event::Interval { t_ms, .. } => *t_ms += self.offset_ms,
            Event::Stage { .. } => self.in_stage = true,
            Event::StageEnded { .. } => self.in_stage = false,
            Event::Step { step, .. } => {
                self.step = (!self.in_stage).then_some(*step);
                self.is_in_step = true;
            }
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
            Some(_) => ControlFlow::Break(()),
            None => watch(&event),
        }
    }

    /// Runs one step to its end. An engine that cannot be started has failed. `watch` is
    /// shown every event once it is recorded and can end the step: as an interrupt would,
    /// and that is its outcome.
    pub fn run(
        &mut self,
        engine: &dyn Engine,
        request: &Request,
        control: &Control,
        watch: &mut dyn FnMut(&Event) -> ControlFlow<()>,
    ) -> Outcome {
        // Before the others are waited for: who refuses, or lays out for minutes, does so
        // while nobody measures.
        let checked = self.check_targets(request, control);
        if !self.may_begin(engine) {
            return Outcome::Interrupted;
        }
        let prepared = match checked {
            Ok(prepared) => prepared,
            Err(failure) => {
                note_refusal(&failure, control);
                let _ = self.event(Event::Failure(failure));
                return Outcome::Failed;
            }
        };
        if control.stop_requests() > 0 {
            return Outcome::Interrupted;
        }
        let (paths, checked) = prepared.unzip();
        self.write_back(paths.as_deref().unwrap_or_default(), control);
        self.begin_evidence(paths.clone());
        let paths = paths.unwrap_or_default();
        let request = &Request {
            checked,
            ..request.clone()
        };
        let most = self.max_errors;
        let mut exceeded = Vec::new();
        let mut idle = Vec::new();
        let mut watch = |event: &Event| {
            if let Event::Failure(failure) = event {
                note_refusal(failure, control);
            }
            if let Event::Finished { results } = event {
                idle = idle_jobs(request, results);
                if let Some(most) = most {
                    exceeded = most.exceeded(results, engine.name() != "native");
                }
            }
            watch(event)
        };
        let mut watched = WatchedSession {
            session: &mut *self,
            watch: &mut watch,
            paths: &paths,
        };
        let outcome = engine.run(request, control, &mut watched);
        let outcome = outcome.unwrap_or_else(|error| {
            let _ = self.event(Event::Failure(failure_of(error)));
            Outcome::Failed
        });
        // Of an engine that gave no figures.
        self.read_evidence(true);
        if outcome == Outcome::Complete {
            exceeded.append(&mut idle);
        }
        self.judge(outcome, exceeded)
    }

    /// Waits until what the page cache held of the targets before the step has been written,
    /// or somebody wants the step to end.
    fn write_back(&mut self, paths: &[PathBuf], control: &Control) {
        if paths.is_empty() {
            return;
        }
        let (done, wait) = mpsc::channel::<()>();
        let (targets, since) = (paths.to_vec(), Instant::now());
        let writing = threads::spawn("write-back", move || {
            writeback::write_back(&targets);
            drop(done);
        });
        if writing.is_err() {
            return;
        }
        while wait.recv_timeout(STOP_LOOK) == Err(RecvTimeoutError::Timeout) {
            if control.stop_requests() > 0 {
                return;
            }
        }
        let waited = since.elapsed();
        if waited >= WRITE_BACK_TOLD {
            let ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
            let text = format!(
                "before the step, {} passed until the kernel had written what the page cache held of its targets",
                units::duration(ms)
            );
            let _ = self.event(Event::Note { text });
        }
    }

    /// From here on the machine is watched, where the step uses it.
    fn begin_evidence(&mut self, paths: Option<Vec<PathBuf>>) {
        let Some(paths) = paths else { return };
        let record = std::path::absolute(self.writer.dir()).ok();
        // A recorded tree in place of this machine's, for tests.
        let tree = std::env::var_os("FATHOM_SYS");
        let sys = tree.map_or_else(Sys::live, |tree| Sys::recorded(PathBuf::from(tree)));
        let (sampler, mut first) = Sampler::begin(&sys, &paths, record);
        if first.is_empty() {
            return;
        }
        for device in &self.without_history {
            let setting = (format!("{device}.history"), "unknown".to_owned());
            first.settings.extend([setting]);
        }
        let _ = self.event(Event::Evidence(Box::new(first)));
        self.sampler = Some(sampler);
    }

    /// What the machine did since the last time, before it is told that an interval has
    /// ended, or that the step has.
    fn read_evidence(&mut self, is_last: bool) {
        let evidence = match (&mut self.sampler, is_last) {
            (None, _) => return,
            (Some(sampler), false) => sampler.interval(),
            (Some(sampler), true) => Some(sampler.end()),
        };
        if is_last {
            self.sampler = None;
        }
        if let Some(evidence) = evidence {
            let _ = self.event(Event::Evidence(Box::new(evidence)));
        }
    }

    /// What came of a step whose jobs failed by their figures: too many failed I/Os, or
    /// no I/O at all.
    fn judge(&mut self, outcome: Outcome, failures: Vec<Failure>) -> Outcome {
        if outcome == Outcome::Interrupted || failures.is_empty() {
            return outcome;
        }
        for failure in failures {
            let _ = self.event(Event::Failure(failure));
        }
        Outcome::Failed
    }

    /// Says that the step in progress has ended, and how, if there is one.
    pub fn end_step(&mut self, outcome: Outcome) {
        if std::mem::take(&mut self.is_in_step) {
            let _ = self.event(Event::StepEnded { outcome });
        }
    }

    /// Gives what the step reads and writes of this machine, and what that was when it was
    /// judged.
    fn check_targets(
        &mut self,
        request: &Request,
        control: &Control,
    ) -> Result<Option<(Vec<PathBuf>, CheckedPaths)>, Failure> {
        let Some(targets) = &mut self.targets else {
            return Ok(None);
        };
        let prepared = targets.before(request, control)?;
        for text in prepared.notes {
            let _ = self.event(Event::Note { text });
        }
        if prepared.laid_out_bytes > 0 {
            let bytes = prepared.laid_out_bytes;
            let _ = self.event(Event::WrittenBeside { bytes });
        }
        Ok(Some((prepared.paths, prepared.checked)))
    }

    /// Waits for the other machines before a step, where there are any. That is a part of
    /// the run's time, but for a device whose time is not that of a clock.
    fn may_begin(&mut self, engine: &dyn Engine) -> bool {
        let (Some(lead), Some(step)) = (&self.lead, self.step.take()) else {
            return true;
        };
        let since = engine.now();
        let may = lead.may_begin(step);
        let waited = engine.now().saturating_sub(since);
        self.offset_ms += u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
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
