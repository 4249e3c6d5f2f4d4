//! A flow that runs: one stage after the other, within a session.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_device::command::KernelDevices;
use fathom_device::settings::Settings;
use fathom_device::{Sys, SysBlock, stack};
use fathom_engine::{Control, Outcome, Sink as _};
use fathom_engines::select::EngineHandle;
use fathom_fleet::local::Session;
use fathom_jobfile::variables::variable;
use fathom_jobfile::{JobFile, resolve, spec};
use fathom_model::{
    Event, Failure, FailureKind, LedgerEvent, Point, SkipCause, StageEnd, StageKind, units,
};

use super::followers::Followers;
use super::steady_load::Watching;
use super::{
    Act, ActionContext, ActionResult, Case, Ending, Fill, JobStep, LedgerScope, Next, PointOutcome,
    Ready, RoundPoint, SteadyLoad, Task, Undo, Work, outlook,
    undo::{Overheard, PUT_BACK_FIRST},
};
use crate::file_names;
use crate::load::Load;

/// How a flow stopped.
#[derive(Debug)]
pub enum Stop {
    /// By itself.
    Ended(Ending),
    /// Somebody stopped it.
    Interrupted,
    /// A limit leaves no room for what comes next, in one sentence.
    NoRoom(String),
    /// For what somebody else does, in one sentence: the stage has said so.
    Waits(String),
    /// Everything was written that may be: that has been noted.
    Spent,
    /// The device is not free any more, or gone, or the script says why.
    Failed(Failure),
    /// A file of the record cannot be written.
    Unwritten(PathBuf, std::io::Error),
    /// The record itself cannot be written: closing it says why.
    Record,
}

/// Runs a script within a session.
pub struct Runner<'r, 's, 'l> {
    pub ready: &'r Ready<'l>,
    pub session: &'r mut Session<'s>,
    pub control: &'r Control,
    /// The engine's time when this start of the run began, and the run's own then, in ms.
    pub began: (Duration, u64),
    /// What the session's observer feeds.
    pub followers: &'r Followers<'l>,
    pub book: &'r LedgerScope,
    /// What was switched, to be put back.
    pub switched: &'r mut Switched,
    pub short: Shortage,
}

/// What the limits left no room for.
#[derive(Debug, Default)]
pub struct Shortage {
    /// How many steps and stages.
    pub tasks: usize,
    /// The first thing that was not only left out, in a sentence.
    pub reason: Option<String>,
}

/// How one stage stopped: `Ok(None)` when it was interrupted.
type Stopped = Result<Option<StageEnd>, Stop>;

/// Fills and loads in which no byte moves for so long have hung: the kernel's
/// drivers give up on a command after 30 s and some retries
/// (Documentation/ABI/stable/sysfs-block, queue/io_timeout).
const SILENCE_MS: u64 = 10 * 60 * 1000;
/// Beyond its time a job may need so long to start and to end.
const MARGIN: Duration = Duration::from_secs(60);

