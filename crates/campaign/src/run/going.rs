//! A campaign that runs: one step after the other, until all are measured, the
//! time is up, the device is gone or somebody stops it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use fathom_device::Hold;
use fathom_engine::{Control, Flow, Outcome, Sink as _};
use fathom_fleet::TargetCheck;
use fathom_fleet::local::Session;
use fathom_model::{Event, Failure, FailureKind, RunStatus, units};
use fathom_record::Writer;

use super::logs::Logs;
use super::looks::Looks;
use super::preparing::not_steady;
use super::tally::{Came, Tally};
use super::{COMMAND, Ready, RunError, guards::Guards, planfile, prepare, records};
use crate::flow::{Book, Clock, Ending, History, Next, Runner, Script, Stop};
use crate::plan::{Phase, Step};
use crate::precondition::Precondition;
use crate::snia::{Snia, TestLog};
use crate::write_budget::WriteBudget;

/// How a run of a campaign ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The record.
    pub dir: PathBuf,
    /// How it ended.
    pub status: RunStatus,
    /// Steps that the limits of time and of bytes written left no room for.
    pub no_room: usize,
    /// Why it ended before its steps did, when nobody stopped it.
    pub stopped: Option<String>,
    /// Why points were left out that want a steady device: a result, no error.
    pub not_steady: Option<String>,
    /// That it ended because it had written what it may, or that a limit left no
    /// room for a stage, in a sentence.
    pub spent: Option<String>,
}

impl Ready<'_> {
    /// Keeps the device to itself, and waits until every machine does so where
    /// there are several.
    fn hold(&self, control: &Control) -> Result<Hold, RunError> {
        if self.selected.is_simulated() {
            return Ok(Hold::default());
        }
        // Also where it is only read: two campaigns spoil each other's figures.
        let paths = self.written.iter().chain([&self.dut]);
        let hold = Hold::of(paths.map(PathBuf::as_path))
            .map_err(|refusal| RunError::Refused(refusal.to_string()))?;
        match control.all_are_ready() {
            true => Ok(hold),
            false => Err(RunError::Interrupted),
        }
    }

    fn budget(&mut self) -> WriteBudget {
        let simulated = self.selected.is_simulated();
        let targets = self.written.iter().filter(|_| !simulated);
        let targets = targets.map(PathBuf::as_path);
        let before = std::mem::take(&mut self.written_before);
        WriteBudget::new(before, targets, self.plan.settings.limits())
    }

    /// A new record, or that to go on with, with the plan in it.
    fn writer(&self) -> Result<Writer, RunError> {
        let writer = match &self.record {
            Some(dir) => Writer::reopen(dir)?,
            None => {
                let selected = &self.selected;
                let setups: Vec<_> = self.snia.iter().map(|script| &script.setup).collect();
                let snia = (!setups.is_empty()).then(|| serde_json::json!(setups));
                records::create(self.plan, &self.runs_dir, selected, &self.environment, snia)?
            }
        };
        let dir = writer.dir();
        planfile::write(dir, self, self.plan)
            .map_err(|source| unwritten(&dir.join(planfile::PLAN_FILE), source))?;
        Ok(writer)
    }

    /// Runs what is left. `observer` is told every event once it is recorded;
    /// before the first it is given the record's folder.
    ///
    /// # Errors
    /// When the record cannot be written; the run was stopped then. Points that
    /// fail do not end it. When the target may not be written to.
    pub fn run(
        mut self,
        control: &Control,
        begun: &mut dyn FnMut(&std::path::Path),
        observer: &mut dyn FnMut(&Event),
    ) -> Result<Finish, RunError> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        let _hold = self.hold(control)?;
        let ledgers = self.ledgers();
        // What an earlier start has written that was killed. What cannot be had is
        // told by `fathom ledger`.
        let _ = ledgers.catch_up();
        let writer = self.writer()?;
        let dir = writer.dir().to_owned();
        begun(&dir);
        let written = self.written.iter().map(PathBuf::as_path);
        let begun = ledgers.begin(written, COMMAND, Some(&dir));
        let notes: Vec<String> = self.notes.drain(..).chain(begun).collect();
        let budget = self.budget();
        let clock = Clock {
            began: self.selected.engine().now(),
            t_ms: self.tally.t_ms(),
        };
        let tally = RefCell::new(std::mem::take(&mut self.tally));
        let guards = std::mem::take(&mut self.guards);
        let looks = self.looks();
        let mut history = std::mem::take(&mut self.history);
        if let Some(resumed) = writer.resumed() {
            history.take(resumed);
        }
        let history = RefCell::new(history);
        let test_log = RefCell::new(None);
        let mut observe = |event: &Event| {
            take_down(&test_log, event);
            looks.see(event);
            history.borrow_mut().take(event);
            tally.borrow_mut().take(event);
            budget.take(event);
            observer(event);
        };
        let logs = Logs::new(&self.folder, &self.plan.dut).provisioned(self.plan.preparation.on);
        let book = Book::of(&ledgers, &self.dut, COMMAND, &dir);
        let targets =
            (!self.selected.is_simulated()).then(|| TargetCheck::new(&self.plan.settings.destroy));
        let mut going = Going {
            session: Session::new(writer, targets, control, &mut observe, clock.t_ms),
            tally: &tally,
            looks: &looks,
            history: &history,
            book: &book,
            phase: None,
            against: BTreeMap::new(),
            test_log: &test_log,
            guards,
            logs: self.plan.settings.progress_logs.then_some(logs),
            control,
            clock,
            no_room: 0,
            budget: &budget,
            stopped: None,
            not_steady: None,
            spent: None,
            unwritten: None,
            ready: &self,
        };
        going.log(|logs| logs.start(self.record.is_some()));
        going.log(|logs| logs.skip_preconditioning(None));
        for text in notes {
            going.session.event(Event::Note { text });
        }
        let interrupted = going.everything();
        let told = ledgers.end(COMMAND, &dir, budget.of_jobs()).into_iter();
        for text in told.chain(budget.difference()) {
            going.session.event(Event::Note { text });
        }
        going.close(interrupted)
    }
}

