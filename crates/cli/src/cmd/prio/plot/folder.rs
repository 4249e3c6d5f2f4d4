//! A folder of results: `WORKLOAD/DEPTH/randread.log_lat.log`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context as _;
use fathom_analysis::latlog::{CollectSettings, LogCollector, PriorityBins, Statistics};
use fathom_analysis::priority::DurationLimits;
use fathom_fio_output::log::{self, Collect, LogName, Options};
use fathom_model::{Direction, Exit, LogEntry, LogKind};
use fathom_report::graphs::prio::{BIN_NS, Depth, FINE_BIN_NS, PrioPlot};

use super::super::limits;
use super::FolderNotices;
use crate::cmd::ExitError;

/// Memory for exact percentiles of one log, in bytes; beyond they are within 0.79 %.
const MEMORY: usize = 1 << 30;

/// A workload as folders and people name it.
pub(super) struct Kind {
    stem: &'static str,
    title: &'static str,
    /// What is said when its results are read.
    pub processing: &'static str,
}

/// In the order of cdl_bench.
const KINDS: [Kind; 4] = [
    Kind {
        stem: "baseline",
        title: "baseline",
        processing: "Processing baseline results",
    },
    Kind {
        stem: "ncqprio",
        title: "NCQ priority",
        processing: "Processing NCQ priority results...",
    },
    Kind {
        stem: "cdlsingle",
        title: "CDL, single limit",
        processing: "Processing CDL results, single limit...",
    },
    Kind {
        stem: "cdlmulti",
        title: "CDL, multiple limits",
        processing: "Processing CDL results, multiple limits...",
    },
];

/// A workload's folder.
pub(super) struct Found {
    pub dir: PathBuf,
    pub kind: &'static Kind,
    depths: Vec<(u32, PathBuf)>,
}

/// The workloads that a folder has.
pub(super) fn workloads(dir: &Path) -> anyhow::Result<Vec<Found>> {
    let mut all = Vec::new();
    for kind in &KINDS {
        let dir = dir.join(kind.stem);
        if !dir.is_dir() {
            continue;
        }
        let entries =
            fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
        let mut depths: Vec<(u32, PathBuf)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let depth = entry.file_name().to_str()?.parse().ok()?;
                (depth > 0 && entry.path().is_dir()).then(|| (depth, entry.path()))
            })
            .collect();
        depths.sort_unstable();
        all.push(Found { dir, kind, depths });
    }
    if all.is_empty() {
        let message = format!(
            "{} is no folder of results: it has none of {}",
            dir.display(),
            KINDS.each_ref().map(|kind| kind.stem).join(", ")
        );
        return Err(ExitError::new(Exit::Input, message).into());
    }
    Ok(all)
}

/// Reads all depths of a workload; what cannot be read is told.
pub(super) fn read(found: &Found, skip_bad: bool, told: &mut FolderNotices) -> PrioPlot {
    let limits = limits::of(&found.dir).unwrap_or_else(|error| {
        told.damaged = true;
        told.note(error);
        DurationLimits::default()
    });
    let mut workload = PrioPlot {
        stem: found.kind.stem,
        title: found.kind.title,
        depths: Vec::new(),
        limits,
        dir: Direction::Read,
    };
    let mut dirs = [false; 2];
    for (depth, dir) in &found.depths {
        let logs = logs(dir);
        if logs.is_empty() {
            told.note(format!("{}: no latency log, not finished", dir.display()));
            continue;
        }
        match one(*depth, &logs, &workload.limits, skip_bad) {
            Ok(Some(one)) => {
                for (dir, _) in &one.statistics.directions {
                    dirs[usize::from(*dir != Direction::Read)] = true;
                }
                workload.depths.push(one);
            }
            Ok(None) => told.note(format!("{}: no I/O in the log", dir.display())),
            Err(error) => {
                told.damaged = true;
                told.note(format!("{error}; QD={depth} is left out"));
            }
        }
    }
    let depths: Vec<String> = workload
        .depths
        .iter()
        .map(|depth| format!("QD={}", depth.depth))
        .collect();
    if !depths.is_empty() {
        told.line(&format!("  {}", depths.join(", ")));
    }
    // Of reads and writes with different limits the plots name those of reads.
    workload.dir = match dirs {
        [false, true] => Direction::Write,
        _ => Direction::Read,
    };
    workload
}

/// The latency logs of a depth.
fn logs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_lat = |path: &PathBuf| LogName::of(path).is_some_and(|name| name.kind == LogKind::Lat);
    let mut logs: Vec<PathBuf> = paths.filter(is_lat).collect();
    logs.sort_unstable();
    logs
}

/// The lines of one part of a log.
struct Lines {
    figures: LogCollector,
    bins: [PriorityBins; 2],
    limits: DurationLimits,
    missed: BTreeMap<u16, u64>,
}

impl Collect for Lines {
    fn add(&mut self, entry: &LogEntry) {
        self.figures.add(entry);
        for bins in &mut self.bins {
            bins.add(entry);
        }
        let limit = self.limits.of(entry.dir, entry.prio);
        if let Some(limit_ns) = limit.and_then(|limit| limit.ns) {
            let missed = self.missed.entry(entry.prio).or_insert(0);
            *missed += u64::from(entry.value > limit_ns);
        }
    }

    fn end(&mut self) {
        self.figures.end();
    }
}

fn one(
    depth: u32,
    logs: &[PathBuf],
    limits: &DurationLimits,
    skip_bad: bool,
) -> Result<Option<Depth>, String> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let options = Options {
        threads,
        skip_bad,
        ..Options::default()
    };
    let settings = CollectSettings {
        memory: MEMORY / threads,
        interval_ms: None,
    };
    let lines = |_| Lines {
        figures: LogCollector::new(settings),
        bins: [BIN_NS, FINE_BIN_NS].map(PriorityBins::new),
        limits: limits.clone(),
        missed: BTreeMap::new(),
    };
    let (mut figures, mut coarse, mut fine) = (Vec::new(), Vec::new(), Vec::new());
    let mut missed: BTreeMap<u16, u64> = BTreeMap::new();
    for path in logs {
        let log = log::read(path, options, lines).map_err(|error| error.to_string())?;
        for part in log.parts {
            figures.push(part.figures);
            let [two_ms, finer] = part.bins;
            coarse.push(two_ms);
            fine.push(finer);
            for (prio, count) in part.missed {
                *missed.entry(prio).or_insert(0) += count;
            }
        }
    }
    let statistics = Statistics::of(figures)
        .map_err(|_| format!("{}: more priorities than a log has", logs[0].display()))?;
    Ok(statistics.map(|statistics| Depth {
        depth,
        statistics,
        spreads: [PriorityBins::of(coarse), PriorityBins::of(fine)],
        missed,
    }))
}
