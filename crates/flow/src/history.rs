//! What has been done in a flow, from its events alone.

use std::collections::{BTreeMap, HashSet};

use fathom_analysis::guard::MeasurementTotals;
use fathom_analysis::steady_state::{Ask, Metric, Rounds, SeriesValue};
use fathom_model::environment::Boot;
use fathom_model::{
    Direction, Entry, Event, EvidenceSum, FailureKind, Outcome, Point, Results, Stage, StageEnd,
    StageKind,
};

use super::figures::StepFigures;
use super::tally::{EndedPoint, Tally};

/// What has been done so far: the same for a live run, a resumed one and a
/// watcher, because it is made of events and nothing else.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    stages: Vec<Past>,
    gaps: Vec<Gap>,
    /// Whether the last stage goes on.
    open: bool,
    /// The step in progress.
    step: Option<Begun>,
    t_ms: u64,
    steps: u32,
    /// The step outside of stages that is in progress, and those that have ended, by
    /// their numbers.
    single: Option<(u32, EndedStep)>,
    ended_steps: BTreeMap<u32, EndedStep>,
    /// What the one in progress has reported, and those that have ended.
    figures: Option<StepFigures>,
    /// What the machine did meanwhile.
    evidence: EvidenceSum,
    step_figures: BTreeMap<u32, StepFigures>,
    /// The boots in which they were measured, where that was told.
    boots: BTreeMap<u32, Boot>,
    tally: Tally,
    start: Start,
}

/// A stage that the limits of a start left no room for, or for more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its id.
    pub id: String,
    /// Why.
    pub reason: String,
    /// The point whose turn it was last then, and which measurement of it.
    pub turn: Option<(String, u32)>,
}

/// What there was in this start of the run, outside of stages.
#[derive(Debug, Clone, Default, PartialEq)]
struct Start {
    /// The number of the last step; `None`: a point was left out behind it.
    step: Option<u32>,
    /// The point whose turn it was last, and which measurement of it.
    turn: Option<(String, u32)>,
    /// All points that have had their turn, each with which measurement of it.
    turns: HashSet<(String, u32)>,
    /// The boot of the machine, where it was told.
    boot: Option<Boot>,
    /// What was noted between steps.
    notes: Vec<String>,
    /// Stages that the limits left no room for.
    left_out: Vec<LeftOut>,
}

/// How a step outside of stages ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedStep {
    /// How.
    pub outcome: Outcome,
    /// It was refused before it began.
    pub refused: bool,
}

/// A stage that has begun.
#[derive(Debug, Clone, PartialEq)]
pub struct Past {
    /// The stage.
    pub stage: Stage,
    /// How it ended; `None`: it goes on, or was interrupted and is done anew.
    pub end: Option<StageEnd>,
    /// How often it was begun.
    pub attempts: u32,
    /// The run's time when it began the last time, in ms.
    pub begin_ms: u64,
    /// The run's time of its last interval, in ms.
    pub last_ms: u64,
    /// Bytes written in the last attempt.
    pub written_bytes: u64,
    /// Bytes read in the last attempt.
    pub read_bytes: u64,
    /// What was measured in the last attempt, in order.
    pub measured: Vec<MeasuredStep>,
    /// Name of the job file of its last step.
    pub job: Option<String>,
    /// What went wrong in the last attempt, a sentence each.
    pub failures: Vec<String>,
}

/// A step that has come to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredStep {
    /// The point, where it is one.
    pub point: Option<Point>,
    /// All jobs and directions together; `None` when nothing was moved.
    pub totals: Option<MeasurementTotals>,
    /// The longest completion latency of all its I/Os, in ns.
    pub clat_max_ns: Option<u64>,
    /// The IOPS of its samples, reads and writes added up; of points only.
    pub iops: Vec<SeriesValue>,
}

/// A time in which nothing was measured, because the run had stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Stages that had begun before it.
    pub after_stages: usize,
    /// Its length in ms.
    pub ms: u64,
}

/// The step in progress.
#[derive(Debug, Clone, PartialEq)]
struct Begun {
    point: Option<Point>,
    figures: Option<MeasuredStep>,
    samples: Rounds,
}

