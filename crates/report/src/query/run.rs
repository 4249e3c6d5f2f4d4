//! The rows that a run gives to the tables.

use std::path::Path;

use fathom_model::environment::{BlockDevice, Environment, Target};
use fathom_model::host::Host;
use fathom_model::result::{DirectionResult, Latency};
use fathom_model::value::{self, Base};
use fathom_model::{
    Certainty, Direction, Event, JobResult, Outcome, Point, RunDocument, StageKind,
};
use fathom_model::{certainty::RateCertainty, histogram::bounds_of};
use fathom_record::{Entries, Header, ListedRun, RecordError, RecordPart, RunRemarks};
use serde::Serialize;
use serde_json::Value;

use super::definitions as rows;
use super::{
    ENVIRONMENT, FAILURES, FIGURES, HISTOGRAMS, HOSTS, JOBS, OPTIONS, PERCENTILES, RUNS, STEPS,
    TAGS, TakeRow, VERDICTS,
};
use fathom_document::attempts::{AttemptKey, Attempts};
use fathom_document::{read_seeing, rfc3339};

/// A run, as its rows are made of it.
#[derive(Debug)]
pub struct RunFacts {
    /// Its document, with histograms.
    pub doc: RunDocument,
    tags: Vec<(String, String)>,
    steps: Vec<StepFacts>,
    duration_ms: Option<u64>,
    note: Option<String>,
}

/// What is known of a step beside its figures.
#[derive(Debug, Default)]
pub(super) struct StepFacts {
    pub(super) n: u32,
    /// `None` of what was left out.
    attempt: Option<AttemptKey>,
    /// False: it was broken off and done once more.
    pub(super) counts: bool,
    /// `None` where the run has but one.
    pub(super) name: Option<String>,
    pub(super) outcome: Option<&'static str>,
    pub(super) reason: Option<String>,
    pub(super) preparation: bool,
    pub(super) started_ms: Option<u64>,
    pub(super) ended_ms: Option<u64>,
    pub(super) point: Option<Box<Point>>,
}

/// A row of `runs`.
#[derive(Default)]
pub(super) struct RunRow<'v> {
    pub(super) id: &'v str,
    pub(super) name: Option<&'v str>,
    pub(super) command: Option<&'v str>,
    pub(super) status: String,
    pub(super) started: String,
    pub(super) duration_ms: Option<u64>,
    pub(super) doc: Option<&'v RunDocument>,
    pub(super) reason: Option<String>,
    pub(super) note: Option<&'v str>,
}

/// A row of `environment`.
pub(super) struct EnvironmentRow<'v> {
    pub(super) run: &'v str,
    pub(super) host: Option<&'v Host>,
    pub(super) machine: &'v Environment,
    pub(super) target: Option<&'v Target>,
    pub(super) device: Option<&'v BlockDevice>,
}

/// A row of `jobs`.
pub(super) struct JobRow<'v> {
    pub(super) run: &'v str,
    pub(super) n: u32,
    pub(super) job: &'v JobResult,
    pub(super) preparation: bool,
}

impl<'v> JobRow<'v> {
    /// An option as it was written.
    pub(super) fn option(&self, name: &str) -> Option<&'v str> {
        self.job.options.get(name).map(String::as_str)
    }

    /// An option that is a number, as fio reads it: `0x20`, `1k`.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        let number = value::size(self.option(name)?.trim(), Base::Binary).ok()?;
        u64::try_from(number).ok()
    }
}

/// A row of `figures`.
pub(super) struct FigureRow<'v> {
    pub(super) of: &'v JobRow<'v>,
    pub(super) n: u32,
    pub(super) started: &'v str,
    pub(super) engine: &'v str,
    pub(super) dir: Direction,
    /// `None` of syncs.
    pub(super) result: Option<&'v DirectionResult>,
}

