//! The figures of a run that is no quick series, by the names of its jobs: what
//! a baseline can be made of, and measured against.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::{Event, Outcome};
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
    /// Steps that did not come to their end: the next start measures them again.
    broken: BTreeSet<(String, usize)>,
    is_ended: bool,
    /// How many steps had begun when the run went on last.
    before: usize,
}

impl StepIops {
    /// Takes the next event of the run.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Step { name, .. } => {
                self.step.clone_from(name);
                self.begun += 1;
                self.is_ended = false;
                self.leave_broken();
            }
            Event::StepEnded { outcome } => {
                self.is_ended = true;
                if *outcome != Outcome::Complete {
                    self.broken.insert((self.step.clone(), self.begun));
                }
            }
            Event::Resumed { .. } => {
                self.before = self.begun;
                if !self.is_ended {
                    self.broken.insert((self.step.clone(), self.begun));
                }
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

    /// A step begins: what it measured when it was broken off does not count.
    fn leave_broken(&mut self) {
        let is_again = |(step, nth): &(String, usize)| *step == self.step && *nth <= self.before;
        for (_, nth) in self.broken.extract_if(.., is_again) {
            for times in self.figures.values_mut() {
                times.remove(&nth);
            }
        }
    }

    /// The figures, by step and job.
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
    use fathom_model::{DirectionResult, Failure, FailureKind, JobResult, Results, RunStatus};

    use super::*;

    /// The begin of a step.
    fn step() -> Event {
        Event::Step {
            step: 1,
            of: 3,
            name: "p".into(),
            point: None,
        }
    }

    /// The report of an engine on jobs of one name.
    fn finished<const N: usize>(iops: [f64; N]) -> Event {
        let jobs = iops.map(|iops| JobResult {
            name: "j".into(),
            read: Some(DirectionResult {
                total_ios: 1,
                iops,
                ..DirectionResult::default()
            }),
            ..JobResult::default()
        });
        Event::Finished {
            results: Box::new(Results {
                jobs: jobs.into(),
                ..Results::default()
            }),
        }
    }

    /// An engine reports what it did before it was stopped, too.
    #[test]
    fn a_step_that_was_broken_off_and_measured_again_has_one_figure() {
        let ended = |outcome| Event::StepEnded { outcome };
        let resumed = Event::Resumed {
            after: Some(RunStatus::Interrupted),
            gap_ms: 1,
        };
        let first = [step(), finished([5.0]), ended(Outcome::Interrupted)];
        let again = [resumed, step(), finished([20.0]), ended(Outcome::Complete)];
        let mut all = StepIops::default();
        first.iter().chain(&again).for_each(|event| all.take(event));
        let figures: Vec<f64> = all.finish().into_values().collect();
        assert_eq!(figures, [20.0]);
    }

    #[test]
    fn repetitions_are_no_clones() {
        let mut all = StepIops::default();
        let mut measured = |iops: [f64; 2], failed: bool| {
            all.take(&step());
            if failed {
                let failure = Failure::new(FailureKind::Io, "broken").about("j");
                all.take(&Event::Failure(failure));
            }
            all.take(&finished(iops));
        };
        measured([100.0, 50.0], false);
        measured([110.0, 60.0], false);
        measured([1.0, 1.0], true);
        let figures = all.finish();
        assert_eq!(figures.get(&("p".to_owned(), "j".to_owned())), Some(&160.0));
    }
}
