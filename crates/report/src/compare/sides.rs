//! Which jobs of two sides are each other's partner, and their figures.

use std::collections::BTreeMap;

use fathom_analysis::compare::{FigureSides, RunValue};
use fathom_model::environment::Target;
use fathom_model::histogram::HISTOGRAM_STEP;
use fathom_model::{Direction, DirectionResult, JobResult, Latency, RunDocument};

use super::differences::{CompareDifference, options_between};
use super::{CompareFigure, CompareRequest, ComparedRun, UnmatchedJob};

/// What a job is, where its name does not tell: jobs that differ in one of these do
/// another thing.
const KIND: [&str; 7] = [
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "iodepth",
    "numjobs",
    "rwmixread",
];
/// I/Os that lie beyond a percentile which is compared: docs/METHODOLOGY.md.
const BEYOND_LEAST: f64 = 10.0;
/// Two-sided 95 % of the normal distribution in standard errors.
const ERRORS_95: f64 = 1.96;
/// I/Os are as long on both sides within this share.
const SAME_LENGTH: f64 = 0.005;

/// A job by its step, its title, and its place among those of the same title.
type JobKey = (Option<String>, String, usize);

/// One figure with its values.
#[derive(Debug)]
pub(super) struct PairedFigure {
    pub step: Option<String>,
    pub job: String,
    pub is_renamed: bool,
    pub dir: Direction,
    pub figure: CompareFigure,
    pub sides: FigureSides,
}

/// Everything that both sides have.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    pub rows: Vec<PairedFigure>,
    pub options: Vec<CompareDifference>,
    pub unmatched: Vec<UnmatchedJob>,
}

/// The jobs of a run by their keys, in their order.
fn jobs(run: &ComparedRun) -> Vec<(JobKey, &JobResult)> {
    let mut seen: BTreeMap<(Option<String>, String), usize> = BTreeMap::new();
    let doc = &run.doc;
    let is_figure = |job: &&JobResult| {
        let step = job.step.as_ref();
        !step.is_some_and(|step| doc.preparations.contains(step))
    };
    (doc.jobs.iter().filter(is_figure))
        .map(|job| {
            let key = (job.step.clone(), job.title(&doc.hosts));
            let place = seen.entry(key.clone()).or_default();
            *place += 1;
            ((key.0, key.1, *place - 1), job)
        })
        .collect()
}

/// The keys of a side: all that any of its runs has, in their order.
fn keys(runs: &[ComparedRun]) -> Vec<JobKey> {
    let mut keys = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    for (key, _) in runs.iter().flat_map(jobs) {
        if known.insert(key.clone()) {
            keys.push(key);
        }
    }
    keys
}

fn find<'r>(run: &'r ComparedRun, key: &JobKey) -> Option<&'r JobResult> {
    let found = jobs(run).into_iter().find(|(other, _)| other == key);
    found.map(|(_, job)| job)
}

impl Pairing {
    pub fn of(request: &CompareRequest) -> Self {
        let (keys_a, mut left) = (keys(&request.a), keys(&request.b));
        let mut pairs: Vec<(JobKey, JobKey)> = Vec::new();
        let mut alone = Vec::new();
        for key in keys_a {
            match left.iter().position(|other| *other == key) {
                Some(place) => pairs.push((key, left.remove(place))),
                None => alone.push(key),
            }
        }
        // What has another name, and is the only one that does the same.
        alone.retain(|key| match partner(request, key, &left) {
            Some(place) => {
                pairs.push((key.clone(), left.remove(place)));
                false
            }
            None => true,
        });
        let mut all = Self::default();
        for (side, keys) in [("a", alone), ("b", left)] {
            all.unmatched
                .extend(keys.into_iter().map(|(step, job, _)| UnmatchedJob {
                    side,
                    step,
                    job,
                    dir: None,
                }));
        }
        for (a, b) in &pairs {
            all.pair(request, a, b);
        }
        all
    }

