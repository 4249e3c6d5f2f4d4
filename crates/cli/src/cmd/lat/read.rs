//! Which logs `fathom lat` takes together, and what they say.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context;
use fathom_analysis::latlog::{
    CollectSettings, CollectedLog, LogCollector, Statistics, StatisticsWanted, TooMany,
};
use fathom_analysis::priority::{LimitMisses, MissedLimit};
use fathom_fio_output::log::{
    self, BinLayout, Collect, Histograms, Log, LogError, LogName, Options,
};
use fathom_model::{Exit, LogEntry, LogKind, PrioColumn, units};

use super::{Args, STDIN};
use crate::cmd::ExitError;
use crate::cmd::fiolog::{self, job_of};
use crate::cmd::prio::limits::Descriptors;
use crate::out;

/// Folders below a named one that are looked into.
const DEPTH_MAX: u8 = 8;
/// Logs of one population at most.
const LOGS_MAX: usize = 1024;
/// Jobs whose times differ by more than this part were not the same load.
const SAME_RUNTIME: f64 = 0.1;

/// Logs whose I/Os count as those of one.
pub(super) struct Population {
    /// What it is called.
    pub(super) name: String,
    pub(super) logs: Vec<PathBuf>,
}

impl Population {
    /// Leaves out logs that are there twice: one file by two paths, or a log and the same
    /// compressed beside it.
    fn count_each_once(&mut self) {
        let mut known: Vec<(PathBuf, Option<(u64, u64)>)> = Vec::new();
        self.logs.retain(|log| {
            let plain = match log.extension().and_then(|ending| ending.to_str()) {
                Some("gz") => log.with_extension(""),
                _ => log.clone(),
            };
            let plain = std::path::absolute(&plain).unwrap_or(plain);
            let folder = plain.parent().and_then(|folder| folder.canonicalize().ok());
            let name = plain.file_name().unwrap_or_default();
            let plain = folder.map_or_else(|| plain.clone(), |folder| folder.join(name));
            let file = std::fs::metadata(log)
                .ok()
                .map(|meta| (meta.dev(), meta.ino()));
            let same = |(other, of): &&(PathBuf, Option<(u64, u64)>)| {
                *other == plain || (file.is_some() && *of == file)
            };
            let is_new = known.iter().find(same).is_none();
            match is_new {
                true => known.push((plain, file)),
                false => out::note(format_args!(
                    "fathom: {} is the same log once more, and counted once",
                    log.display()
                )),
            }
            is_new
        });
    }
}

/// A population that was read.
pub(super) struct PopulationRead {
    pub(super) name: String,
    /// Its logs, where there are several.
    pub(super) logs: Vec<String>,
    pub(super) prio: PrioColumn,
    pub(super) lines: u64,
    pub(super) skipped: u64,
    pub(super) notes: Vec<String>,
    pub(super) statistics: Option<Statistics>,
    /// By limit, where limits are known.
    pub(super) limits: Vec<MissedLimit>,
}

/// A log that was read.
struct LogRead {
    /// `None` without a whole line.
    prio: Option<PrioColumn>,
    lines: u64,
    skipped: u64,
    notes: Vec<String>,
    /// Bytes that its latencies take.
    memory: usize,
    parts: Vec<LogCollector>,
    limits: Vec<MissedLimit>,
}