/// Takes an event down in the log of a test. That it cannot be written ends it,
/// not the test.
fn take_down(log: &RefCell<Option<TestLog>>, event: &Event) {
    let mut log = log.borrow_mut();
    if log.as_mut().is_some_and(|log| log.take(event).is_err()) {
        *log = None;
    }
}

/// What came of making the device ready.
enum Prepared {
    /// It is.
    Ready,
    /// It is not, and the points that want it are left out for this reason.
    Against(String),
    /// The run ends.
    Stopped {
        /// Somebody wanted it so.
        interrupted: bool,
    },
}

impl Prepared {
    const STOPPED: Self = Self::Stopped { interrupted: false };
}

/// The state of a run.
struct Going<'r> {
    ready: &'r Ready<'r>,
    session: Session<'r>,
    tally: &'r RefCell<Tally>,
    looks: &'r Looks,
    history: &'r RefCell<History>,
    book: &'r Book,
    /// The progress log of the SNIA test that runs.
    test_log: &'r RefCell<Option<TestLog>>,
    /// The phase for which the device is ready.
    phase: Option<Phase>,
    /// Why the points of a phase are left out.
    against: BTreeMap<Phase, String>,
    guards: Guards,
    logs: Option<Logs>,
    control: &'r Control,
    clock: Clock,
    no_room: usize,
    budget: &'r WriteBudget,
    /// Why it ended early.
    stopped: Option<String>,
    /// Why points were left out that want a steady device.
    not_steady: Option<String>,
    spent: Option<String>,
    unwritten: Option<RunError>,
}