impl History {
    /// That of a record.
    pub fn of(entries: &[Entry]) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.take(&entry.event);
        }
        history
    }

    /// Takes the next event; gives the measurement that has ended by it.
    pub fn take(&mut self, event: &Event) -> Option<EndedPoint> {
        self.follow(event);
        self.tally.take(event)
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::Stage { stage } => self.begin(stage),
            Event::StageEnded { id, end } => self.end(id, end),
            Event::Step {
                step, name, point, ..
            } => {
                self.begin_step(*step, name, point.as_deref());
            }
            Event::Sample(sample) => {
                self.sampled(event);
                if let Some(past) = self.current() {
                    match sample.dir {
                        Direction::Write | Direction::Trim => past.written_bytes += sample.bytes,
                        Direction::Read => past.read_bytes += sample.bytes,
                        Direction::Sync | Direction::Mixed => {}
                    }
                }
            }
            Event::Interval { t_ms, .. } => {
                self.sampled(event);
                self.t_ms = *t_ms;
                if let Some(past) = self.current() {
                    past.last_ms = *t_ms;
                }
            }
            Event::Evidence(interval) if self.single.is_some() && self.start.turn.is_none() => {
                self.evidence.add(interval);
            }
            Event::Finished { results } => self.finished(results),
            Event::Failure(failure) => {
                if let Some(past) = self.current() {
                    past.failures.push(failure.sentence());
                } else if let Some((_, ended)) = &mut self.single {
                    ended.refused |= failure.kind == FailureKind::Refused;
                }
            }
            Event::StepEnded { outcome } => self.end_step(*outcome),
            Event::Skipped { point, .. } => {
                (self.start.step, self.start.turn) = (None, Some(turn_of(point)));
                self.start.turns.insert(turn_of(point));
            }
            Event::Booted(boot) => self.start.boot = Some(boot.clone()),
            Event::Note { text } if !self.open && self.single.is_none() => {
                self.start.notes.push(text.clone());
            }
            Event::Ended { .. } => self.close(),
            Event::Resumed { gap_ms, .. } => {
                self.close();
                self.start = Start::default();
                self.gaps.push(Gap {
                    after_stages: self.stages.len(),
                    ms: *gap_ms,
                });
                self.forget_what_is_done_again();
            }
            _ => {}
        }
    }

    fn begin_step(&mut self, step: u32, name: &str, point: Option<&Point>) {
        self.steps += 1;
        self.single = None;
        self.evidence = EvidenceSum::default();
        if !self.open {
            let (outcome, refused) = (Outcome::Interrupted, false);
            self.single = Some((step, EndedStep { outcome, refused }));
            self.start.step = Some(step);
            self.start.turn = point.map(turn_of);
            self.start.turns.extend(self.start.turn.clone());
        }
        if let Some(past) = self.current() {
            past.job = Some(name.to_owned());
        }
        let point = point.cloned();
        self.step = self.open.then_some(Begun {
            point,
            figures: None,
            samples: Rounds::new(Ask::of([Metric::Iops])),
        });
    }

    /// What failed is tried again: whoever resumes has mended it. What was switched
    /// has been put back.
    fn forget_what_is_done_again(&mut self) {
        for past in &mut self.stages {
            let is_switch = past.stage.kind == StageKind::Switch;
            past.end
                .take_if(|end| is_switch || matches!(end, StageEnd::Failed { .. }));
        }
        self.ended_steps
            .retain(|_, ended| ended.outcome == Outcome::Complete);
    }

    fn begin(&mut self, stage: &Stage) {
        self.close();
        let known = self
            .stages
            .iter()
            .position(|past| past.stage.id == stage.id);
        // The last one is the one in progress.
        let attempts = known.map_or(0, |place| self.stages.remove(place).attempts);
        self.stages.push(Past {
            stage: stage.clone(),
            end: None,
            attempts: attempts + 1,
            begin_ms: self.t_ms,
            last_ms: self.t_ms,
            written_bytes: 0,
            read_bytes: 0,
            measured: Vec::new(),
            job: None,
            failures: Vec::new(),
        });
        self.open = true;
    }

    fn end(&mut self, id: &str, end: &StageEnd) {
        let is_over = !matches!(end, StageEnd::Interrupted { .. });
        let past = self.current().filter(|past| past.stage.id == id);
        if let Some(past) = past.filter(|_| is_over) {
            past.end = Some(end.clone());
        }
        self.open = false;
    }

    /// Nothing more comes to the stage in progress.
    fn close(&mut self) {
        self.step = None;
        self.single = None;
        self.open = false;
    }

    /// The stage in progress.
    fn current(&mut self) -> Option<&mut Past> {
        self.stages.last_mut().filter(|_| self.open)
    }

    /// Keeps a sample of the point in progress; fills and loads have too many.
    fn sampled(&mut self, event: &Event) {
        if let Some(step) = self.step.as_mut().filter(|step| step.point.is_some()) {
            step.samples.take(event);
        }
    }

    /// What was stopped is measured again.
    fn end_step(&mut self, outcome: Outcome) {
        let (single, step) = (self.single.take(), self.step.take());
        let figures = self.figures.take();
        if outcome == Outcome::Interrupted {
            return;
        }
        if let Some((number, ended)) = single {
            let ended = EndedStep { outcome, ..ended };
            self.ended_steps.insert(number, ended);
            if let Some(boot) = &self.start.boot {
                self.boots.insert(number, boot.clone());
            }
            match figures {
                Some(figures) => self.step_figures.insert(number, figures),
                None => self.step_figures.remove(&number),
            };
        }
        let Some(step) = step else { return };
        if let (Some(mut figures), Some(past)) = (step.figures, self.current()) {
            let samples = step.samples.series().iter();
            figures.iops = samples.flat_map(|series| series.values(0)).collect();
            past.measured.push(figures);
        }
    }

    fn finished(&mut self, results: &Results) {
        // Points of a campaign are thousands, and nobody asks for theirs here.
        if self.single.is_some() && self.start.turn.is_none() {
            self.figures = StepFigures::of(results, &self.evidence);
        }
        let Some(step) = &mut self.step else { return };
        let jobs = results.jobs.iter().filter(|job| !job.is_sum_of_clients());
        let found = jobs.flat_map(fathom_model::JobResult::directions);
        let latencies = found.filter_map(|(_, result)| Some(result.clat.as_ref()?.max_ns));
        step.figures = Some(MeasuredStep {
            point: step.point.clone(),
            totals: MeasurementTotals::of(results),
            clat_max_ns: latencies.max(),
            iops: Vec::new(),
        });
    }

    /// What it becomes when the run goes on: what failed is tried again.
    pub fn resumed(&self) -> Self {
        let mut resumed = self.clone();
        let (after, gap_ms) = (None, 0);
        resumed.take(&Event::Resumed { after, gap_ms });
        resumed
    }

    /// Every stage that has begun, in the order of their last begins.
    pub fn stages(&self) -> &[Past] {
        &self.stages
    }

    /// The stage with this id, when it has begun.
    pub fn past(&self, id: &str) -> Option<&Past> {
        self.stages.iter().find(|past| past.stage.id == id)
    }

    /// How a stage ended; `None`: it has not begun, or not ended.
    pub fn ended(&self, id: &str) -> Option<&StageEnd> {
        self.past(id)?.end.as_ref()
    }

    /// How the step of this number ended, one outside of stages; `None`: it has not
    /// begun, or not ended.
    pub fn ended_step(&self, number: u32) -> Option<&EndedStep> {
        self.ended_steps.get(&number)
    }

    /// What the step of this number has measured: one that has ended, outside of stages
    /// and no point of a campaign.
    pub fn step_figures(&self, number: u32) -> Option<&StepFigures> {
        self.step_figures.get(&number)
    }

    /// The boot in which the step of this number was measured; `None`: nobody told.
    pub fn boot_of(&self, number: u32) -> Option<&Boot> {
        self.boots.get(&number)
    }

    /// Whether a step outside of stages has failed.
    pub fn has_failed_steps(&self) -> bool {
        let mut ended = self.ended_steps.values();
        ended.any(|step| step.outcome == Outcome::Failed)
    }

    /// What came of every measurement.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The number of the last step outside of stages in this start; `None`: there was
    /// none, or a point was left out behind it.
    pub fn last_step(&self) -> Option<u32> {
        self.start.step
    }

    /// The point whose turn it was last in this start, and which measurement of it.
    pub fn turn(&self) -> Option<(&str, u32)> {
        let (id, repetition) = self.start.turn.as_ref()?;
        Some((id, *repetition))
    }

    /// Whether this measurement of a point has had its turn in this start.
    pub fn had_turn(&self, point: &Point) -> bool {
        self.start.turns.contains(&turn_of(point))
    }

    /// Whether this was noted in this start, between two steps.
    pub fn has_noted(&self, text: &str) -> bool {
        self.start.notes.iter().any(|note| note == text)
    }

    /// The stages that the limits of this start left no room for, the last first.
    pub fn left_out(&self) -> impl Iterator<Item = &LeftOut> {
        self.start.left_out.iter().rev()
    }

    /// The limits of this start leave no room for a stage, or for more of it. No event
    /// says so of one that has not begun: the next start has room of its own.
    pub fn leave_out(&mut self, id: &str, reason: &str) {
        self.start.left_out.push(LeftOut {
            id: id.to_owned(),
            reason: reason.to_owned(),
            turn: self.start.turn.clone(),
        });
    }

    /// Whether a stage goes on.
    pub fn is_in_stage(&self) -> bool {
        self.open
    }

    /// When nothing was measured because the run had stopped.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// End of the last interval, in ms of the run's time.
    pub fn t_ms(&self) -> u64 {
        self.t_ms
    }

    /// Steps that have begun.
    pub fn steps(&self) -> u32 {
        self.steps
    }
}

fn turn_of(point: &Point) -> (String, u32) {
    (point.id.clone(), point.repetition)
}
