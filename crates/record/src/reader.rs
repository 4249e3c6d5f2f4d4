//! Reading a record back, whole or entry by entry.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use fathom_model::{Entry, Event, RunStatus};
use rustix::fs::{FlockOperation, flock};
use serde::Deserialize;

use crate::list::remains;
use crate::{EVENTS, FORMAT, Header, RecordError, VERSION, quick};

/// Longest line that is read. The longest ones hold the results of hundreds of
/// jobs with their histograms, a few MiB; a file without line ends must not be
/// taken into memory whole.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// Read at once: long enough that a record of many samples takes few calls.
const READ_BYTES: usize = 64 << 10;
/// The last line of an ended run is far shorter than this.
const LAST_LINE_BYTES_MAX: u64 = 4 << 10;

/// One record read back.
///
/// It holds everything in memory; for a run with very many samples read
/// [`Entries`] instead.
#[derive(Debug)]
pub struct Record {
    /// Its folder.
    pub dir: PathBuf,
    /// Its first line.
    pub header: Header,
    /// Every whole line after it; a last line cut by a kill is left out.
    pub entries: Vec<Entry>,
    /// Bytes after the last whole line: a line that a kill has cut. They are
    /// not in `entries`.
    pub torn_bytes: u64,
    /// Events of kinds that this Fathom does not know, left out of `entries`.
    pub unknown_events: u64,
    status: Option<RunStatus>,
}

impl Record {
    /// Reads a record folder.
    ///
    /// # Errors
    /// When it is none, is of a newer version, is damaged, or cannot be read.
    pub fn open(dir: &Path) -> Result<Self, RecordError> {
        let mut reader = Entries::open(dir)?;
        let entries = reader.by_ref().collect::<Result<_, _>>()?;
        Ok(Self {
            dir: dir.to_owned(),
            header: reader.header,
            entries,
            torn_bytes: reader.torn_bytes,
            unknown_events: reader.unknown_events,
            status: reader.status,
        })
    }

    /// Name of the folder.
    #[must_use]
    pub fn id(&self) -> String {
        id_of(&self.dir)
    }

    /// As the last line says; without one, [`RunStatus::Interrupted`], unless
    /// the writing process still lived when the record was opened (then `None`).
    #[must_use]
    pub fn status(&self) -> Option<RunStatus> {
        self.status
    }
}

/// A record's entries in order, one at a time, in memory that does not grow
/// with their number.
///
/// It ends after the last whole line, or after the first error; one that was
/// opened by [`Entries::salvage`] passes over damaged lines.
#[derive(Debug)]
pub struct Entries {
    /// The record's first line.
    pub header: Header,
    /// Bytes of a cut last line, once it has been reached.
    pub torn_bytes: u64,
    /// Events passed over so far because this Fathom does not know their kind.
    pub unknown_events: u64,
    /// Damaged lines passed over so far; none but by [`Entries::salvage`].
    pub damaged: DamagedLines,
    /// As [`Record::status`].
    pub status: Option<RunStatus>,
    /// Time of the line [`Event::Ended`], ms since 1970 UTC.
    pub ended_ms: Option<u64>,
    path: PathBuf,
    input: BufReader<File>,
    line: Vec<u8>,
    line_number: u64,
    done: bool,
    failed: bool,
    salvage: bool,
}

/// Lines that could not be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DamagedLines {
    /// How many.
    pub count: u64,
    /// The first one, counted from 1.
    pub first: u64,
}

/// What reading one line gave.
enum Read {
    Whole,
    Torn(u64),
    End,
}

impl Entries {
    /// Opens a record folder and reads its header.
    ///
    /// # Errors
    /// When it is no record, is of a newer version, or cannot be read.
    pub fn open(dir: &Path) -> Result<Self, RecordError> {
        let mut entries = Self::begin(dir)?;
        entries.read_first(dir)?;
        entries.header = header(dir, &entries.line)?;
        Ok(entries)
    }

    /// Opens a record folder to read whatever line of it is intact. Of a header
    /// that is damaged the folder's name takes the place.
    ///
    /// # Errors
    /// When it is no record, is of a newer version, or cannot be read.
    pub fn salvage(dir: &Path) -> Result<Self, RecordError> {
        let mut entries = Self::begin(dir)?;
        entries.salvage = true;
        entries.read_first(dir)?;
        if let Ok(version) = version(&entries.line) {
            version.check(dir)?;
        }
        if let Ok(header) = header(dir, &entries.line) {
            entries.header = header;
            return Ok(entries);
        }
        entries.header = Header {
            started_ms: remains(dir).0,
            ..Header::new(&id_of(dir), "")
        };
        // The first line that is there may be an event.
        let rewound = entries.input.rewind();
        rewound.map_err(|e| RecordError::file(&entries.path, e))?;
        entries.line_number = 0;
        Ok(entries)
    }

