//! A flow that runs: one stage after the other, within a session.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_engine::select::Selected;
use fathom_engine::{Control, Flow, Outcome, Request, Sink as _};
use fathom_fleet::local::Session;
use fathom_model::{Deed, Event, Failure, FailureKind, Point, StageEnd, StageKind, units};

use super::settle::Watching;
use super::{
    Act, Acted, Book, Cell, Doing, Ending, Fill, History, Luck, Next, Script, Settle, Task, Work,
    outlook,
};
use crate::run::looks::Looks;
use crate::run::{prepare, records};
use crate::write_budget::WriteBudget;

/// Where the run's own time stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// The engine's time when this start of the run began.
    pub(crate) began: Duration,
    /// The run's own time then, in ms.
    pub(crate) t_ms: u64,
}

impl Clock {
    /// Time since this start of the run.
    pub(crate) fn elapsed(&self, selected: &Selected) -> Duration {
        selected.engine().now().saturating_sub(self.began)
    }

    /// Puts the next step where the run is now.
    pub(crate) fn place(&self, session: &mut Session<'_>, selected: &Selected) {
        let elapsed = self.elapsed(selected).as_millis();
        session.at(self.t_ms + u64::try_from(elapsed).unwrap_or(u64::MAX));
    }
}

/// How a flow stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// By itself.
    Ended(Ending),
    /// Somebody stopped it.
    Interrupted,
    /// A limit leaves no room for what comes next, in one sentence.
    NoRoom(String),
    /// The device is not free any more, or gone.
    Device(Failure),
    /// A file of the record cannot be written.
    Unwritten(PathBuf, std::io::Error),
    /// The record itself cannot be written: closing it says why.
    Record,
}

/// Runs stages within a session.
pub(crate) struct Runner<'r, 's> {
    pub(crate) session: &'r mut Session<'s>,
    pub(crate) selected: &'r Selected,
    pub(crate) control: &'r Control,
    pub(crate) clock: Clock,
    /// Fed by the session's observer.
    pub(crate) history: &'r RefCell<History>,
    pub(crate) looks: &'r Looks,
    /// Relative names of job files are meant from here.
    pub(crate) work_dir: &'r Path,
    /// Time between two samples.
    pub(crate) interval: Duration,
    /// Fed by the session's observer. Of its limits the time is that of this start
    /// of the run, the bytes are those of all its starts.
    pub(crate) budget: &'r WriteBudget,
    pub(crate) book: &'r Book,
}

/// How one stage stopped: `Ok(None)` when it was interrupted.
type Stopped = Result<Option<StageEnd>, Stop>;

/// One job file of a stage.
struct StepJob<'j> {
    id: &'j str,
    point: Option<&'j Point>,
    text: &'j str,
    interval: Duration,
    deadline: Option<Duration>,
    /// How much it writes is known.
    is_sized: bool,
}

/// Fills and loads in which no byte moves for so long have hung: the kernel's
/// drivers give up on a command after 30 s and some retries
/// (Documentation/ABI/stable/sysfs-block, queue/io_timeout).
const SILENCE_MS: u64 = 10 * 60 * 1000;
/// Beyond its time a job may need so long to start and to end.
const MARGIN: Duration = Duration::from_secs(60);

impl Runner<'_, '_> {
    /// Runs what is left of a flow.
    pub(crate) fn run(&mut self, script: &dyn Script) -> Stop {
        loop {
            if self.control.stop_requests() > 0 {
                return Stop::Interrupted;
            }
            if !self.session.is_recorded() {
                return Stop::Record;
            }
            let next = script.next(&self.history.borrow());
            let task = match next {
                Next::End(ending) => return Stop::Ended(ending),
                Next::Do(task) => task,
            };
            if let Some(end) = self.history.borrow().ended(&task.stage.id) {
                // A script that asks again for what has ended would never end.
                let what = format!(
                    "the flow asked for the stage {} again, which has ended ({end:?})",
                    task.stage.id
                );
                return Stop::Ended(Ending::Failed(what));
            }
            if let Some(reason) = self.no_use_of(&task, script) {
                return Stop::NoRoom(reason);
            }
            if let Err(stop) = self.stage(&task) {
                return stop;
            }
        }
    }

    /// Why a purge would be for nothing: the limits leave no room for what comes
    /// behind it. Whoever spends too little is not to lose the data as well.
    fn no_use_of(&self, task: &Task, script: &dyn Script) -> Option<String> {
        if task.stage.kind != StageKind::Purge {
            return None;
        }
        let left = outlook(script, &self.history.borrow(), Luck::Best).0;
        let is_load = |task: &&Task| !matches!(task.work, Work::Act(_) | Work::Skip(_));
        self.no_room_for(left.iter().find(is_load)?)
    }

