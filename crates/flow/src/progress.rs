//! How far a run is: from its record's events, and the plan in it where there is
//! one. The same for the run itself, `status` and `watch`.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use fathom_analysis::guard::MeasurementTotals;
use fathom_analysis::rate::{HostRates, Rates};
use fathom_model::{Event, Point, RunStatus, StageEnd};
use fathom_record::{Entries, Header};
use serde_json::{Map, Value};

use super::stages::{StageTold, Stages, Standing};
use crate::error::RunError;
use crate::plan_log::{self, Head, PlannedStep};
use crate::{EndedPoint, PointOutcome};

/// How many of the last events are kept to be shown.
const RECENT: usize = 6;

/// The commands that write a plan into their records.
const PLANNED: [&str; 3] = ["run", "snia", "provision"];
/// How often and how long a run that has just begun is waited for to write its
/// plan: a second, which is a hundred times as long as it takes.
const PLAN_LOOKS: u32 = 50;
const PLAN_PAUSE: Duration = Duration::from_millis(20);

/// How far a run is.
#[derive(Debug)]
pub struct Progress {
    /// Name of the record's folder.
    pub id: String,
    /// Name of the run.
    pub name: String,
    /// The command that made it.
    pub command: String,
    /// What the record's header says of its kind.
    pub facts: Map<String, Value>,
    /// What the plan says of itself.
    pub head: Head,
    steps: Vec<PlannedStep>,
    /// How many steps there are, where no plan says it.
    unplanned: Option<u32>,
    stages: Stages,
    status: RunStatus,
    current: Option<Current>,
    preparing: Option<String>,
    /// Bytes that are laid out, and those that are to be.
    laying_out: Option<(u64, u64)>,
    /// Rates of the last interval that has ended.
    rates: Rates,
    /// Rates of the interval that goes on.
    adding: Rates,
    hosts: HostRates,
    recent: VecDeque<Recent>,
    last: Option<EndedPoint>,
    costs: Costs,
    started_ms: u64,
    last_ms: u64,
}

/// The step in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    /// The point.
    pub id: String,
    /// Which measurement of it.
    pub repetition: u32,
    /// Its place in the plan, from 1.
    pub step: u32,
    /// When it began, ms since 1970 UTC.
    pub began_ms: u64,
    /// How long it runs, in ms of the run's time.
    pub ran_ms: u64,
    /// How much longer it runs, in ms, where the engine knows.
    pub remaining_ms: Option<u64>,
    /// The run's time when it began.
    t_ms: u64,
}

/// Measurements by what came of them. Together they are all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PointCounts {
    /// All in the plan.
    pub steps: usize,
    /// Measured.
    pub done: usize,
    /// Failed.
    pub failed: usize,
    /// Left out.
    pub skipped: usize,
    /// Neither.
    pub left: usize,
}

/// Something that happened lately.
#[derive(Debug, Clone, PartialEq)]
pub struct Recent {
    /// When, ms since 1970 UTC.
    pub at_ms: u64,
    /// What.
    pub what: ProgressEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum ProgressEvent {
    /// A measurement came to its end.
    Ended(EndedPoint),
    /// Measurements of a series were left out.
    Skipped {
        /// The series.
        series: String,
        /// How many.
        measurements: u32,
        /// Why.
        reason: String,
    },
    /// The run went on after so many ms.
    Resumed(u64),
    /// A stage has ended, how, and how long it took in ms.
    StageEnded(StageTold),
    /// Something else to be known.
    Note(String),
}

/// What steps cost beyond their planned time.
#[derive(Debug, Default)]
struct Costs {
    steps: u64,
    beyond_ms: u64,
}

impl Progress {
    /// The progress of the run in a record's folder, of which no event is known yet.
    ///
    /// # Errors
    /// When its plan cannot be read.
    fn of(dir: &Path, header: &Header) -> Result<Self, RunError> {
        let plan = match plan_log::read(dir) {
            Ok(plan) => Some(plan),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => {
                let what = format!("its {} cannot be read: {source}", plan_log::PLAN_FILE);
                return Err(RunError::Missing(format!("{}: {what}", dir.display())));
            }
        };
        let unplanned = plan.is_none().then_some(0);
        let none = || (Head::of_record(header), Vec::new(), Vec::new());
        let (head, stages, steps) = plan.unwrap_or_else(none);
        let id = dir
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        Ok(Self {
            id: id.unwrap_or_default(),
            name: header.name.clone(),
            command: header.command.clone(),
            facts: header.facts.clone(),
            head,
            steps,
            unplanned,
            stages: Stages::new(stages),
            status: RunStatus::Running,
            current: None,
            preparing: None,
            laying_out: None,
            rates: Rates::new(),
            adding: Rates::new(),
            hosts: HostRates::default(),
            recent: VecDeque::new(),
            last: None,
            costs: Costs::default(),
            started_ms: header.started_ms,
            last_ms: header.started_ms,
        })
    }

