//! What a run will cost, and what its limits leave out, before it starts.

use std::collections::BTreeSet;
use std::time::Duration;

use fathom_flow::Case;
use fathom_flow::budget::{Cost, Endurance, Over, sentence};
use fathom_flow::error::RunError;
use fathom_model::units;

use super::ReadyCampaign;
use crate::plan::CampaignStep;

/// Points that are named of those that are left out.
const NAMED_MAX: usize = 3;

impl<'p> ReadyCampaign<'p> {
    /// What it will cost and what its limits leave out, a sentence each; nothing
    /// when nothing is left to do.
    pub fn spending(&self) -> Vec<String> {
        match self.is_done() {
            true => Vec::new(),
            false => std::iter::once(self.costs())
                .chain(self.stages_beyond())
                .chain(self.cut())
                .collect(),
        }
    }

    /// What is left to do costs so much, and so much of the drive's endurance: in
    /// one sentence, as far as it is known.
    pub fn costs(&self) -> String {
        let left_out: BTreeSet<usize> = self.left_out().collect();
        let fits = |place: &usize| !left_out.contains(place);
        let steps = &self.plan.steps;
        let todo = self.todo.iter().filter(|place| fits(place));
        let points = todo.map(|&place| {
            let step = &steps[place];
            (step.duration, step.write_most(self.speed))
        });
        let points: Vec<_> = points.collect();
        let cost = |case| Cost::of_parts(self.stage_parts(case).chain(points.iter().copied()));
        // Nobody knows when a device will be steady: what it takes at most, or, where
        // that has no bound, at least.
        let (least, mut cost) = (cost(Case::Best), cost(Case::Worst));
        if cost.endless > 0 {
            cost.duration = least.duration;
        }
        if cost.unbounded > 0 {
            cost.write_bytes = least.write_bytes;
        }
        let said = self.plan.settings.care.endurance_bytes;
        let endurance = match cost.write_bytes {
            0 => Endurance::default(),
            _ => self.endurance(said),
        };
        sentence(&cost, &endurance)
    }

    /// Time and bytes of the stages that make the device ready, if it goes so.
    fn stage_parts(
        &self,
        case: Case,
    ) -> impl Iterator<Item = (Option<Duration>, Option<u64>)> + use<> {
        let stages = self.stages(case).into_iter();
        let speed = self.speed;
        stages.map(move |(_, task)| {
            let time = task.work.time(case, speed);
            (time, task.work.write_bytes(case, speed))
        })
    }

    /// That the limits do not even leave room for the stages that make the device
    /// ready, by what is known to be the least of them; `None`: they do.
    fn stages_beyond(&self) -> Option<String> {
        let limits = self.plan.settings.limits();
        let stages = self.stages(Case::Best).into_iter();
        let least = Cost::of_parts(stages.map(|(_, task)| {
            let time = task.work.time(Case::Best, self.speed);
            (time, task.work.write_bytes(Case::Best, None))
        }));
        let late = limits.time.is_some_and(|limit| least.duration > limit);
        let beyond = late || limits.is_over(self.past.written.bytes(), least.write_bytes);
        let allowed = limits.text().filter(|_| beyond)?;
        let ms = u64::try_from(least.duration.as_millis()).unwrap_or(u64::MAX);
        Some(format!(
            "making the device ready takes {} and writes {} at least, which does not fit into \
             {allowed}",
            units::duration(ms),
            units::bytes(least.write_bytes as f64)
        ))
    }

    fn endurance(&self, said: Option<u64>) -> Endurance {
        let ledgers = self.ledgers();
        // What cannot be read is not known.
        let entries = ledgers.entries(&self.dut).unwrap_or_default();
        Endurance::of(&ledgers.health(&self.dut), &entries, said)
    }

    /// The steps that the limits leave out, as far as that is known before.
    fn left_out(&self) -> impl Iterator<Item = usize> {
        let steps = &self.plan.steps;
        let todo = self.todo.iter().map(|&place| &steps[place]);
        let parts = todo.map(|step| (step.duration, step.write_most(self.speed)));
        let mut limits = self.plan.settings.limits();
        let stages = Cost::of_parts(self.stage_parts(Case::Best));
        let left = |limit: Duration| limit.saturating_sub(stages.duration);
        limits.time = limits.time.map(left);
        let spent = self.past.written.bytes().saturating_add(stages.write_bytes);
        let left_out = limits.left_out(parts, spent);
        left_out.into_iter().map(|place| self.todo[place])
    }

    /// What the limits leave out, in one sentence; `None`: nothing.
    pub fn cut(&self) -> Option<String> {
        let left_out: Vec<&CampaignStep> = self
            .left_out()
            .map(|place| &self.plan.steps[place])
            .collect();
        let limits = self.plan.settings.limits().text()?;
        let (first, more) = left_out.split_at(left_out.len().min(NAMED_MAX));
        let mut names: Vec<&str> = first.iter().map(|step| step.point.id.as_str()).collect();
        let more = format!("{} more", more.len());
        if more != "0 more" {
            names.push(&more);
        }
        let spent = match self.past.written.bytes() {
            0 => String::new(),
            bytes => format!(" ({} are written already)", units::bytes(bytes as f64)),
        };
        (!left_out.is_empty()).then(|| {
            format!(
                "{} of {} points do not fit into {limits}{spent}: {}",
                left_out.len(),
                self.todo.len(),
                names.join(", ")
            )
        })
    }

    /// The refusal of a plan that wants more than it may, where it is to be
    /// refused.
    pub(super) fn over_budget(&self) -> Option<RunError> {
        if self.plan.settings.care.over != Over::Refuse {
            return None;
        }
        let cut = self.stages_beyond().or_else(|| self.cut())?;
        Some(RunError::Refused(format!(
            "the plan exceeds its limits: {cut}\n  to do: raise --max-time or --max-written, take a part with --only, or leave out what does not fit with --over-budget cut"
        ).into()))
    }
}
