//! The figures of a run that is no quick series, by the names of its jobs: what
//! a baseline can be made of, and measured against.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::Event;
use fathom_record::Record;

/// IOPS of the jobs of each step, reads and writes together, from the events of a run. Jobs
/// of one name in one step (numjobs) count together; of a step that was repeated it is the
/// mean. A job that failed, and one without a report of its own, has no figure to rely on.
#[derive(Debug, Default)]
pub struct StepIops {
    step: String,
    /// How many steps have begun.
    begun: usize,
    /// By step and job: the figure of each time, by the number of the step.
    figures: BTreeMap<(String, String), BTreeMap<usize, f64>>,
    failed: BTreeSet<(usize, String)>,
}

impl StepIops {
    /// Takes the next event of the run.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Step { name, .. } => {
                self.step.clone_from(name);
                self.begun += 1;
            }
            Event::Failure(failure) => {
                let job = failure.subject.clone().unwrap_or_default();
                self.failed.insert((self.begun, job));
            }
            Event::Finished { results } => {
                for job in results.jobs.iter().filter(|job| !job.is_sum_of_clients()) {
                    if job.has_failed() {
                        self.failed.insert((self.begun, job.name.clone()));
                    }
                    let iops: f64 = job.directions().map(|(_, found)| found.iops).sum();
                    let times = self.figures.entry((self.step.clone(), job.name.clone()));
                    *times.or_default().entry(self.begun).or_default() += iops;
                }
            }
            _ => {}
        }
    }

    /// The figures, by step and job.
    #[must_use]
    pub fn finish(self) -> BTreeMap<(String, String), f64> {
        let failed = self.failed;
        let mean = |((step, job), times): ((String, String), BTreeMap<usize, f64>)| {
            let good = times
                .into_iter()
                .filter(|(nth, _)| !failed.contains(&(*nth, job.clone())));
            let good: Vec<f64> = good.map(|(_, iops)| iops).collect();
            let sum: f64 = good.iter().sum();
            (!good.is_empty()).then(|| ((step, job), sum / good.len() as f64))
        };
        self.figures.into_iter().filter_map(mean).collect()
    }
}

/// [`StepIops`] of a record, whole and rounded down as a test's; a name that stands in
/// several steps is told apart as `STEP: JOB`.
pub fn iops_by_job(record: &Record) -> BTreeMap<String, u64> {
    let mut all = StepIops::default();
    record
        .entries
        .iter()
        .for_each(|entry| all.take(&entry.event));
    let figures = all.finish();
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

#[cfg(test)]
mod tests {
    use fathom_model::{DirectionResult, Failure, FailureKind, JobResult, Results};

    use super::*;

    #[test]
    fn repetitions_are_no_clones() {
        let mut all = StepIops::default();
        let mut step = |iops: [f64; 2], failed: bool| {
            all.take(&Event::Step {
                step: 1,
                of: 3,
                name: "p".into(),
                point: None,
            });
            if failed {
                let failure = Failure::new(FailureKind::Io, "broken").about("j");
                all.take(&Event::Failure(failure));
            }
            let jobs = iops.map(|iops| JobResult {
                name: "j".into(),
                read: Some(DirectionResult {
                    total_ios: 1,
                    iops,
                    ..DirectionResult::default()
                }),
                ..JobResult::default()
            });
            all.take(&Event::Finished {
                results: Box::new(Results {
                    jobs: jobs.into(),
                    ..Results::default()
                }),
            });
        };
        step([100.0, 50.0], false);
        step([110.0, 60.0], false);
        step([1.0, 1.0], true);
        let figures = all.finish();
        assert_eq!(figures.get(&("p".to_owned(), "j".to_owned())), Some(&160.0));
    }
}