    /// The progress of the run in a record's folder, with everything that is in
    /// the record now.
    ///
    /// # Errors
    /// As [`Progress::of`], and when the record cannot be read.
    pub fn read(dir: &Path) -> Result<Self, RunError> {
        let (mut progress, mut entries) = Self::open(dir)?;
        progress.follow_up(&mut entries, &mut |_, _, _| {})?;
        Ok(progress)
    }

    /// As [`Progress::read`], with the record at its begin, to be followed.
    ///
    /// # Errors
    /// As [`Progress::read`].
    pub fn open(dir: &Path) -> Result<(Self, Entries), RunError> {
        let mut entries = Entries::open(dir)?;
        // The plan is written right behind the record's first line.
        for _ in 0..PLAN_LOOKS {
            if !PLANNED
                .iter()
                .any(|it| entries.header.command.starts_with(it))
                || entries.status.is_some()
                || dir.join(plan_log::PLAN_FILE).exists()
            {
                break;
            }
            std::thread::sleep(PLAN_PAUSE);
            entries = Entries::open(dir)?;
        }
        let progress = Self::of(dir, &entries.header)?;
        Ok((progress, entries))
    }

    /// Takes every entry that has been written since the last call; `told` is
    /// given each event with what is worth a line.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn follow_up(
        &mut self,
        entries: &mut Entries,
        told: &mut dyn FnMut(&Self, &Event, &[Recent]),
    ) -> Result<(), RunError> {
        entries.look_again()?;
        // Before the entries: what is written after this is read the next time.
        let status = entries.status;
        for entry in &mut *entries {
            let entry = entry?;
            let recent = self.take(entry.at_ms, &entry.event);
            told(self, &entry.event, &recent);
        }
        self.end(status.unwrap_or(RunStatus::Running));
        Ok(())
    }

    /// Takes the next event, which happened at `at_ms` since 1970 UTC; gives what
    /// is worth a line each.
    pub fn take(&mut self, at_ms: u64, event: &Event) -> Vec<Recent> {
        self.last_ms = at_ms;
        self.hosts.take(event);
        let planned = self.plan(event);
        let event = planned.as_ref().unwrap_or(event);
        let (ended, stage_ended) = self.stages.take(at_ms, event);
        if let (Some(_), Some(current)) = (&ended, &self.current) {
            self.costs.add(at_ms, current, self.planned_ms(current));
        }
        if let Some(done) = ended
            .as_ref()
            .filter(|e| matches!(e.came, PointOutcome::Done(_)))
        {
            self.last = Some(done.clone());
        }
        let ended = ended.map(ProgressEvent::Ended);
        let happened = match event {
            Event::Skipped { point, reason, .. } => Some(ProgressEvent::Skipped {
                series: point.series.clone(),
                measurements: 1,
                reason: reason.clone(),
            }),
            Event::Resumed { gap_ms, .. } => Some(ProgressEvent::Resumed(*gap_ms)),
            Event::StageEnded { .. } => stage_ended.map(ProgressEvent::StageEnded),
            // What failed in a step is told when that ends.
            Event::Failure(failure) if self.current.is_none() && !self.stages.is_open() => {
                Some(ProgressEvent::Note(failure.message.clone()))
            }
            _ => None,
        };
        self.follow(at_ms, event);
        // A step that ended is older than what ended it.
        let all = ended.into_iter().chain(happened);
        all.map(|what| self.keep(at_ms, what)).collect()
    }

    /// A step that measures no point as one by its name; one that no plan told of is
    /// put into the plan.
    fn plan(&mut self, event: &Event) -> Option<Event> {
        if let (Event::EngineStarted { engine, .. }, Some(_)) = (event, self.unplanned) {
            self.head.engine.clone_from(engine);
        }
        let Event::Step {
            step,
            of,
            name,
            point,
        } = event
        else {
            return None;
        };
        if self.stages.is_open() {
            return None;
        }
        let unnamed = point.is_none().then_some(*step);
        let point = match point {
            Some(point) => point.clone(),
            None => Box::new(plan_log::unnamed(name, self.repetition(name, *step))),
        };
        if let (None, Some(number)) = (self.unplanned, unnamed) {
            self.foreseen(&point, number);
        }
        if let Some(all) = self.unplanned.as_mut() {
            *all = (*all).max(*of);
            let planned = PlannedStep {
                id: point.id.clone(),
                repetition: point.repetition,
                duration_ms: None,
                step: unnamed,
            };
            if !self.steps.contains(&planned) {
                self.steps.push(planned);
            }
        }
        Some(Event::Step {
            step: *step,
            of: *of,
            name: name.clone(),
            point: Some(point),
        })
    }