    fn pair(&mut self, request: &CompareRequest, a: &JobKey, b: &JobKey) {
        let of = |runs: &'_ [ComparedRun], key: &JobKey| -> Vec<(u64, JobResult)> {
            (runs.iter())
                .filter_map(|run| Some((run.started_ms, find(run, key)?.clone())))
                .collect()
        };
        let sides = [of(&request.a, a), of(&request.b, b)];
        let mut earlier = of(&request.earlier, a);
        if a != b {
            earlier.extend(of(&request.earlier, b));
        }
        let is_renamed = (&a.0, &a.1) != (&b.0, &b.1);
        let name = match is_renamed {
            false => a.1.clone(),
            true => format!("{} / {}", a.1, b.1),
        };
        if let [Some((_, one)), Some((_, other))] = [sides[0].first(), sides[1].first()] {
            self.options.extend(options_between(&name, one, other));
        }
        for dir in Direction::MEASURED {
            let has = |side: &[(u64, JobResult)]| {
                side.iter().any(|(_, job)| result_of(job, dir).is_some())
            };
            let lone = match (has(&sides[0]), has(&sides[1])) {
                (true, false) => Some("a"),
                (false, true) => Some("b"),
                _ => None,
            };
            self.unmatched.extend(lone.map(|side| UnmatchedJob {
                side,
                step: a.0.clone(),
                job: name.clone(),
                dir: Some(dir),
            }));
            for figure in CompareFigure::ALL {
                let [mut one, mut other] =
                    [&sides[0], &sides[1]].map(|side| Values::of(side, dir, figure));
                if one.runs.is_empty() || other.runs.is_empty() {
                    continue;
                }
                if figure == CompareFigure::BwBytes && is_as_long(&sides, dir) {
                    continue;
                }
                let earlier = Values::of(&earlier, dir, figure).runs;
                self.rows.push(PairedFigure {
                    step: a.0.clone(),
                    job: name.clone(),
                    is_renamed,
                    dir,
                    figure,
                    sides: FigureSides {
                        a: std::mem::take(&mut one.runs),
                        b: std::mem::take(&mut other.runs),
                        earlier: vec![earlier.iter().map(|run| run.value).collect()],
                        more_is_better: figure.is_rate(),
                        resolution: match figure.percent() {
                            Some(_) => HISTOGRAM_STEP,
                            None => 0.0,
                        },
                        invalid: one.invalid || other.invalid,
                    },
                });
            }
        }
    }
}

/// The only job of the other side that does the same, and the only one here.
fn partner(request: &CompareRequest, key: &JobKey, left: &[JobKey]) -> Option<usize> {
    let kind = |job: &JobResult| KIND.map(|name| job.options.get(name).cloned());
    let of = |runs: &[ComparedRun], key: &JobKey| {
        let job = runs.iter().find_map(|run| find(run, key).map(kind));
        job.filter(|kind| kind.iter().any(Option::is_some))
    };
    let wanted = of(&request.a, key)?;
    let alike = |runs: &[ComparedRun], keys: &[JobKey]| -> Vec<usize> {
        let all = keys.iter().enumerate();
        all.filter(|(_, key)| of(runs, key).as_ref() == Some(&wanted))
            .map(|(place, _)| place)
            .collect()
    };
    let (here, there) = (
        alike(&request.a, &keys(&request.a)),
        alike(&request.b, left),
    );
    match (&here[..], &there[..]) {
        ([_], [place]) => Some(*place),
        _ => None,
    }
}

fn result_of(job: &JobResult, dir: Direction) -> Option<&DirectionResult> {
    let found = job.directions().find(|(other, _)| *other == dir)?.1;
    (found.total_ios > 0 || found.io_bytes > 0).then_some(found)
}

/// Whether an I/O is as long on both sides, so that IOPS say what bandwidth does.
fn is_as_long(sides: &[Vec<(u64, JobResult)>; 2], dir: Direction) -> bool {
    let length = |side: &Vec<(u64, JobResult)>| {
        let all = side.iter().filter_map(|(_, job)| result_of(job, dir));
        let (bytes, ios) = all.fold((0.0, 0.0), |(bytes, ios), one| {
            (bytes + one.io_bytes as f64, ios + one.total_ios as f64)
        });
        (ios > 0.0).then(|| bytes / ios)
    };
    match (length(&sides[0]), length(&sides[1])) {
        (Some(a), Some(b)) => (a - b).abs() <= SAME_LENGTH * a,
        _ => false,
    }
}

/// A job and direction, and all that defines its load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FigureKey {
    pub(crate) step: Option<String>,
    pub(crate) job: String,
    pub(crate) dir: Direction,
    /// Options by name, and what they are done to as `target`.
    pub(crate) load: BTreeMap<String, String>,
}

/// Options that say how long a job runs and what is told of it, not what it does.
const NO_LOAD: [&str; 24] = [
    "clat_percentiles",
    "continue_on_error",
    "description",
    "directory",
    "disable_clat",
    "disable_lat",
    "disable_slat",
    "exitall",
    "filename",
    "filename_format",
    "group_reporting",
    "gtod_reduce",
    "io_size",
    "lat_percentiles",
    "loops",
    "name",
    "percentile_list",
    "ramp_time",
    "runtime",
    "slat_percentiles",
    "startdelay",
    "stonewall",
    "time_based",
    "unified_rw_reporting",
];

