//! `fathom lat`: statistics of fio's latency logs.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::Context;
use fathom_analysis::latlog::{CollectSettings, LogCollector, Statistics, TooMany};
use fathom_engine::fio::log::{self, Collect, Log, LogError, LogName, Options, TimeOrigin};
use fathom_engine::jobfile::value::{self, BareTimeUnit, Base};
use fathom_model::{Exit, LogEntry, LogKind, PrioColumn};
use fathom_report::latlog::{self, LatLog, Leading};

use super::fiolog::LogReading;
use super::{ExitError, Global};
use crate::out;

/// What standard input is called on the command line.
const STDIN: &str = "-";
/// Folders below a named one that are looked into.
const DEPTH_MAX: u8 = 8;

/// Show the statistics of fio's latency logs (write_lat_log)
///
/// For all I/Os, by direction and by priority: share, IOPS, bandwidth, minimum,
/// maximum, mean, standard deviation and percentiles of the latency. Takes every
/// form of the logs: priorities in hexadecimal (log_prio) or as 0 and 1, with
/// offsets, issue times, windows with their maximum; plain or gzip. The last line
/// is left out when it has no end: fio may still be writing it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Percentiles are exact where all latencies fit the memory (4 bytes each, 8 above
4.29 s); beyond, they come from a histogram and are within 0.79 % of the exact
ones. Those over time always do. docs/LATENCY-LOGS.md has every definition.

Examples:
  fathom lat randread.log_lat.log
  fathom lat out_lat.*.log --format csv --head
  fathom lat randread.log_lat.log --interval 10s
  ssh host cat randread.log_lat.log | fathom lat -
  fathom lat ~/sdh_cdl_bench --format csv --head        every log of a folder
  fathom lat randread.log_lat.log.gz --json | jq '.files[0].all.percentiles_ns'")]
pub struct Args {
    /// The logs, or - for standard input; of a folder, all _lat logs in it and below
    #[arg(required = true, value_name = "FILE|DIR")]
    files: Vec<PathBuf>,
    /// The format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: LatencyFormat,
    /// Print a line with the titles of the columns before CSV
    #[arg(long)]
    head: bool,
    /// First column of CSV lines; without, the file when there are several
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Which I/Os: all, direction, priority; without, what differs, in CSV priority
    #[arg(long, value_name = "WHICH", value_enum, value_delimiter = ',')]
    #[arg(hide_possible_values = true)]
    by: Vec<LatencyClassArg>,
    /// Also show what happened over time, a line for each TIME, such as 1s or 500ms
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<u64>,
    /// Memory for exact percentiles; 0: always a histogram
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = memory)]
    memory: usize,
    #[command(flatten)]
    reading: LogReading,
    /// Leave malformed lines out and count them
    #[arg(long)]
    skip_bad: bool,
    /// Also write the latencies of each priority to FILE.PRIORITY.lat, in ns, a line each
    #[arg(long)]
    save_priolat: bool,
    /// Threads; without, one a CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

/// A format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum LatencyFormat {
    /// For people
    #[default]
    Text,
    /// Columns between commas
    Csv,
    /// A document with everything, as with --json
    Json,
}

/// Which I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum LatencyClassArg {
    /// All
    All,
    /// Each direction
    Direction,
    /// Each priority
    Priority,
}

impl From<LatencyClassArg> for latlog::LatencyClass {
    fn from(by: LatencyClassArg) -> Self {
        match by {
            LatencyClassArg::All => Self::All,
            LatencyClassArg::Direction => Self::Direction,
            LatencyClassArg::Priority => Self::Priority,
        }
    }
}

fn interval(text: &str) -> Result<u64, String> {
    let us = value::time_us(text, BareTimeUnit::Seconds).map_err(|fault| fault.to_string())?;
    let ms = u64::try_from(us / 1000).unwrap_or(0);
    match ms > 0 && us % 1000 == 0 {
        true => Ok(ms),
        false => Err("a log's time is in whole milliseconds".to_owned()),
    }
}

fn memory(text: &str) -> Result<usize, String> {
    let bytes = value::size(text, Base::Binary).map_err(|fault| fault.to_string())?;
    usize::try_from(bytes).map_err(|_| "less than nothing".to_owned())
}

/// A log that was read, with its statistics.
struct LogStatistics {
    file: PathBuf,
    log: Log<LatencyLines>,
    statistics: Option<Statistics>,
}