    /// Puts a step that begins into the plan, which could only guess what comes of the steps
    /// before it.
    fn foreseen(&mut self, point: &Point, number: u32) {
        let is_it =
            |known: &PlannedStep| known.id == point.id && known.repetition == point.repetition;
        if self.steps.iter().any(is_it) {
            return;
        }
        let mut planned = self.steps.iter_mut();
        match planned.find(|known| known.step == Some(number)) {
            Some(planned) => {
                planned.id.clone_from(&point.id);
                planned.repetition = point.repetition;
            }
            None => self.steps.push(PlannedStep {
                id: point.id.clone(),
                repetition: point.repetition,
                duration_ms: None,
                step: Some(number),
            }),
        }
    }

    /// Which one of its name a step is.
    fn repetition(&self, name: &str, step: u32) -> u32 {
        let mut alike = self.steps.iter().filter(|known| known.id == name);
        let known = alike.clone().find(|known| known.step == Some(step));
        match known {
            Some(known) => known.repetition,
            None => alike.by_ref().count() as u32 + 1,
        }
    }

    fn follow(&mut self, at_ms: u64, event: &Event) {
        match event {
            Event::Preparing { what } => self.preparing = Some(what.clone()),
            Event::LayingOut {
                done_bytes,
                of_bytes,
            } => self.laying_out = Some((*done_bytes, *of_bytes)),
            // An interval ends nothing: while files are laid out they go on without I/O.
            Event::Sample(_)
            | Event::Step { .. }
            | Event::Stage { .. }
            | Event::StepEnded { .. }
            | Event::StageEnded { .. }
            | Event::Ended { .. } => (self.preparing, self.laying_out) = (None, None),
            _ => {}
        }
        match event {
            Event::Step { step, point, .. } => {
                self.status = RunStatus::Running;
                self.rates.clear();
                self.adding.clear();
                self.current = point.as_ref().map(|point| Current {
                    id: point.id.clone(),
                    repetition: point.repetition,
                    step: *step,
                    began_ms: at_ms,
                    ran_ms: 0,
                    remaining_ms: None,
                    t_ms: self.stages.history().t_ms(),
                });
            }
            Event::Sample(sample) => self.adding.entry(sample.dir).or_default().add(sample),
            Event::Interval { t_ms, remaining_ms } => {
                self.rates = std::mem::take(&mut self.adding);
                if let Some(current) = &mut self.current {
                    current.ran_ms = t_ms.saturating_sub(current.t_ms);
                    current.remaining_ms = *remaining_ms;
                }
            }
            Event::Skipped { .. } | Event::StepEnded { .. } => {
                self.current = None;
                self.rates.clear();
            }
            Event::Resumed { .. } => {
                self.current = None;
                self.status = RunStatus::Running;
                self.started_ms = at_ms;
            }
            Event::Ended { status } => {
                self.current = None;
                self.status = *status;
            }
            _ => {}
        }
    }

    /// Keeps what happened; points of one series that are left out for one
    /// reason are one event.
    fn keep(&mut self, at_ms: u64, what: ProgressEvent) -> Recent {
        if let (
            Some(Recent {
                what:
                    ProgressEvent::Skipped {
                        series,
                        measurements,
                        reason,
                    },
                ..
            }),
            ProgressEvent::Skipped {
                series: now_series,
                reason: now_reason,
                ..
            },
        ) = (self.recent.back_mut(), &what)
            && series == now_series
            && reason == now_reason
        {
            *measurements += 1;
        } else {
            if self.recent.len() == RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(Recent {
                at_ms,
                what: what.clone(),
            });
        }
        Recent { at_ms, what }
    }

    /// Says how the run ended, when its last line does not: it was killed.
    fn end(&mut self, status: RunStatus) {
        self.status = status;
        if status != RunStatus::Running {
            self.current = None;
        }
    }

    /// How the run ended, or that it goes on.
    pub fn status(&self) -> RunStatus {
        self.status
    }

    /// What somebody else is to do before it goes on; `None`: nothing.
    pub fn waits(&self) -> Option<&str> {
        let last = self.stages.history().stages().last()?;
        match &last.end {
            Some(StageEnd::Waits { reason }) if self.status == RunStatus::Interrupted => {
                Some(reason)
            }
            _ => None,
        }
    }