impl<'v> FigureRow<'v> {
    pub(super) fn level(&self) -> Option<&'static str> {
        Some(self.result?.verdict.as_ref()?.level.name())
    }

    pub(super) fn reasons(&self) -> Option<String> {
        let verdict = self.result?.verdict.as_ref()?;
        let against: Vec<String> = verdict.against().map(|it| word(&it.kind)).collect();
        Some(against.join(" "))
    }

    pub(super) fn interval(&self, of: fn(&RateCertainty) -> Certainty) -> Option<(f64, f64)> {
        match of(self.result?.certainty.as_ref()?) {
            Certainty::Interval { low, high, .. } => Some((low, high)),
            _ => None,
        }
    }

    pub(super) fn slat(&self) -> Option<&'v Latency> {
        self.result?.slat.as_ref()
    }

    pub(super) fn clat(&self) -> Option<&'v Latency> {
        self.result?.clat.as_ref()
    }

    pub(super) fn lat(&self) -> Option<&'v Latency> {
        match self.result {
            Some(result) => result.lat.as_ref(),
            None => self.of.job.sync.as_ref(),
        }
    }

    /// All its latencies: their kind, and the priority that they are of alone.
    fn latencies(&self) -> Vec<(&'static str, Option<u16>, &'v Latency)> {
        let lag = self.result.and_then(|result| result.lag.as_ref());
        let kinds = [
            ("slat", self.slat()),
            ("clat", self.clat()),
            ("lat", self.lat()),
            ("lag", lag),
        ];
        let all = kinds.into_iter();
        let all = all.filter_map(|(kind, latency)| Some((kind, None, latency?)));
        let priorities = self.result.into_iter().flat_map(|it| &it.priorities);
        all.chain(priorities.map(|it| ("clat", Some(it.value), &it.clat)))
            .collect()
    }
}

/// A row of `percentiles`.
pub(super) struct PercentileRow<'v> {
    pub(super) of: &'v FigureRow<'v>,
    pub(super) kind: &'static str,
    pub(super) priority: Option<u16>,
    pub(super) percent: f64,
    pub(super) ns: u64,
}

/// A row of `histograms`.
pub(super) struct HistogramRow<'v> {
    pub(super) of: &'v FigureRow<'v>,
    pub(super) kind: &'static str,
    pub(super) priority: Option<u16>,
    pub(super) low_ns: u64,
    pub(super) high_ns: u64,
    pub(super) count: u64,
}

/// The word that a value is written as.
pub(super) fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// The row of a run whose record cannot be read.
///
/// # Errors
/// Those of `take`.
pub fn put_unreadable<E>(run: &ListedRun, take: &mut TakeRow<'_, E>) -> Result<(), E> {
    let row = RunRow {
        id: &run.id,
        command: run.command.as_deref(),
        status: "unreadable".to_owned(),
        started: rfc3339(run.started_ms),
        reason: run.summary.as_ref().err().map(ToString::to_string),
        ..RunRow::default()
    };
    take(&RUNS, &rows::run(&row))
}

impl RunFacts {
    /// Reads a record folder.
    ///
    /// # Errors
    /// As [`fathom_document::read`].
    pub fn read(dir: &Path) -> Result<Self, RecordError> {
        let entries = Entries::summed(dir)?;
        let header: &Header = &entries.header;
        let notes = RunRemarks::read(dir).unwrap_or_default().notes;
        let notes: Vec<String> = notes.into_iter().map(|it| it.text).collect();
        let tags = entries.tags().into_iter().collect();
        // A clock that was set back tells nothing, and an import nothing of the run.
        let ended_ms = entries.ended_ms.filter(|_| header.command != "import");
        let duration_ms = ended_ms.and_then(|end| end.checked_sub(header.started_ms));
        let mut steps = StepReader::default();
        let doc = read_seeing(entries, &mut |part| steps.take(part));
        Ok(Self {
            doc,
            tags,
            steps: steps.finish(),
            duration_ms,
            note: (!notes.is_empty()).then(|| notes.join("\n")),
        })
    }

