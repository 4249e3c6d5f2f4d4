//! The steps of a run: which is next, who takes part, when it begins, what it
//! brought.

use fathom_model::{Event, Outcome, Point, SkipCause};

use super::driven_host::{DrivenHost, HostGate, HostPhase};
use super::kept::{self, key};
use super::merge::StepMerge;
use super::wire::{Say, now_ms};
use super::{HostsRun, LEAD};

impl HostsRun<'_, '_> {
    /// Which step of the run a machine means. Where all do the same its number
    /// tells; where one leaves some out, its name.
    pub(super) fn place_of(&self, step: u32, told: Option<&Event>) -> Option<HostGate> {
        let steps = &self.job.steps;
        let key = told.and_then(key);
        let same = (step as usize).checked_sub(1);
        let is_it = |at: &usize| match &key {
            Some(key) => steps.get(*at) == Some(key),
            None => *at < steps.len(),
        };
        let by_name = || steps.iter().position(|step| Some(step) == key.as_ref());
        same.filter(is_it).or_else(by_name).map(HostGate::Step)
    }

    /// A machine leaves a point out. Where all do it is left out; else it is
    /// measured by the others, and says who is missing.
    pub(super) fn left_out(
        &mut self,
        place: usize,
        point: &Point,
        reason: String,
        cause: SkipCause,
    ) {
        let key = kept::key_of(&point.id, point.repetition);
        let left_out = &mut self.parts[place].left_out;
        left_out.insert(key.clone(), reason.clone());
        let all = self.parts.iter().filter(|part| part.host.lost.is_none());
        let reasons: Option<Vec<(&str, &String)>> = all
            .map(|part| Some((part.label.as_str(), part.left_out.get(&key)?)))
            .collect();
        let Some(reasons) = reasons else { return };
        let reason = match reasons.iter().all(|(_, other)| **other == reason) {
            true => reason,
            false => {
                let each = reasons.iter().map(|(label, why)| format!("{label}: {why}"));
                each.collect::<Vec<_>>().join("; ")
            }
        };
        let point = Box::new(point.clone());
        self.event(Event::Skipped {
            point,
            reason,
            cause,
        });
    }

    pub(super) fn began(&mut self, place: usize, at_ms: f64) {
        let began_ms = self.parts[place].clock.here_ms(at_ms) - self.step_began_ms;
        if let Some(merge) = &mut self.merge {
            merge.began(place, began_ms);
        }
    }

    /// A machine has ended its part of the step so, if it has one.
    pub(super) fn ended(&mut self, place: usize, outcome: Outcome) {
        let end_ms = now_ms() - self.step_began_ms;
        let part = &mut self.parts[place];
        if !std::mem::take(&mut part.in_step) {
            return;
        }
        part.host.end_ms = Some(end_ms);
        let told = match &mut self.merge {
            Some(merge) => merge.ended(place, outcome),
            None => Vec::new(),
        };
        told.into_iter().for_each(|event| self.event(event));
    }

    /// Gives the word once every machine waits for it: to those that wait for the
    /// first of the steps that are waited for.
    pub(super) fn begin_step(&mut self) {
        let is_open = self.merge.is_none() && self.stopped.is_none() && !self.too_few;
        let ready = |part: &DrivenHost| part.is_at_gate() && part.clock.is_known();
        if !is_open || !self.there().all(ready) {
            return;
        }
        let Some(first) = self.there().filter_map(DrivenHost::gate).min() else {
            return;
        };
        self.has_begun = true;
        let clocks = self.there().filter_map(|part| part.clock.clock());
        let slowest_ms = clocks.map(|clock| clock.error_ms * 4.0).fold(0.0, f64::max);
        let begin_ms = now_ms() + LEAD.as_secs_f64() * 1000.0 + slowest_ms;
        if let HostGate::Step(place) = first {
            self.open_step(place, begin_ms);
        }
        for part in &mut self.parts {
            if part.gate() != Some(first) {
                continue;
            }
            part.phase = HostPhase::Running;
            part.in_step = self.merge.is_some();
            if let Some(far) = &part.far {
                let at_ms = part.clock.there_ms(begin_ms);
                far.say(&Say::Go { at_ms });
            }
        }
    }

    /// The record's part of a step that begins at `begin_ms`.
    pub(super) fn open_step(&mut self, place: usize, begin_ms: f64) {
        for event in self.notes.told(&self.labels()) {
            self.event(event);
        }
        self.step_began_ms = begin_ms;
        let wait_ms = (begin_ms - now_ms()).max(0.0) as u64;
        let t_ms = self.elapsed_ms() + wait_ms;
        self.course.record.at(t_ms);
        let at_it = |part: &&DrivenHost| part.gate() == Some(HostGate::Step(place));
        let told = self.parts.iter().find(at_it).and_then(|p| p.step.clone());
        let (name, point) = match told {
            Some(Event::Step { name, point, .. }) => (name, point),
            _ => (self.job.steps[place].clone(), None),
        };
        self.event(Event::Step {
            step: self.course.before + u32::try_from(place + 1).unwrap_or(u32::MAX),
            of: self.course.of,
            name,
            point,
        });
        let takes_part = |part: &DrivenHost| part.gate() == Some(HostGate::Step(place));
        let there: Vec<bool> = self.parts.iter().map(takes_part).collect();
        self.merge = Some(StepMerge::new(&self.labels(), &there));
        for (part, there) in self.parts.iter_mut().zip(there) {
            (part.host.start_ms, part.host.end_ms) = (None, None);
            if let (Some(kept), true) = (&mut part.kept, there) {
                kept.at(t_ms);
            }
        }
    }

    /// Writes what a step brought once all machines have ended it.
    pub(super) fn end_step(&mut self) {
        if !self.merge.as_ref().is_some_and(StepMerge::is_over) {
            return;
        }
        let Some(merge) = self.merge.take() else {
            return;
        };
        let mut hosts = Vec::new();
        for (place, part) in self.parts.iter_mut().enumerate() {
            if part.host.end_ms.is_some() {
                part.host.start_ms = Some(merge.start_ms(place));
            }
            let mut host = part.host.clone();
            if host.end_ms.is_none() && host.lost.is_none() {
                let why = "it left this step out";
                host.lost = Some(why.to_owned());
            }
            hosts.push(host);
        }
        let outcome = merge.outcome();
        for event in merge.finish(hosts) {
            self.event(event);
        }
        self.course.record.end_step(outcome);
    }
}
