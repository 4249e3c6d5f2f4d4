//! Results in the formats of fio 3.33, so that tools made for fio read them.
//!
//! [`render`] writes what fio would print: text for people ([`normal`]), lines
//! of semicolons ([`terse`]) and JSON, with or without histograms ([`json`]).
//! The layout is fio's to the byte. What fio's formats have and [`Results`] do
//! not is in [`FormatFacts`]; where both know nothing, the figure is written as 0, as
//! fio writes what it did not measure.

use std::collections::BTreeMap;

use fathom_model::result::LatencyTarget;
use fathom_model::{Direction, DirectionResult, JobResult, Latency, Results};
use jiff::tz::TimeZone;

pub use super::stream::OutputFormat;
pub use classes::LatencyClasses;

mod classes;
mod figures;
mod json;
mod normal;
mod terse;

/// The version whose formats are written.
const LAYOUT: &str = "fio-3.33";

/// What a run knows beside its [`Results`] and fio's formats show.
#[derive(Debug, Clone)]
pub struct FormatFacts {
    /// Version of the terse format, 2 to 5, as `--terse-version` has it.
    pub terse_version: u8,
    /// In which the time of the report is written.
    pub time_zone: TimeZone,
    /// What was announced at the start of the run, in the order of the job file.
    pub sections: Vec<ShownSection>,
    /// Options of `[global]` in their order; when empty, those of the results.
    pub global_options: Vec<(String, String)>,
    /// Of each job of the results, in the same order; may be shorter.
    pub jobs: Vec<JobFacts>,
}

/// The machine's time zone. jiff asks for its name and reads the whole of
/// /usr/share/zoneinfo to find that: hundreds of calls at the end of every run,
/// for a file that says it all itself (tzset(3)).
fn local_zone() -> TimeZone {
    if std::env::var_os("TZ").is_some() {
        return TimeZone::system();
    }
    match std::fs::read("/etc/localtime") {
        Ok(rules) => TimeZone::tzif("", &rules).unwrap_or_else(|_| TimeZone::system()),
        Err(_) => TimeZone::UTC,
    }
}

impl Default for FormatFacts {
    fn default() -> Self {
        Self {
            terse_version: 3,
            time_zone: local_zone(),
            sections: Vec::new(),
            global_options: Vec::new(),
            jobs: Vec::new(),
        }
    }
}

/// A section of the job file, as the text for people announces it.
#[derive(Debug, Clone, Default)]
pub struct ShownSection {
    /// Name of the section.
    pub name: String,
    /// Reporting group, counted from 0.
    pub group: u32,
    /// `read`, `randrw`, … as the option `rw` has it.
    pub rw: String,
    /// Smallest and largest block in bytes of reads, writes, trims.
    pub block_bytes: [(u64, u64); 3],
    /// The option `ioengine`.
    pub ioengine: String,
    /// The option `iodepth`.
    pub iodepth: u32,
    /// The option `numjobs`.
    pub numjobs: u32,
    /// Whether its jobs are threads.
    pub is_thread: bool,
}

/// What one job knows beside its [`JobResult`].
#[derive(Debug, Clone, Default)]
pub struct JobFacts {
    /// Its own options in their order; when empty, those of the results.
    pub options: Vec<(String, String)>,
    /// When it began, ms since 1970 UTC; written only when known (fio ≥ 3.34).
    pub start_ms: Option<u64>,
    /// Time left in s; `None` when it has ended.
    pub eta_s: Option<u64>,
    /// Time since the start of the run in s.
    pub elapsed_s: u64,
    /// Process or thread of the first member.
    pub pid: u32,
    /// What failed, in words: shown behind the error's number.
    pub error_text: String,
    /// Run times of all members added up, in ms; `None`: the job's own.
    pub runtime_sum_ms: Option<u64>,
    /// I/Os by the size of the batch they were submitted in, percent: 0, up to
    /// 4, 8, 16, 32, 64 and more.
    pub submit_percent: [f64; 7],
    /// The same of completions.
    pub complete_percent: [f64; 7],
    /// The option `iodepth`; 0 for a job that never began.
    pub iodepth: u32,
    /// The option `percentile_list`, which terse also shows of idle directions;
    /// when empty, the percents that some direction has.
    pub percentiles: Vec<f64>,
    /// Completion latencies by class; `None`: counted from the histograms,
    /// whose buckets can lie across the border of a class.
    pub latency_classes: Option<LatencyClasses>,
}