impl Going<'_> {
    /// Makes the device ready and runs the steps; gives whether somebody stopped
    /// it.
    fn everything(&mut self) -> bool {
        for script in &self.ready.snia {
            if let Prepared::Stopped { interrupted } = self.test(script) {
                return interrupted;
            }
        }
        let preparation = &self.ready.plan.preparation;
        if let (Some(phase), Some(settings)) = (preparation.provision, &preparation.precondition) {
            let method = settings.method;
            self.log(|logs| logs.start_provisioning(method));
            let prepared = self.prepare(phase);
            let came = match &prepared {
                Prepared::Ready => "OK",
                Prepared::Against(reason) => reason,
                Prepared::Stopped { .. } => "stopped",
            };
            self.log(|logs| logs.finish_provisioning(method, came));
            if let Prepared::Stopped { interrupted } = prepared {
                return interrupted;
            }
        }
        let points = self.ready.todo.len();
        if points == 0 {
            return false;
        }
        self.log(|logs| logs.start_evaluation(points));
        let interrupted = self.all_steps();
        self.log(|logs| logs.finish_evaluation(points));
        interrupted
    }

    /// Runs a test after SNIA's specification.
    fn test(&mut self, script: &Snia) -> Prepared {
        if matches!(
            script.next(&self.history.borrow()),
            Next::End(Ending::Complete | Ending::NotAttained(_))
        ) {
            return Prepared::Ready;
        }
        let test = script.setup.test;
        let begun = self.logs.clone().map(|logs| TestLog::begin(logs, test));
        *self.test_log.borrow_mut() = begun.and_then(Result::ok);
        let interval = Duration::from_millis(script.setup.interval_ms);
        let stop = self.flow(script, interval.min(self.ready.plan.settings.interval));
        let came = match &stop {
            Stop::Ended(Ending::Complete) => "OK".to_owned(),
            Stop::Ended(Ending::NotAttained(reason) | Ending::Failed(reason)) => reason.clone(),
            _ => "stopped".to_owned(),
        };
        let log = self.test_log.borrow_mut().take();
        self.log(|_| log.map_or(Ok(()), |log| log.finish(&came)));
        match stop {
            Stop::Ended(Ending::NotAttained(reason)) => {
                let text = format!("the SNIA {} test: {reason}", test.name());
                self.session.event(Event::Note { text });
                Prepared::Ready
            }
            Stop::Ended(Ending::Failed(reason)) => {
                let what = format!("the SNIA {} test failed: {reason}", test.name());
                self.stop(Failure::new(FailureKind::Other, what));
                Prepared::STOPPED
            }
            stop => self.stopped_by(stop),
        }
    }

    /// Runs a flow.
    fn flow(&mut self, script: &dyn Script, interval: Duration) -> Stop {
        Runner {
            session: &mut self.session,
            selected: &self.ready.selected,
            control: self.control,
            clock: self.clock,
            history: self.history,
            looks: self.looks,
            work_dir: &self.ready.folder,
            interval,
            budget: self.budget,
            book: self.book,
        }
        .run(script)
    }

    /// What a flow that was stopped means for the run.
    fn stopped_by(&mut self, stop: Stop) -> Prepared {
        match stop {
            Stop::Ended(_) => Prepared::Ready,
            Stop::NoRoom(reason) => {
                self.no_room += 1;
                self.spent.get_or_insert_with(|| reason.clone());
                let text = reason.clone();
                self.session.event(Event::Note { text });
                Prepared::Against(reason)
            }
            Stop::Interrupted => Prepared::Stopped { interrupted: true },
            Stop::Record => Prepared::STOPPED,
            Stop::Device(failure) => {
                self.stop(failure);
                Prepared::STOPPED
            }
            Stop::Unwritten(path, source) => {
                self.give_up(&path, source);
                Prepared::STOPPED
            }
        }
    }

    /// Makes the device ready for a phase, once.
    fn prepare(&mut self, phase: Phase) -> Prepared {
        if let Some(reason) = self.against.get(&phase) {
            return Prepared::Against(reason.clone());
        }
        if self.phase == Some(phase) {
            return Prepared::Ready;
        }
        let prepared = match self.ready.script(phase) {
            Some(script) => self.lead(&script, phase),
            None => Prepared::Ready,
        };
        match &prepared {
            Prepared::Ready => self.phase = Some(phase),
            Prepared::Against(reason) => {
                self.against.insert(phase, reason.clone());
            }
            Prepared::Stopped { .. } => {}
        }
        prepared
    }

    /// Runs the flow that makes the device ready.
    fn lead(&mut self, script: &Precondition, phase: Phase) -> Prepared {
        if let Some(reason) = &script.skip {
            let skipped = script.led(&self.history.borrow()).is_none();
            if skipped {
                self.log(|logs| logs.skip_preconditioning(Some(reason)));
            }
        }
        let stop = self.flow(script, self.ready.plan.settings.interval);
        match stop {
            Stop::Ended(Ending::Complete) => {
                self.warn_of_soft_limit(script, phase);
                Prepared::Ready
            }
            Stop::Ended(Ending::NotAttained(reason)) => {
                // The numbers stand in the stage, and once in the end.
                let what = not_steady(phase);
                let whole = format!("{what}: {reason}");
                self.not_steady.get_or_insert(whole);
                Prepared::Against(what)
            }
            Stop::Ended(Ending::Failed(reason)) => {
                let what = format!("the device could not be made ready: {reason}");
                self.stop(Failure::new(FailureKind::Other, what));
                Prepared::STOPPED
            }
            stop => self.stopped_by(stop),
        }
    }

    /// The limit of rounds was soft and was reached: what follows is measured on
    /// a device that is not steady.
    fn warn_of_soft_limit(&mut self, script: &Precondition, phase: Phase) {
        let text = script.not_attained(&self.history.borrow()).map(|reason| {
            format!("{phase} work is measured although the device is not steady for it: {reason}")
        });
        if let Some(text) = text {
            self.session.event(Event::Note { text });
        }
    }

    /// Runs the steps; gives whether somebody stopped it.
    fn all_steps(&mut self) -> bool {
        for &place in &self.ready.todo {
            if self.control.stop_requests() > 0 {
                return true;
            }
            let step = &self.ready.plan.steps[place];
            if let Some(reason) = self.guards.against(step) {
                self.skip(step, reason);
                continue;
            }
            if let Some(reason) = self.no_time_for(step).or_else(|| self.no_bytes_for(step)) {
                self.no_room += 1;
                self.skip(step, reason);
                continue;
            }
            match self.prepare(step.phase) {
                Prepared::Ready => {}
                Prepared::Against(reason) => {
                    self.skip(step, reason);
                    continue;
                }
                Prepared::Stopped { interrupted } => return interrupted,
            }
            // It may have taken hours.
            if let Some(reason) = self.no_time_for(step) {
                self.no_room += 1;
                self.skip(step, reason);
                continue;
            }
            if let Err(failure) = self.looks.look(&self.session, self.control) {
                // Behind a step that has ended a failure would be that step's.
                let first = failure.message.lines().next().unwrap_or_default();
                self.skip(step, format!("the campaign was stopped: {first}"));
                self.stop(failure);
                return false;
            }
            match self.step(place, step) {
                Outcome::Interrupted => return self.session.is_recorded(),
                Outcome::Failed if self.looks.is_gone() => {
                    self.stop(self.looks.gone());
                    return false;
                }
                Outcome::Failed if self.control.is_refused() => {
                    self.stopped = Some("a target may not be written to any more".to_owned());
                    return false;
                }
                Outcome::Failed | Outcome::Complete => {}
            }
            if !self.session.is_recorded() || self.unwritten.is_some() {
                return false;
            }
            self.guards
                .look(self.ready.plan, step, &self.tally.borrow());
        }
        false
    }

    /// Runs one step.
    fn step(&mut self, place: usize, step: &Step) -> Outcome {
        let plan = self.ready.plan;
        let dir = self.session.writer().dir().to_owned();
        let job = prepare::job(plan, step);
        let text = job.as_ref().map_or("", |job| &job.text);
        let name = records::job_name(&dir, &step.point.id, records::ending(step), text);
        let engine = self.ready.selected.engine();
        let selected = &self.ready.selected;
        let elapsed = self.clock.elapsed(selected);
        self.clock.place(&mut self.session, selected);
        self.session.event(Event::Step {
            step: u32::try_from(place + 1).unwrap_or(u32::MAX),
            of: u32::try_from(plan.steps.len()).unwrap_or(u32::MAX),
            name: name.clone(),
            point: Some(Box::new(step.point.clone())),
        });
        let id = &step.point.id;
        self.log(|logs| logs.start_point(id));
        let job = match job {
            Ok(job) => job,
            Err(fault) => {
                let failure = Failure::new(FailureKind::BadOption, fault);
                self.session.event(Event::Failure(failure));
                return Outcome::Failed;
            }
        };
        let measurement = (id.as_str(), step.point.repetition);
        let ending = records::ending(step);
        let files = records::step_files(&dir, &name, measurement, ending, &job.text);
        let (job_file, raw_dir) = match files {
            Ok(files) => files,
            Err((path, source)) => return self.give_up(&path, source),
        };
        let mut request = self.ready.request(step, job_file, raw_dir);
        if let Some(limit) = plan.settings.campaign_limit {
            let left = limit.saturating_sub(elapsed);
            request.deadline = Some(request.deadline.map_or(left, |limit| limit.min(left)));
        }
        let session = &mut self.session;
        let watch = &mut |_: &Event| Flow::Continue;
        let is_sized = step.write_bytes.is_some();
        let (outcome, spent) =
            self.budget
                .run(is_sized, session, engine, &request, self.control, watch);
        if spent {
            self.no_room += 1;
            let what = plan.settings.limits().text_of_bytes();
            let text = format!(
                "{id} was stopped: the campaign may write {what}, and would have written more"
            );
            self.spent = Some(text.clone());
            self.session.event(Event::Note { text });
        }
        if outcome != Outcome::Interrupted {
            let ended = self.tally.borrow_mut().settle();
            let came = match ended.map(|ended| ended.came) {
                Some(Came::Failed(reason)) => reason,
                _ => "OK".to_owned(),
            };
            self.log(|logs| logs.finish_point(id, &came));
        }
        outcome
    }

    fn skip(&mut self, step: &Step, reason: String) {
        let known = self.tally.borrow().came_of(&step.point).cloned();
        if known == Some(Came::Skipped(reason.clone())) {
            return;
        }
        self.log(|logs| logs.skip_point(&step.point.id, &reason));
        self.session.event(Event::Skipped {
            point: Box::new(step.point.clone()),
            reason,
        });
    }

    /// Why the campaign's time limit leaves no room for a step.
    fn no_time_for(&self, step: &Step) -> Option<String> {
        let limit = self.ready.plan.settings.campaign_limit?;
        let elapsed = self.clock.elapsed(&self.ready.selected);
        let needs = step.duration.unwrap_or_default();
        let text = |time: Duration| units::duration(time.as_millis() as u64);
        (elapsed >= limit || elapsed + needs > limit).then(|| {
            format!(
                "it would end after the campaign's time limit of {}",
                text(limit)
            )
        })
    }

    /// Why the limit of bytes written leaves no room for a step.
    fn no_bytes_for(&self, step: &Step) -> Option<String> {
        let limits = self.ready.plan.settings.limits();
        // What nobody knows may be little: it begins, and is stopped in time.
        let writes = step.write_most(self.ready.speed);
        let least = u64::from(step.write_share > 0.0);
        self.budget.has_no_room(writes, least).then(|| {
            let what = limits.text_of_bytes();
            format!("the campaign would write more than the {what} that it may")
        })
    }

    fn stop(&mut self, failure: Failure) {
        self.stopped = Some(failure.message.clone());
        self.session.event(Event::Failure(failure));
    }

    /// A file of the record cannot be written: nothing more is measured.
    fn give_up(&mut self, path: &std::path::Path, source: io::Error) -> Outcome {
        let what = format!("the record could not be written: {source}");
        let failure = Failure::new(FailureKind::Record, what).about(path.display().to_string());
        self.session.event(Event::Failure(failure));
        self.unwritten = Some(unwritten(path, source));
        Outcome::Failed
    }

    /// Writes to the progress logs. That they cannot be written ends them, not
    /// the campaign.
    fn log(&mut self, write: impl FnOnce(&Logs) -> io::Result<()>) {
        if let Some(logs) = &self.logs
            && let Err(error) = write(logs)
        {
            self.logs = None;
            let text = format!("the progress logs end here, they cannot be written: {error}");
            self.session.event(Event::Note { text });
        }
    }

    fn close(mut self, interrupted: bool) -> Result<Finish, RunError> {
        let plan = self.ready.plan;
        let failed = || {
            let tally = self.tally.borrow();
            let failed = |step: &Step| matches!(tally.came_of(&step.point), Some(Came::Failed(_)));
            plan.steps.iter().any(failed)
        };
        let broken = self.stopped.is_some() || self.unwritten.is_some();
        let status = match () {
            () if broken => RunStatus::Failed,
            () if interrupted || self.no_room > 0 => RunStatus::Interrupted,
            () if failed() => RunStatus::Failed,
            () => RunStatus::Complete,
        };
        let whole = !broken && status != RunStatus::Interrupted && !self.ready.options.partial;
        self.log(|logs| logs.finish(whole, &status.to_string()));
        let (dir, status) = self.session.close(status)?;
        match self.unwritten {
            Some(error) => Err(error),
            None => Ok(Finish {
                dir,
                status,
                no_room: self.no_room,
                stopped: self.stopped,
                not_steady: self.not_steady,
                spent: self.spent,
            }),
        }
    }
}

fn unwritten(path: &std::path::Path, source: io::Error) -> RunError {
    RunError::Record(fathom_record::RecordError::File {
        path: path.to_owned(),
        source,
    })
}
