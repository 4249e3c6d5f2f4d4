//! Gathers the points of a campaign while its events go by.

use std::collections::{BTreeMap, HashMap};

use fathom_model::result::LatencyTarget;
use fathom_model::{
    Direction, DirectionResult, Entry, Event, Failure, Histogram, JobResult, Outcome, Point,
    ReasonKind, StageEnd, VerdictLevel,
};

use super::{Curve, PointResult, RepeatedFigures, Sweep, SweepOutcome, engines_of};
use crate::{Estimate, groups};

/// Makes a [`Sweep`] of events taken in order.
///
/// A measurement has ended when its figures ([`Event::Finished`]) or a failure
/// are there *and* something follows it that says that nothing more comes: the
/// next step, a point left out, or the run's end, unless that says interrupted.
/// Engines give the figures first and the failures behind them, and figures of
/// a stopped job too, so figures alone prove nothing. What has not ended is
/// [`SweepOutcome::Unfinished`], and a run that goes on measures it again.
///
/// The last ended measurement of a repetition counts: a point may have been run
/// again after a kill or a failure. Samples are passed over, so it takes memory
/// for the measurements only.
#[derive(Debug, Default)]
pub struct SweepCollector {
    points: Vec<Gathered>,
    /// Places in `points` by [`Point::id`].
    places: HashMap<String, usize>,
    /// The step in progress, when it is a point.
    attempt: Option<StepAttempt>,
    /// The last load that was to become steady did not.
    unsteady: bool,
    /// What measures, as far as it has been told.
    engine: Option<String>,
}

/// What stands beside the figures of points that are measured all the same.
const UNSTEADY: &str = "the device had not become steady before (the limit of rounds is soft)";

/// A point and what is known of each repetition.
#[derive(Debug)]
struct Gathered {
    point: Point,
    repetitions: BTreeMap<u32, Repetition>,
}

/// What came of one repetition.
#[derive(Debug)]
enum Repetition {
    Done(MeasuredFigures),
    Failed(Vec<String>),
    Skipped(String),
    Unfinished,
}

impl Repetition {
    fn has_ended(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Failed(_))
    }
}

/// A step while its events go by.
#[derive(Debug)]
struct StepAttempt {
    place: usize,
    repetition: u32,
    jobs: Vec<JobResult>,
    failures: Vec<String>,
    engine: Option<String>,
}

/// The figures of one measurement.
#[derive(Debug, Default)]
struct MeasuredFigures {
    directions: BTreeMap<Direction, Rates>,
    latency_targets: Vec<LatencyTarget>,
    verdict: VerdictLevel,
    doubts: Vec<String>,
    engine: Option<String>,
}

/// One direction of one measurement, all jobs together.
#[derive(Debug)]
struct Rates {
    bw_bytes: f64,
    iops: f64,
    clat_mean_ns: Option<f64>,
    clat: Option<Histogram>,
    clat_max_ns: Option<u64>,
    percentiles_ns: Vec<(f64, u64)>,
}

