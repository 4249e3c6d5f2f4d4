//! A campaign that runs: one step after the other, until all are measured, the
//! time is up, the device is gone or somebody stops it.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use fathom_device::Hold;
use fathom_engine::{Control, Flow, Outcome, Sink as _};
use fathom_fleet::local::Session;
use fathom_model::{Event, Failure, FailureKind, RunStatus, units};
use fathom_record::Writer;

use super::logs::Logs;
use super::looks::Looks;
use super::tally::{Came, Tally};
use super::{COMMAND, Ready, RunError, guards::Guards, planfile, prepare, records};
use crate::flow::Clock;
use crate::ledger::Moved;
use crate::plan::Step;

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
    /// That it ended because it had written what it may, in a sentence.
    pub spent: Option<String>,
}

impl Ready<'_> {
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
        let _hold = match self.selected.is_simulated() {
            true => Hold::default(),
            // Also where it is only read: two campaigns spoil each other's figures.
            false => Hold::of(self.written.iter().chain([&self.dut]).map(PathBuf::as_path))
                .map_err(|refusal| RunError::Refused(refusal.to_string()))?,
        };
        let ledgers = self.ledgers();
        // What an earlier start has written that was killed. What cannot be had is
        // told by `fathom ledger`.
        let _ = ledgers.catch_up();
        let (writer, goes_on) = match &self.record {
            Some(dir) => (Writer::reopen(dir)?, true),
            None => {
                let selected = &self.selected;
                let new = records::create(self.plan, &self.runs_dir, selected, &self.environment);
                (new?, false)
            }
        };
        let dir = writer.dir().to_owned();
        planfile::write(&dir, &self, self.plan)
            .map_err(|source| unwritten(&dir.join(planfile::PLAN_FILE), source))?;
        begun(&dir);
        let written = self.written.iter().map(PathBuf::as_path);
        let notes = ledgers.begin(written, COMMAND, Some(&dir));
        self.notes.extend(notes);
        let moved = RefCell::new(std::mem::take(&mut self.moved));
        let t_ms = self.tally.t_ms();
        let tally = RefCell::new(std::mem::take(&mut self.tally));
        let guards = std::mem::take(&mut self.guards);
        let looks = self.looks();
        let mut observe = |event: &Event| {
            looks.see(event);
            tally.borrow_mut().take(event);
            moved.borrow_mut().take(event);
            observer(event);
        };
        let logs = Logs::new(&self.folder, &self.plan.dut);
        let mut going = Going {
            session: Session::new(writer, &mut observe, t_ms),
            tally: &tally,
            looks: &looks,
            guards,
            logs: self.plan.settings.progress_logs.then_some(logs),
            control,
            clock: Clock {
                began: self.selected.engine().now(),
                t_ms,
            },
            no_room: 0,
            moved: &moved,
            stopped: None,
            spent: None,
            unwritten: None,
            ready: &self,
        };
        if goes_on {
            going.log(|logs| logs.start(true));
        } else {
            going.log(|logs| logs.start(false));
        }
        for text in &self.notes {
            going.session.event(Event::Note { text: text.clone() });
        }
        let interrupted = going.all_steps();
        for text in ledgers.end(COMMAND, &dir, moved.borrow().bytes()) {
            going.session.event(Event::Note { text });
        }
        going.close(interrupted)
    }
}

/// The state of a run.
struct Going<'r> {
    ready: &'r Ready<'r>,
    session: Session<'r>,
    tally: &'r RefCell<Tally>,
    looks: &'r Looks,
    guards: Guards,
    logs: Option<Logs>,
    control: &'r Control,
    clock: Clock,
    no_room: usize,
    /// What the run has written, in all its starts.
    moved: &'r RefCell<Moved>,
    /// Why it ended early.
    stopped: Option<String>,
    spent: Option<String>,
    unwritten: Option<RunError>,
}

impl Going<'_> {
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
            if let Err(failure) = self.looks.look() {
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
        let (limits, moved) = (plan.settings.limits(), self.moved);
        let mut spent = false;
        let outcome = self
            .session
            .run_until(engine, &request, self.control, &mut |event| {
                // Samples of an interval are recorded as a whole.
                let ends = matches!(event, Event::Interval { .. });
                spent |= ends && limits.is_spent(moved.borrow().bytes());
                match spent {
                    true => Flow::Stop,
                    false => Flow::Continue,
                }
            });
        if spent && outcome == Outcome::Interrupted {
            self.no_room += 1;
            let what = limits.text_of_bytes();
            let text =
                format!("{id}: stopped, the campaign has written {what} and may write no more");
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
        let spent = self.moved.borrow().bytes();
        // What nobody knows may be little: it begins, and is stopped in time.
        let writes = step.write_most(self.ready.speed);
        let writes = writes.unwrap_or(u64::from(step.write_share > 0.0));
        limits.is_over(spent, writes).then(|| {
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
