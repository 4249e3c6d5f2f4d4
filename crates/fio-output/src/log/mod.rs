//! fio's latency logs, read at the speed of memory.
//!
//! A log is read in blocks by several threads, each its own part of the file;
//! each hands its lines to a collector of its own ([`Collect`]), and the caller
//! merges those. [`LogColumns`] says which columns a log has; it is told from the first
//! lines and holds for all. Plain files of any size take 256 KiB of memory a
//! thread: they are read, not mapped, because a mapped log that fio or somebody
//! else cuts short while it is read would kill the process (SIGBUS).

mod form;
mod histograms;
mod line;
mod name;
mod origin;
mod read;
#[cfg(test)]
mod tests;
mod trace;

use std::io;
use std::path::PathBuf;

use fathom_model::LogEntry;

pub use form::{FORMS, LogColumns};
pub use histograms::{BinLayout, HistogramLine, Histograms, read_histograms};
pub use line::{Field, LineError, LineFault, parse};
pub use name::LogName;
pub use origin::{CLOCK_FROM_MS, SINCE_1970_MS, TimeOrigin};
pub use read::{read, read_from};
pub use trace::TraceTally;

/// What becomes of the lines of one part of a log.
pub trait Collect: Send {
    /// A line.
    fn add(&mut self, entry: &LogEntry);
    /// That was the last; still in the part's own thread.
    fn end(&mut self) {}
}

/// How to read.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Threads at most; compressed logs and pipes take one.
    pub threads: usize,
    /// Leave malformed lines out and count them.
    pub skip_bad: bool,
    /// What times are counted from.
    pub origin: TimeOrigin,
    /// What latencies count, in ns: 1000 of fio 2, which wrote µs.
    pub unit_ns: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: 1,
            skip_bad: false,
            origin: TimeOrigin::Told,
            unit_ns: 1,
        }
    }
}

/// A log that was read.
#[derive(Debug)]
pub struct Log<C> {
    /// The collectors, in the order of the file.
    pub parts: Vec<C>,
    /// The columns; `None` when there was no whole line.
    pub form: Option<LogColumns>,
    /// When its time begins: 0, or of a log with the times of a clock
    /// (`log_alternate_epoch`) that of its first line, from which they are counted.
    pub origin_ms: u64,
    /// The time of its first line as it stands there.
    pub first_ms: u64,
    /// Lines read and used.
    pub lines: u64,
    /// Malformed lines that were left out.
    pub skipped: u64,
    /// The first of them: its line, counted from 1, and what is wrong with it.
    pub first_skipped: Option<(u64, LineError)>,
    /// Bytes of an unfinished last line, which was not read.
    pub cut_bytes: u64,
    /// Whether a compressed log ends before its end: what came before was read.
    pub cut_gzip: bool,
    /// Of a trace that blkparse printed: what became of its requests.
    pub traced: Option<TraceTally>,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file itself.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line.
    #[error(
        "{}, line {line}, column {}: {}",
        path.display(),
        error.column,
        error.fault
    )]
    Line {
        /// The log.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// What is wrong with it.
        error: LineError,
    },
    /// A histogram log.
    #[error(
        "{} is a histogram log (write_hist_log), which has counts instead of latencies",
        path.display()
    )]
    Histograms {
        /// The log.
        path: PathBuf,
    },
    /// No line at all, and not the begin of one either.
    #[error(
        "{} is not a log of fio: no end of line in its first {bytes} bytes",
        path.display()
    )]
    NoLines {
        /// The file.
        path: PathBuf,
        /// Those that were looked at.
        bytes: usize,
    },
}