    /// Does one stage.
    fn stage(&mut self, task: &Task) -> Result<(), Stop> {
        if let Some(reason) = self.no_room_for(task) {
            return Err(Stop::NoRoom(reason));
        }
        self.looks
            .look(self.session, self.control)
            .map_err(Stop::Device)?;
        self.clock.place(self.session, self.selected);
        self.session.event(Event::Stage {
            stage: Box::new(task.stage.clone()),
        });
        let id = &task.stage.id;
        let ended = match &task.work {
            Work::Act(act) => self.act(act.as_ref()),
            Work::Fill(fill) => self.fill(id, fill),
            Work::Settle(settle) => self.settle(id, settle),
            Work::Cells(cells) => self.cells(cells),
            Work::Skip(reason) => Ok(Some(StageEnd::Skipped {
                reason: reason.clone(),
            })),
        };
        match ended {
            Ok(Some(StageEnd::Failed { .. })) if self.is_time_up() => {
                Err(Stop::NoRoom(self.over_time(&task.stage.id)))
            }
            Ok(Some(end)) => {
                let failed = matches!(end, StageEnd::Failed { .. });
                let id = id.clone();
                self.session.event(Event::StageEnded { id, end });
                match failed && self.looks.is_gone() {
                    true => Err(Stop::Device(self.looks.gone())),
                    false => Ok(()),
                }
            }
            Ok(None) => match self.session.is_recorded() {
                true => Err(Stop::Interrupted),
                false => Err(Stop::Record),
            },
            Err(stop) => Err(stop),
        }
    }

    /// Why the limits leave no room for a stage even if all goes well.
    fn no_room_for(&self, task: &Task) -> Option<String> {
        let ends = self.clock.elapsed(self.selected) + task.work.least_time();
        if self.budget.limits.time.is_some_and(|limit| ends > limit) || self.is_time_up() {
            return Some(self.over_time(&task.stage.id));
        }
        // What nobody knows may be little: it begins, and is stopped in time.
        let writes = task.work.write_bytes(Luck::Best, None);
        let least = task.work.least_write_bytes();
        let over = self.budget.has_no_room(writes, least);
        over.then(|| self.over_bytes(&task.stage.id))
    }

    fn is_time_up(&self) -> bool {
        let elapsed = self.clock.elapsed(self.selected);
        self.budget
            .limits
            .time
            .is_some_and(|limit| elapsed >= limit)
    }

    fn over_time(&self, id: &str) -> String {
        let limit = self.budget.limits.time.unwrap_or_default().as_millis();
        let limit = units::duration(u64::try_from(limit).unwrap_or(u64::MAX));
        format!("the stage {id} would end after the time limit of {limit}")
    }

    fn over_bytes(&self, id: &str) -> String {
        let limit = self.budget.limits.text_of_bytes();
        format!("with the stage {id} more would be written than the {limit} that may be")
    }

    fn act(&mut self, act: &dyn Act) -> Stopped {
        // What it runs may claim the device itself.
        self.session.release_targets();
        let (selected, control) = (self.selected, self.control);
        let acted = self.budget.beside(self.session, |session| {
            act.run(&mut Doing {
                selected,
                control,
                tell: &mut |event| {
                    session.event(event);
                },
            })
        });
        let (end, deed) = match acted {
            Acted::Interrupted { deed } => (None, deed),
            Acted::Ended { end, deed } => (Some(end), deed),
        };
        if let Some(deed) = deed {
            self.enter(deed);
        }
        Ok(end)
    }

    fn fill(&mut self, id: &str, fill: &Fill) -> Stopped {
        let job = StepJob {
            id,
            point: None,
            text: &fill.job_text,
            interval: self.interval,
            deadline: None,
            is_sized: fill.bytes.is_some(),
        };
        let mut silence = Silence::default();
        let outcome = self.step(&job, &mut |event| silence.take(event))?;
        if let Some(failure) = silence.failure() {
            self.session.event(Event::Failure(failure));
        } else if outcome == Outcome::Interrupted {
            return Ok(None);
        }
        let bytes = self.written();
        if let Some(end) = self.failed(outcome) {
            self.enter(Deed::Written { bytes });
            return Ok(Some(end));
        }
        self.enter(Deed::Filled {
            pattern: fill.pattern,
            bs_bytes: fill.bs_bytes,
            range_percent: fill.range_percent,
            bytes,
        });
        Ok(Some(StageEnd::Done))
    }