    /// Gives every row of it but those of samples and histograms.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn put<E>(&self, take: &mut TakeRow<'_, E>) -> Result<(), E> {
        let run = self.doc.id.as_str();
        let row = RunRow {
            id: run,
            name: Some(&self.doc.name),
            command: Some(&self.doc.command),
            status: self.doc.status.to_string(),
            started: self.doc.started.clone(),
            duration_ms: self.duration_ms,
            doc: Some(&self.doc),
            reason: None,
            note: self.note.as_deref(),
        };
        take(&RUNS, &rows::run(&row))?;
        for (name, value) in &self.tags {
            take(&TAGS, &rows::tag((run, name, value)))?;
        }
        for machine in self.environments() {
            take(&ENVIRONMENT, &rows::environment(&machine))?;
        }
        for step in &self.steps {
            take(&STEPS, &rows::step((run, step)))?;
        }
        for job in self.jobs() {
            take(&JOBS, &rows::job(&job))?;
            for (name, value) in &job.job.options {
                take(&OPTIONS, &rows::option((&job, name, value)))?;
            }
        }
        for failure in &self.doc.failures {
            take(&FAILURES, &rows::failure((run, failure)))?;
        }
        for host in &self.doc.hosts {
            take(&HOSTS, &rows::host((run, host)))?;
        }
        self.figures(|figure| put_figure(figure, take))
    }

    /// Gives the rows of `figures` alone.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn put_figures<E>(&self, take: &mut TakeRow<'_, E>) -> Result<(), E> {
        self.figures(|figure| take(&FIGURES, &rows::figure(figure)))
    }

    /// Gives every bucket of its figures.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn put_histograms<E>(&self, take: &mut TakeRow<'_, E>) -> Result<(), E> {
        self.figures(|of| {
            for (kind, priority, latency) in of.latencies() {
                let buckets = latency.histogram.iter().flat_map(|it| it.buckets());
                for (bucket, count) in buckets {
                    let (low_ns, high_ns) = bounds_of(bucket);
                    let row = HistogramRow {
                        of,
                        kind,
                        priority,
                        low_ns,
                        high_ns,
                        count,
                    };
                    take(&HISTOGRAMS, &rows::histogram(&row))?;
                }
            }
            Ok(())
        })
    }

    fn jobs(&self) -> impl Iterator<Item = JobRow<'_>> {
        (1..).zip(&self.doc.jobs).map(|(n, job)| JobRow {
            run: &self.doc.id,
            n,
            job,
            preparation: (job.step.as_ref()).is_some_and(|it| self.doc.preparations.contains(it)),
        })
    }

    /// Calls `take` with every figure.
    fn figures<E>(&self, mut take: impl FnMut(&FigureRow) -> Result<(), E>) -> Result<(), E> {
        let mut n = 0;
        for job in self.jobs() {
            // One that moved nothing was not asked for; what failed is told of the job.
            let moved = job.job.directions();
            let moved = moved.filter(|(_, it)| it.total_ios > 0 || it.io_bytes > 0);
            let data = moved.map(|(dir, it)| (dir, Some(it)));
            let syncs = job.job.sync.iter().map(|_| (Direction::Sync, None));
            for (dir, result) in data.chain(syncs) {
                n += 1;
                take(&FigureRow {
                    of: &job,
                    n,
                    started: &self.doc.started,
                    engine: &self.doc.engine,
                    dir,
                    result,
                })?;
            }
        }
        Ok(())
    }

    fn environments(&self) -> Vec<EnvironmentRow<'_>> {
        let own = self.doc.environment.iter().map(|it| (None, it));
        let hosts = self.doc.hosts.iter();
        let hosts = hosts.filter_map(|host| Some((Some(host), host.environment.as_deref()?)));
        let mut all = Vec::new();
        for (host, machine) in own.chain(hosts) {
            let mut targets: Vec<Option<&Target>> = machine.targets.iter().map(Some).collect();
            if targets.is_empty() {
                targets.push(None);
            }
            all.extend(targets.into_iter().map(|target| EnvironmentRow {
                run: &self.doc.id,
                host,
                machine,
                target,
                device: target.and_then(device),
            }));
        }
        all
    }
}