impl Runner<'_, '_, '_> {
    /// Runs what is left of a flow.
    pub fn run(&mut self) -> Stop {
        loop {
            if let Some(text) = self.followers.log_loss() {
                let _ = self.session.event(Event::Note { text });
            }
            if self.control.stop_requests() > 0 {
                return Stop::Interrupted;
            }
            if !self.session.is_recorded() {
                return Stop::Record;
            }
            let next = self
                .ready
                .flow
                .script
                .next(&self.followers.history.borrow());
            let done = match next {
                Next::End(ending) => Err(Stop::Ended(ending)),
                Next::Fail(failure) => Err(Stop::Failed(failure)),
                Next::LeaveOut(point, reason) => {
                    self.leave_out(point, reason, SkipCause::NotNeeded);
                    Ok(())
                }
                Next::Note(text) => self.note(text),
                Next::Do(task) => self.go(&task).map(drop),
                Next::Prepare(stage, goal) => self.prepare(&stage, &goal),
                Next::Unready(goal, reason) => match (self.no_room_for(&goal), goal.point()) {
                    (None, Some(point)) => {
                        self.leave_out(point, reason, SkipCause::NotReady);
                        Ok(())
                    }
                    (short, _) => self.pass_over(&goal, short.unwrap_or(reason)),
                },
            };
            if let Err(stop) = done {
                return stop;
            }
        }
    }

    /// Does a stage for the task behind it.
    fn prepare(&mut self, stage: &Task, goal: &Task) -> Result<(), Stop> {
        if let Some(reason) = self.no_room_for(goal) {
            return self.pass_over(goal, reason);
        }
        if let (Some(reason), Some(point)) = (self.go(stage)?, goal.point()) {
            self.leave_out(point, reason, SkipCause::Postponed);
        }
        Ok(())
    }

    /// Notes what a script says.
    fn note(&mut self, text: String) -> Result<(), Stop> {
        if self.followers.history.borrow().has_noted(&text) {
            return Err(Stop::Ended(Ending::asked_again(&text)));
        }
        let _ = self.session.event(Event::Note { text });
        Ok(())
    }

    /// Whether this has ended: a script that asks for it again would never end.
    fn was_last(&self, task: &Task) -> bool {
        let history = self.followers.history.borrow();
        match &task.work {
            Work::Job(step) => history.last_step() == Some(step.number),
            _ => task.has_ended(&history),
        }
    }

    /// Does a task; gives why the limits left no room for it, or for more of it.
    fn go(&mut self, task: &Task) -> Result<Option<String>, Stop> {
        if self.was_last(task) {
            return Err(Stop::Ended(Ending::asked_again(&task.stage.id)));
        }
        let done = match self.no_use_of(task).or_else(|| self.no_room_for(task)) {
            Some(reason) => Err(Stop::NoRoom(reason)),
            None => match &task.work {
                Work::Job(step) => self.job(task, step),
                _ => self.stage(task),
            },
        };
        match done {
            Err(Stop::NoRoom(reason)) => {
                self.pass_over(task, reason.clone())?;
                Ok(Some(reason))
            }
            done => done.map(|()| None),
        }
    }

    /// The limits leave no room for a task, or for more of it: goes on with the next, or
    /// stops.
    fn pass_over(&mut self, task: &Task, reason: String) -> Result<(), Stop> {
        if !self.ready.flow.script.leaves_out() {
            return Err(Stop::NoRoom(reason));
        }
        self.short.tasks += 1;
        if let Some(point) = task.point() {
            self.leave_out(point, reason, SkipCause::Postponed);
            return Ok(());
        }
        let id = &task.stage.id;
        if self.followers.history.borrow().is_in_stage() {
            let (id, reason) = (id.clone(), reason.clone());
            let end = StageEnd::Interrupted { reason };
            let _ = self.session.event(Event::StageEnded { id, end });
        }
        self.followers.history.borrow_mut().leave_out(id, &reason);
        self.short.reason.get_or_insert_with(|| reason.clone());
        let _ = self.session.event(Event::Note { text: reason });
        Ok(())
    }

    /// Leaves a point out. What the record says already is not said again.
    fn leave_out(&mut self, point: Box<Point>, reason: String, cause: SkipCause) {
        let history = self.followers.history.borrow();
        let known = match history.tally().came_of(&point) {
            Some(PointOutcome::Skipped(known)) => *known == reason && cause.is_settled(),
            Some(PointOutcome::Postponed(known)) => *known == reason && !cause.is_settled(),
            _ => false,
        };
        drop(history);
        let event = Event::Skipped {
            point,
            reason,
            cause,
        };
        match known {
            true => _ = self.followers.history.borrow_mut().take(&event),
            false => _ = self.session.event(event),
        }
    }

    /// Time since this start of the run.
    fn elapsed(&self) -> Duration {
        self.ready
            .selected()
            .engine()
            .now()
            .saturating_sub(self.began.0)
    }

    /// Puts the next step where the run is now.
    fn place(&mut self) {
        let elapsed = self.elapsed().as_millis();
        let elapsed = u64::try_from(elapsed).unwrap_or(u64::MAX);
        self.session.at(self.began.1 + elapsed);
    }

    /// Whether the device may still be written to, and is there.
    fn look(&self) -> Result<(), Stop> {
        let looks = self.followers.looks.as_ref();
        let looked = looks.map_or(Ok(()), |looks| looks.look(self.session, self.control));
        looked.map_err(Stop::Failed)
    }

    /// Runs a job file by itself.
    fn job(&mut self, task: &Task, step: &JobStep) -> Result<(), Stop> {
        self.look()?;
        let script = self.ready.flow.script;
        let watch = script.watch(step, &self.followers.history.borrow());
        let mut watch = watch.unwrap_or_else(|| Box::new(Unwatched));
        match self.step(task, step, watch.as_mut())? {
            Outcome::Interrupted if self.session.is_recorded() => Err(Stop::Interrupted),
            _ if !self.session.is_recorded() => Err(Stop::Record),
            Outcome::Failed => match self.gone() {
                Some(gone) => Err(gone),
                None if self.is_time_up() && !self.ready.flow.script.leaves_out() => {
                    Err(Stop::NoRoom(self.over_time(task)))
                }
                None => Ok(()),
            },
            Outcome::Complete | Outcome::Interrupted => Ok(()),
        }
    }

    /// That the device is gone.
    fn gone(&self) -> Option<Stop> {
        let looks = self.followers.looks.as_ref()?;
        looks.is_gone().then(|| Stop::Failed(looks.gone()))
    }

    /// Why a purge would be for nothing: the limits leave no room for what comes
    /// behind it. Whoever spends too little is not to lose the data as well.
    fn no_use_of(&self, task: &Task) -> Option<String> {
        if task.stage.kind != StageKind::Purge {
            return None;
        }
        let left = outlook(
            self.ready.flow.script,
            &self.followers.history.borrow(),
            Case::Best,
        )
        .0;
        let is_load = |task: &&Task| !matches!(task.work, Work::Act(_) | Work::Skip(_));
        self.no_room_for(left.iter().find(is_load)?)
    }

    /// Does one stage.
    fn stage(&mut self, task: &Task) -> Result<(), Stop> {
        self.look()?;
        self.place();
        let _ = self.session.event(Event::Stage {
            stage: Box::new(task.stage.clone()),
        });
        let id = &task.stage.id;
        let ended = match &task.work {
            Work::Act(act) => self.act(act.as_ref()),
            Work::Fill(fill) => self.fill(task, fill),
            Work::Settle(settle) => self.settle(task, settle),
            Work::Cells(cells) => self.cells(task, cells),
            Work::Job(_) => Ok(Some(StageEnd::Done)),
            Work::Skip(reason) => Ok(Some(StageEnd::Skipped {
                reason: reason.clone(),
            })),
        };
        match ended {
            Ok(Some(StageEnd::Failed { .. })) if self.is_time_up() => {
                Err(Stop::NoRoom(self.over_time(task)))
            }
            Ok(Some(end)) => {
                let failed = matches!(end, StageEnd::Failed { .. });
                let waits = match &end {
                    StageEnd::Waits { reason } => Some(reason.clone()),
                    _ => None,
                };
                let id = id.clone();
                let _ = self.session.event(Event::StageEnded { id, end });
                if let Some(reason) = waits {
                    return Err(Stop::Waits(reason));
                }
                match failed.then(|| self.gone()).flatten() {
                    Some(gone) => Err(gone),
                    None => Ok(()),
                }
            }
            Ok(None) => match self.session.is_recorded() {
                true => Err(Stop::Interrupted),
                false => Err(Stop::Record),
            },
            Err(stop) => Err(stop),
        }
    }

    /// Why the limits leave no room for a task even if all goes well.
    fn no_room_for(&self, task: &Task) -> Option<String> {
        let ends = self.elapsed() + task.work.least_time();
        if self
            .followers
            .budget
            .limits
            .time
            .is_some_and(|limit| ends > limit)
            || self.is_time_up()
        {
            return Some(self.over_time(task));
        }
        // What nobody knows may be little: it begins, and is stopped in time.
        let speed = self
            .ready
            .extras
            .speed
            .filter(|_| matches!(task.work, Work::Job(_)));
        let writes = task.work.write_bytes(Case::Best, speed);
        let least = || task.work.least_write_bytes();
        let over = self.followers.budget.has_no_room(writes, least);
        over.then(|| self.over_bytes(task, &task.stage.id))
    }

    fn is_time_up(&self) -> bool {
        let elapsed = self.elapsed();
        let limit = self.followers.budget.limits.time;
        limit.is_some_and(|limit| elapsed >= limit)
    }

    /// Whether a task is a point of a campaign: what is said of it stands beside its name.
    fn is_point(&self, task: &Task) -> bool {
        self.ready.flow.script.leaves_out() && matches!(task.work, Work::Job(_))
    }

    fn over_time(&self, task: &Task) -> String {
        let limit = self
            .followers
            .budget
            .limits
            .time
            .unwrap_or_default()
            .as_millis();
        let limit = units::duration(u64::try_from(limit).unwrap_or(u64::MAX));
        let what = label(task, &task.stage.id);
        match self.is_point(task) {
            true => format!("it would end after the campaign's time limit of {limit}"),
            false => format!("{what} would end after the time limit of {limit}"),
        }
    }

    /// `name`: what of it would write too much.
    fn over_bytes(&self, task: &Task, name: &str) -> String {
        let limit = self.followers.budget.limits.text_of_bytes();
        let what = label(task, name);
        match self.is_point(task) {
            true => format!("the campaign would write more than the {limit} that it may"),
            false => format!("with {what} more would be written than the {limit} that may be"),
        }
    }

    fn act(&mut self, act: &dyn Act) -> Stopped {
        let is_simulated = self.ready.selected().is_simulated();
        let noted = match is_simulated {
            true => Ok(()),
            false => self.switched.note(&|| act.undo(), self.session),
        };
        if let Err(reason) = noted {
            return Ok(Some(StageEnd::Failed { reason }));
        }
        // What it runs may claim the device itself.
        self.session.release_targets();
        let (selected, control, book) = (self.ready.selected(), self.control, self.book);
        let record = self.session.writer().dir().to_owned();
        let acted = self.followers.budget.beside(self.session, |session| {
            act.run(&mut ActionContext {
                selected,
                control,
                record: &record,
                book,
                tell: &mut |event| {
                    let _ = session.event(event);
                },
            })
        });
        let (end, deed) = match acted {
            ActionResult::Interrupted { deed } => (None, deed),
            ActionResult::Ended { end, deed } => (Some(end), deed),
        };
        if let Some(deed) = deed {
            self.enter(deed);
        }
        Ok(end)
    }

    fn fill(&mut self, task: &Task, fill: &Fill) -> Stopped {
        let mut step = self.step_of(task, &task.stage.id, &fill.job_text);
        step.load.write_bytes = fill.bytes;
        let outcome = self.step(task, &step, &mut Silence::default())?;
        if outcome == Outcome::Interrupted {
            return Ok(None);
        }
        let bytes = self.written();
        if let Some(end) = self.failed(outcome) {
            self.enter(LedgerEvent::Written { bytes });
            return Ok(Some(end));
        }
        self.enter(LedgerEvent::Filled {
            pattern: fill.pattern,
            bs_bytes: fill.bs_bytes,
            range_percent: fill.range_percent,
            bytes,
        });
        Ok(Some(StageEnd::Done))
    }

    fn settle(&mut self, task: &Task, settle: &SteadyLoad) -> Stopped {
        let mut step = self.step_of(task, &task.stage.id, &settle.job_text);
        step.interval = settle.interval.unwrap_or(step.interval);
        step.deadline = Some(settle.most * 2 + MARGIN);
        let mut watching = Watching::new(&settle.criteria);
        let outcome = self.step(task, &step, &mut watching)?;
        if outcome == Outcome::Interrupted {
            return Ok(None);
        }
        let bytes = self.written();
        let settled = watching.settled();
        let end = match self.failed(outcome) {
            Some(end) => end,
            None => settled.end(),
        };
        if end == StageEnd::Done && !settled.verdicts.is_empty() {
            let text = format!("{}: {}", task.stage.id, settled.numbers());
            let _ = self.session.event(Event::Note { text });
        }
        self.enter(match &end {
            StageEnd::Failed { .. } => LedgerEvent::Written { bytes },
            _ => LedgerEvent::Settled {
                pattern: settle.pattern,
                bs_bytes: settle.bs_bytes,
                range_percent: settle.range_percent,
                bytes,
                rule: settle.rule_text(),
                attained: settled.attained,
            },
        });
        Ok(Some(end))
    }

    fn cells(&mut self, task: &Task, cells: &[RoundPoint]) -> Stopped {
        for cell in cells {
            let mut step = self.step_of(task, &cell.point.id, &cell.job_text);
            step.raw = file_names::raw_name(&cell.point);
            step.point = Some(cell.point.clone());
            step.deadline = Some(cell.time * 2 + MARGIN);
            let outcome = self.step(task, &step, &mut Unwatched)?;
            if outcome == Outcome::Interrupted {
                return Ok(None);
            }
            if let Some(end) = self.failed(outcome) {
                let bytes = self.written();
                self.enter(LedgerEvent::Written { bytes });
                return Ok(Some(end));
            }
        }
        let bytes = self.written();
        if bytes > 0 {
            self.enter(LedgerEvent::Written { bytes });
        }
        Ok(Some(StageEnd::Done))
    }

    /// Bytes that the stage in progress has written.
    fn written(&self) -> u64 {
        let history = self.followers.history.borrow();
        history.stages().last().map_or(0, |past| past.written_bytes)
    }

    /// The end of a stage whose job has failed, in whatever way it shows: an
    /// engine can end well with a failure told before.
    fn failed(&self, outcome: Outcome) -> Option<StageEnd> {
        let history = self.followers.history.borrow();
        let past = history.stages().last()?;
        let first = past.failures.first();
        let reason = match (first, outcome) {
            (Some(first), _) => first.clone(),
            (None, Outcome::Failed) => "the engine failed".to_owned(),
            (None, _) if past.written_bytes + past.read_bytes == 0 => {
                "no data were moved".to_owned()
            }
            (None, _) => return None,
        };
        Some(StageEnd::Failed { reason })
    }

    /// A step of a stage.
    fn step_of(&self, task: &Task, name: &str, text: &str) -> JobStep {
        let number = self.followers.history.borrow().steps() + 1;
        JobStep {
            work_dir: Some(self.ready.flow.work_dir.clone()),
            interval: self
                .ready
                .flow
                .script
                .interval_of(&task.stage)
                .unwrap_or(self.ready.flow.interval),
            load: Load::default(),
            keeps_versions: true,
            // How many there will be is not known before they are over: one more at the
            // least.
            ..JobStep::new((number, number + 1), name, text.to_owned(), &[])
        }
    }

    /// Runs one job file to its end, within the limits.
    fn step(
        &mut self,
        task: &Task,
        step: &JobStep,
        watch: &mut dyn StepWatch,
    ) -> Result<Outcome, Stop> {
        let run = self.begin_step(task, step, watch);
        let outcome = match &run {
            Ok(outcome) => watch.judge(*outcome),
            Err(Stop::Unwritten(..)) => Ok(Outcome::Failed),
            Err(_) => Ok(Outcome::Interrupted),
        };
        let outcome = outcome.unwrap_or_else(|failure| {
            let _ = self.session.event(Event::Failure(failure));
            Outcome::Failed
        });
        self.session.end_step(outcome);
        run.map(|_| outcome)
    }

    fn begin_step(
        &mut self,
        task: &Task,
        step: &JobStep,
        watch: &mut dyn StepWatch,
    ) -> Result<Outcome, Stop> {
        let dir = self.session.writer().dir().to_owned();
        let as_kept = step.kept_in(&dir);
        self.place();
        let _ = self.session.event(as_kept.told());
        if let Err(reason) = self.note_schedulers(step) {
            let failure = Failure::new(FailureKind::Other, reason).about(&step.name);
            let _ = self.session.event(Event::Failure(failure));
            return Ok(Outcome::Failed);
        }
        let kept = as_kept.keep(&dir);
        let mut request = kept.map_err(|(path, source)| Stop::Unwritten(path, source))?;
        let left = self.followers.budget.limits.time;
        let left = left.map(|limit| limit.saturating_sub(self.elapsed()));
        request.deadline = request.deadline.into_iter().chain(left).min();
        let (outcome, spent) = self.followers.budget.run(
            step.load.write_bytes.is_some(),
            self.session,
            self.ready.selected().engine(),
            &request,
            self.control,
            &mut |event| watch.take(event),
        );
        match spent {
            false => Ok(outcome),
            true if self.is_point(task) => Err(self.spent(&step.name)),
            true => Err(Stop::NoRoom(self.over_bytes(task, &step.name))),
        }
    }

    /// Notes the schedulers that the native engine is about to change (`ioscheduler`).
    fn note_schedulers(&mut self, step: &JobStep) -> Result<(), String> {
        if !matches!(self.ready.selected(), EngineHandle::Native(_)) {
            return Ok(());
        }
        let work_dir = step.work_dir.as_ref().unwrap_or(&self.ready.flow.work_dir);
        for node in scheduled(&step.text, work_dir) {
            let settings = Settings::new(Sys::live(), Some(&node));
            let names = ["scheduler".to_owned()];
            let undo = || Undo::of_settings(Some(&node), &settings, &names).map(Some);
            self.switched.note(&undo, self.session)?;
        }
        Ok(())
    }

    /// A point was ended because no more may be written.
    fn spent(&mut self, name: &str) -> Stop {
        let what = self.followers.budget.limits.text_of_bytes();
        let text = format!(
            "{name} was stopped: the campaign may write {what}, and would have written more"
        );
        self.short.tasks += 1;
        self.short.reason = Some(text.clone());
        let _ = self.session.event(Event::Note { text });
        Stop::Spent
    }

    /// Writes down a deed. That a ledger cannot be written is no reason to stop:
    /// the record has it all.
    fn enter(&mut self, deed: LedgerEvent) {
        for text in self.book.append(deed) {
            let _ = self.session.event(Event::Note { text });
        }
    }
}