impl SweepCollector {
    /// A collector that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    pub fn take(&mut self, entry: &Entry) {
        match &entry.event {
            Event::Step { point, .. } => {
                self.end_step(false);
                self.attempt = point.as_deref().map(|point| self.begin(point));
            }
            // The points behind a stage that was found or made steady are good.
            Event::StageEnded { end, .. } => {
                self.unsteady = matches!(end, StageEnd::NotAttained { .. });
            }
            Event::StepEnded { outcome } => self.end_step(*outcome != Outcome::Interrupted),
            Event::Skipped { point, reason, .. } => {
                let place = self.place_of(point);
                let skipped = Repetition::Skipped(reason.clone());
                self.keep(place, point.repetition, skipped);
            }
            Event::Resumed { .. } | Event::Ended { .. } => self.end_step(false),
            Event::EngineStarted {
                engine, version, ..
            } => {
                self.engine = version.clone().or_else(|| Some(engine.clone()));
                // With figures it is over, and what starts is for the next step.
                if let Some(attempt) = self.attempt.as_mut().filter(|it| it.jobs.is_empty()) {
                    attempt.engine.clone_from(&self.engine);
                }
            }
            Event::Finished { results } => {
                if let Some(attempt) = &mut self.attempt {
                    // Imported figures name theirs, and none is started for them.
                    let named = || results.engine_version.clone();
                    attempt.engine = attempt.engine.take().or_else(named);
                    attempt.jobs.extend(results.jobs.iter().cloned());
                }
            }
            Event::Failure(failure) => {
                if let Some(attempt) = &mut self.attempt {
                    attempt.fail(failure);
                }
            }
            _ => {}
        }
    }

    /// The curves of everything taken so far.
    pub fn finish(mut self) -> Sweep {
        self.end_step(false);
        let mut sweep = Sweep::default();
        let mut places: HashMap<String, usize> = HashMap::new();
        for gathered in self.points {
            let name = &gathered.point.series;
            let place = *places.entry(name.clone()).or_insert_with(|| {
                sweep.series.push(Curve {
                    name: name.clone(),
                    x: gathered.point.x.clone(),
                    points: Vec::new(),
                });
                sweep.series.len() - 1
            });
            sweep.series[place].points.push(gathered.result());
        }
        for series in &mut sweep.series {
            // Without a number on the x axis in the order of the plan, behind the others.
            let x = |result: &PointResult| result.point.x_value().unwrap_or(u64::MAX);
            series.points.sort_by_key(x);
            doubt_mixture(series);
        }
        sweep
    }

    fn begin(&mut self, point: &Point) -> StepAttempt {
        let place = self.place_of(point);
        let gathered = &mut self.points[place];
        if gathered
            .repetitions
            .values()
            .all(|known| matches!(known, Repetition::Skipped(_)))
        {
            gathered.point = point.clone();
        }
        StepAttempt {
            place,
            repetition: point.repetition,
            jobs: Vec::new(),
            failures: Vec::new(),
            engine: self.engine.clone(),
        }
    }

    fn place_of(&mut self, point: &Point) -> usize {
        let points = &mut self.points;
        *self.places.entry(point.id.clone()).or_insert_with(|| {
            points.push(Gathered {
                point: point.clone(),
                repetitions: BTreeMap::new(),
            });
            points.len() - 1
        })
    }

    /// Ends the step in progress; unless it `has_ended` it was broken off.
    fn end_step(&mut self, has_ended: bool) {
        if let Some(attempt) = self.attempt.take() {
            let (place, repetition) = (attempt.place, attempt.repetition);
            let mut came = match has_ended {
                true => attempt.end(),
                false => Repetition::Unfinished,
            };
            if let (Repetition::Done(measured), true) = (&mut came, self.unsteady) {
                measured.doubt(UNSTEADY);
            }
            self.keep(place, repetition, came);
        }
    }

    /// What has ended replaces whatever was known; the rest only what has not.
    fn keep(&mut self, place: usize, repetition: u32, came: Repetition) {
        let known = self.points[place].repetitions.entry(repetition);
        let known = known.or_insert(Repetition::Unfinished);
        if came.has_ended() || !known.has_ended() {
            *known = came;
        }
    }
}

impl StepAttempt {
    fn fail(&mut self, failure: &Failure) {
        let reason = failure.sentence();
        if !self.failures.contains(&reason) {
            self.failures.push(reason);
        }
    }

    fn end(mut self) -> Repetition {
        if self.failures.is_empty() && self.jobs.is_empty() {
            return Repetition::Unfinished;
        }
        if self.failures.is_empty() {
            let failed = self.jobs.iter().filter(|job| job.has_failed());
            let reason = |job: &JobResult| format!("{}: error {}", job.name, job.error);
            self.failures = failed.map(reason).collect();
        }
        let mut measured = MeasuredFigures::of(&self.jobs);
        measured.engine = self.engine;
        if self.failures.is_empty() && measured.directions.is_empty() {
            self.failures.push("the job moved no data".to_owned());
        }
        match self.failures.is_empty() {
            true => Repetition::Done(measured),
            false => Repetition::Failed(self.failures),
        }
    }
}

