//! The figures of a run that is no quick series, by the names of its jobs: what
//! a baseline can be made of.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::Event;
use fathom_record::Record;

/// IOPS of each job, reads and writes together, whole and rounded down as a
/// test's. Jobs of one name in one step (numjobs) count together; a name that
/// stands in several steps is told apart as `STEP: JOB`. A job that failed, and
/// one without a report of its own, has no figure to rely on.
pub fn iops_by_job(record: &Record) -> BTreeMap<String, u64> {
    let mut step = String::new();
    let mut figures: BTreeMap<(String, String), f64> = BTreeMap::new();
    let mut failed: BTreeSet<(String, String)> = BTreeSet::new();
    for entry in &record.entries {
        match &entry.event {
            Event::Step { name, .. } => step.clone_from(name),
            Event::Failure(failure) => {
                let job = failure.subject.clone().unwrap_or_default();
                failed.insert((step.clone(), job));
            }
            Event::Finished { results } => {
                for job in results.jobs.iter().filter(|job| !job.is_sum_of_clients()) {
                    let key = (step.clone(), job.name.clone());
                    if job.has_failed() {
                        failed.insert(key.clone());
                    }
                    let iops: f64 = job.directions().map(|(_, found)| found.iops).sum();
                    *figures.entry(key).or_default() += iops;
                }
            }
            _ => {}
        }
    }
    figures.retain(|key, _| !failed.contains(key));
    let steps_of = |name: &str| figures.keys().filter(|(_, job)| job == name).count();
    let named = figures
        .iter()
        .filter(|(_, iops)| **iops >= 1.0)
        .map(|((step, job), &iops)| {
            let name = match steps_of(job) {
                1 => job.clone(),
                _ => format!("{step}: {job}"),
            };
            (name, iops as u64)
        });
    named.collect()
}