    fn settle(&mut self, id: &str, settle: &Settle) -> Stopped {
        let job = StepJob {
            id,
            point: None,
            text: &settle.job_text,
            interval: settle.interval.unwrap_or(self.interval),
            deadline: Some(settle.most * 2 + MARGIN),
            is_sized: false,
        };
        let mut watching = Watching::new(&settle.criteria);
        let outcome = self.step(&job, &mut |event| watching.take(event))?;
        if outcome == Outcome::Interrupted && !watching.is_over() {
            return Ok(None);
        }
        let bytes = self.written();
        let settled = watching.settled();
        let end = match self.failed(outcome) {
            Some(end) => end,
            None => settled.end(),
        };
        if end == StageEnd::Done && !settled.verdicts.is_empty() {
            let text = format!("{id}: {}", settled.numbers());
            self.session.event(Event::Note { text });
        }
        self.enter(match &end {
            StageEnd::Failed { .. } => Deed::Written { bytes },
            _ => Deed::Settled {
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

    fn cells(&mut self, cells: &[Cell]) -> Stopped {
        for cell in cells {
            let job = StepJob {
                id: &cell.point.id,
                point: Some(&cell.point),
                text: &cell.job_text,
                interval: self.interval,
                deadline: Some(cell.time * 2 + MARGIN),
                is_sized: false,
            };
            let outcome = self.step(&job, &mut |_| Flow::Continue)?;
            if outcome == Outcome::Interrupted {
                return Ok(None);
            }
            if let Some(end) = self.failed(outcome) {
                let bytes = self.written();
                self.enter(Deed::Written { bytes });
                return Ok(Some(end));
            }
        }
        let bytes = self.written();
        if bytes > 0 {
            self.enter(Deed::Written { bytes });
        }
        Ok(Some(StageEnd::Done))
    }

    /// Bytes that the stage in progress has written.
    fn written(&self) -> u64 {
        let history = self.history.borrow();
        history.stages().last().map_or(0, |past| past.written_bytes)
    }

    /// The end of a stage whose job has failed, in whatever way it shows: an
    /// engine can end well with a failure told before.
    fn failed(&self, outcome: Outcome) -> Option<StageEnd> {
        let history = self.history.borrow();
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

    /// Runs one job file.
    fn step(
        &mut self,
        job: &StepJob<'_>,
        watch: &mut dyn FnMut(&Event) -> Flow,
    ) -> Result<Outcome, Stop> {
        let dir = self.session.writer().dir().to_owned();
        let read = prepare::read(job.text, Path::new(job.id));
        let text = read.as_ref().map_or("", |read| &read.text);
        let name = records::job_name(&dir, job.id, records::JOB_ENDING, text);
        self.clock.place(self.session, self.selected);
        let step = self.history.borrow().steps() + 1;
        self.session.event(Event::Step {
            step,
            // How many there will be is not known before they are over: one more
            // at the least.
            of: step + 1,
            name: name.clone(),
            point: job.point.cloned().map(Box::new),
        });
        let read = match read {
            Ok(read) => read,
            Err(fault) => {
                let failure = Failure::new(FailureKind::BadOption, fault);
                self.session.event(Event::Failure(failure));
                return Ok(Outcome::Failed);
            }
        };
        let repetition = job.point.map_or(1, |point| point.repetition);
        let files = records::step_files(
            &dir,
            &name,
            (job.id, repetition),
            records::JOB_ENDING,
            &read.text,
        );
        let (job_file, raw_dir) = files.map_err(|(path, source)| Stop::Unwritten(path, source))?;
        let left = self
            .budget
            .limits
            .time
            .map(|limit| limit.saturating_sub(self.clock.elapsed(self.selected)));
        let request = Request {
            job_file,
            sections: Vec::new(),
            extra_args: Vec::new(),
            work_dir: self.work_dir.to_owned(),
            raw_dir,
            interval: job.interval,
            deadline: job.deadline.into_iter().chain(left).min(),
        };
        let engine = self.selected.engine();
        let (outcome, spent) = self.budget.run(
            job.is_sized,
            self.session,
            engine,
            &request,
            self.control,
            watch,
        );
        match spent {
            true => Err(Stop::NoRoom(self.over_bytes(job.id))),
            false => Ok(outcome),
        }
    }

    /// Writes down a deed. That a ledger cannot be written is no reason to stop:
    /// the record has it all.
    fn enter(&mut self, deed: Deed) {
        for text in self.book.append(deed) {
            self.session.event(Event::Note { text });
        }
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

impl Silence {
    fn take(&mut self, event: &Event) -> Flow {
        match event {
            Event::Sample(sample) => self.moves |= sample.bytes > 0,
            Event::Interval { t_ms, .. } => {
                let since = *self.moved_ms.get_or_insert(*t_ms);
                if std::mem::take(&mut self.moves) {
                    self.moved_ms = Some(*t_ms);
                } else if t_ms - since >= SILENCE_MS {
                    self.hung_ms = Some(t_ms - since);
                    return Flow::Stop;
                }
            }
            _ => {}
        }
        Flow::Continue
    }

    fn failure(&self) -> Option<Failure> {
        let time = units::duration(self.hung_ms?);
        let what = format!("the device has taken no data for {time}");
        Some(Failure::new(FailureKind::Hung, what))
    }
}