/// What was named on the command line, in populations.
pub(super) fn populations(args: &Args) -> anyhow::Result<Vec<Population>> {
    let mut all = Vec::new();
    for named in &args.files {
        let one = |path: &PathBuf| Population {
            name: match path == Path::new(STDIN) {
                true => "stdin".to_owned(),
                false => path.display().to_string(),
            },
            logs: vec![path.clone()],
        };
        if named.is_dir() {
            all.extend(logs_of(named)?.iter().map(one));
        } else if named == Path::new(STDIN) || named.exists() {
            all.push(one(named));
        } else {
            all.push(of_prefix(named)?);
        }
    }
    if args.merge && all.len() > 1 {
        let name = args.files.iter().map(|named| named.display().to_string());
        all = vec![Population {
            name: name.collect::<Vec<_>>().join(" + "),
            logs: all.into_iter().flat_map(|one| one.logs).collect(),
        }];
    }
    all.iter_mut().for_each(Population::count_each_once);
    if let Some(large) = all.iter().find(|one| one.logs.len() > LOGS_MAX) {
        let (name, n) = (&large.name, large.logs.len());
        let message = format!("{name}: {n} logs; take at most {LOGS_MAX} together");
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    Ok(all)
}

/// The latency logs of all jobs that have a prefix: the whole latencies where there
/// are any, else those of completions, else their histograms.
fn of_prefix(asked: &Path) -> anyhow::Result<Population> {
    let found = fiolog::of_prefix(asked)?;
    let of_kind = |kind: LogKind| -> Vec<PathBuf> {
        let of = |path: &&PathBuf| LogName::of(path).is_some_and(|name| name.kind == kind);
        found.iter().filter(of).cloned().collect()
    };
    let kinds = [
        LogKind::Lat,
        LogKind::Clat,
        LogKind::ClatHistograms,
        LogKind::Slat,
    ];
    let name = asked.display().to_string();
    let logs = kinds.into_iter().map(of_kind).find(|logs| !logs.is_empty());
    let Some(mut logs) = logs else {
        let message = match found.first() {
            Some(other) => format!(
                "{name} has no latency logs; there is {}",
                other.file_name().unwrap_or_default().to_string_lossy()
            ),
            None => format!("there is no file {name}, and no logs {name}_lat.1.log or alike"),
        };
        return Err(input(message));
    };
    logs.sort_by_key(|path| LogName::of(path));
    Ok(Population { name, logs })
}

/// The _lat logs of a folder and of those in it, by depth.
fn logs_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut logs = Vec::new();
    logs_below(folder, DEPTH_MAX, &mut logs)
        .with_context(|| format!("cannot read {}", folder.display()))?;
    if logs.is_empty() {
        let message = format!(
            "{} has no latency logs (names such as randread.log_lat.log)",
            folder.display()
        );
        return Err(ExitError::new(Exit::Missing, message).into());
    }
    logs.sort_by_cached_key(|path| in_order(path));
    Ok(logs)
}

/// Adds the _lat logs of a folder and of those in it; links lead nowhere.
fn logs_below(folder: &Path, depth: u8, to: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in folder.read_dir()? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && depth > 0 {
            logs_below(&path, depth - 1, to)?;
        } else if LogName::of(&path).is_some_and(|name| name.kind == LogKind::Lat) {
            to.push(path);
        }
    }
    Ok(())
}

/// Depths in the order of numbers: 2 before 16.
fn in_order(path: &Path) -> Vec<(u64, String)> {
    let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    parts
        .map(|part| (part.parse().unwrap_or(u64::MAX), part))
        .collect()
}

/// The lines of one part of a log, held to limits where there are any.
struct LatencyLines(LogCollector, Option<LimitMisses>);

impl Collect for LatencyLines {
    #[inline]
    fn add(&mut self, entry: &LogEntry) {
        self.0.add(entry);
        if let Some(misses) = &mut self.1 {
            misses.add(entry);
        }
    }

    fn end(&mut self) {
        self.0.end();
    }
}

pub(super) fn options(args: &Args) -> Options {
    let cpus = || thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(cpus, usize::from);
    args.reading.options(threads, args.skip_bad, true)
}

fn input(message: String) -> anyhow::Error {
    ExitError::new(Exit::Input, message).into()
}

pub(super) fn failed(error: LogError, args: &Args) -> anyhow::Error {
    let advice = match &error {
        LogError::Line { .. } if !args.skip_bad => "; --skip-bad leaves such lines out",
        _ => "",
    };
    input(format!("{error}{advice}"))
}

