//! What came of the measurements of a campaign, from its events: the same for a
//! run that goes on, one that is watched and one that is resumed.

use std::collections::HashMap;

use fathom_analysis::guard::Totals;
use fathom_model::{Event, Point, Results, RunStatus};

/// What came of one measurement of a point.
#[derive(Debug, Clone, PartialEq)]
pub enum Came {
    /// Measured; nothing went wrong.
    Done(Totals),
    /// It failed, for this reason.
    Failed(String),
    /// It was left out, for this reason.
    Skipped(String),
    /// It was begun and has not come to its end: it goes on, or was broken off.
    Unfinished,
}

impl Came {
    /// Whether it was measured or has failed: then it is not run again unasked.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Failed(_))
    }
}

/// A measurement that has come to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The point.
    pub id: String,
    /// Which measurement of it.
    pub repetition: u32,
    /// What came of it.
    pub came: Came,
}

/// What is known of every measurement, in memory for the measurements only.
///
/// A measurement has ended when its figures or a failure are there and something
/// follows that says that nothing more comes: the next step, a point left out,
/// or an end that was no interruption. Engines give figures of a job that was
/// stopped too, and failures behind the figures: what was killed right then is
/// measured again.
#[derive(Debug, Default)]
pub struct Tally {
    /// By the point's id: its repetitions, of which there are few.
    measurements: HashMap<String, Vec<Measurement>>,
    open: Option<Open>,
    t_ms: u64,
}

#[derive(Debug)]
struct Measurement {
    repetition: u32,
    came: Came,
    /// Name of the job file it was run with, when it is not the point's id.
    job: Option<Box<str>>,
}

/// The step in progress.
#[derive(Debug)]
struct Open {
    id: String,
    repetition: u32,
    figures: Option<Box<Results>>,
    failures: Vec<String>,
}

impl Tally {
    /// Takes the next event; gives the measurement that has ended by it.
    pub fn take(&mut self, event: &Event) -> Option<Ended> {
        match event {
            Event::Step { name, point, .. } => {
                let ended = self.settle();
                if let Some(point) = point {
                    self.begin(point, name);
                }
                ended
            }
            Event::Skipped { point, reason } => {
                let ended = self.settle();
                self.keep(point, Came::Skipped(reason.clone()), "");
                ended
            }
            Event::Ended { status } if *status != RunStatus::Interrupted => self.settle(),
            Event::Ended { .. } | Event::Resumed { .. } => {
                self.open = None;
                None
            }
            Event::Finished { results } => {
                if let Some(open) = &mut self.open {
                    open.figures = Some(results.clone());
                }
                None
            }
            Event::Failure(failure) => {
                if let Some(open) = &mut self.open {
                    open.failures.push(failure.sentence());
                }
                None
            }
            Event::Interval { t_ms, .. } => {
                self.t_ms = *t_ms;
                None
            }
            _ => None,
        }
    }

    /// Ends the step in progress: whoever calls knows that nothing more comes.
    pub fn settle(&mut self) -> Option<Ended> {
        let open = self.open.take()?;
        let came = open.came()?;
        let mut of_point = self.measurements.get_mut(&open.id)?.iter_mut();
        let measurement = of_point.find(|m| m.repetition == open.repetition)?;
        measurement.came = came.clone();
        Some(Ended {
            id: open.id,
            repetition: open.repetition,
            came,
        })
    }

    /// Without the step in progress: whoever ran it is gone.
    #[must_use]
    pub fn closed(mut self) -> Self {
        self.open = None;
        self
    }

    /// What came of a measurement; `None`: it was never begun.
    #[must_use]
    pub fn came(&self, id: &str, repetition: u32) -> Option<&Came> {
        Some(&self.get(id, repetition)?.came)
    }

    /// What came of a measurement of a point.
    #[must_use]
    pub fn came_of(&self, point: &Point) -> Option<&Came> {
        self.came(&point.id, point.repetition)
    }

    /// The name of the job file with which a measurement was run last.
    #[must_use]
    pub fn job<'p>(&'p self, point: &'p Point) -> Option<&'p str> {
        let measurement = self.get(&point.id, point.repetition)?;
        Some(measurement.job.as_deref().unwrap_or(&point.id))
    }

    fn get(&self, id: &str, repetition: u32) -> Option<&Measurement> {
        let mut of_point = self.measurements.get(id)?.iter();
        of_point.find(|measurement| measurement.repetition == repetition)
    }

    /// End of the last interval, in ms of the run's time.
    #[must_use]
    pub fn t_ms(&self) -> u64 {
        self.t_ms
    }