impl MeasuredFigures {
    fn of(jobs: &[JobResult]) -> Self {
        let mut measured = Self::default();
        let single = |job: &&JobResult| !job.is_sum_of_clients();
        let jobs: Vec<&JobResult> = jobs.iter().filter(single).collect();
        let targets = jobs.iter().filter_map(|job| job.latency_target);
        measured.latency_targets = targets.collect();
        let groups = groups(jobs.iter().copied());
        for dir in Direction::MEASURED {
            let parts: Vec<&DirectionResult> = jobs
                .iter()
                .flat_map(|job| job.directions())
                .filter(|(of, result)| *of == dir && has_moved(result))
                .map(|(_, result)| result)
                .collect();
            let rates = groups.iter().filter(|group| group.dir == dir);
            let rates: Vec<(f64, f64)> = rates.map(|group| (group.bw_bytes, group.iops)).collect();
            if rates.len() > 1 {
                let text = "jobs of several groups are added up as if they ran side by side";
                measured.doubt(text);
            }
            let levels = parts
                .iter()
                .filter_map(|part| Some(part.verdict.as_ref()?.level));
            measured.verdict = levels.fold(measured.verdict, VerdictLevel::max);
            for doubt in parts.iter().flat_map(|part| part.kinds()) {
                // What it is about, the number of I/Os, is not shown of points.
                if doubt != ReasonKind::RoundedCounts {
                    measured.doubt(doubt.meaning());
                }
            }
            if let Some(rates) = Rates::of(&parts, &rates) {
                measured.directions.insert(dir, rates);
            }
        }
        measured
    }

    fn doubt(&mut self, text: &str) {
        if !self.doubts.iter().any(|known| known == text) {
            self.doubts.push(text.to_owned());
        }
    }
}

impl Rates {
    /// All jobs together: `parts` are theirs, `groups` the bandwidth and IOPS
    /// of their groups. `None` when nothing was moved.
    fn of(parts: &[&DirectionResult], groups: &[(f64, f64)]) -> Option<Self> {
        let (bw_bytes, iops) = match parts {
            [] => return None,
            // As the engine says, to the digit.
            [one] => (one.bw_bytes, one.iops),
            _ => groups
                .iter()
                .fold((0.0, 0.0), |sum, group| (sum.0 + group.0, sum.1 + group.1)),
        };
        let clats = || parts.iter().filter_map(|part| part.clat.as_ref());
        let all_have_clat = clats().count() == parts.len();
        let weighted = parts.iter().filter_map(|part| {
            let clat = part.clat.as_ref()?;
            Some((clat.mean_ns, clat.n.unwrap_or(part.total_ios) as f64))
        });
        let (sum, n) = weighted.fold((0.0, 0.0), |(sum, n), (mean, of)| (sum + mean * of, n + of));
        let histograms = clats().filter_map(|clat| clat.histogram.as_ref());
        let whole = histograms.clone().count() == parts.len();
        Some(Self {
            bw_bytes,
            iops,
            clat_mean_ns: match parts {
                [one] => one.clat.as_ref().map(|clat| clat.mean_ns),
                _ => (all_have_clat && n > 0.0).then(|| sum / n),
            },
            clat: whole.then(|| merged(histograms)).flatten(),
            clat_max_ns: largest(clats().map(|clat| clat.max_ns).filter(|_| all_have_clat)),
            percentiles_ns: match parts {
                [one] => one
                    .clat
                    .as_ref()
                    .map_or_else(Vec::new, |clat| clat.percentiles_ns.clone()),
                _ => Vec::new(),
            },
        })
    }
}

/// The largest of all; `None` without any, or where one is not known (0).
fn largest(all: impl Iterator<Item = u64>) -> Option<u64> {
    let mut known = 0;
    for ns in all {
        if ns == 0 {
            return None;
        }
        known = known.max(ns);
    }
    (known > 0).then_some(known)
}

/// Whether a direction did anything; imports may know its rates alone.
fn has_moved(result: &DirectionResult) -> bool {
    result.total_ios > 0 || result.io_bytes > 0 || result.bw_bytes > 0.0
}

/// All of them together; `None` without any.
fn merged<'h>(mut histograms: impl Iterator<Item = &'h Histogram>) -> Option<Histogram> {
    let mut all = histograms.next()?.clone();
    histograms.for_each(|histogram| all.merge(histogram));
    Some(all)
}