/// Reads a population, log by log: each takes of the memory what the others left.
pub(super) fn read(population: &Population, args: &Args) -> anyhow::Result<PopulationRead> {
    let names = job_names(&population.logs);
    let mut memory = args.memory;
    let mut all = Vec::new();
    for path in &population.logs {
        let log = read_log(path, memory, args)?;
        memory = memory.saturating_sub(log.memory);
        all.push(log);
    }
    let several = all.len() > 1;
    let mut notes = Vec::new();
    for (log, path) in all.iter_mut().zip(&population.logs) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        notes.extend(log.notes.drain(..).map(|note| match several {
            true => format!("{name}: {note}"),
            false => note,
        }));
    }
    notes.extend(runtimes(&all));
    let prio = one_form(population, &all)?;
    let (lines, skipped) = (
        all.iter().map(|log| log.lines).sum(),
        all.iter().map(|log| log.skipped).sum(),
    );
    let mut limits = Vec::new();
    let logs = all.into_iter().zip(names);
    let logs = logs.map(|(log, (host, job))| {
        add_limits(&mut limits, log.limits);
        CollectedLog {
            host,
            job,
            parts: log.parts,
        }
    });
    let wanted = StatisticsWanted {
        by: &args.by,
        curves: args.wants_curves(),
    };
    let statistics = Statistics::of_logs(logs.collect(), wanted)
        .map_err(|error| too_many(&population.name, error))?;
    if statistics.as_ref().is_some_and(|s| s.averaged) {
        notes.insert(
            0,
            "lines are means over windows (log_avg_msec), or maxima if fio had \
             log_max_value: so are the percentiles; \
             IOPS and bandwidth are not in the log"
                .to_owned(),
        );
    }
    let named = |path: &PathBuf| path.display().to_string();
    Ok(PopulationRead {
        name: population.name.clone(),
        logs: match several {
            true => population.logs.iter().map(named).collect(),
            false => Vec::new(),
        },
        prio,
        lines,
        skipped,
        notes,
        // A mean over a window misses nothing.
        limits: match &statistics {
            Some(statistics) if !statistics.averaged => limits,
            _ => Vec::new(),
        },
        statistics,
    })
}

/// Adds what missed the limits of another log; what the disk counted is known where it is
/// of all of them.
fn add_limits(all: &mut Vec<MissedLimit>, of_log: Vec<MissedLimit>) {
    for more in of_log {
        let same = |one: &&mut MissedLimit| (one.dir, one.limit) == (more.dir, more.limit);
        match all.iter_mut().find(same) {
            Some(one) => {
                (one.n, one.over) = (one.n + more.n, one.over + more.over);
                one.disk = one.disk.zip(more.disk).map(|(a, b)| a + b);
            }
            None => all.push(more),
        }
    }
}

/// Host and job of each log; of two that are called the same, their paths.
fn job_names(logs: &[PathBuf]) -> Vec<(Option<String>, String)> {
    let names: Vec<Option<LogName>> = logs.iter().map(|path| LogName::of(path)).collect();
    let prefix = |name: &Option<LogName>| name.as_ref().map(|name| name.prefix.clone());
    let several = names.iter().any(|name| prefix(name) != prefix(&names[0]));
    let jobs: Vec<Option<String>> = names
        .iter()
        .map(|name| Some(job_of(name.as_ref()?, several)))
        .collect();
    let one = |(place, name): (usize, &Option<LogName>)| {
        let unique = jobs.iter().filter(|job| **job == jobs[place]).count() == 1;
        let job = jobs[place].clone().filter(|_| unique);
        let job = job.unwrap_or_else(|| logs[place].display().to_string());
        (name.as_ref().and_then(|name| name.host.clone()), job)
    };
    names.iter().enumerate().map(one).collect()
}