    fn begin(&mut self, point: &Point, job: &str) {
        self.keep(point, Came::Unfinished, job);
        self.open = Some(Open {
            id: point.id.clone(),
            repetition: point.repetition,
            figures: None,
            failures: Vec::new(),
        });
    }

    fn keep(&mut self, point: &Point, came: Came, job: &str) {
        let measurement = Measurement {
            repetition: point.repetition,
            came,
            job: (job != point.id).then(|| job.into()),
        };
        let of_point = match self.measurements.get_mut(&point.id) {
            Some(of_point) => of_point,
            None => self.measurements.entry(point.id.clone()).or_default(),
        };
        match of_point
            .iter_mut()
            .find(|m| m.repetition == point.repetition)
        {
            Some(known) => *known = measurement,
            None => of_point.push(measurement),
        }
    }
}

impl Open {
    /// `None` when there is nothing that tells.
    fn came(&self) -> Option<Came> {
        if let Some(first) = self.failures.first() {
            return Some(Came::Failed(first.clone()));
        }
        let results = self.figures.as_deref()?;
        if let Some(job) = results.jobs.iter().find(|job| job.has_failed()) {
            let error = std::io::Error::from_raw_os_error(job.error);
            return Some(Came::Failed(format!("{}: {error}", job.name)));
        }
        Some(match Totals::of(results) {
            Some(totals) => Came::Done(totals),
            None => Came::Failed("it moved no data".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::{DirectionResult, Failure, FailureKind, JobResult};

    use super::*;

    fn point() -> Point {
        Point {
            id: "a/b".into(),
            series: "a".into(),
            x: "iodepth".into(),
            settings: std::collections::BTreeMap::new(),
            repetition: 1,
        }
    }

    fn step() -> Event {
        Event::Step {
            step: 1,
            of: 2,
            name: "a/b".into(),
            point: Some(Box::new(point())),
        }
    }

    fn finished() -> Event {
        let read = Some(DirectionResult {
            total_ios: 5,
            iops: 5.0,
            bw_bytes: 5.0,
            ..DirectionResult::default()
        });
        Event::Finished {
            results: Box::new(Results {
                jobs: vec![JobResult {
                    read,
                    ..JobResult::default()
                }],
                ..Results::default()
            }),
        }
    }

    fn ended(status: RunStatus) -> Event {
        Event::Ended { status }
    }

    fn came(events: &[Event]) -> Came {
        let mut tally = Tally::default();
        for event in events {
            tally.take(event);
        }
        tally.came_of(&point()).cloned().unwrap()
    }

    #[test]
    fn figures_count_once_something_follows_them_that_is_no_interruption() {
        let failure = Event::Failure(Failure::new(FailureKind::Io, "EIO"));
        let done = |events: &[Event]| matches!(came(events), Came::Done(_));
        assert!(done(&[step(), finished(), ended(RunStatus::Complete)]));
        assert!(done(&[step(), finished(), ended(RunStatus::Failed)]));
        let interrupted = [step(), finished(), ended(RunStatus::Interrupted)];
        assert_eq!(came(&interrupted), Came::Unfinished);
        assert_eq!(came(&[step(), finished()]), Came::Unfinished);
        let killed = Event::Resumed {
            after: None,
            gap_ms: 1,
        };
        assert_eq!(came(&[step(), finished(), killed]), Came::Unfinished);
        let failed = [step(), finished(), failure, ended(RunStatus::Failed)];
        assert_eq!(came(&failed), Came::Failed("EIO".into()));
    }

    #[test]
    fn errors_that_a_job_went_past_leave_its_measurement_done() {
        let with_errors = |total_errors| {
            let mut event = finished();
            if let Event::Finished { results } = &mut event {
                let job = &mut results.jobs[0];
                (job.error, job.total_errors) = (5, total_errors);
            }
            came(&[step(), event, ended(RunStatus::Complete)])
        };
        assert!(matches!(with_errors(Some(3)), Came::Done(_)));
        assert!(matches!(with_errors(Some(0)), Came::Failed(_)));
        assert!(matches!(with_errors(None), Came::Failed(_)));
    }

    #[test]
    fn the_last_attempt_counts() {
        let again = [step(), finished(), step(), ended(RunStatus::Interrupted)];
        assert_eq!(came(&again), Came::Unfinished);
        let nothing = Event::Finished {
            results: Box::default(),
        };
        let empty = [step(), nothing, ended(RunStatus::Complete)];
        assert_eq!(came(&empty), Came::Failed("it moved no data".into()));
    }
}
