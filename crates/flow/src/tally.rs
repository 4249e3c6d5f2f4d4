//! What came of the measurements of a campaign, from its events: the same for a
//! run that goes on, one that is watched and one that is resumed.

use std::collections::HashMap;

use fathom_analysis::guard::MeasurementTotals;
use fathom_model::{Event, Failure, FailureKind, Outcome, Point, Results, SkipCause};

/// What came of one measurement of a point.
#[derive(Debug, Clone, PartialEq)]
pub enum PointOutcome {
    /// Measured; nothing went wrong.
    Done(MeasurementTotals),
    /// It failed, for this reason.
    Failed(String),
    /// It is not measured in this record, for this reason.
    Skipped(String),
    /// It is still to come, for this reason: the next start measures it.
    Postponed(String),
    /// It was begun and has not come to its end: it goes on, or was broken off.
    Unfinished,
}

impl PointOutcome {
    /// Whether it was measured or has failed: then it is not run again unasked.
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Failed(_))
    }

    /// Whether nothing is left to do for it, in this start and the next.
    pub fn is_settled(&self) -> bool {
        self.has_ended() || matches!(self, Self::Skipped(_))
    }
}

/// A measurement that has come to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedPoint {
    /// The point.
    pub id: String,
    /// Which measurement of it.
    pub repetition: u32,
    /// What came of it.
    pub came: PointOutcome,
}

/// What is known of every measurement, in memory for the measurements only.
///
/// A measurement has ended when its step says so and was not interrupted: engines
/// give figures of a job that was stopped too, and it is measured again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// By the point's id: its repetitions, of which there are few.
    measurements: HashMap<String, Vec<Measurement>>,
    open: Option<OpenPoint>,
}

#[derive(Debug, Clone, PartialEq)]
struct Measurement {
    repetition: u32,
    came: PointOutcome,
    /// Name of the job file it was run with, when it is not the point's id.
    job: Option<Box<str>>,
}

/// The step in progress.
#[derive(Debug, Clone, PartialEq)]
struct OpenPoint {
    id: String,
    repetition: u32,
    figures: Option<Box<Results>>,
    failures: Vec<Failure>,
}

