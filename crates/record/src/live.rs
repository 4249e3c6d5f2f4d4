//! The live file of a record: which part of the log it is, and whether it is written to.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use fathom_model::{Entry, Event, RunStatus};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::first_line::{header, not_a_record, version};
use crate::lines::{BlockReader, NextEntry};
use crate::segment::{self, SegmentSource};
use crate::{EVENTS, Header, RecordError};

/// The last line of an ended run is far shorter than this.
const LAST_LINE_BYTES_MAX: u64 = 4 << 10;

/// What of a first line says which part of the log its file is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogPlace {
    /// Number of the segment.
    #[serde(default = "first_segment")]
    pub segment: u32,
    /// The check of the whole segment before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// How many jobs samples refer to where it begins.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jobs: usize,
    /// Whether they run on several machines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_hosts: bool,
}

fn first_segment() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(jobs: &usize) -> bool {
    *jobs == 0
}

/// The live file of a record, as it was when it was opened.
pub(crate) struct LiveFile {
    pub lines: BlockReader,
    /// What reading its first line gave.
    pub first: NextEntry,
    pub status: Option<RunStatus>,
    pub ended_ms: Option<u64>,
}

impl LiveFile {
    pub(crate) fn open(dir: &Path, salvage: bool) -> Result<Self, RecordError> {
        let path = dir.join(EVENTS);
        let failed = |e| RecordError::file(&path, e);
        loop {
            let is_empty = fs::metadata(&path).is_ok_and(|kind| kind.is_file() && kind.len() == 0);
            if is_empty && segment::last(dir) > 0 {
                // The power went before its first line was stored.
                return Ok(Self {
                    lines: BlockReader::new(path, SegmentSource::Nothing(io::empty()), salvage),
                    first: NextEntry::End,
                    status: Some(RunStatus::Interrupted),
                    ended_ms: None,
                });
            }
            let mut file = open(dir)?;
            // First the lock, then the end: a run that ends in between counts as
            // going on, which was true when we looked. The other way round it
            // would count as interrupted, which it never was.
            let goes_on = is_locked(&file);
            let last = last_line(&mut file).map_err(failed)?;
            if !goes_on && last.is_none() && !is_at(&file, &path) {
                // It was closed meanwhile, and another one is written to.
                continue;
            }
            let (status, ended_ms) = status_of(last, goes_on);
            let mut lines = BlockReader::new(path.clone(), SegmentSource::of(file), salvage);
            let mut first = lines.first().map_err(failed)?;
            let is_checked = || version(lines.line()).is_ok_and(|line| line.version > 1);
            if matches!(first, NextEntry::Line) && !lines.has_checks() && is_checked() {
                first = NextEntry::Damage(lines.lacks_check());
            }
            return Ok(Self {
                lines,
                first,
                status,
                ended_ms,
            });
        }
    }

    /// Its first line as a header, and which segment it is.
    pub(crate) fn header(&self, dir: &Path) -> Result<(Header, LogPlace), RecordError> {
        if matches!(self.first, NextEntry::End) {
            let reason = format!("{EVENTS} has no header: the run was killed as it began");
            return Err(not_a_record(dir, reason));
        }
        let line = self.lines.line();
        Ok((header(dir, line)?, place(line)))
    }
}

/// Whether a file is still the one of this name, as far as can be known.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(file), Ok(named)) = (file.metadata(), fs::metadata(path)) else {
        return true;
    };
    (file.dev(), file.ino()) == (named.dev(), named.ino())
}

/// Which segment a first line begins.
pub(crate) fn place(line: &[u8]) -> LogPlace {
    serde_json::from_slice(line).unwrap_or(LogPlace {
        segment: 1,
        ..LogPlace::default()
    })
}

/// Opens the event log of a record folder. What is no regular file is not opened:
/// a FIFO would be waited for.
pub(crate) fn open(dir: &Path) -> Result<File, RecordError> {
    let path = dir.join(EVENTS);
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_log(dir),
        _ => RecordError::file(&path, e),
    };
    let kind = fs::metadata(&path).map_err(failed)?;
    if !kind.is_file() {
        return Err(not_a_record(dir, format!("{EVENTS} is no regular file")));
    }
    // Files of /proc have no size and may be waited for.
    if kind.len() == 0 {
        let reason = format!("{EVENTS} is empty: the run was killed as it began");
        return Err(not_a_record(dir, reason));
    }
    File::open(&path).map_err(failed)
}

pub(crate) fn no_log(dir: &Path) -> RecordError {
    not_a_record(dir, format!("not the record of a run: it has no {EVENTS}"))
}

/// Whether a writer holds the log, that is, whether it lives.
fn is_locked(file: &File) -> bool {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => {
            // Let go at once; closing the file would do, but later.
            let _ = flock(file, FlockOperation::Unlock);
            false
        }
        Err(errno) => errno == rustix::io::Errno::WOULDBLOCK,
    }
}

/// The status and time of the last whole line, when it is [`Event::Ended`].
/// Leaves the file at its beginning.
fn last_line(file: &mut File) -> io::Result<Option<(RunStatus, u64)>> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = length.saturating_sub(LAST_LINE_BYTES_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.take(LAST_LINE_BYTES_MAX).read_to_end(&mut tail)?;
    file.seek(SeekFrom::Start(0))?;
    let Some(whole) = tail.strip_suffix(b"\n") else {
        return Ok(None);
    };
    let last = whole.rsplit(|&b| b == b'\n').next().unwrap_or_default();
    Ok(match serde_json::from_slice(last) {
        Ok(Entry {
            at_ms,
            event: Event::Ended { status },
        }) => Some((status, at_ms)),
        _ => None,
    })
}

/// How a run ended and when, from its last line and whether its writer lives.
fn status_of(last: Option<(RunStatus, u64)>, goes_on: bool) -> (Option<RunStatus>, Option<u64>) {
    match last {
        Some((status, at_ms)) => (Some(status), Some(at_ms)),
        None if goes_on => (None, None),
        None => (Some(RunStatus::Interrupted), None),
    }
}
