//! The plan of a campaign, for its record's folder.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use fathom_flow::Case;
use fathom_flow::plan_log::{Head, PlannedStage, StepLine, stages, write_lines};
use serde_json::Value;

use super::{ReadyCampaign, records};
use crate::plan::{CampaignStep, ResolvedCampaign};

/// The plan of a campaign, to be written into its record's folder in place of an earlier
/// one.
pub(super) struct CampaignPlan<'p> {
    plan: &'p ResolvedCampaign,
    head: Head,
    stages: Vec<PlannedStage>,
    is_new: bool,
}

impl<'p> CampaignPlan<'p> {
    /// That of what is left.
    pub(super) fn new(ready: &ReadyCampaign<'p>) -> Self {
        let engine = ready.selected().engine().name();
        let (partial, flags) = (ready.options.partial, ready.options.flags.clone());
        let left = ready.stages(Case::Best).into_iter();
        Self {
            plan: ready.plan,
            head: head(ready.plan, &ready.folder, engine, partial, flags),
            stages: stages(&ready.past.history, left.map(|(_, task)| task)),
            is_new: ready.record.is_none(),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, dir: &Path) -> io::Result<()> {
        if self.is_new {
            records::keep_config(self.plan, dir);
        }
        let steps = self.plan.steps.iter().map(line);
        write_lines(dir, &self.head, &self.stages, steps)
    }
}

/// Writes the plan of a campaign whose stages every machine plans for itself.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write_steps(dir: &Path, head: &Head, steps: &[CampaignStep]) -> io::Result<()> {
    write_lines(dir, head, &[], steps.iter().map(line))
}

/// What there is to say of a plan.
pub(super) fn head(
    plan: &ResolvedCampaign,
    folder: &Path,
    engine: &str,
    partial: bool,
    flags: Value,
) -> Head {
    let mut head = Head::new(folder, &plan.dut, engine);
    (head.partial, head.flags) = (partial, flags);
    head
}

fn line(step: &CampaignStep) -> StepLine<'_> {
    StepLine {
        step: None,
        point: Cow::Borrowed(&step.point),
        job_file: &step.job_file,
        phase: Some(step.phase),
        duration_ms: step.duration.map(|time| time.as_millis() as u64),
        write_bytes: step.write_bytes,
        guarded: step.guarded,
    }
}