/// What a reader has to know where jobs did not run for the same time.
fn runtimes(all: &[LogRead]) -> Option<String> {
    let ends = all.iter().filter(|log| log.lines > 0).map(|log| {
        let ends = log.parts.iter().map(LogCollector::last_ms);
        ends.max().unwrap_or(0)
    });
    let (shortest, longest) = (ends.clone().min()?, ends.max()?);
    let differ = (longest - shortest) as f64 > longest as f64 * SAME_RUNTIME;
    differ.then(|| {
        format!(
            "its logs end after {} to {}: rates are over the longest, and jobs that ran one \
             after the other are no one load",
            fathom_model::units::duration(shortest),
            fathom_model::units::duration(longest)
        )
    })
}

/// The form of the priorities, which is to be that of all logs, as what a line is.
fn one_form(population: &Population, all: &[LogRead]) -> anyhow::Result<PrioColumn> {
    let different = |what: &str, first: &Path, other: &Path| {
        input(format!(
            "{}: {} and {} differ in {what}: they are no one population",
            population.name,
            first.display(),
            other.display()
        ))
    };
    let kind = |path: &Path| LogName::of(path).map(|name| name.kind);
    let averaged = |log: &LogRead| log.parts.iter().all(LogCollector::is_averaged);
    let mut with_lines = all
        .iter()
        .zip(&population.logs)
        .filter(|(log, _)| log.lines > 0);
    let Some((first, path)) = with_lines.next() else {
        return Ok(PrioColumn::Absent);
    };
    for (other, other_path) in with_lines {
        let what = if kind(path) != kind(other_path) {
            "the kind of latency"
        } else if averaged(first) != averaged(other) {
            "whether lines are I/Os or means over windows (log_avg_msec)"
        } else if first.prio != other.prio {
            "what they say of priorities (log_prio)"
        } else {
            continue;
        };
        return Err(different(what, path, other_path));
    }
    Ok(first.prio.unwrap_or(PrioColumn::Absent))
}

fn too_many(name: &str, error: TooMany) -> anyhow::Error {
    input(match error {
        TooMany::Intervals(most) => format!(
            "{name} has more than {most} intervals and priorities: take a longer --interval"
        ),
        TooMany::Priorities(most) => {
            format!("{name} has more than {most} priorities: no log of fio has")
        }
    })
}

fn read_log(file: &Path, memory: usize, args: &Args) -> anyhow::Result<LogRead> {
    let kind = LogName::of(file).map(|name| name.kind);
    if let Some(kind) = kind.filter(|&kind| !kind.is_latency() && kind != LogKind::ClatHistograms) {
        return Err(input(format!(
            "{} is a log of {}, not of latencies: take the _lat, _clat or _slat log",
            file.display(),
            kind.holds()
        )));
    }
    let options = options(args);
    let settings = CollectSettings {
        memory: memory / options.threads,
        interval_ms: args.interval,
    };
    if kind == Some(LogKind::ClatHistograms) {
        return histogram_log(file, settings, args);
    }
    let descriptors = match file == Path::new(STDIN) {
        true => Ok(Descriptors::default()),
        false => Descriptors::of_log(file),
    };
    let (descriptors, unknown) = match descriptors {
        Ok(descriptors) => (descriptors, None),
        Err(why) => (Descriptors::default(), Some(why)),
    };
    let limits = descriptors.limits();
    let new = |_| {
        let misses = (!limits.is_empty()).then(|| LimitMisses::new(limits.clone()));
        LatencyLines(LogCollector::new(settings), misses)
    };
    let (file, read) = match file == Path::new(STDIN) {
        true => {
            let name = Path::new("stdin");
            (name, log::read_from(io::stdin().lock(), name, options, new))
        }
        false => (file, log::read(file, options, new)),
    };
    let mut log = match read {
        // Whatever it is called.
        Err(LogError::Histograms { .. }) if file.is_file() => {
            return histogram_log(file, settings, args);
        }
        read => read.map_err(|error| failed(error, args))?,
    };
    let mut misses = LimitMisses::default();
    let parts = std::mem::take(&mut log.parts).into_iter();
    let parts: Vec<LogCollector> = parts
        .map(|LatencyLines(part, of_part)| {
            misses.merge(of_part.unwrap_or_default());
            part
        })
        .collect();
    let mut limits = misses.by_limit();
    for missed in &mut limits {
        missed.disk = descriptors.counted(missed, file);
    }
    let taken = |part: &LogCollector| settings.memory.saturating_sub(part.memory_left());
    Ok(LogRead {
        prio: log.form.map(|form| form.prio),
        lines: log.lines,
        skipped: log.skipped,
        notes: notes(file, &log, args).into_iter().chain(unknown).collect(),
        memory: parts.iter().map(taken).sum(),
        parts,
        limits,
    })
}

