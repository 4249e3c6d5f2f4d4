//! The life of a simulated device, and what a record tells of it.

use std::time::Duration;

use fathom_model::{Event, JobResult, Outcome, Results, StageEnd, StageKind};

use super::SimDevice;

/// The state of a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Life {
    /// Its age.
    pub(super) now: Duration,
    /// When it was as new the last time.
    pub(super) purged: Duration,
    /// Where its rate has wandered to, as a factor.
    pub(super) wandered: f64,
}

impl Life {
    pub(super) fn new() -> Self {
        Self {
            now: Duration::ZERO,
            purged: Duration::ZERO,
            wandered: 1.0,
        }
    }

    /// Has worked in an interval that ended so many ms after it began to, the one before
    /// after so many. By whole ms, as records tell it.
    pub(super) fn wander(&mut self, device: &SimDevice, began: Duration, [from, to]: [u64; 2]) {
        let moment = (began.as_millis() as u64).wrapping_add(to);
        let root = Duration::from_millis(to - from).as_secs_f64().sqrt();
        let step = device.chance(moment, 2);
        self.wandered *= (device.wander_percent / 100.0 * step * root).exp();
    }
}

/// A life as far as the events of a run have told it.
#[derive(Debug)]
pub(super) struct StateReplay {
    life: Life,
    /// The run's time, in ms.
    t_ms: u64,
    /// The age and the run's time at this start of the run.
    start: (Duration, u64),
    /// The age and the run's time when the last stage or step began.
    last: (Duration, u64),
    /// The life to go back to when what is in progress is stopped.
    kept: Option<Life>,
    /// The stage in progress.
    stage: Option<StageKind>,
}

impl StateReplay {
    pub(super) fn new() -> Self {
        Self {
            life: Life::new(),
            t_ms: 0,
            start: (Duration::ZERO, 0),
            last: (Duration::ZERO, 0),
            kept: None,
            stage: None,
        }
    }

    pub(super) fn take(&mut self, device: &SimDevice, event: &Event) {
        match event {
            Event::Stage { stage } => {
                self.stage = Some(stage.kind);
                self.kept = Some(self.life);
                self.begin();
            }
            Event::Step { .. } => {
                if self.stage.is_none() {
                    self.kept = Some(self.life);
                }
                self.begin();
            }
            Event::Interval { t_ms, .. } => self.live_to(device, *t_ms),
            Event::Finished { results } => {
                self.life.now = self.life.now.saturating_add(part_of_ms(results));
            }
            Event::StageEnded { end, .. } => {
                let kind = self.stage.take();
                if (kind, end) == (Some(StageKind::Purge), &StageEnd::Done) {
                    self.life.purged = self.life.now;
                }
                self.kept = None;
            }
            Event::StepEnded { outcome } if self.stage.is_none() => {
                self.kept.take_if(|_| *outcome != Outcome::Interrupted);
            }
            Event::Resumed { .. } => {
                self.life = self.life();
                self.start = (self.life.now, self.t_ms);
                self.kept = None;
                self.stage = None;
            }
            _ => {}
        }
    }

    /// As it is for what comes next: what was in progress is done anew.
    pub(super) fn life(&self) -> Life {
        self.kept.unwrap_or(self.life)
    }

    fn begin(&mut self) {
        let (age, t_ms) = self.start;
        let since = self.life.now.saturating_sub(age);
        self.last = (self.life.now, t_ms.saturating_add(since.as_millis() as u64));
    }

    fn live_to(&mut self, device: &SimDevice, t_ms: u64) {
        let (began, place_ms) = self.last;
        let ran = |t_ms: u64| t_ms.saturating_sub(place_ms);
        if self.stage != Some(StageKind::Energize) {
            let times = [ran(self.t_ms).min(ran(t_ms)), ran(t_ms)];
            self.life.wander(device, began, times);
        }
        self.life.now = began.saturating_add(Duration::from_millis(ran(t_ms)));
        self.t_ms = t_ms;
    }
}

/// What the time of a step was beyond whole ms: intervals tell ms only, and a job that
/// ends by its size ends within one.
fn part_of_ms(results: &Results) -> Duration {
    let mut all = results.jobs.iter().flat_map(JobResult::directions);
    let seconds = all
        .find(|(_, found)| found.total_ios > 0 && found.iops > 0.0)
        .map(|(_, found)| found.total_ios as f64 / found.iops);
    let time = Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or_default();
    Duration::from_nanos(u64::from(time.subsec_nanos() % 1_000_000))
}