impl Tally {
    /// Takes the next event; gives the measurement that has ended by it.
    pub fn take(&mut self, event: &Event) -> Option<EndedPoint> {
        match event {
            Event::Step { name, point, .. } => {
                self.open = None;
                if let Some(point) = point {
                    self.begin(point, name);
                }
                None
            }
            Event::StepEnded { outcome } => self.end_step(*outcome),
            Event::Skipped {
                point,
                reason,
                cause,
            } => {
                let came = match cause {
                    SkipCause::Postponed => PointOutcome::Postponed(reason.clone()),
                    _ => PointOutcome::Skipped(reason.clone()),
                };
                self.keep(point, came, "");
                None
            }
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
                    open.failures.push(failure.clone());
                }
                None
            }
            _ => None,
        }
    }

    fn end_step(&mut self, outcome: Outcome) -> Option<EndedPoint> {
        let open = self.open.take()?;
        let came = open.came(outcome)?;
        let mut of_point = self.measurements.get_mut(&open.id)?.iter_mut();
        let measurement = of_point.find(|m| m.repetition == open.repetition)?;
        measurement.came = came.clone();
        Some(EndedPoint {
            id: open.id,
            repetition: open.repetition,
            came,
        })
    }

    /// What came of a measurement; `None`: it was never begun.
    pub fn came(&self, id: &str, repetition: u32) -> Option<&PointOutcome> {
        Some(&self.get(id, repetition)?.came)
    }

    /// What came of a measurement of a point.
    pub fn came_of(&self, point: &Point) -> Option<&PointOutcome> {
        self.came(&point.id, point.repetition)
    }

    /// The name of the job file with which a measurement was run last.
    pub fn job<'p>(&'p self, point: &'p Point) -> Option<&'p str> {
        let measurement = self.get(&point.id, point.repetition)?;
        Some(measurement.job.as_deref().unwrap_or(&point.id))
    }

    fn get(&self, id: &str, repetition: u32) -> Option<&Measurement> {
        let mut of_point = self.measurements.get(id)?.iter();
        of_point.find(|measurement| measurement.repetition == repetition)
    }

    fn begin(&mut self, point: &Point, job: &str) {
        self.keep(point, PointOutcome::Unfinished, job);
        self.open = Some(OpenPoint {
            id: point.id.clone(),
            repetition: point.repetition,
            figures: None,
            failures: Vec::new(),
        });
    }

    fn keep(&mut self, point: &Point, came: PointOutcome, job: &str) {
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

impl OpenPoint {
    /// `None`: it is measured again.
    fn came(&self, outcome: Outcome) -> Option<PointOutcome> {
        if outcome == Outcome::Interrupted {
            return None;
        }
        if let Some(first) = self.failures.first() {
            // Nothing was written or measured: whoever frees the device wants it measured.
            if first.kind == FailureKind::Refused && self.figures.is_none() {
                return None;
            }
            return Some(PointOutcome::Failed(first.sentence()));
        }
        let Some(results) = self.figures.as_deref() else {
            return Some(PointOutcome::Failed(
                "the engine told no figures".to_owned(),
            ));
        };
        if let Some(job) = results.jobs.iter().find(|job| job.has_failed()) {
            let error = std::io::Error::from_raw_os_error(job.error);
            return Some(PointOutcome::Failed(format!("{}: {error}", job.name)));
        }
        Some(match MeasurementTotals::of(results) {
            Some(totals) => PointOutcome::Done(totals),
            None => PointOutcome::Failed("it moved no data".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::with_step_ends;
    use fathom_model::{DirectionResult, JobResult, RunStatus};

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

    fn came(events: &[Event]) -> PointOutcome {
        let mut tally = Tally::default();
        for event in with_step_ends(events.iter().cloned()) {
            tally.take(&event);
        }
        tally.came_of(&point()).cloned().unwrap()
    }

    #[test]
    fn figures_count_once_something_follows_them_that_is_no_interruption() {
        let failure = Event::Failure(Failure::new(FailureKind::Io, "EIO"));
        let done = |events: &[Event]| matches!(came(events), PointOutcome::Done(_));
        assert!(done(&[step(), finished(), ended(RunStatus::Complete)]));
        assert!(done(&[step(), finished(), ended(RunStatus::Failed)]));
        let interrupted = [step(), finished(), ended(RunStatus::Interrupted)];
        assert_eq!(came(&interrupted), PointOutcome::Unfinished);
        assert_eq!(came(&[step(), finished()]), PointOutcome::Unfinished);
        let killed = Event::Resumed {
            after: None,
            gap_ms: 1,
        };
        assert_eq!(
            came(&[step(), finished(), killed]),
            PointOutcome::Unfinished
        );
        let failed = [
            step(),
            finished(),
            failure.clone(),
            ended(RunStatus::Failed),
        ];
        assert_eq!(came(&failed), PointOutcome::Failed("EIO".into()));
        // The device became busy right behind it.
        let outcome = Outcome::Complete;
        let end = Event::StepEnded { outcome };
        let busy = [step(), finished(), end, failure, ended(RunStatus::Failed)];
        assert!(matches!(came(&busy), PointOutcome::Done(_)));
    }

    #[test]
    fn a_step_that_was_refused_is_measured_once_it_may() {
        let refused = Failure::new(FailureKind::Refused, "in use");
        let refused = [step(), Event::Failure(refused), ended(RunStatus::Failed)];
        assert_eq!(came(&refused), PointOutcome::Unfinished);
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
        assert!(matches!(with_errors(Some(3)), PointOutcome::Done(_)));
        assert!(matches!(with_errors(Some(0)), PointOutcome::Failed(_)));
        assert!(matches!(with_errors(None), PointOutcome::Failed(_)));
    }

    #[test]
    fn the_last_attempt_counts() {
        let again = [step(), finished(), step(), ended(RunStatus::Interrupted)];
        assert_eq!(came(&again), PointOutcome::Unfinished);
        let nothing = Event::Finished {
            results: Box::default(),
        };
        let empty = [step(), nothing, ended(RunStatus::Complete)];
        assert_eq!(
            came(&empty),
            PointOutcome::Failed("it moved no data".into())
        );
    }
}
