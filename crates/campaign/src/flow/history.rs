//! What has been done in a flow, from its events alone.

use fathom_analysis::guard::Totals;
use fathom_model::{Direction, Event, Point, Results, RunStatus, Stage, StageEnd};

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
    pub measured: Vec<Measured>,
    /// What went wrong in the last attempt, a sentence each.
    pub failures: Vec<String>,
}

/// A step that has come to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The point, where it is one.
    pub point: Option<Point>,
    /// All jobs and directions together; `None` when nothing was moved.
    pub totals: Option<Totals>,
    /// The longest completion latency of all its I/Os, in ns.
    pub clat_max_ns: Option<u64>,
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
    figures: Option<Measured>,
}

impl History {
    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Stage { stage } => self.begin(stage),
            Event::StageEnded { id, end } => self.end(id, end),
            Event::Step { point, .. } => {
                self.settle();
                self.steps += 1;
                let point = point.as_deref().cloned();
                self.step = self.open.then_some(Begun {
                    point,
                    figures: None,
                });
            }
            Event::Sample(sample) => {
                if let Some(past) = self.current() {
                    match sample.dir {
                        Direction::Write | Direction::Trim => past.written_bytes += sample.bytes,
                        Direction::Read => past.read_bytes += sample.bytes,
                        Direction::Sync | Direction::Mixed => {}
                    }
                }
            }
            Event::Interval { t_ms, .. } => {
                self.t_ms = *t_ms;
                if let Some(past) = self.current() {
                    past.last_ms = *t_ms;
                }
            }
            Event::Finished { results } => self.finished(results),
            Event::Failure(failure) => {
                if let Some(past) = self.current() {
                    past.failures.push(failure.sentence());
                }
            }
            Event::Ended { status } => {
                if *status == RunStatus::Interrupted {
                    self.step = None;
                }
                self.close();
            }
            Event::Resumed { gap_ms, .. } => {
                self.close();
                self.gaps.push(Gap {
                    after_stages: self.stages.len(),
                    ms: *gap_ms,
                });
                // What failed is tried again: whoever resumes has mended it.
                for past in &mut self.stages {
                    past.end
                        .take_if(|end| matches!(end, StageEnd::Failed { .. }));
                }
            }
            _ => {}
        }
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
            failures: Vec::new(),
        });
        self.open = true;
    }

    fn end(&mut self, id: &str, end: &StageEnd) {
        self.settle();
        if let Some(past) = self.current().filter(|past| past.stage.id == id) {
            past.end = Some(end.clone());
        }
        self.open = false;
    }

    /// Nothing more comes to the stage in progress.
    fn close(&mut self) {
        self.step = None;
        self.open = false;
    }

    /// The stage in progress.
    fn current(&mut self) -> Option<&mut Past> {
        self.stages.last_mut().filter(|_| self.open)
    }

    /// Ends the step in progress.
    fn settle(&mut self) {
        let figures = self.step.take().and_then(|step| step.figures);
        if let (Some(figures), Some(past)) = (figures, self.current()) {
            past.measured.push(figures);
        }
    }

    fn finished(&mut self, results: &Results) {
        let Some(step) = &mut self.step else { return };
        let jobs = results.jobs.iter().filter(|job| !job.is_sum_of_clients());
        let found = jobs.flat_map(fathom_model::JobResult::directions);
        let latencies = found.filter_map(|(_, result)| Some(result.clat.as_ref()?.max_ns));
        step.figures = Some(Measured {
            point: step.point.clone(),
            totals: Totals::of(results),
            clat_max_ns: latencies.max(),
        });
    }

    /// What it becomes when the run goes on: what failed is tried again.
    #[must_use]
    pub fn resumed(&self) -> Self {
        let mut resumed = self.clone();
        let (after, gap_ms) = (None, 0);
        resumed.take(&Event::Resumed { after, gap_ms });
        resumed
    }

    /// Every stage that has begun, in the order of their last begins.
    #[must_use]
    pub fn stages(&self) -> &[Past] {
        &self.stages
    }

    /// The stage with this id, when it has begun.
    #[must_use]
    pub fn past(&self, id: &str) -> Option<&Past> {
        self.stages.iter().find(|past| past.stage.id == id)
    }

    /// How a stage ended; `None`: it has not begun, or not ended.
    #[must_use]
    pub fn ended(&self, id: &str) -> Option<&StageEnd> {
        self.past(id)?.end.as_ref()
    }

    /// The stage that goes on, or was interrupted: the last one without an end.
    #[must_use]
    pub fn unfinished(&self) -> Option<&Past> {
        self.stages.last().filter(|past| past.end.is_none())
    }

    /// When nothing was measured because the run had stopped.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// End of the last interval, in ms of the run's time.
    #[must_use]
    pub fn t_ms(&self) -> u64 {
        self.t_ms
    }

    /// Steps that have begun.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.steps
    }
}
