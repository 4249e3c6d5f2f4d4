//! What the commands that read fio's logs have in common.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fathom_fio_output::log::{
    CLOCK_FROM_MS, Histograms, LogColumns, LogName, Options, SINCE_1970_MS, TimeOrigin, TraceTally,
};
use fathom_fio_output::version::Version;
use fathom_model::{PrioColumn, units};

/// Documents of fio beside a log that are looked into for its version.
const DOCUMENTS_MAX: usize = 64;
/// How much of each: the version comes first.
const DOCUMENT_HEAD: u64 = 4096;

/// How to read logs.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct LogReading {
    /// Unit of the latencies: ns, or us as fio 2 wrote them [default: ns]
    #[arg(long, value_enum, value_name = "UNIT", hide_possible_values = true)]
    unit: Option<UnitArg>,
    /// Count times from zero or first (line); without, from the first line where it has a clock's
    #[arg(long, value_enum, value_name = "ORIGIN", hide_possible_values = true)]
    times_from: Option<TimesFrom>,
}

/// A unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UnitArg {
    /// Nanoseconds
    Ns,
    /// Microseconds
    Us,
}

/// What times are counted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TimesFrom {
    /// As they stand there
    Zero,
    /// The first line
    First,
}

impl LogReading {
    /// The options for a log that holds latencies, or something else.
    pub fn options(self, threads: usize, skip_bad: bool, latencies: bool) -> Options {
        Options {
            threads,
            skip_bad,
            origin: match self.times_from {
                None => TimeOrigin::Told,
                Some(TimesFrom::Zero) => TimeOrigin::Zero,
                Some(TimesFrom::First) => TimeOrigin::First,
            },
            unit_ns: match self.unit {
                Some(UnitArg::Us) if latencies => 1000,
                _ => 1,
            },
        }
    }

    /// What a reader has to know of a log's times.
    pub fn times(self, origin_ms: u64, first_ms: u64) -> Option<String> {
        let seconds = first_ms / 1000;
        let counted = origin_ms > 0;
        if counted && first_ms >= SINCE_1970_MS {
            let note = "times are since 1970 (log_unix_epoch): counted from the first line";
            return Some(note.to_owned());
        }
        if self.times_from.is_some() || first_ms < CLOCK_FROM_MS {
            return None;
        }
        Some(match counted {
            true => format!(
                "times begin at {seconds} s, a clock's such as that since boot (log_alternate_epoch): \
                 counted from the first line; --times-from zero takes them as they are"
            ),
            false => format!(
                "times begin at {seconds} s, as behind a ramp or at the end of a window, and are \
                 counted from 0; --times-from first counts them from there"
            ),
        })
    }

    /// What a reader has to know of a log's latencies: those of fio 2 are in µs.
    pub fn micros(self, log: &Path, form: Option<LogColumns>) -> Option<String> {
        let old = form.is_some_and(|form| form.prio == PrioColumn::Absent);
        if !old || self.unit.is_some() {
            return None;
        }
        match version_beside(log) {
            Some((_, version)) if version.is_at_least(3, 0) => None,
            Some((document, version)) => Some(format!(
                "{} is of {version}, which wrote latencies in µs: read as ns, they are \
                 1000 × too small; --unit us",
                document.display()
            )),
            None => Some(
                "without a priority: an old fio wrote it; if that was fio 2, latencies are in µs \
                 and, read as ns, 1000 × too small: --unit us, else --unit ns"
                    .to_owned(),
            ),
        }
    }
}

/// The oldest version of fio that documents (`--output-format=json`) in the log's
/// folder tell.
fn version_beside(log: &Path) -> Option<(PathBuf, Version)> {
    let folder = match log.parent()? {
        parent if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    let entries = log.is_file().then(|| fs::read_dir(folder).ok())??;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let documents = paths.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    documents
        .take(DOCUMENTS_MAX)
        .filter_map(|path| Some((version_in(&path)?, path)))
        .min_by_key(|(version, path)| (version.is_at_least(3, 0), path.clone()))
        .map(|(version, path)| (path, version))
}

/// `"fio version" : "fio-2.16"`.
fn version_in(document: &Path) -> Option<Version> {
    let mut head = Vec::new();
    let file = File::open(document).ok()?;
    file.take(DOCUMENT_HEAD).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let (_, behind) = head.split_once("\"fio version\"")?;
    Version::parse(behind.split('"').nth(1)?)
}

/// What a job is called: `job 1`, `before job 1 on node2`.
pub fn job_of(name: &LogName, with_prefix: bool) -> String {
    let prefix = with_prefix.then(|| name.prefix.clone());
    let number = name.job.map(|number| format!("job {number}"));
    let host = name.host.as_ref().map(|host| format!("on {host}"));
    let words: Vec<String> = [prefix, number, host].into_iter().flatten().collect();
    match words.is_empty() {
        true => "all jobs".to_owned(),
        false => words.join(" "),
    }
}

/// What is to know of a trace that blkparse printed.
pub fn traced(tally: &TraceTally) -> String {
    let left_out = [
        (tally.not_issued, "completed and issued before the trace"),
        (tally.not_completed, "issued and not completed in it"),
        (tally.failed, "failed"),
    ];
    let left_out = left_out.into_iter().filter(|(count, _)| *count > 0);
    let left_out: Vec<String> = left_out
        .map(|(count, how)| format!("{count} {how}"))
        .collect();
    let left_out = match left_out.is_empty() {
        true => String::new(),
        false => format!("; left out: {}", left_out.join(", ")),
    };
    format!(
        "a trace of blkparse: {} from their issue to the device (D) to their completion (C)\
         {left_out}",
        units::counted(tally.ios, "request")
    )
}

/// The logs in a folder that are wanted, without packed copies of others.
pub fn in_folder(folder: &Path, wanted: impl Fn(&LogName) -> bool) -> anyhow::Result<Vec<PathBuf>> {
    let failed = || format!("cannot read {}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let name = entry.file_name();
        let path = match folder == Path::new(".") {
            true => PathBuf::from(&name),
            false => folder.join(&name),
        };
        if LogName::of(Path::new(&name)).is_some_and(|name| wanted(&name)) && path.is_file() {
            paths.push(path);
        }
    }
    let found = paths.clone();
    paths.retain(|path| !is_packed_copy(path, &found));
    Ok(paths)
}

/// The logs that have a prefix: what fio's options were given, or that with the kind
/// behind it (`out`, `out_clat`).
pub fn of_prefix(asked: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = match asked.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let prefix = asked.file_name().unwrap_or_default().to_string_lossy();
    let found = in_folder(folder, |name| name.prefix == prefix)?;
    let with_kind = LogName::of(Path::new(&format!("{prefix}.log")));
    let (true, Some(with_kind)) = (found.is_empty(), with_kind) else {
        return Ok(found);
    };
    let is_meant = |name: &LogName| name.prefix == with_kind.prefix && name.kind == with_kind.kind;
    in_folder(folder, is_meant)
}

/// What a reader has to know of I/Os that took longer than the bins reach.
pub fn beyond(log: &Histograms) -> Option<String> {
    let (count, low_ns) = log.beyond()?;
    let low = fathom_model::units::latency(low_ns as f64);
    Some(format!(
        "{count} I/Os took {low} or longer; the log does not say how long"
    ))
}

/// Whether a log lies beside itself, packed: `gzip -k` leaves both.
fn is_packed_copy(path: &Path, among: &[PathBuf]) -> bool {
    let is_packed = path.extension().is_some_and(|ending| ending == "gz");
    is_packed && among.contains(&path.with_extension(""))
}