    /// Opens the log and looks at its end; no line has been read.
    fn begin(dir: &Path) -> Result<Self, RecordError> {
        let path = dir.join(EVENTS);
        let mut file = open(dir)?;
        // First the lock, then the end: a run that ends in between counts as
        // going on, which was true when we looked. The other way round it
        // would count as interrupted, which it never was.
        let goes_on = is_locked(&file);
        let last = last_line(&mut file).map_err(|e| RecordError::file(&path, e))?;
        let (status, ended_ms) = status_of(last, goes_on);
        Ok(Self {
            header: Header::new("", ""),
            torn_bytes: 0,
            unknown_events: 0,
            damaged: DamagedLines::default(),
            status,
            ended_ms,
            input: BufReader::with_capacity(READ_BYTES, file),
            path,
            line: Vec::new(),
            line_number: 0,
            done: false,
            failed: false,
            salvage: false,
        })
    }

    /// Reads the first line, which there must be.
    fn read_first(&mut self, dir: &Path) -> Result<(), RecordError> {
        match self.read_line()? {
            Read::Whole => Ok(()),
            Read::Torn(_) | Read::End => {
                let reason = format!("{EVENTS} has no header: the run was killed as it began");
                Err(not_a_record(dir, reason))
            }
        }
    }

    /// The record's folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Name of the record's folder.
    #[must_use]
    pub fn id(&self) -> String {
        id_of(self.dir())
    }

    /// Looks again behind the last whole line: the run may have gone on. Does
    /// nothing after an error.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn look_again(&mut self) -> Result<(), RecordError> {
        if self.failed || !self.done {
            return Ok(());
        }
        let failed = |e| RecordError::file(&self.path, e);
        // A line that is being written is read as a whole later.
        let torn = i64::try_from(std::mem::take(&mut self.torn_bytes)).unwrap_or(0);
        self.input.seek_relative(-torn).map_err(failed)?;
        let mut file = File::open(&self.path).map_err(failed)?;
        let goes_on = is_locked(&file);
        let last = last_line(&mut file).map_err(failed)?;
        (self.status, self.ended_ms) = status_of(last, goes_on);
        self.done = false;
        Ok(())
    }

    /// Reads the next line, without its end, into `self.line`.
    fn read_line(&mut self) -> Result<Read, RecordError> {
        self.line.clear();
        let read = (&mut self.input)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut self.line)
            .map_err(|e| RecordError::file(&self.path, e))?;
        if self.line.pop_if(|&mut last| last == b'\n').is_some() {
            self.line_number += 1;
            return Ok(Read::Whole);
        }
        if read as u64 == LINE_BYTES_MAX {
            self.line_number += 1;
            if self.salvage {
                self.skip_line()?;
                self.line.clear();
                return Ok(Read::Whole);
            }
            return Err(self.damage(format!("a line longer than {LINE_BYTES_MAX} bytes")));
        }
        Ok(match read {
            0 => Read::End,
            bytes => Read::Torn(bytes as u64),
        })
    }

    /// Goes on behind the end of a line that is too long to be read.
    fn skip_line(&mut self) -> Result<(), RecordError> {
        let skipped = self.input.skip_until(b'\n');
        skipped.map_err(|e| RecordError::file(&self.path, e))?;
        Ok(())
    }

    fn damage(&self, reason: String) -> RecordError {
        RecordError::Damaged {
            path: self.path.clone(),
            line: self.line_number,
            reason,
        }
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, RecordError> {
        loop {
            match self.read_line()? {
                Read::End => return Ok(None),
                Read::Torn(bytes) => {
                    self.torn_bytes = bytes;
                    return Ok(None);
                }
                Read::Whole => {}
            }
            match parse(&self.line) {
                Ok(Some(entry)) => return Ok(Some(entry)),
                Ok(None) => self.unknown_events += 1,
                Err(_) if self.salvage => {
                    self.damaged.count += 1;
                    if self.damaged.count == 1 {
                        self.damaged.first = self.line_number;
                    }
                }
                Err(error) => return Err(self.damage(error.to_string())),
            }
        }
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.next_entry().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

/// The kinds of event this Fathom knows, by their tags; a later Fathom may add
/// kinds within a version, and an older one then passes over them.
const KINDS: [&str; 20] = [
    "step",
    "stage",
    "stage_ended",
    "skipped",
    "resumed",
    "engine_started",
    "jobs",
    "preparing",
    "sample",
    "interval",
    "status",
    "hosts",
    "written_beside",
    "kernel_counted",
    "doubted",
    "volumes",
    "note",
    "failure",
    "finished",
    "ended",
];

/// One line; `None` for an event of an unknown kind.
fn parse(line: &[u8]) -> Result<Option<Entry>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        at_ms: u64,
        #[serde(borrow)]
        event: std::borrow::Cow<'a, str>,
    }
    // Most lines are samples, and as the writer writes them.
    if let Some(entry) = quick::sample(line) {
        return Ok(Some(entry));
    }
    let kind: Kind = serde_json::from_slice(line)?;
    if kind.event == "sample" {
        // Read directly: its histogram is not first copied into a tree, as serde
        // does for enums with a tag.
        let event = Event::Sample(serde_json::from_slice(line)?);
        let at_ms = kind.at_ms;
        return Ok(Some(Entry { at_ms, event }));
    }
    if !KINDS.contains(&&*kind.event) {
        return Ok(None);
    }
    serde_json::from_slice(line).map(Some)
}