/// What a stage or step of this name is called.
fn label(task: &Task, name: &str) -> String {
    match task.work {
        Work::Job(_) => name.to_owned(),
        _ => format!("the stage {name}"),
    }
}

/// The disks under the files of those jobs of a text that set `ioscheduler`.
fn scheduled(text: &str, work_dir: &Path) -> Vec<SysBlock> {
    // Where it is read in the record, relative names do not matter: it is complete.
    let file = JobFile::parse(text, Path::new("job.fio"), &variable).file;
    let sys = Sys::live();
    let mut jobs = file.jobs();
    jobs.retain(|job| spec::option(job, "ioscheduler").is_some() && spec::engine(job) != "null");
    let uses = jobs
        .iter()
        .filter_map(|job| resolve::of(job, work_dir).ok());
    let nodes = uses
        .flatten()
        .flat_map(|used| stack::disks(&sys, &used.path));
    let mut disks: Vec<SysBlock> = Vec::new();
    for node in nodes {
        if node.dir.join("queue/scheduler").exists() && !disks.contains(&node) {
            disks.push(node);
        }
    }
    disks
}

/// What a run has switched, noted before it was done.
#[derive(Debug, Default)]
pub struct Switched(Vec<Undo>);

impl Switched {
    /// Notes what puts back what is about to be switched, as `undo_now` tells it, unless
    /// it is noted already. What a run that was killed has left is put back first.
    fn note(
        &mut self,
        undo_now: &dyn Fn() -> Result<Option<Undo>, String>,
        session: &mut Session<'_>,
    ) -> Result<(), String> {
        let Some(undo) = undo_now()? else {
            return Ok(());
        };
        if let Some(known) = self.0.iter_mut().find(|known| known.file == undo.file) {
            return known.take_in(undo);
        }
        let left = undo.file.read().map_err(|error| error.to_string())?;
        let undo = match left {
            None => undo,
            Some(note) => {
                let left = Undo {
                    file: undo.file,
                    note,
                };
                if let Some(refusal) = left.in_use() {
                    return Err(refusal);
                }
                let back = left.put_back(&KernelDevices);
                back.map_err(|error| {
                    format!("a run that was killed has left switches behind: {error}")
                })?;
                let text = PUT_BACK_FIRST.to_owned();
                let _ = session.event(Event::Note { text });
                match undo_now()? {
                    Some(undo) => undo,
                    None => return Ok(()),
                }
            }
        };
        undo.keep()?;
        self.0.push(undo);
        Ok(())
    }