impl JobFacts {
    /// What fio writes of the search for a depth of every job that began: of one
    /// without `latency_target` the defaults of its options.
    pub fn latency(&self, job: &JobResult) -> Option<LatencyTarget> {
        let none = || LatencyTarget {
            depth: self.iodepth,
            target_ns: 0,
            percentile: 100.0,
            window_us: 0,
        };
        let began = self.iodepth > 0;
        job.latency_target.or_else(|| began.then(none))
    }
}

/// Writes `results` as fio 3.33 would.
pub fn render(results: &Results, facts: &FormatFacts, format: OutputFormat) -> String {
    let report = OutputReport::new(results, facts);
    match format {
        OutputFormat::Normal => normal::render(&report),
        OutputFormat::Terse => terse::render(&report),
        OutputFormat::Json => json::render(&report, false),
        OutputFormat::JsonPlus => json::render(&report, true),
    }
}

/// Writes all formats one after the other, as fio does with
/// `--output-format=terse,json+,normal`: what an engine keeps of a run, and
/// [`super::stream::select`] takes apart again.
pub fn render_all(results: &Results, facts: &FormatFacts) -> String {
    let formats = [
        OutputFormat::Terse,
        OutputFormat::JsonPlus,
        OutputFormat::Normal,
    ];
    formats
        .map(|format| render(results, facts, format))
        .concat()
}

/// Whether percentiles are of lat: then so are the latencies by priority (stat.c,
/// add_ddir_status_json).
fn has_lat_percentiles(result: &fathom_model::DirectionResult) -> bool {
    let lat = result.lat.as_ref();
    lat.is_some_and(|lat| !lat.percentiles_ns.is_empty())
}

/// What is to be written, with what all formats need of it.
struct OutputReport<'a> {
    results: &'a Results,
    facts: &'a FormatFacts,
    groups: BTreeMap<(u32, Direction), ReportingGroup>,
    /// Of jobs without facts, directions without I/O, latencies not measured.
    no_facts: JobFacts,
    idle: DirectionResult,
    unmeasured: Latency,
}

/// One direction of a reporting group.
#[derive(Debug, Clone, Default, PartialEq)]
struct ReportingGroup {
    io_bytes: u64,
    bw_min: u64,
    bw_max: u64,
    runtime_ms_min: u64,
    runtime_ms_max: u64,
}

impl ReportingGroup {
    /// Bytes per second of the longest run time.
    fn bw_bytes(&self) -> u64 {
        figures::per_second(self.io_bytes, self.runtime_ms_max)
    }

    fn add(&mut self, result: &DirectionResult) {
        let bw = figures::per_second(result.io_bytes, result.runtime_ms);
        let is_first = self.runtime_ms_max == 0;
        let lowest = |old: u64, new: u64| if is_first { new } else { old.min(new) };
        self.bw_min = lowest(self.bw_min, bw);
        self.bw_max = self.bw_max.max(bw);
        self.runtime_ms_min = lowest(self.runtime_ms_min, result.runtime_ms);
        self.runtime_ms_max = self.runtime_ms_max.max(result.runtime_ms);
        self.io_bytes = self.io_bytes.saturating_add(result.io_bytes);
    }
}

impl<'a> OutputReport<'a> {
    fn new(results: &'a Results, facts: &'a FormatFacts) -> Self {
        let mut groups: BTreeMap<(u32, Direction), ReportingGroup> = BTreeMap::new();
        for job in &results.jobs {
            for (dir, result) in job.directions().filter(|(_, dir)| dir.runtime_ms > 0) {
                groups.entry((job.group, dir)).or_default().add(result);
            }
        }
        Self {
            results,
            facts,
            groups,
            no_facts: JobFacts::default(),
            idle: DirectionResult::default(),
            unmeasured: Latency::default(),
        }
    }

