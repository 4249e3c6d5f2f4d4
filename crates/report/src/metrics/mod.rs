//! What a run does while it goes on, as Prometheus reads it: counters, the last interval,
//! latencies, verdicts. Made of the run's events alone.
//!
//! [`RunMetrics`] adds events up, [`exposition`] writes what they came to as OpenMetrics 1.0
//! or in Prometheus' older text format. Units are Prometheus' base units, seconds and
//! bytes. docs/METRICS.md says what each series means.

mod families;
mod latency;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeMap, HashMap};

use fathom_analysis::rate::Rates;
use fathom_analysis::verdict;
use fathom_model::{
    Direction, Event, JobResult, Outcome, ReasonKind, Results, RunDocument, RunStatus, Sample,
    VerdictLevel,
};
use fathom_record::Header;
use serde::Serialize;

pub use families::exposition;
pub use text::MetricsFormat;

use fathom_document::RunReader;
use latency::LatencyCounts;

/// Jobs, hosts and directions that have series of their own; what comes beyond is added
/// up as one. A server of metrics keeps every series that it has ever seen.
const SERIES_MAX: usize = 300;
/// The job's name in the series of all that come beyond [`SERIES_MAX`].
const FURTHER: &str = "further jobs";

/// Whose series it is: the job's name, its host (empty: this machine), the direction.
type SeriesKey = (String, String, Direction);

/// What a job did in one direction since this start of the run began.
#[derive(Debug, Clone, Default)]
struct IoCounts {
    ios: u64,
    bytes: u64,
    stalls: u64,
    stalled_ms: u64,
    /// Completion latencies, and latencies from the intended starts, where they are told.
    clat: Option<LatencyCounts>,
    lat: Option<LatencyCounts>,
}

/// What is known of a job's direction in the step in progress.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Which of the counts are its own.
    counts: usize,
    /// When it last did something, in ms since the run's start; 0: not yet.
    io_end_ms: u64,
    /// Its longest interval.
    interval_ms: u64,
}

/// A run as its metrics have it.
#[derive(Debug)]
pub struct RunMetrics {
    id: String,
    header: Header,
    engine: (String, Option<String>),
    status: RunStatus,
    /// End of the last interval, ms since the run's start.
    t_ms: Option<u64>,
    remaining_ms: Option<u64>,
    /// Place, number of steps, and name of the step in progress.
    step: Option<(u32, u32, String)>,
    steps_ended: BTreeMap<String, u64>,
    /// Name and host of each job of the step, by its place.
    jobs: Vec<(String, String)>,
    places: HashMap<(u32, Direction), Place>,
    counts: Vec<(SeriesKey, IoCounts)>,
    /// Failed I/Os by job, host and direction, of jobs whose engine counts them; without a
    /// direction where it does not tell.
    errors: BTreeMap<(String, String, Option<Direction>), u64>,
    /// The interval in progress, and the last one.
    rates: Rates,
    last: Rates,
    judge: RunReader,
    /// The stage in progress: its steps may make a device ready, which is no result.
    stage: Option<Event>,
    /// How many figures came to each verdict, in the order of [`LEVELS`].
    verdicts: [u64; LEVELS.len()],
    doubts: BTreeMap<ReasonKind, u64>,
    failures: BTreeMap<String, u64>,
}

/// The verdicts that there are.
const LEVELS: [VerdictLevel; 3] = [
    VerdictLevel::Valid,
    VerdictLevel::Suspect,
    VerdictLevel::Invalid,
];