    /// Puts everything back, the last first; gives what could not be. Every command
    /// is told.
    pub fn put_back(&mut self, tell: &mut dyn FnMut(Event)) -> Vec<Failure> {
        let mut failed = Vec::new();
        for undo in self.0.drain(..).rev() {
            let issue = Overheard::default();
            let done = undo.put_back(&issue);
            issue.notes().for_each(&mut *tell);
            failed.extend(done.err().map(|error| {
                Failure::new(FailureKind::Other, error.to_string()).about(undo.subject())
            }));
        }
        failed
    }
}

impl Drop for Switched {
    /// When the stack unwinds: what cannot be put back stays noted.
    fn drop(&mut self) {
        self.put_back(&mut |_| {});
    }
}

/// Looks at a step while it runs, and may end it.
pub trait StepWatch {
    /// Takes the next event of the step.
    fn take(&mut self, event: &Event) -> ControlFlow<()>;

    /// What the step came to: an interrupt may have been its own.
    ///
    /// # Errors
    /// Why it has failed.
    fn judge(&self, outcome: Outcome) -> Result<Outcome, Failure>;
}

/// Nobody looks.
struct Unwatched;

impl StepWatch for Unwatched {
    fn take(&mut self, _: &Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn judge(&self, outcome: Outcome) -> Result<Outcome, Failure> {
        Ok(outcome)
    }
}

/// Looks for I/O that has stopped.
#[derive(Default)]
struct Silence {
    /// When a byte moved last, in ms of the run's time.
    moved_ms: Option<u64>,
    moves: bool,
    hung_ms: Option<u64>,
}

impl StepWatch for Silence {
    fn take(&mut self, event: &Event) -> ControlFlow<()> {
        match event {
            Event::Sample(sample) => self.moves |= sample.bytes > 0,
            Event::Interval { t_ms, .. } => {
                let since = *self.moved_ms.get_or_insert(*t_ms);
                if std::mem::take(&mut self.moves) {
                    self.moved_ms = Some(*t_ms);
                } else if t_ms - since >= SILENCE_MS {
                    self.hung_ms = Some(t_ms - since);
                    return ControlFlow::Break(());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn judge(&self, outcome: Outcome) -> Result<Outcome, Failure> {
        let Some(ms) = self.hung_ms else {
            return Ok(outcome);
        };
        let time = units::duration(ms);
        let what = format!("the device has taken no data for {time}");
        Err(Failure::new(FailureKind::Hung, what))
    }
}
