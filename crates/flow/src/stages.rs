//! How far the stages of a flow are, and what time they still take: from what is
//! planned and from the events, for those who run it and those who watch.

use std::collections::BTreeMap;

use fathom_model::{Event, Stage, StageEnd};

use super::plan_log::PlannedStage;
use crate::{EndedPoint, History, Past};

/// A stage, how it ended, and how long it took in ms.
pub type StageTold = Box<(Stage, StageEnd, u64)>;

/// The stages of a flow.
#[derive(Debug, Default)]
pub struct Stages {
    planned: Vec<PlannedStage>,
    history: History,
    /// When the stage in progress began, ms since 1970 UTC.
    open_ms: Option<u64>,
    /// How fast stages have written, in bytes per second, by the begin of their
    /// ids: fills of one kind are alike.
    speeds: BTreeMap<String, f64>,
    /// How long the stages took that have ended, in ms, by their ids.
    took_ms: BTreeMap<String, u64>,
}

/// How far the stage in progress is.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing<'s> {
    /// The stage.
    pub stage: &'s Stage,
    /// Its place among all, from 1.
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
}

impl Standing<'_> {
    /// What is done and what is left of it, for a bar: bytes, else ms.
    pub fn share(&self) -> Option<(u64, u64)> {
        let done = self.written_bytes;
        let by_bytes = self
            .planned_bytes
            .map(|all| (done, all.saturating_sub(done)));
        by_bytes.or_else(|| Some((self.ran_ms, self.left_ms?)))
    }
}

impl Stages {
    /// Those of a plan, of which nothing is done yet.
    pub fn new(planned: Vec<PlannedStage>) -> Self {
        Self {
            planned,
            ..Self::default()
        }
    }

    /// Takes the next event, which happened at `at_ms` since 1970 UTC; gives the
    /// measurement that has ended by it, and the stage, how that ended, and how long it
    /// took in ms.
    pub fn take(&mut self, at_ms: u64, event: &Event) -> (Option<EndedPoint>, Option<StageTold>) {
        (self.history.take(event), self.stage_ended(at_ms, event))
    }