    /// The step in progress.
    pub fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// What is done right now, other than I/O.
    pub fn preparing(&self) -> Option<&str> {
        self.preparing.as_deref()
    }

    /// Bytes of files that are laid out for the step, and those that are to be; `None`
    /// when none are laid out now.
    pub fn laying_out(&self) -> Option<(u64, u64)> {
        self.laying_out
    }

    /// The stage in progress, which makes the device ready.
    pub fn stage(&self) -> Option<Standing<'_>> {
        match self.status {
            RunStatus::Running => self.stages.standing(self.last_ms),
            _ => None,
        }
    }

    /// What is done to make the device ready.
    pub fn stages(&self) -> &Stages {
        &self.stages
    }

    /// Rates of the last interval of the step in progress.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// What each machine did in that interval, where there are several.
    pub fn hosts(&self) -> &HostRates {
        &self.hosts
    }

    /// The last events, the oldest first.
    pub fn recent(&self) -> impl Iterator<Item = &Recent> {
        self.recent.iter()
    }

    /// When the run began, or went on the last time, ms since 1970 UTC.
    pub fn started_ms(&self) -> u64 {
        self.started_ms
    }

    /// Time of the last event, ms since 1970 UTC.
    pub fn last_ms(&self) -> u64 {
        self.last_ms
    }

    /// What came of the measurements so far.
    pub fn counts(&self) -> PointCounts {
        let all = self.unplanned.unwrap_or(0) as usize;
        let known = self.measurements().count();
        let steps = known.max(all);
        let left = steps - known;
        let mut counts = PointCounts {
            steps,
            left,
            ..PointCounts::default()
        };
        for (_, came) in self.measurements() {
            *match came {
                Some(PointOutcome::Done(_)) => &mut counts.done,
                Some(PointOutcome::Failed(_)) => &mut counts.failed,
                Some(PointOutcome::Skipped(_)) => &mut counts.skipped,
                Some(PointOutcome::Postponed(_) | PointOutcome::Unfinished) | None => {
                    &mut counts.left
                }
            } += 1;
        }
        counts
    }

    /// The last measurement that was done: its point, which one, its figures.
    pub fn last_done(&self) -> Option<(&str, u32, &MeasurementTotals)> {
        let ended = self.last.as_ref()?;
        match &ended.came {
            PointOutcome::Done(totals) => Some((&ended.id, ended.repetition, totals)),
            _ => None,
        }
    }

    /// Every measurement of the plan with what came of it. A run that is complete did not
    /// need those that it might have come to.
    pub fn measurements(&self) -> impl Iterator<Item = (&PlannedStep, Option<&PointOutcome>)> {
        let is_over = self.status == RunStatus::Complete;
        let all = self.steps.iter().map(|step| (step, self.came(step)));
        all.filter(move |(step, came)| !is_over || step.step.is_none() || came.is_some())
    }

    fn came(&self, step: &PlannedStep) -> Option<&PointOutcome> {
        self.stages
            .history()
            .tally()
            .came(&step.id, step.repetition)
    }

    /// The time that is left in ms, as far as the plan tells how long steps
    /// take; what they cost beyond that is taken from those before.
    pub fn left_ms(&self) -> Option<u64> {
        if self.unplanned.is_some() {
            // Only of the last step everything is known.
            let is_last = self.counts().left == 1;
            return self.current.as_ref().filter(|_| is_last)?.remaining_ms;
        }
        let beyond_ms = self.costs.mean_ms();
        let mut left_ms = 0u64;
        for (step, came) in self.measurements() {
            if !came.is_some_and(PointOutcome::is_settled) {
                left_ms += step.duration_ms? + beyond_ms;
            }
        }
        let ran_ms = self.current.as_ref().map_or(0, |current| current.ran_ms);
        let stages_ms = self.stages.left_ms(self.last_ms)?;
        Some(left_ms.saturating_sub(ran_ms) + stages_ms)
    }

    fn planned_ms(&self, current: &Current) -> Option<u64> {
        let step = self.steps.get(current.step.checked_sub(1)? as usize)?;
        step.duration_ms
    }
}

impl Costs {
    fn add(&mut self, at_ms: u64, current: &Current, planned_ms: Option<u64>) {
        if let Some(planned_ms) = planned_ms {
            let took_ms = at_ms.saturating_sub(current.began_ms);
            self.steps += 1;
            self.beyond_ms += took_ms.saturating_sub(planned_ms);
        }
    }

    fn mean_ms(&self) -> u64 {
        self.beyond_ms.checked_div(self.steps).unwrap_or(0)
    }
}
