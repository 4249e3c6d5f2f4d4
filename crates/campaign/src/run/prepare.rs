//! What the job files of a campaign want.

use std::collections::BTreeSet;
use std::path::Path;

use fathom_device::safety::Refusal;
use fathom_flow::error::RunError;
use fathom_flow::wants::{PreparedJob, Wants, first, read};
use fathom_prepare::precondition;

use crate::plan::{CampaignStep, ResolvedCampaign};

/// Reads the job file of a step.
///
/// # Errors
/// What is wrong with it, with line and column.
pub(super) fn job(plan: &ResolvedCampaign, step: &CampaignStep) -> Result<PreparedJob, String> {
    read(&step.job_text, &plan.folder.join(&step.job_file))
}

/// What all job files of a plan want, each read once.
///
/// # Errors
/// The faults of the job files.
pub(super) fn wants(plan: &ResolvedCampaign, folder: &Path) -> Result<Wants, RunError> {
    let mut wants = Wants::default();
    let mut seen = BTreeSet::new();
    let mut faults = Vec::new();
    for step in &plan.steps {
        if !seen.insert(&step.job_file) {
            continue;
        }
        match job(plan, step) {
            Ok(job) => wants.add(job, folder),
            Err(fault) => faults.push(fault),
        }
    }
    let preparation = plan.preparation.precondition.iter();
    for file in preparation.flat_map(precondition::files) {
        match read(&file.text, &file.path) {
            Ok(job) => wants.add(job, folder),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() {
        return Ok(wants);
    }
    Err(RunError::Input(first(faults)))
}

/// A refusal, with the place that the configuration has for the words that confirm a device.
pub(super) fn with_symbol(refusal: &Refusal) -> String {
    let symbol = "\n  the same word in CONFIG_DESTROY_CONFIRM holds for every run of this campaign";
    match refusal {
        Refusal::Unconfirmed(_) => format!("{refusal}{symbol}"),
        _ => refusal.to_string(),
    }
}