    fn stage_ended(&mut self, at_ms: u64, event: &Event) -> Option<StageTold> {
        match event {
            Event::Stage { .. } => self.open_ms = Some(at_ms),
            Event::StageEnded { .. } => {
                let began_ms = self.open_ms.take()?;
                self.learn();
                let past = self.history.stages().last()?;
                // Simulated time is the run's, that of a purge the clock's.
                let took_ms = past.last_ms.saturating_sub(past.begin_ms);
                let took_ms = took_ms.max(at_ms.saturating_sub(began_ms));
                self.took_ms.insert(past.stage.id.clone(), took_ms);
                return Some(Box::new((past.stage.clone(), past.end.clone()?, took_ms)));
            }
            Event::Interval { .. } => self.learn(),
            Event::Resumed { .. } | Event::Ended { .. } => self.open_ms = None,
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
    pub fn history(&self) -> &History {
        &self.history
    }

    /// How long a stage took that has ended, in ms.
    pub fn took_ms(&self, id: &str) -> Option<u64> {
        self.took_ms.get(id).copied()
    }

    /// How many stages have ended, and how many there are so far as is known: those of
    /// the plan and those that came besides, as rounds until something is steady do.
    pub fn counts(&self) -> (usize, usize) {
        let all = self.history.stages();
        let ended = all.iter().filter(|past| past.end.is_some()).count();
        (ended, self.planned.len() + self.besides(all))
    }

    /// The place of a stage among all, from 1, and how many those are.
    pub fn place(&self, id: &str) -> (usize, usize) {
        let all = self.history.stages();
        let count = all.iter().take_while(|past| past.stage.id != id).count();
        let so_far = &all[..all.len().min(count + 1)];
        let mut planned = so_far.iter().rev().map(|past| self.position(past));
        let last = planned.find_map(|at| at).map_or(0, |at| at + 1);
        (last + self.besides(so_far), self.counts().1)
    }

    fn position(&self, past: &Past) -> Option<usize> {
        let mut planned = self.planned.iter();
        planned.position(|planned| planned.stage.id == past.stage.id)
    }

    /// How many of these no plan told of.
    fn besides(&self, stages: &[Past]) -> usize {
        let is_besides = |past: &&Past| self.position(past).is_none();
        stages.iter().filter(is_besides).count()
    }

    /// Whether a stage goes on.
    pub fn is_open(&self) -> bool {
        self.open_ms.is_some()
    }

    /// How far the stage in progress is, at `now_ms` since 1970 UTC.
    pub fn standing(&self, now_ms: u64) -> Option<Standing<'_>> {
        let began_ms = self.open_ms?;
        let past = self.history.stages().last()?;
        let (place, of) = self.place(&past.stage.id);
        // A round that came besides takes as long as the others.
        let is_like = |p: &&PlannedStage| kind(&p.stage.id) == kind(&past.stage.id);
        let own = self.position(past).map(|at| &self.planned[at]);
        let planned = own.or_else(|| self.planned.iter().find(is_like));
        let run_ms = past.last_ms.saturating_sub(past.begin_ms);
        let ran_ms = run_ms.max(now_ms.saturating_sub(began_ms));
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
            place,
            of,
            written_bytes: past.written_bytes,
            planned_bytes,
            ran_ms,
            left_ms: by_bytes().or_else(by_time),
            left_most_ms: most.map(|most| most.saturating_sub(run_ms)),
        })
    }

    /// The time that the stages still take at least, in ms, the one in progress
    /// included; `None` while nobody knows how fast the device is filled.
    pub fn left_ms(&self, now_ms: u64) -> Option<u64> {
        let current = self.standing(now_ms);
        let is_besides = self.history.stages().last();
        let is_besides = is_besides.is_some_and(|past| self.position(past).is_none());
        let besides = current.as_ref().filter(|_| is_besides);
        let mut left_ms = besides.and_then(|current| current.left_ms).unwrap_or(0);
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

#[cfg(test)]
mod tests {
    use fathom_model::StageKind;

    use super::*;

    fn stage(id: &str) -> Stage {
        Stage {
            id: id.to_owned(),
            kind: StageKind::Round,
            title: id.to_owned(),
            round: None,
        }
    }

    fn begin(stages: &mut Stages, id: &str) {
        let stage = Box::new(stage(id));
        stages.take(0, &Event::Stage { stage });
    }

    fn end(stages: &mut Stages, id: &str) {
        let (id, end) = (id.to_owned(), StageEnd::Done);
        stages.take(0, &Event::StageEnded { id, end });
    }

    #[test]
    fn rounds_that_no_plan_told_of_have_places_of_their_own() {
        let planned = ["t/purge", "t/round-01", "t/histogram"].map(|id| PlannedStage {
            stage: stage(id),
            write_bytes: None,
            least_ms: 1000,
            most_ms: None,
        });
        let mut stages = Stages::new(planned.to_vec());
        for id in ["t/purge", "t/round-01", "t/round-02"] {
            begin(&mut stages, id);
            end(&mut stages, id);
        }
        assert_eq!(stages.counts(), (3, 4));
        begin(&mut stages, "t/round-03");
        let now = stages.standing(0).unwrap();
        assert_eq!((now.place, now.of), (4, 5));
        assert_eq!(now.left_ms, Some(1000), "it takes as long as the others");
        assert_eq!(stages.left_ms(0), Some(2000), "the histogram is left, too");
        end(&mut stages, "t/round-03");
        begin(&mut stages, "t/histogram");
        assert_eq!(stages.place("t/histogram"), (5, 5));
        assert_eq!(stages.place("t/round-02"), (3, 5), "where it was");
    }
}
