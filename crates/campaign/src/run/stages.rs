//! How far the stages of a flow are, and what time they still take: from what is
//! planned and from the events, for those who run it and those who watch.

use std::collections::BTreeMap;

use fathom_model::{Event, Stage, StageEnd};

use super::planfile::PlannedStage;
use crate::flow::History;

/// The stages of a flow.
#[derive(Debug, Default)]
pub struct Stages {
    planned: Vec<PlannedStage>,
    history: History,
    open: Option<Open>,
    /// How fast stages have written, in bytes per second, by the begin of their
    /// ids: fills of one kind are alike.
    speeds: BTreeMap<String, f64>,
    /// How long the stages took that have ended, in ms, by their ids.
    took_ms: BTreeMap<String, u64>,
}

/// The stage in progress.
#[derive(Debug)]
struct Open {
    began_ms: u64,
    preparing: Option<String>,
}

/// How far the stage in progress is.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing<'s> {
    /// The stage.
    pub stage: &'s Stage,
    /// Its place among all, from 1, and how many those are; places of stages that
    /// were not planned are behind the last.
    pub place: usize,
    /// How many there are.
    pub of: usize,
    /// Bytes it has written.
    pub written_bytes: u64,
    /// Bytes it will have written, where that is known.
    pub planned_bytes: Option<u64>,
    /// How long it goes on, in ms.
    pub ran_ms: u64,
    /// How much longer, in ms, where that is known: of a load that runs until it
    /// is steady the least.
    pub left_ms: Option<u64>,
    /// The most time that it has left, in ms, where it can be less.
    pub left_most_ms: Option<u64>,
    /// What it does right now, other than I/O.
    pub preparing: Option<&'s str>,
}

impl Stages {
    /// Those of a plan, of which nothing is done yet.
    #[must_use]
    pub fn new(planned: Vec<PlannedStage>) -> Self {
        Self {
            planned,
            ..Self::default()
        }
    }

    /// Takes the next event, which happened at `at_ms` since 1970 UTC; gives the
    /// stage that has ended by it, how, and how long it took in ms.
    pub fn take(&mut self, at_ms: u64, event: &Event) -> Option<Box<(Stage, StageEnd, u64)>> {
        self.history.take(event);
        match event {
            Event::Stage { .. } => {
                self.open = Some(Open {
                    began_ms: at_ms,
                    preparing: None,
                });
            }
            Event::StageEnded { .. } => {
                let open = self.open.take()?;
                self.learn();
                let past = self.history.stages().last()?;
                // Simulated time is the run's, that of a purge the clock's.
                let took_ms = past.last_ms.saturating_sub(past.begin_ms);
                let took_ms = took_ms.max(at_ms.saturating_sub(open.began_ms));
                self.took_ms.insert(past.stage.id.clone(), took_ms);
                return Some(Box::new((past.stage.clone(), past.end.clone()?, took_ms)));
            }
            Event::Preparing { what } => {
                if let Some(open) = &mut self.open {
                    open.preparing = Some(what.clone());
                }
            }
            Event::Interval { .. } => {
                if let Some(open) = &mut self.open {
                    open.preparing = None;
                }
                self.learn();
            }
            Event::Resumed { .. } | Event::Ended { .. } => self.open = None,
            _ => {}
        }
        None
    }

    /// Takes down how fast the last stage has written so far.
    fn learn(&mut self) {
        let Some(past) = self.history.stages().last() else {
            return;
        };
        let ms = past.last_ms.saturating_sub(past.begin_ms);
        if ms > 0 && past.written_bytes > 0 {
            let speed = past.written_bytes as f64 / (ms as f64 / 1000.0);
            self.speeds.insert(kind(&past.stage.id).to_owned(), speed);
        }
    }

    /// What was done.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// How long a stage took that has ended, in ms.
    #[must_use]
    pub fn took_ms(&self, id: &str) -> Option<u64> {
        self.took_ms.get(id).copied()
    }

    /// How many of the planned stages have ended, and how many there are.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let ended = |p: &&PlannedStage| self.history.ended(&p.stage.id).is_some();
        let ended = self.planned.iter().filter(ended).count();
        (ended, self.planned.len())
    }

    /// The place of a stage among all, as `2/7`.
    #[must_use]
    pub fn place(&self, id: &str) -> String {
        let at = self.planned.iter().position(|p| p.stage.id == id);
        let of = self.planned.len();
        format!("{}/{of}", at.map_or(of, |at| at + 1))
    }

    /// Whether a stage goes on.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// How far the stage in progress is, at `now_ms` since 1970 UTC.
    #[must_use]
    pub fn standing(&self, now_ms: u64) -> Option<Standing<'_>> {
        let open = self.open.as_ref()?;
        let past = self.history.stages().last()?;
        let at = self
            .planned
            .iter()
            .position(|p| p.stage.id == past.stage.id);
        let planned = at.map(|at| &self.planned[at]);
        let run_ms = past.last_ms.saturating_sub(past.begin_ms);
        let ran_ms = run_ms.max(now_ms.saturating_sub(open.began_ms));
        let planned_bytes = planned.and_then(|planned| planned.write_bytes);
        let by_bytes = || {
            let left = planned_bytes?.saturating_sub(past.written_bytes);
            let speed = self.speeds.get(kind(&past.stage.id))?;
            Some((left as f64 / speed * 1000.0) as u64)
        };
        let by_time = || Some(planned?.least_ms.saturating_sub(run_ms)).filter(|ms| *ms > 0);
        let most = planned.and_then(|planned| planned.most_ms);
        Some(Standing {
            stage: &past.stage,
            place: at.map_or(self.planned.len(), |at| at + 1).max(1),
            of: self.planned.len().max(1),
            written_bytes: past.written_bytes,
            planned_bytes,
            ran_ms,
            left_ms: by_bytes().or_else(by_time),
            left_most_ms: most.map(|most| most.saturating_sub(run_ms)),
            preparing: open.preparing.as_deref(),
        })
    }

    /// The time that the stages still take at least, in ms, the one in progress
    /// included; `None` while nobody knows how fast the device is filled.
    #[must_use]
    pub fn left_ms(&self, now_ms: u64) -> Option<u64> {
        let mut left_ms = 0;
        let current = self.standing(now_ms);
        for planned in &self.planned {
            let id = &planned.stage.id;
            if let Some(current) = current.as_ref().filter(|c| c.stage.id == *id) {
                left_ms += match (current.planned_bytes, current.left_ms) {
                    (Some(_), None) => return None,
                    (_, left_ms) => left_ms.unwrap_or(0),
                };
            } else if self.history.ended(id).is_none() && !self.is_behind(planned) {
                left_ms += match planned.write_bytes {
                    None => planned.least_ms,
                    Some(bytes) => {
                        let any = || self.speeds.values().copied().reduce(f64::min);
                        let speed = self.speeds.get(kind(id)).copied().or_else(any)?;
                        (bytes as f64 / speed * 1000.0) as u64
                    }
                };
            }
        }
        Some(left_ms)
    }

    /// Whether a stage that did not end will not come any more: a later one has
    /// begun, as where a flow has ended early.
    fn is_behind(&self, planned: &PlannedStage) -> bool {
        let place = |id: &str| self.planned.iter().position(|p| p.stage.id == id);
        let last = self.history.stages().last();
        let last = last.and_then(|past| place(&past.stage.id));
        place(&planned.stage.id) < last
    }
}

/// `fill-seq` of `fill-seq-2.3`.
fn kind(id: &str) -> &str {
    let id = id.split('.').next().unwrap_or(id);
    id.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-')
}
