//! The events of a run, told as a series: headlines, tests, figures. Live and
//! from a record it is the same code.

use fathom_model::{Event, Outcome, Results, RunStatus};
use serde::{Deserialize, Serialize};

use super::plan::SeriesFacts;

/// What a person is told next.
#[derive(Debug, Clone, PartialEq)]
pub enum SeriesLine {
    /// A headline.
    Series(String),
    /// A test begins; the figure follows on the same line.
    Begins {
        /// Name of the test.
        name: String,
    },
    /// The test that began has ended.
    Ends {
        /// Name of the test.
        name: String,
        /// What it measured.
        figures: TestFigures,
    },
    /// A test does not run here.
    Skipped {
        /// Name of the test.
        name: String,
        /// Why.
        reason: String,
    },
}

/// What a test measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TestFigures {
    /// Reads per second, whole, rounded down; `None` when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_iops: Option<u64>,
    /// Writes per second, whole, rounded down; `None` when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_iops: Option<u64>,
    /// What went wrong: with any, the figures are not to be relied on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Whether the test was stopped before its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

impl TestFigures {
    fn add(&mut self, results: &Results) {
        let sum = |reads: bool| {
            let directions = results.jobs.iter().filter_map(|job| {
                if reads {
                    job.read.as_ref()
                } else {
                    job.write.as_ref()
                }
            });
            let iops: Vec<f64> = directions
                .filter(|found| found.total_ios > 0)
                .map(|found| found.iops)
                .collect();
            // Rounded down, as fio's own short output does, so that a percentage is
            // the percentage of the figure beside it.
            (!iops.is_empty()).then(|| iops.iter().sum::<f64>() as u64)
        };
        self.read_iops = sum(true);
        self.write_iops = sum(false);
    }

    /// Reads and writes per second together; `None` when nothing moved.
    pub fn total_iops(&self) -> Option<u64> {
        match (self.read_iops, self.write_iops) {
            (None, None) => None,
            (read, write) => Some(read.unwrap_or(0) + write.unwrap_or(0)),
        }
    }

    /// The figure, when the test ran to its end and nothing went wrong.
    pub fn good_iops(&self) -> Option<u64> {
        self.total_iops()
            .filter(|_| self.failures.is_empty() && !self.interrupted)
    }
}

/// Follows the events of a run of the series.
#[derive(Debug)]
pub struct Teller {
    facts: SeriesFacts,
    next: usize,
    series: Option<String>,
    open: Option<(String, TestFigures)>,
}

impl Teller {
    /// A teller of the run with these facts.
    pub fn new(facts: SeriesFacts) -> Self {
        Self {
            facts,
            next: 0,
            series: None,
            open: None,
        }
    }

    /// Takes an event; gives what is to be told because of it.
    pub fn event(&mut self, event: &Event) -> Vec<SeriesLine> {
        match event {
            Event::Step { name, .. } => {
                let mut lines = self.skip_until(Some(name));
                self.open = Some((name.clone(), TestFigures::default()));
                lines.push(SeriesLine::Begins { name: name.clone() });
                lines
            }
            Event::Finished { results } => {
                if let Some((_, figures)) = &mut self.open {
                    figures.add(results);
                }
                vec![]
            }
            Event::Failure(failure) => {
                if let Some((_, figures)) = &mut self.open {
                    figures.failures.push(failure.sentence());
                }
                vec![]
            }
            Event::StepEnded { outcome } => self.close(*outcome == Outcome::Interrupted),
            Event::Ended { status } => self.end(*status),
            _ => vec![],
        }
    }

    /// The run is over, whether or not it said so itself.
    pub fn end(&mut self, status: RunStatus) -> Vec<SeriesLine> {
        let interrupted = status == RunStatus::Interrupted;
        // What was cut off in mid-test.
        let mut lines = self.close(interrupted);
        // After an interrupt nobody knows whether the rest would have run.
        if !interrupted {
            lines.extend(self.skip_until(None));
        }
        lines
    }

    fn close(&mut self, interrupted: bool) -> Vec<SeriesLine> {
        let ended = self.open.take().map(|(name, mut figures)| {
            figures.interrupted = interrupted;
            SeriesLine::Ends { name, figures }
        });
        ended.into_iter().collect()
    }

