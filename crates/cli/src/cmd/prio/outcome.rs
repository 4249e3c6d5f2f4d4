//! What a run of `fathom prio` measured, from its record.

use std::path::Path;

use fathom_analysis::latlog::TooMany;
use fathom_analysis::priority::{Classes, DepthFigures, DurationLimits, Limit, aborted};
use fathom_device::cdl::CdlPage;
use fathom_device::health::{MissedTime, missed_limit};
use fathom_fio_output::log::{self, Collect, Options};
use fathom_model::{Direction, Event, EvidenceSum, Exit, JobResult, LogEntry, Outcome, RunStatus};
use fathom_record::Record;
use fathom_report::prio::{DepthPoint, Prio, PrioCurve, compare};
use fathom_suites::prio::{log_name, raw_dir};
use serde_json::Value;

use crate::cmd::ExitError;

/// Memory for exact percentiles of one log; beyond, they are from a histogram.
const MEMORY: usize = 256 << 20;

/// The lines of one part of a log.
struct Lines(Classes);

impl Collect for Lines {
    fn add(&mut self, entry: &LogEntry) {
        self.0.add(entry);
    }

    fn end(&mut self) {
        self.0.end();
    }
}

/// Reads the record of a run.
pub fn read(dir: &Path) -> anyhow::Result<Prio> {
    let record = Record::open(dir)?;
    let Some(facts) = record.header.facts.get("prio").cloned() else {
        let message = format!("{} is no run of fathom prio", dir.display());
        return Err(ExitError::new(Exit::Input, message).into());
    };
    let limits = limits(&facts);
    let words = |name: &str| {
        let list = facts["workloads"].as_array()?;
        let workload = list.iter().find(|workload| workload["name"] == name)?;
        Some(workload["words"].as_str()?.to_owned())
    };
    let ramp = facts["options"]["ramptime_s"].as_u64().unwrap_or(0) > 0;
    let mut workloads: Vec<PrioCurve> = Vec::new();
    let is_running = record.status().is_none();
    for step in steps(&record) {
        let mut point = step.measure(dir, &limits, ramp);
        if let Some(measured) = &mut point.measured {
            measured.put_disk_counts(|dir, number| step.missed(&facts, dir, number));
        }
        point.interrupted = step.is_broken_off(is_running);
        match workloads.last_mut() {
            Some(last) if last.name == step.point.series => last.points.push(point),
            _ => workloads.push(PrioCurve {
                words: words(&step.point.series).unwrap_or_default(),
                name: step.point.series.clone(),
                points: vec![point],
            }),
        }
    }
    compare(&mut workloads);
    let status = match record.status() {
        Some(RunStatus::Complete) => "complete",
        Some(RunStatus::Failed) => "failed",
        Some(RunStatus::Running) | None => "running",
        Some(RunStatus::Interrupted) => "interrupted",
    };
    Ok(Prio {
        run: record.id(),
        status: status.to_owned(),
        facts,
        workloads,
    })
}

/// The limits that the header names.
fn limits(facts: &Value) -> DurationLimits {
    let mut limits = DurationLimits::default();
    for limit in facts["limits"].as_array().into_iter().flatten() {
        let dir = match limit["page"].as_str() {
            Some("T2A") => Direction::Read,
            _ => Direction::Write,
        };
        let number = limit["number"].as_u64().and_then(|n| u8::try_from(n).ok());
        limits.add(
            dir,
            Limit {
                number: number.unwrap_or(0),
                ns: limit["limit_ns"].as_u64(),
                may_fail: limit["may_fail"] == true,
            },
        );
    }
    limits
}

/// What the record tells of one measurement.
struct Step<'r> {
    point: &'r fathom_model::Point,
    job: Option<&'r JobResult>,
    failure: Option<String>,
    /// `None`: it goes on, or was broken off.
    ended: Option<Outcome>,
    /// What was read of the disk meanwhile.
    evidence: EvidenceSum,
    /// Counts failed I/Os among those that it issued, and errors of the ramp.
    is_fio: bool,
}