impl RunMetrics {
    /// Those of a run that begins, or goes on; `id`: the name of its record.
    pub fn new(id: &str, header: &Header) -> Self {
        Self {
            id: id.to_owned(),
            header: header.clone(),
            engine: Default::default(),
            status: RunStatus::Running,
            t_ms: None,
            remaining_ms: None,
            step: None,
            steps_ended: BTreeMap::new(),
            jobs: Vec::new(),
            places: HashMap::new(),
            counts: Vec::new(),
            errors: BTreeMap::new(),
            rates: Rates::new(),
            last: Rates::new(),
            judge: RunReader::new(id.to_owned(), RunStatus::Running, header),
            stage: None,
            verdicts: [0; LEVELS.len()],
            doubts: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Name of its record, where it is known.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The run's own name and its command.
    pub fn name(&self) -> (&str, &str) {
        (&self.header.name, &self.header.command)
    }

    /// The step in progress.
    pub fn step(&self) -> Option<&str> {
        self.step.as_ref().map(|(_, _, name)| name.as_str())
    }

    /// Figures of steps that have ended which are invalid.
    pub fn invalid_figures(&self) -> u64 {
        let levels = LEVELS.iter().zip(self.verdicts);
        let invalid = levels.filter(|(level, _)| **level == VerdictLevel::Invalid);
        invalid.map(|(_, n)| n).sum()
    }

    /// Takes the next event of the run.
    pub fn take(&mut self, event: &Event) {
        self.judge.take_event(0, event);
        match event {
            Event::Step { step, of, name, .. } => {
                self.begin_step();
                self.step = Some((*step, *of, name.clone()));
            }
            Event::Jobs { names, hosts } => self.begin_jobs(names, hosts),
            Event::EngineStarted {
                engine, version, ..
            } => self.engine = (engine.clone(), version.clone()),
            Event::Sample(sample) => self.sample(sample),
            Event::Interval { t_ms, remaining_ms } => {
                self.t_ms = Some(*t_ms);
                self.remaining_ms = *remaining_ms;
                self.last = std::mem::take(&mut self.rates);
            }
            Event::Finished { results } => self.count_errors(results),
            Event::StepEnded { outcome } => self.end_step(*outcome),
            Event::Stage { .. } => self.stage = Some(event.clone()),
            Event::StageEnded { .. } => self.stage = None,
            Event::Failure(failure) => count(&mut self.failures, word(&failure.kind)),
            Event::Ended { status } => {
                self.begin_step();
                self.status = *status;
            }
            _ => {}
        }
    }

    /// Nothing is in progress any more of what was.
    fn begin_step(&mut self) {
        self.step = None;
        self.remaining_ms = None;
        self.rates.clear();
        self.last.clear();
    }

    fn begin_jobs(&mut self, names: &[String], hosts: &[String]) {
        let host = |place: usize| hosts.get(place).cloned().unwrap_or_default();
        let jobs = names.iter().enumerate();
        self.jobs = jobs.map(|(at, name)| (name.clone(), host(at))).collect();
        self.places.clear();
    }

    fn sample(&mut self, sample: &Sample) {
        self.rates.entry(sample.dir).or_default().add(sample);
        let key = (sample.job, sample.dir);
        let mut place = match self.places.get(&key) {
            Some(known) => *known,
            None => Place {
                counts: self.counts_of(sample),
                io_end_ms: 0,
                interval_ms: 0,
            },
        };
        place.interval_ms = place.interval_ms.max(sample.span_ms);
        let (_, counts) = &mut self.counts[place.counts];
        counts.ios = counts.ios.saturating_add(sample.ios);
        counts.bytes = counts.bytes.saturating_add(sample.bytes);
        if let Some(stall_ms) = sample.stall_after(place.io_end_ms, place.interval_ms) {
            counts.stalls += 1;
            counts.stalled_ms = counts.stalled_ms.saturating_add(stall_ms);
        }
        for (counts, told) in [
            (&mut counts.clat, &sample.clat),
            (&mut counts.lat, &sample.lat),
        ] {
            if let Some(histogram) = told {
                counts.get_or_insert_default().add(histogram);
            }
        }
        if sample.ios > 0 {
            place.io_end_ms = place.io_end_ms.max(sample.t_ms);
        }
        self.places.insert(key, place);
    }

    /// Where the counts of a job and direction stand, from now on.
    fn counts_of(&mut self, sample: &Sample) -> usize {
        let job = self.jobs.get(sample.job as usize).cloned();
        let (mut name, mut host) = job.unwrap_or_default();
        let known = |counts: &[(SeriesKey, IoCounts)], name: &str, host: &str| {
            let is_it = |(key, _): &(SeriesKey, IoCounts)| {
                (key.0.as_str(), key.1.as_str(), key.2) == (name, host, sample.dir)
            };
            counts.iter().position(is_it)
        };
        if known(&self.counts, &name, &host).is_none() && self.counts.len() >= SERIES_MAX {
            (name, host) = (FURTHER.to_owned(), String::new());
        }
        known(&self.counts, &name, &host).unwrap_or_else(|| {
            self.counts
                .push(((name, host, sample.dir), IoCounts::default()));
            self.counts.len() - 1
        })
    }

    /// Sums over hosts stand beside their parts, which are counted.
    fn count_errors(&mut self, results: &Results) {
        let parts = results.jobs.iter().filter(|job| !job.is_sum_of_clients());
        for job in parts {
            let Some(total) = job.total_errors else {
                continue;
            };
            let of_dirs = job.directions();
            let of_dirs: Vec<(Option<Direction>, u64)> = of_dirs
                .filter_map(|(dir, result)| Some((Some(dir), result.errors?)))
                .collect();
            let told: u64 = of_dirs.iter().map(|(_, errors)| errors).sum();
            // What no direction has: syncs, and all where the engine tells the sum alone.
            let rest = total.saturating_sub(told);
            let rest = (rest > 0 || of_dirs.is_empty()).then_some((None, rest));
            for (dir, errors) in of_dirs.into_iter().chain(rest) {
                let (name, host) = series_of(job);
                let mut key = (name, host, dir);
                if !self.errors.contains_key(&key) && self.errors.len() >= SERIES_MAX {
                    key = (FURTHER.to_owned(), String::new(), None);
                }
                let counted = self.errors.entry(key).or_default();
                *counted = counted.saturating_add(errors);
            }
        }
    }

    fn end_step(&mut self, outcome: Outcome) {
        count(&mut self.steps_ended, word(&outcome));
        self.begin_step();
        let next = RunReader::new(self.id.clone(), RunStatus::Running, &self.header);
        let mut judge = std::mem::replace(&mut self.judge, next);
        if let Some(stage) = &self.stage {
            self.judge.take_event(0, stage);
        }
        // What was stopped is measured again.
        if outcome != Outcome::Interrupted {
            let engine = (&mut judge.doc.engine, &mut judge.doc.engine_version);
            if engine.0.is_empty() {
                (*engine.0, *engine.1) = self.engine.clone();
            }
            self.count_verdicts(&judge.finish());
        }
    }

    fn count_verdicts(&mut self, step: &RunDocument) {
        let jobs = verdict::results(step);
        let results = jobs.iter().flat_map(|job| job.directions());
        for verdict in results.filter_map(|(_, result)| result.verdict.as_ref()) {
            let place = LEVELS.iter().position(|level| *level == verdict.level);
            self.verdicts[place.unwrap_or(0)] += 1;
            for reason in verdict.against() {
                *self.doubts.entry(reason.kind).or_default() += 1;
            }
        }
    }
}

/// Name and host of a job whose figures these are.
fn series_of(job: &JobResult) -> (String, String) {
    (
        job.name.clone(),
        fathom_analysis::hosts::label_of(job).unwrap_or_default(),
    )
}

fn count(counts: &mut BTreeMap<String, u64>, of: String) {
    *counts.entry(of).or_default() += 1;
}

/// The word that a record has for it.
fn word(kind: &impl Serialize) -> String {
    let value = serde_json::to_value(kind).unwrap_or_default();
    value.as_str().unwrap_or("other").to_owned()
}
