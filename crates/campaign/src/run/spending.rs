//! What a run will cost, and what its limits leave out, before it starts.

use fathom_model::units;

use super::{Ready, RunError};
use crate::budget::{Cost, Endurance, Over, sentence};
use crate::plan::Step;

/// Points that are named of those that are left out.
const NAMED_MAX: usize = 3;

impl<'p> Ready<'p> {
    /// What it will cost and what its limits leave out, a sentence each; nothing
    /// when nothing is left to do.
    #[must_use]
    pub fn spending(&self) -> Vec<String> {
        match self.is_done() {
            true => Vec::new(),
            false => std::iter::once(self.costs()).chain(self.cut()).collect(),
        }
    }

    /// What is left to do costs so much, and so much of the drive's endurance: in
    /// one sentence, as far as it is known.
    #[must_use]
    pub fn costs(&self) -> String {
        let fits = |place: &usize| !self.left_out().any(|left| left == *place);
        let steps = &self.plan.steps;
        let cost = Cost::of(
            self.todo
                .iter()
                .filter(|place| fits(place))
                .map(|&place| &steps[place]),
            self.speed,
        );
        let said = self.plan.settings.care.endurance_bytes;
        let endurance = match cost.write_bytes {
            0 => Endurance::default(),
            _ => self.endurance(said),
        };
        sentence(&cost, &endurance)
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
        let limits = self.plan.settings.limits();
        let left_out = limits.left_out(parts, self.moved.bytes());
        left_out.into_iter().map(|place| self.todo[place])
    }

    /// What the limits leave out, in one sentence; `None`: nothing.
    #[must_use]
    pub fn cut(&self) -> Option<String> {
        let left_out: Vec<&Step> = self
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
        let spent = match self.moved.bytes() {
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
        let cut = self.cut()?;
        Some(RunError::Refused(format!(
            "the plan wants more than it may: {cut}\n  to do: raise --max-time or --max-written, take a part with --only, or leave out what does not fit with --over-budget cut"
        )))
    }
}