/// A figure, its percentiles and what is said of it.
fn put_figure<E>(figure: &FigureRow, take: &mut TakeRow<'_, E>) -> Result<(), E> {
    take(&FIGURES, &rows::figure(figure))?;
    for (kind, priority, latency) in figure.latencies() {
        for &(percent, _) in &latency.percentiles_ns {
            let Some(ns) = latency.percentile_ns(percent) else {
                continue;
            };
            let row = PercentileRow {
                of: figure,
                kind,
                priority,
                percent,
                ns,
            };
            take(&PERCENTILES, &rows::percentile_row(&row))?;
        }
    }
    let verdict = figure.result.and_then(|result| result.verdict.as_ref());
    for reason in verdict.iter().flat_map(|verdict| &verdict.reasons) {
        take(&VERDICTS, &rows::verdict((figure, reason)))?;
    }
    Ok(())
}

/// The block device of a target.
fn device(target: &Target) -> Option<&BlockDevice> {
    let below = target
        .file_system
        .as_ref()
        .and_then(|it| it.device.as_ref());
    target.device.as_ref().or(below)
}

/// The steps of a run while its record is read.
#[derive(Default)]
struct StepReader {
    steps: Vec<StepFacts>,
    attempts: Attempts,
    is_open: bool,
    prepares: bool,
}

impl StepReader {
    fn take(&mut self, part: &RecordPart) {
        let RecordPart::Entry(entry) = part else {
            return;
        };
        self.attempts.take(entry.at_ms, &entry.event);
        match &entry.event {
            Event::Step {
                step,
                of,
                name,
                point,
            } => {
                let has_name = *of > 1 || point.is_some();
                self.begin(StepFacts {
                    name: has_name.then(|| name.clone()),
                    attempt: Some((entry.at_ms, *step)),
                    preparation: self.prepares,
                    started_ms: Some(entry.at_ms),
                    point: point.clone(),
                    ..StepFacts::default()
                });
                self.is_open = true;
            }
            Event::StepEnded { outcome } => self.end(entry.at_ms, *outcome),
            Event::Skipped { point, reason, .. } => self.begin(StepFacts {
                name: Some(point.id.clone()),
                outcome: Some("skipped"),
                reason: Some(reason.clone()),
                point: Some(point.clone()),
                ..StepFacts::default()
            }),
            Event::Stage { stage } => {
                self.prepares = matches!(stage.kind, StageKind::Fill | StageKind::Settle);
            }
            Event::StageEnded { .. } => self.prepares = false,
            Event::Resumed { .. } => (self.is_open, self.prepares) = (false, false),
            _ => {}
        }
    }

    fn begin(&mut self, step: StepFacts) {
        let n = u32::try_from(self.steps.len() + 1).unwrap_or(u32::MAX);
        self.steps.push(StepFacts { n, ..step });
        self.is_open = false;
    }

    /// All of them, once all attempts are known.
    fn finish(self) -> Vec<StepFacts> {
        let counting = self.attempts.counting();
        let each = self.steps.into_iter().map(|step| StepFacts {
            counts: step.attempt.is_none_or(|it| counting.contains(&it)),
            ..step
        });
        each.collect()
    }

    fn end(&mut self, at_ms: u64, outcome: Outcome) {
        if let Some(step) = self.steps.last_mut().filter(|_| self.is_open) {
            step.ended_ms = Some(at_ms);
            step.outcome = Some(match outcome {
                Outcome::Complete => "complete",
                Outcome::Interrupted => "interrupted",
                Outcome::Failed => "failed",
            });
        }
        self.is_open = false;
    }
}
