//! On which side of its limit a probe lies, told while it runs.
//!
//! Of every interval counts by how much its I/Os are off: for a percentile those above
//! the limit, less the share that may be; for a mean what they waited, less the limit.
//! The sum is below nothing exactly when the limit is kept. Whether its mean differs from
//! nothing is asked of the correlated values ([`crate::correlated`]) at a few lengths,
//! each a fifth longer than the one before, and each with the level at which ten
//! looks are wrong in 5 % together: S. J. Pocock, Group sequential methods in the design
//! and analysis of clinical trials, Biometrika 64 (1977), table 1.

use std::time::Duration;

use fathom_model::histogram::{bounds_of, middle_of};
use fathom_model::{Direction, Event, Sample};
use serde::{Deserialize, Serialize};

use crate::correlated::CorrelatedMean;
use crate::rate::BEHIND_RATE_SHARE;

/// Intervals of a probe that can be ended early: enough for independent values in a
/// fraction of it.
pub const SIDE_INTERVALS: u32 = 120;
/// The first look, in intervals: fewer never have twelve independent values.
const LOOK_FIRST: usize = 24;
/// Looks lie so far apart: eight or nine in a probe.
const LOOK_STEP: f64 = 1.2;
/// Chance that one look is wrong, of ten that are so together in 5 % (Pocock, table 1).
const LOOK_CHANCE: f64 = 0.0106;
/// I/Os that may be beyond a percentile before anything is told of it.
const BEYOND_LEAST: f64 = 10.0;
/// Behind this share of its time a probe is not worth ending.
const EARLY_SHARE: f64 = 0.9;

/// What a limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limited {
    /// The limit, in ns.
    pub limit_ns: f64,
    /// The percentile; `None`: the mean.
    pub percent: Option<f64>,
    /// The I/Os; `None`: of all directions.
    pub dir: Option<Direction>,
}

/// Whether a probe of this length that took so long was ended early.
pub fn is_early(length: Duration, seconds: f64) -> bool {
    seconds < length.as_secs_f64() * (1.0 + EARLY_SHARE) / 2.0
}

/// One interval: what is off, out of how much.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part {
    /// I/Os above the limit, or ns that were waited.
    pub above: f64,
    pub ios: f64,
    /// I/Os of all directions, and the longest time that a job measured, in s.
    pub done: f64,
    pub seconds: f64,
}

/// Watches a probe.
#[derive(Debug)]
pub struct SideWatch {
    limited: Limited,
    /// I/Os per second that were offered; `None`: no rate.
    rate: Option<f64>,
    length: Duration,
    adding: Part,
    parts: Vec<Part>,
    look: usize,
}

impl SideWatch {
    /// Of a probe of this length that is offered this rate, or none.
    pub fn new(limited: Limited, rate: Option<f64>, length: Duration) -> Self {
        Self {
            limited,
            rate,
            length,
            adding: Part::default(),
            parts: Vec::new(),
            look: LOOK_FIRST,
        }
    }

    /// Takes the next event; gives whether the limit is kept, once that is clear.
    pub fn take(&mut self, event: &Event) -> Option<bool> {
        match event {
            Event::Sample(sample) => self.sample(sample),
            Event::Interval { .. } => {
                let part = std::mem::take(&mut self.adding);
                return self.interval(part);
            }
            _ => {}
        }
        None
    }

    /// Takes an interval.
    pub(super) fn interval(&mut self, part: Part) -> Option<bool> {
        self.parts.push(part);
        self.side()
    }

    fn sample(&mut self, sample: &Sample) {
        self.adding.done += sample.ios as f64;
        self.adding.seconds = self.adding.seconds.max(sample.span_ms as f64 / 1000.0);
        if self.limited.dir.is_some_and(|dir| dir != sample.dir) {
            return;
        }
        let Some(latencies) = sample.lat.as_ref().or(sample.clat.as_ref()) else {
            return;
        };
        for (bucket, count) in latencies.buckets() {
            let count = count as f64;
            self.adding.ios += count;
            self.adding.above += match self.limited.percent {
                // A percentile is told as the middle of its bucket.
                Some(_) if middle_of(bucket) as f64 <= self.limited.limit_ns => 0.0,
                Some(_) => count,
                None => {
                    let (low, high) = bounds_of(bucket);
                    count * (low as f64).midpoint(high as f64)
                }
            };
        }
    }

    /// The side, where this is a look and it is clear.
    fn side(&mut self) -> Option<bool> {
        let seconds: f64 = self.parts.iter().map(|part| part.seconds).sum();
        let is_late = seconds > EARLY_SHARE * self.length.as_secs_f64();
        if self.parts.len() < self.look || is_late {
            return None;
        }
        self.look = (self.look as f64 * LOOK_STEP).ceil() as usize;
        if self.is_behind() {
            return Some(false);
        }
        let ios: f64 = self.parts.iter().map(|part| part.ios).sum();
        let may = match self.limited.percent {
            Some(percent) => (100.0 - percent) / 100.0,
            None => self.limited.limit_ns,
        };
        if self.limited.percent.is_some() && may * ios < BEYOND_LEAST {
            return None;
        }
        self.clearly(|part| part.above - may * part.ios)
            .map(|off| off <= 0.0)
    }

    /// Whether less than the rate that was offered is done, clearly.
    fn is_behind(&self) -> bool {
        let Some(rate) = self.rate else { return false };
        self.clearly(|part| part.done - BEHIND_RATE_SHARE * rate * part.seconds)
            .is_some_and(|off| off < 0.0)
    }

    /// The mean of this over the intervals, where it clearly differs from nothing.
    fn clearly(&self, off: impl Fn(&Part) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.parts.iter().map(off).collect();
        let mean = CorrelatedMean::of(&values)?;
        (mean.chance_of(0.0)? < LOOK_CHANCE).then_some(mean.mean)
    }
}