fn steps(record: &Record) -> Vec<Step<'_>> {
    let mut steps: Vec<Step> = Vec::new();
    for entry in &record.entries {
        match (&entry.event, steps.last_mut()) {
            (
                Event::Step {
                    point: Some(point), ..
                },
                _,
            ) => steps.push(Step {
                point,
                job: None,
                failure: None,
                ended: None,
                evidence: EvidenceSum::default(),
                is_fio: false,
            }),
            (Event::EngineStarted { engine, .. }, Some(step)) => step.is_fio = engine == "fio",
            (Event::Evidence(interval), Some(step)) => step.evidence.add(interval),
            (Event::Finished { results }, Some(step)) => step.job = results.jobs.first(),
            // Behind its end a failure is the run's.
            (Event::Failure(failure), Some(step)) if step.ended.is_none() => {
                step.failure.get_or_insert_with(|| failure.sentence());
            }
            (Event::StepEnded { outcome }, Some(step)) => step.ended = Some(*outcome),
            _ => {}
        }
    }
    steps
}

impl Step<'_> {
    fn is_broken_off(&self, is_running: bool) -> bool {
        match self.ended {
            Some(outcome) => outcome == Outcome::Interrupted,
            None => !is_running,
        }
    }

    /// How many I/Os missed a limit, as the disk counts them: by the time that they are
    /// held to here.
    fn missed(&self, facts: &Value, dir: Direction, number: u8) -> Option<u64> {
        let page = match dir {
            Direction::Read => CdlPage::T2a,
            _ => CdlPage::T2b,
        };
        let disk = self.evidence.devices("target").next()?;
        let count = |missed: MissedTime| {
            let figure = missed.figure(page, number);
            self.evidence.count(&format!("{disk}.{figure}"))
        };
        let mut limits = facts["limits"].as_array()?.iter();
        let limit = limits
            .find(|limit| limit["page"] == page.name() && limit["number"] == u64::from(number))?;
        missed_limit(limit["duration_guideline"] != "no limit", count)
    }

    fn measure(&self, dir: &Path, limits: &DurationLimits, ramp: bool) -> DepthPoint {
        let mut point = DepthPoint {
            depth: self.point.x_value().unwrap_or(0),
            measured: None,
            failure: self.failure.clone(),
            interrupted: false,
            against_percent: None,
        };
        if self.failure.is_some() {
            return point;
        }
        let rw = self
            .point
            .settings
            .get("rw")
            .map_or("randread", String::as_str);
        let first = dir.join("raw").join(&self.point.id);
        let log = raw_dir(dir, &self.point.id).unwrap_or(first);
        match measured(&log.join(log_name(rw)), limits) {
            Ok(Some(mut measured)) => {
                let errors = self.job.map(|job| job.total_errors.unwrap_or(0));
                let issued = |job: &JobResult| job.directions().map(|(_, dir)| dir.total_ios).sum();
                let issued = self.job.filter(|_| self.is_fio).map(issued);
                let count = errors.map(|errors| aborted(errors, issued, measured.n, ramp));
                measured.put_aborted(count);
                point.measured = Some(measured);
            }
            Ok(None) => {}
            Err(reason) => point.failure = Some(reason),
        }
        point
    }
}

fn measured(path: &Path, limits: &DurationLimits) -> Result<Option<DepthFigures>, String> {
    let options = Options {
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        ..Options::default()
    };
    let memory = MEMORY / options.threads;
    let log = log::read(path, options, |_| {
        Lines(Classes::new(limits.clone(), memory))
    });
    let log = log.map_err(|error| error.to_string())?;
    let parts = log.parts.into_iter().map(|Lines(part)| part).collect();
    DepthFigures::of(parts).map_err(|too_many| match too_many {
        TooMany::Priorities(most) => {
            format!("{} has more than {most} priorities", path.display())
        }
        TooMany::Intervals(_) => format!("{} cannot be read", path.display()),
    })
}
