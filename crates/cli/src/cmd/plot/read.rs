//! From logs to what is drawn of them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fathom_analysis::latlog::Timeline;
use fathom_device::threads;
use fathom_fio_output::log::{self, BinLayout, Collect, Histograms, Log, LogError, Options};
use fathom_logs::graphs::JobLog;
use fathom_model::{LogEntry, LogKind, PrioColumn, units};

use super::find::FoundLog;
use crate::cmd::fiolog::{self, LogReading};

/// What came of the logs.
#[derive(Default)]
pub(super) struct ReadLogs {
    pub logs: Vec<JobLog>,
    /// What a reader has to know of them.
    pub notes: Vec<String>,
    /// Logs that could not be read.
    pub failed: Vec<String>,
    /// How far the histogram logs' bins reach from their middle, in percent of it.
    pub bin_error_percent: Option<f64>,
}

/// One log.
struct LogTimeline {
    timeline: Timeline,
    classes: Vec<(u16, Timeline)>,
    prio: PrioColumn,
    notes: Vec<String>,
    bin_error_percent: Option<f64>,
}

/// Priorities that are drawn by themselves; of more, the others are with the first.
const CLASSES_MAX: usize = 16;

/// The lines of one part of a log, by priority.
struct PlotLines {
    distribution: bool,
    classes: Vec<(u16, Timeline)>,
    /// The place of the last line's.
    last: usize,
}

impl PlotLines {
    fn new(distribution: bool) -> Self {
        Self {
            distribution,
            classes: vec![(0, Timeline::new(distribution))],
            last: 0,
        }
    }

    #[cold]
    fn place(&mut self, prio: u16) -> usize {
        let known = self.classes.iter().position(|(of, _)| *of == prio);
        known.unwrap_or_else(|| {
            if self.classes.len() == CLASSES_MAX {
                return 0;
            }
            self.classes.push((prio, Timeline::new(true)));
            self.classes.len() - 1
        })
    }
}

impl Collect for PlotLines {
    #[inline]
    fn add(&mut self, entry: &LogEntry) {
        // Rates are of all priorities.
        if self.distribution && self.classes[self.last].0 != entry.prio {
            self.last = self.place(entry.prio);
        }
        self.classes[self.last].1.add(entry);
    }

    fn end(&mut self) {
        for (_, timeline) in &mut self.classes {
            timeline.end();
        }
    }
}

/// All lines of a log, and those of each priority where there are several.
fn together(parts: Vec<PlotLines>) -> (Timeline, Vec<(u16, Timeline)>) {
    let mut all: BTreeMap<u16, Vec<Timeline>> = BTreeMap::new();
    for part in parts {
        for (prio, timeline) in part.classes {
            if timeline.tracks().next().is_some() {
                all.entry(prio).or_default().push(timeline);
            }
        }
    }
    let mut classes: Vec<(u16, Timeline)> = all
        .into_iter()
        .map(|(prio, parts)| (prio, Timeline::of(parts)))
        .collect();
    if classes.len() == 1 {
        let (_, one) = classes.remove(0);
        return (one, Vec::new());
    }
    let each = classes.iter().map(|(_, of)| of.coarser(u64::MAX));
    (Timeline::of(each.collect()), classes)
}

/// Reads all logs, several at once.
pub(super) fn all(
    found: &[FoundLog],
    reading: LogReading,
    skip_bad: bool,
    threads: Option<u16>,
) -> ReadLogs {
    let cpus = || thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.map_or_else(cpus, usize::from);
    let at_once = threads.min(found.len());
    let threads = (threads / at_once.max(1)).max(1);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<LogTimeline, LogError>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(found) = found.get(number) else {
                return;
            };
            let latencies = found.name.kind.is_latency();
            let options = reading.options(threads, skip_bad, latencies);
            let one = one(found, options, reading);
            // A poisoned lock: another thread panicked, which says more.
            if let Ok(mut done) = done.lock() {
                done.push((number, one));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..at_once {
            // Where there is no thread to be had the others do it all.
            let _ = threads::spawn_scoped(scope, "logs", work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|&(number, _)| number);
    let mut read = ReadLogs::default();
    for (number, one) in done {
        read.put(&found[number], one, skip_bad);
    }
    read
}

impl ReadLogs {
    fn put(&mut self, found: &FoundLog, one: Result<LogTimeline, LogError>, skip_bad: bool) {
        let path = found.path.display();
        let one = match one {
            Ok(one) => one,
            Err(error @ LogError::Line { .. }) if !skip_bad => {
                let failed = format!("{error} (--skip-bad leaves such lines out)");
                self.failed.push(failed);
                return;
            }
            Err(error) => {
                self.failed.push(error.to_string());
                return;
            }
        };
        let notes = one.notes.iter().map(|note| format!("{path}: {note}"));
        self.notes.extend(notes);
        let error = one.bin_error_percent.unwrap_or(0.0);
        let largest = self.bin_error_percent.unwrap_or(0.0).max(error);
        self.bin_error_percent = (largest > 0.0).then_some(largest);
        self.logs.push(JobLog {
            job: found.job.clone(),
            kind: found.name.kind,
            timeline: one.timeline,
            classes: one.classes,
            prio: one.prio,
        });
    }
}

fn one(found: &FoundLog, options: Options, reading: LogReading) -> Result<LogTimeline, LogError> {
    if found.name.kind == LogKind::ClatHistograms {
        return Ok(histograms(
            log::read_histograms(&found.path, options)?,
            reading,
        ));
    }
    let distribution = found.name.kind.is_latency();
    let mut log = log::read(&found.path, options, |_| PlotLines::new(distribution))?;
    let (timeline, classes) = together(std::mem::take(&mut log.parts));
    let mut notes = lost(log.skipped, log.cut_bytes, log.cut_gzip);
    notes.extend(told(&log));
    notes.extend(log.traced.as_ref().map(fiolog::traced));
    notes.extend(reading.times(log.origin_ms, log.first_ms));
    if distribution {
        notes.extend(reading.micros(&found.path, log.form));
    }
    Ok(LogTimeline {
        timeline,
        classes,
        prio: log.form.map_or(PrioColumn::Absent, |form| form.prio),
        notes,
        bin_error_percent: None,
    })
}

fn told(log: &Log<PlotLines>) -> Option<String> {
    (log.lines == 0 && log.skipped == 0).then(|| "it is empty".to_owned())
}

fn histograms(log: Histograms, reading: LogReading) -> LogTimeline {
    let mut timeline = Timeline::of_intervals(log.interval_ms());
    for interval in &log.intervals {
        timeline.add_counts(interval.time_ms, interval.dir, &interval.counts);
    }
    timeline.end();
    let mut notes = lost(log.skipped, log.cut_bytes, log.cut_gzip);
    notes.extend(reading.times(log.origin_ms, log.first_ms));
    notes.extend(fiolog::beyond(&log));
    LogTimeline {
        timeline,
        classes: Vec::new(),
        prio: PrioColumn::Absent,
        notes,
        bin_error_percent: log.layout.map(BinLayout::error_percent),
    }
}

fn lost(skipped: u64, cut_bytes: u64, cut_gzip: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if skipped > 0 {
        let lines = units::counted(skipped, "malformed line");
        notes.push(format!("{lines} left out"));
    }
    if cut_gzip {
        notes.push("the compressed file ends before its end: what comes before is drawn".into());
    }
    if cut_bytes > 0 {
        notes.push("the last line has no end and was left out: cut, or still being written".into());
    }
    notes
}