/// A log of counts in bins (`write_hist_log`), a line for each interval.
fn histogram_log(file: &Path, settings: CollectSettings, args: &Args) -> anyhow::Result<LogRead> {
    let log = log::read_histograms(file, options(args)).map_err(|error| failed(error, args))?;
    let every_ms = log.interval_ms();
    if let Some(asked) = args.interval.filter(|asked| asked % every_ms.max(1) != 0)
        && log.intervals.len() > 1
    {
        return Err(input(format!(
            "{} has a line every {every_ms} ms: --interval {asked}ms is no multiple of that",
            file.display()
        )));
    }
    let error = log.layout.map_or(0.0, BinLayout::error_percent);
    let mut lines = LogCollector::of_counts(settings, error);
    for line in &log.intervals {
        // fio is late by some ms: to the nearest end of an interval.
        let ended = (line.time_ms + every_ms / 2) / every_ms * every_ms;
        let span = (ended.saturating_sub(every_ms), ended);
        lines.add_counts(span, line.dir, &line.counts);
    }
    lines.end();
    let mut notes = args
        .reading
        .times(log.origin_ms, log.first_ms)
        .map_or_else(Vec::new, |n| vec![n]);
    notes.extend(fiolog::beyond(&log));
    notes.extend(left_out(LeftOut::of_counts(&log)));
    Ok(LogRead {
        prio: (!log.intervals.is_empty()).then_some(PrioColumn::Absent),
        lines: log.intervals.len() as u64,
        skipped: log.skipped,
        notes,
        memory: 0,
        parts: vec![lines],
        limits: Vec::new(),
    })
}

/// What a reader has to know of a log.
fn notes(file: &Path, log: &Log<LatencyLines>, args: &Args) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(args.reading.times(log.origin_ms, log.first_ms));
    notes.extend(args.reading.micros(file, log.form));
    notes.extend(log.traced.as_ref().map(fiolog::traced));
    notes.extend(left_out(LeftOut {
        skipped: log.skipped,
        first_skipped: log.first_skipped.as_ref(),
        cut_gzip: log.cut_gzip,
        cut_bytes: log.cut_bytes,
    }));
    notes
}

/// What is in a file and was not read.
struct LeftOut<'l> {
    skipped: u64,
    first_skipped: Option<&'l (u64, log::LineError)>,
    cut_gzip: bool,
    cut_bytes: u64,
}

impl<'l> LeftOut<'l> {
    fn of_counts(log: &'l Histograms) -> Self {
        Self {
            skipped: log.skipped,
            first_skipped: log.first_skipped.as_ref(),
            cut_gzip: log.cut_gzip,
            cut_bytes: log.cut_bytes,
        }
    }
}

fn left_out(of: LeftOut) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((line, error)) = of.first_skipped {
        notes.push(format!(
            "{} left out, the first: line {line}, column {}: {}",
            units::counted(of.skipped, "malformed line"),
            error.column,
            error.fault
        ));
    }
    if of.cut_gzip {
        notes.push("the compressed file ends before its end: what comes before was read".into());
    }
    if of.cut_bytes > 0 {
        notes.push(format!(
            "the last line has no end ({} bytes) and was left out: cut, or still being written",
            of.cut_bytes
        ));
    }
    notes
}