    /// Headlines and skipped tests up to the test `name` (`None`: to the end).
    fn skip_until(&mut self, name: Option<&str>) -> Vec<SeriesLine> {
        let mut lines = Vec::new();
        let left = self.facts.tests.get(self.next..).unwrap_or_default();
        // A run that goes on begins again with what was stopped or failed.
        if name.is_some_and(|name| left.iter().all(|test| test.name != *name)) {
            return lines;
        }
        while let Some(test) = self.facts.tests.get(self.next) {
            self.next += 1;
            let is_wanted = name == Some(&test.name);
            if !is_wanted && test.skipped.is_none() {
                continue;
            }
            if test.series.is_some() && test.series != self.series {
                self.series.clone_from(&test.series);
                lines.extend(test.series.clone().map(SeriesLine::Series));
            }
            if is_wanted {
                break;
            }
            if let Some(reason) = test.skipped.clone() {
                lines.push(SeriesLine::Skipped {
                    name: test.name.clone(),
                    reason,
                });
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use fathom_model::{DirectionResult, Failure, FailureKind, JobResult};

    use super::super::plan::PlannedTest;
    use super::*;

    fn facts(tests: &[(&str, &str, Option<&str>)]) -> SeriesFacts {
        let planned = |(series, name, skipped): &(&str, &str, Option<&str>)| PlannedTest {
            series: Some((*series).into()),
            name: (*name).into(),
            options: vec![],
            cached_reads: false,
            skipped: skipped.map(str::to_owned),
        };
        SeriesFacts {
            group: "current".into(),
            host: "bench1".into(),
            engine: None,
            folder: PathBuf::from("/mnt/stb-testdir"),
            only: None,
            runtime_s: 5,
            size_bytes: 512 << 20,
            shortened: false,
            nocow: false,
            in_memory: false,
            tests: tests.iter().map(planned).collect(),
            warnings: vec![],
        }
    }

    fn step(name: &str) -> Event {
        Event::Step {
            step: 1,
            of: 1,
            name: name.into(),
            point: None,
        }
    }

    const ENDED: Event = Event::StepEnded {
        outcome: Outcome::Complete,
    };

    fn finished(read_iops: &[f64], write_iops: &[f64]) -> Event {
        let direction = |iops: &f64| {
            Some(DirectionResult {
                iops: *iops,
                total_ios: (*iops > 0.0).into(),
                ..DirectionResult::default()
            })
        };
        let jobs = read_iops
            .iter()
            .zip(write_iops)
            .map(|(read, write)| JobResult {
                read: direction(read),
                write: direction(write),
                ..JobResult::default()
            });
        Event::Finished {
            results: Box::new(Results {
                jobs: jobs.collect(),
                ..Results::default()
            }),
        }
    }

    #[test]
    fn headlines_stand_once_and_skipped_tests_in_their_place() {
        let facts = facts(&[
            ("1 file series", "a", None),
            ("native aio series", "b", Some("no native aio on FreeBSD")),
            ("native aio series", "c", None),
            ("native aio series", "d", Some("no native aio on FreeBSD")),
        ]);
        let mut teller = Teller::new(facts);
        assert_eq!(
            teller.event(&step("a")),
            [
                SeriesLine::Series("1 file series".into()),
                SeriesLine::Begins { name: "a".into() }
            ]
        );
        assert_eq!(teller.event(&finished(&[0.0, 0.0], &[190.9, 0.5])), []);
        let lines = [teller.event(&ENDED), teller.event(&step("c"))].concat();
        let SeriesLine::Ends { figures, .. } = &lines[0] else {
            panic!("{lines:?}")
        };
        assert_eq!((figures.read_iops, figures.write_iops), (None, Some(191)));
        assert_eq!(lines[1], SeriesLine::Series("native aio series".into()));
        assert!(matches!(&lines[2], SeriesLine::Skipped { name, .. } if name == "b"));
        assert_eq!(lines[3], SeriesLine::Begins { name: "c".into() });
        let lines = teller.event(&ENDED);
        assert!(matches!(&lines[0], SeriesLine::Ends { name, .. } if name == "c"));
        let lines = teller.event(&Event::Ended {
            status: RunStatus::Complete,
        });
        assert!(matches!(&lines[0], SeriesLine::Skipped { name, .. } if name == "d"));
    }

    #[test]
    fn a_failed_or_interrupted_test_has_no_good_figure() {
        let mut teller = Teller::new(facts(&[("s", "a", None), ("s", "b", None)]));
        teller.event(&step("a"));
        teller.event(&finished(&[10.0], &[12.0]));
        teller.event(&Event::Failure(
            Failure::new(FailureKind::NoSpace, "disk full").about("a"),
        ));
        let lines = [teller.event(&ENDED), teller.event(&step("b"))].concat();
        let SeriesLine::Ends { figures, .. } = &lines[0] else {
            panic!("{lines:?}")
        };
        assert_eq!(figures.total_iops(), Some(22));
        assert_eq!(figures.good_iops(), None);
        assert_eq!(figures.failures, ["a: disk full"]);
        teller.event(&finished(&[10.0], &[0.0]));
        let lines = teller.end(RunStatus::Interrupted);
        let [SeriesLine::Ends { figures, .. }] = &lines[..] else {
            panic!("{lines:?}")
        };
        assert!(figures.interrupted && figures.good_iops().is_none());
    }
}