    /// The jobs with their facts.
    fn jobs(&self) -> impl Iterator<Item = (&'a JobResult, &JobFacts)> {
        let facts = self
            .facts
            .jobs
            .iter()
            .map(Some)
            .chain(std::iter::repeat(None));
        let jobs = self.results.jobs.iter().zip(facts);
        jobs.map(|(job, facts)| (job, facts.unwrap_or(&self.no_facts)))
    }

    /// The directions that JSON and terse show, also when they are idle.
    fn blocks<'s>(&'s self, job: &'s JobResult, with_trim: bool) -> Vec<GroupDirection<'s>> {
        let is_unified = job.mixed.is_some() && job.directions().count() == 1;
        let mut blocks = Vec::with_capacity(4);
        if !is_unified {
            blocks.push((Direction::Read, &job.read));
            blocks.push((Direction::Write, &job.write));
            if with_trim {
                blocks.push((Direction::Trim, &job.trim));
            }
        }
        if job.mixed.is_some() {
            blocks.push((Direction::Mixed, &job.mixed));
        }
        let block = |(dir, result): (Direction, &'s Option<DirectionResult>)| GroupDirection {
            dir,
            result: result.as_ref().unwrap_or(&self.idle),
            group: self.groups.get(&(job.group, dir)),
        };
        blocks.into_iter().map(block).collect()
    }

    /// The name and version that the formats begin with. Programs look for
    /// `fio-` and the number, and ignore what follows: builds of fio between
    /// releases have a suffix as well.
    fn version(&self) -> String {
        match self.results.engine_version.as_deref() {
            Some(version) if version.starts_with("fio-") => version.to_owned(),
            Some(version) => format!("{LAYOUT}-{version}"),
            None => LAYOUT.to_owned(),
        }
    }

    /// When the figures were taken, as C's ctime(3) writes it.
    fn time(&self) -> Option<String> {
        let ms = i64::try_from(self.results.timestamp_ms?).ok()?;
        let time = jiff::Timestamp::from_millisecond(ms).ok()?;
        let time = time.to_zoned(self.facts.time_zone.clone());
        Some(time.strftime("%a %b %e %H:%M:%S %Y").to_string())
    }
}

/// One direction of a job in its group.
struct GroupDirection<'a> {
    dir: Direction,
    result: &'a DirectionResult,
    group: Option<&'a ReportingGroup>,
}

impl GroupDirection<'_> {
    /// The mean of the intervals' bandwidths in KiB/s, and the group's bandwidth
    /// in bytes per second; `None` without intervals.
    fn bandwidths(&self) -> Option<(f64, u64)> {
        let mean_kib = self.result.bw_intervals.as_ref()?.mean / 1024.0;
        Some((mean_kib, self.group?.bw_bytes()))
    }

    /// The mean of the intervals in percent of the group's bandwidth. fio cuts
    /// the mean to whole KiB/s here (seen with jobs of a few KiB/s).
    fn percent_of_group(&self) -> f64 {
        let (mean, group) = self.bandwidths().unwrap_or_default();
        percent(mean.trunc(), group as f64 / 1024.0)
    }

    /// The same in terse, where fio cuts the group's bandwidth instead.
    fn percent_of_group_terse(&self) -> f64 {
        let (mean, group) = self.bandwidths().unwrap_or_default();
        percent(mean, (group / 1024) as f64)
    }
}

/// At most 100: a group's bandwidth counts the time without intervals too.
fn percent(part: f64, whole: f64) -> f64 {
    let percent = if whole > 0.0 {
        part * 100.0 / whole
    } else {
        0.0
    };
    figures::finite(percent).min(100.0)
}

/// The percents of a job's percentiles: those asked for, else those of a
/// direction that has some.
fn percents(job: &JobResult, facts: &JobFacts) -> Vec<f64> {
    if !facts.percentiles.is_empty() {
        return facts.percentiles.clone();
    }
    let latencies = job.directions().flat_map(|(_, dir)| [&dir.lat, &dir.clat]);
    let of = |latency: &Latency| -> Vec<f64> {
        latency
            .percentiles_ns
            .iter()
            .map(|&(percent, _)| percent)
            .collect()
    };
    let mut lists = latencies.flatten().map(of);
    lists.find(|list| !list.is_empty()).unwrap_or_default()
}