/// What a job does, and to what.
fn load(doc: &RunDocument, job: &JobResult) -> BTreeMap<String, String> {
    let is_load = |name: &str| {
        !NO_LOAD.contains(&name) && !name.starts_with("log_") && !name.ends_with("_log")
    };
    let options = job.options.iter().filter(|(name, _)| is_load(name));
    let mut load: BTreeMap<String, String> = options
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let targets = doc.environment.iter().flat_map(|it| &it.targets);
    let mut targets: Vec<String> = targets.filter_map(target).collect();
    targets.sort();
    targets.dedup();
    if !targets.is_empty() {
        load.insert("target".to_owned(), targets.join(", "));
    }
    load
}

/// A device by what it reports of itself, else by its name; files by what they lie on.
fn target(target: &Target) -> Option<String> {
    let below = target.file_system.as_ref();
    let of_files = || below?.device.as_ref();
    let Some(device) = target.device.as_ref().or_else(of_files) else {
        return below.map(|it| format!("{} on {}", it.kind, it.source));
    };
    let own = device.unique_id.as_ref().or(device.serial.as_ref());
    let namespace = device
        .nsid
        .map_or_else(String::new, |nsid| format!(" n{nsid}"));
    Some(match own {
        Some(own) => format!("{own}{namespace}"),
        None => device.name.clone(),
    })
}

/// A figure of every job and direction of a run, of those that may be compared.
pub(crate) fn figure_values(run: &ComparedRun, figure: CompareFigure) -> Vec<(FigureKey, f64)> {
    let mut all = Vec::new();
    for ((step, title, place), job) in jobs(run) {
        let title = match place {
            0 => title,
            place => format!("{title} ({})", place + 1),
        };
        for (dir, _) in job.directions() {
            let found = Values::of(&[(run.started_ms, job.clone())], dir, figure);
            let value = found
                .runs
                .first()
                .filter(|one| !found.invalid && one.value > 0.0);
            if let Some(value) = value {
                let key = FigureKey {
                    step: step.clone(),
                    job: title.clone(),
                    dir,
                    load: load(&run.doc, job),
                };
                all.push((key, value.value));
            }
        }
    }
    all
}

/// The values of a figure on one side.
#[derive(Debug, Default)]
struct Values {
    runs: Vec<RunValue>,
    invalid: bool,
}

impl Values {
    fn of(side: &[(u64, JobResult)], dir: Direction, figure: CompareFigure) -> Self {
        let mut values = Self::default();
        for (at_ms, job) in side {
            let Some(result) = result_of(job, dir) else {
                continue;
            };
            let Some((value, half)) = value(result, figure) else {
                // Too few I/Os in one run are too few.
                return Self::default();
            };
            values.invalid |= job.has_failed() || result.is_invalid();
            values.runs.push(RunValue {
                value,
                own_error: half
                    .filter(|_| value > 0.0)
                    .map(|half| half / ERRORS_95 / value),
                at_ms: *at_ms,
            });
        }
        values
    }
}

/// A figure, and half the width of its own 95 % interval.
fn value(result: &DirectionResult, figure: CompareFigure) -> Option<(f64, Option<f64>)> {
    let rates = result.certainty;
    let latency = || -> Option<&Latency> {
        // Under a rate latency counts from the intended start.
        match result.lag {
            Some(_) => result.lat.as_ref(),
            None => result.clat.as_ref().or(result.lat.as_ref()),
        }
    };
    match figure {
        CompareFigure::Iops => {
            let half = rates.and_then(|rates| rates.iops.half_width());
            (result.total_ios > 0).then_some((result.iops, half))
        }
        CompareFigure::BwBytes => {
            let half = rates.and_then(|rates| rates.bw_bytes.half_width());
            (result.io_bytes > 0).then_some((result.bw_bytes, half))
        }
        CompareFigure::MeanNs => {
            let latency = latency()?;
            let certainty = latency.certainty.as_ref();
            let half = certainty.and_then(|certainty| certainty.mean_ns.half_width());
            Some((latency.mean_ns, half))
        }
        CompareFigure::P50Ns | CompareFigure::P99Ns | CompareFigure::P999Ns => {
            let (latency, percent) = (latency()?, figure.percent()?);
            let beyond = result.total_ios as f64 * (100.0 - percent) / 100.0;
            let value = latency.percentile_ns(percent)?;
            let certainty = latency.certainty.as_ref();
            let half = certainty
                .and_then(|certainty| certainty.percentile(percent))
                .and_then(|certainty| certainty.half_width());
            (beyond >= BEYOND_LEAST).then_some((value as f64, half))
        }
    }
}