/// Shows statistics.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let json = global.json || args.format == LatencyFormat::Json;
    let mut documents = Vec::new();
    let files = files(&args.files)?;
    let several = files.len() > 1;
    check(&files, args)?;
    if !json && args.format == LatencyFormat::Csv && args.head {
        out::text(latlog::csv_head(leading(args, several, "")));
    }
    for (number, file) in files.iter().enumerate() {
        let done = read(file, args)?;
        if args.save_priolat {
            save(global, &done, args)?;
        }
        if json {
            documents.push(done);
            continue;
        }
        let name = file.display().to_string();
        let shown = shown(&done, args.reading);
        let by: Vec<latlog::LatencyClass> = args.by.iter().map(|&by| by.into()).collect();
        match args.format {
            LatencyFormat::Csv => {
                shown.notes.iter().for_each(|note| {
                    out::note(format_args!("{name}: {note}"));
                });
                out::text(latlog::csv(&shown, &by, leading(args, several, &name)));
            }
            _ => {
                if number > 0 {
                    out::line("");
                }
                out::text(latlog::text(&shown, &by, out::style(global.color)));
            }
        }
        if out::is_stopped() {
            return Ok(Exit::Success);
        }
    }
    if json {
        let logs: Vec<LatLog> = documents
            .iter()
            .map(|done| shown(done, args.reading))
            .collect();
        out::json(&latlog::document(&logs))?;
    }
    Ok(Exit::Success)
}

/// Refuses what cannot be: a pipe is read once, and nothing lies beside it.
fn check(files: &[PathBuf], args: &Args) -> anyhow::Result<()> {
    let exit = Exit::Usage;
    let stdin = files.iter().filter(|file| *file == Path::new(STDIN));
    if stdin.count() > 1 {
        let message = "standard input (-) can be read only once".to_owned();
        return Err(ExitError::new(exit, message).into());
    }
    let is_pipe = |file: &&PathBuf| *file == Path::new(STDIN) || file.exists() && !file.is_file();
    if let Some(pipe) = files.iter().find(is_pipe).filter(|_| args.save_priolat) {
        let message = format!(
            "--save-priolat reads a log twice and writes beside it: {} is no file",
            pipe.display()
        );
        return Err(ExitError::new(exit, message).into());
    }
    Ok(())
}

/// The files that were named, and those of the folders that were.
fn files(named: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for named in named {
        if !named.is_dir() {
            files.push(named.clone());
            continue;
        }
        let mut below = Vec::new();
        logs_below(named, DEPTH_MAX, &mut below)
            .with_context(|| format!("cannot read {}", named.display()))?;
        if below.is_empty() {
            let message = format!(
                "{} has no latency logs (names such as randread.log_lat.log)",
                named.display()
            );
            return Err(ExitError::new(Exit::Missing, message).into());
        }
        below.sort_by_cached_key(|path| in_order(path));
        files.extend(below);
    }
    Ok(files)
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

fn leading<'l>(args: &'l Args, several: bool, file: &'l str) -> Leading<'l> {
    let label = match &args.label {
        Some(label) => Some(("label", label.as_str())),
        None if several => Some(("file", file)),
        None => None,
    };
    Leading {
        label,
        over_time: args.interval.is_some(),
    }
}

fn shown(done: &LogStatistics, reading: LogReading) -> LatLog<'_> {
    LatLog {
        file: done.file.display().to_string(),
        prio: done.log.form.map_or(PrioColumn::Absent, |form| form.prio),
        lines: done.log.lines,
        skipped: done.log.skipped,
        notes: notes(done, reading),
        statistics: done.statistics.as_ref(),
    }
}

/// What a reader has to know of a log.
fn notes(done: &LogStatistics, reading: LogReading) -> Vec<String> {
    let log = &done.log;
    let mut notes = Vec::new();
    if done.statistics.as_ref().is_some_and(|s| s.averaged) {
        notes.push(
            "lines are means over windows (log_avg_msec), or maxima if fio had \
             log_max_value: so are the percentiles; \
             IOPS and bandwidth are not in the log"
                .to_owned(),
        );
    }
    notes.extend(reading.times(log.origin_ms, log.first_ms));
    notes.extend(reading.micros(&done.file, log.form));
    if let Some((line, error)) = &log.first_skipped {
        let plural = if log.skipped == 1 { "" } else { "s" };
        notes.push(format!(
            "{} malformed line{plural} left out, the first: line {line}, column {}: {}",
            log.skipped, error.column, error.fault
        ));
    }
    if log.cut_gzip {
        notes.push("the compressed file ends before its end: what comes before was read".into());
    }
    if log.cut_bytes > 0 {
        notes.push(format!(
            "the last line has no end ({} bytes) and was left out: cut, or still being written",
            log.cut_bytes
        ));
    }
    notes
}

/// The lines of one part of a log.
struct LatencyLines(LogCollector);

impl Collect for LatencyLines {
    #[inline]
    fn add(&mut self, entry: &LogEntry) {
        self.0.add(entry);
    }

    fn end(&mut self) {
        self.0.end();
    }
}

fn options(args: &Args) -> Options {
    let cpus = || thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or_else(cpus, usize::from);
    args.reading.options(threads, args.skip_bad, true)
}