/// What is asked of the first line before anything else.
#[derive(Deserialize)]
struct Version {
    format: String,
    version: u32,
}

impl Version {
    /// Whether this Fathom reads it.
    fn check(&self, dir: &Path) -> Result<(), RecordError> {
        let Self { format, version } = self;
        if format != FORMAT {
            let reason = format!("{EVENTS} is of format '{format}', not {FORMAT}");
            return Err(not_a_record(dir, reason));
        }
        if *version > VERSION {
            let reason = format!(
                "written by a newer Fathom (record version {version}, this one reads up to {VERSION})"
            );
            return Err(not_a_record(dir, reason));
        }
        Ok(())
    }
}

fn version(line: &[u8]) -> Result<Version, serde_json::Error> {
    serde_json::from_slice(line)
}

fn header(dir: &Path, line: &[u8]) -> Result<Header, RecordError> {
    let damaged = |e| {
        let reason = format!(
            "line 1 of {EVENTS} is damaged: {e}; 'fathom show --salvage' reads the lines that are intact"
        );
        not_a_record(dir, reason)
    };
    version(line).map_err(damaged)?.check(dir)?;
    serde_json::from_slice(line).map_err(damaged)
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

fn not_a_record(dir: &Path, reason: String) -> RecordError {
    RecordError::NotARecord {
        path: dir.to_owned(),
        reason,
    }
}

/// A record folder's own name, also when it is given as `.` or `runs/x/..`.
pub(crate) fn id_of(dir: &Path) -> String {
    let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    name(dir)
        .or_else(|| name(&dir.canonicalize().ok()?))
        .unwrap_or_else(|| dir.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails to compile when an event is added that [`KINDS`] may lack.
    fn kind_of(event: &Event) -> &'static str {
        match event {
            Event::Step { .. } => "step",
            Event::Skipped { .. } => "skipped",
            Event::Stage { .. } => "stage",
            Event::StageEnded { .. } => "stage_ended",
            Event::Resumed { .. } => "resumed",
            Event::EngineStarted { .. } => "engine_started",
            Event::Jobs { .. } => "jobs",
            Event::Preparing { .. } => "preparing",
            Event::Sample(_) => "sample",
            Event::Interval { .. } => "interval",
            Event::Status { .. } => "status",
            Event::Hosts { .. } => "hosts",
            Event::Doubted { .. } => "doubted",
            Event::Volumes { .. } => "volumes",
            Event::WrittenBeside { .. } => "written_beside",
            Event::KernelCounted { .. } => "kernel_counted",
            Event::Note { .. } => "note",
            Event::Failure(_) => "failure",
            Event::Finished { .. } => "finished",
            Event::Ended { .. } => "ended",
        }
    }

    #[test]
    fn kinds_are_the_tags_of_events() {
        for kind in KINDS {
            let lines = [
                r#""step":1,"of":1,"name":"x","engine":"x","argv":[],"names":[],"what":"x","text":"x","reason":"x","gap_ms":1"#,
                r#""point":{"id":"a/b","series":"a","x":"iodepth","settings":{}}"#,
                r#""stage":{"id":"purge","kind":"purge","title":"x"},"id":"purge","end":"done""#,
                r#""t_ms":1,"span_ms":1,"job":0,"dir":"read","ios":1,"bytes":1,"written_bytes":1"#,
                r#""doubt":"short","results":{"jobs":[]},"hosts":[],"volumes":[],"kind":"io","message":"x","status":"complete""#,
            ];
            let rest = lines.join(",");
            let line = format!(r#"{{"at_ms":1,"event":"{kind}",{rest}}}"#);
            let entry = parse(line.as_bytes()).unwrap().unwrap();
            assert_eq!(kind_of(&entry.event), kind);
            let line = format!(r#"{{ "event": "{kind}", {rest}, "at_ms": 1 }}"#);
            assert_eq!(parse(line.as_bytes()).unwrap().unwrap(), entry);
        }
    }
}