impl Gathered {
    fn result(self) -> PointResult {
        let (outcome, mut doubts) = self.outcome();
        let done: Vec<&MeasuredFigures> = self
            .repetitions
            .values()
            .filter_map(|known| match known {
                Repetition::Done(measured) => Some(measured),
                _ => None,
            })
            .collect();
        for doubt in done.iter().flat_map(|measured| &measured.doubts) {
            if !doubts.contains(doubt) {
                doubts.push(doubt.clone());
            }
        }
        let is_mixed =
            |measured: &&MeasuredFigures| measured.directions.contains_key(&Direction::Mixed);
        if done.iter().any(is_mixed) {
            doubts.push("reads and writes were reported as one: no figures of either".to_owned());
        }
        let mut engines: Vec<String> = Vec::new();
        for engine in done.iter().filter_map(|measured| measured.engine.as_ref()) {
            if !engines.contains(engine) {
                engines.push(engine.clone());
            }
        }
        PointResult {
            outcome,
            engines,
            read: figures(&done, Direction::Read),
            write: figures(&done, Direction::Write),
            trim: figures(&done, Direction::Trim),
            latency_targets: (done.iter())
                .flat_map(|measured| measured.latency_targets.iter().copied())
                .collect(),
            verdict: (done.iter().map(|measured| measured.verdict))
                .max()
                .unwrap_or_default(),
            doubts,
            point: self.point,
        }
    }

    /// What came of all repetitions together, and what is to know of those that
    /// gave no figures although others did.
    fn outcome(&self) -> (SweepOutcome, Vec<String>) {
        let several = self.repetitions.len() > 1;
        let named = |repetition: u32, text: &str| match several {
            true => format!("repetition {repetition}: {text}"),
            false => text.to_owned(),
        };
        let (mut reasons, mut missing, mut skipped, mut done) = (vec![], vec![], None, false);
        for (&repetition, known) in &self.repetitions {
            match known {
                Repetition::Done(_) => done = true,
                Repetition::Failed(why) => {
                    reasons.extend(why.iter().map(|reason| named(repetition, reason)));
                }
                Repetition::Skipped(why) => {
                    missing.push(named(repetition, &format!("left out: {why}")));
                    skipped = Some(why.clone());
                }
                Repetition::Unfinished => missing.push(named(repetition, "not finished")),
            }
        }
        if !reasons.is_empty() {
            return (SweepOutcome::Failed(reasons), missing);
        }
        match skipped {
            _ if done => (SweepOutcome::Done, missing),
            Some(why) => (SweepOutcome::Skipped(why), Vec::new()),
            None => (SweepOutcome::Unfinished, Vec::new()),
        }
    }
}

/// Versions of an engine cost different amounts of CPU for an I/O and count
/// differently: a step in a curve may be theirs.
fn doubt_mixture(series: &mut Curve) {
    let engines = engines_of(&series.points);
    if engines.len() < 2 {
        return;
    }
    let doubt = format!(
        "points of the series were measured by different engines: {}",
        engines.join(", ")
    );
    for point in &mut series.points {
        if point.outcome == SweepOutcome::Done {
            point.doubts.push(doubt.clone());
        }
    }
}

/// One direction over all repetitions that measured it.
fn figures(done: &[&MeasuredFigures], dir: Direction) -> Option<RepeatedFigures> {
    let rates: Vec<&Rates> = done
        .iter()
        .filter_map(|measured| measured.directions.get(&dir))
        .collect();
    let estimate = |figure: fn(&Rates) -> Option<f64>| {
        let values: Vec<f64> = rates.iter().copied().filter_map(figure).collect();
        Estimate::of(&values)
    };
    let histograms = rates.iter().filter_map(|rates| rates.clat.as_ref());
    // Percentiles of some repetitions would not be those of the point.
    let whole = histograms.clone().count() == rates.len();
    Some(RepeatedFigures {
        bw_bytes: estimate(|rates| Some(rates.bw_bytes))?,
        iops: estimate(|rates| Some(rates.iops))?,
        clat_mean_ns: estimate(|rates| rates.clat_mean_ns),
        clat: whole.then(|| merged(histograms)).flatten(),
        clat_max_ns: largest(rates.iter().map(|rates| rates.clat_max_ns.unwrap_or(0))),
        percentiles_ns: match rates.as_slice() {
            [one] if one.clat.is_none() => one.percentiles_ns.clone(),
            _ => Vec::new(),
        },
    })
}