fn input(message: String) -> anyhow::Error {
    ExitError::new(Exit::Input, message).into()
}

fn read(file: &Path, args: &Args) -> anyhow::Result<LogStatistics> {
    if let Some(kind) = LogName::of(file).map(|name| name.kind)
        && !kind.is_latency()
    {
        return Err(input(format!(
            "{} is a log of {}, not of latencies: take the _lat, _clat or _slat log",
            file.display(),
            kind.holds()
        )));
    }
    let options = options(args);
    let settings = CollectSettings {
        memory: args.memory / options.threads,
        interval_ms: args.interval,
    };
    let new = |_| LatencyLines(LogCollector::new(settings));
    let (file, read) = match file == Path::new(STDIN) {
        true => {
            let name = Path::new("stdin");
            (name, log::read_from(io::stdin().lock(), name, options, new))
        }
        false => (file, log::read(file, options, new)),
    };
    let mut log = read.map_err(|error| failed(error, args))?;
    let parts = std::mem::take(&mut log.parts);
    let parts = parts.into_iter().map(|LatencyLines(part)| part).collect();
    let statistics = Statistics::of(parts).map_err(|error| {
        let file = file.display();
        input(match error {
            TooMany::Intervals(most) => format!(
                "{file} has more than {most} intervals and priorities: take a longer --interval"
            ),
            TooMany::Priorities(most) => {
                format!("{file} has more than {most} priorities: no log of fio has")
            }
        })
    })?;
    let file = file.to_owned();
    Ok(LogStatistics {
        file,
        log,
        statistics,
    })
}

fn failed(error: LogError, args: &Args) -> anyhow::Error {
    let advice = match &error {
        LogError::Line { .. } if !args.skip_bad => "; --skip-bad leaves such lines out",
        _ => "",
    };
    input(format!("{error}{advice}"))
}

/// What writes the latencies of each priority; the first error ends it.
#[derive(Default)]
struct LatencyFiles {
    open: BTreeMap<u16, BufWriter<File>>,
    failed: Option<(PathBuf, io::Error)>,
}

/// The lines of a log that are to be written, by one thread in their order.
struct Saving<'f> {
    log: &'f Path,
    prio: PrioColumn,
    files: Arc<Mutex<LatencyFiles>>,
}

impl Saving<'_> {
    fn path(&self, prio: u16) -> PathBuf {
        let prio = match self.prio {
            PrioColumn::Value => format!("0x{prio:04x}"),
            PrioColumn::RealTime | PrioColumn::Absent => prio.to_string(),
        };
        let mut name = self.log.as_os_str().to_owned();
        name.push(format!(".{prio}.lat"));
        name.into()
    }

    fn write(
        &self,
        files: &mut LatencyFiles,
        entry: &LogEntry,
    ) -> Result<(), (PathBuf, io::Error)> {
        let path = || self.path(entry.prio);
        let named = |error| (path(), error);
        let file = match files.open.entry(entry.prio) {
            Slot::Occupied(open) => open.into_mut(),
            Slot::Vacant(new) => {
                crate::cmd::may_write(&path()).map_err(|error| named(io::Error::other(error)))?;
                let file = File::create(path()).map_err(named)?;
                new.insert(BufWriter::new(file))
            }
        };
        writeln!(file, "{}", entry.value).map_err(named)
    }
}

impl Collect for Saving<'_> {
    fn add(&mut self, entry: &LogEntry) {
        let Ok(mut files) = self.files.lock() else {
            return;
        };
        if files.failed.is_none() {
            files.failed = self.write(&mut files, entry).err();
        }
    }
}

/// Writes the latencies of each priority beside the log, in the log's order.
fn save(global: &Global, done: &LogStatistics, args: &Args) -> anyhow::Result<()> {
    let files = Arc::new(Mutex::new(LatencyFiles::default()));
    let options = Options {
        threads: 1,
        // The times do not matter, and each line is to be written once.
        origin: TimeOrigin::Zero,
        ..options(args)
    };
    log::read(&done.file, options, |form| Saving {
        log: &done.file,
        prio: form.prio,
        files: Arc::clone(&files),
    })
    .map_err(|error| failed(error, args))?;
    let mut files = files
        .lock()
        .map_err(|_| anyhow::anyhow!("writing the latencies has failed"))?;
    if let Some((path, error)) = files.failed.take() {
        return Err(error).with_context(|| format!("cannot write {}", path.display()));
    }
    let written = files.open.len();
    for (_, file) in std::mem::take(&mut files.open) {
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)
            .with_context(|| format!("cannot write the latencies of {}", done.file.display()))?;
    }
    if !global.quiet {
        let plural = if written == 1 { "" } else { "s" };
        let log = done.file.display();
        out::note(format_args!("{written} file{plural} written: {log}.*.lat"));
    }
    Ok(())
}
