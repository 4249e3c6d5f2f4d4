//! Appending to a record.
//!
//! Samples are collected and written together with the [`Event::Interval`] that
//! closes them, in one write(2): a kill between two intervals loses what was
//! collected since, never a part of a line before it. Everything else is
//! written at once. The last line of each write carries the check of everything
//! before it ([`crate::Chain`]).
//!
//! Once the log is long it is closed at an interval's end, by a link and a rename,
//! and a new one begins ([`crate::segment`]); the closed one is compressed little by
//! little ([`crate::pack`]).
//!
//! A kill cannot take away what write(2) has accepted; a power cut can. The log
//! is synced to the device between steps, every ten seconds at most, and at the
//! end, never while an engine measures: the record often lies on the device under test, where an fsync
//! would show up as a latency of the job. Meanwhile the kernel writes dirty
//! pages back by itself after 30 s (vm.dirty_expire_centisecs), so that a power
//! cut costs about the last half minute.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_model::{Entry, Event, Failure, FailureKind, RunStatus};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use crate::chain::Chain;
use crate::folder::claim;
use crate::lines::{BlockReader, NextEntry, waits};
use crate::live::{LogPlace, is_at, place};
use crate::pack::{SegmentPacker, sync_dir};
use crate::reader::Entries;
use crate::replace::sweep;
use crate::segment::{self, SegmentSource};
use crate::{EVENTS, FORMAT, Header, RecordError, VERSION, now_ms, tags};

/// Between short steps a sync each would cost more than it saves: it takes tens
/// of ms on a busy disk, and a power cut costs the last half minute anyway.
const SYNC_EVERY: Duration = Duration::from_secs(10);
/// Samples are flushed early when an engine closes no interval for this long.
const BUFFER_BYTES_MAX: usize = 1 << 20;
/// Space kept aside so that a run that fills the disk can still say so.
const RESERVE_BYTES: u64 = 64 << 10;
/// What remains of it, until the end, for the last line: one block.
const RESERVE_BYTES_LAST: u64 = 4 << 10;
/// How often and how long a writer waits for a reader to let go of the lock: a
/// second is ten thousand times as long as a reader holds it.
const LOCK_ATTEMPTS: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// How much of a log's end is looked through first for its last line.
const TAIL_BYTES: u64 = 64 << 10;
/// A log of this length is closed: half an hour of two directions with their
/// histograms, which any reader takes in a moment.
const SEGMENT_BYTES: u64 = 8 << 20;
/// At the run's end a log is closed from this part of it on: small records stay one
/// plain file.
const SEGMENT_PART_AT_END: u64 = 8;
/// After an attempt that failed, the next one is made when so much more was written.
const SEGMENT_PART_TO_RETRY: u64 = 8;
/// How long the end of a run may wait until its segments are compressed; what is left
/// stays as it is.
const PACK_PATIENCE: Duration = Duration::from_secs(10);
/// The next log, before it takes the place of the one that is closed.
const NEXT: &str = ".events.jsonl.next";
/// The name under which it is made; it loses it at once, so that no kill leaves it behind.
const RESERVE: &str = ".reserve";
/// Folder of the job files as run.
const JOBS: &str = "jobs";

/// Appends to one record.
///
/// While it lives it holds an exclusive flock(2) on the event log. The kernel
/// lets go of it when the process dies, however that happens, so a reader can
/// tell a run that goes on from one that was killed.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    log: EventLog,
    /// What every segment begins with.
    header: Header,
    packer: SegmentPacker,
    /// How long a log becomes, and from which length on it is closed next.
    segment_bytes: u64,
    close_at: u64,
    /// The jobs that samples refer to, and whether they run on several machines.
    jobs: usize,
    on_hosts: bool,
    reserve: File,
    /// What it appended when the record was reopened.
    resumed: Option<Event>,
    /// When the log was synced the last time.
    synced: Instant,
    /// Set by the first write that failed; measuring on would record nothing.
    failed: bool,
}

/// The event log and what has not been written to it yet.
#[derive(Debug)]
struct EventLog {
    path: PathBuf,
    file: File,
    /// Its number.
    segment: u32,
    chain: Chain,
    /// Whether its lines are checked; those of version 1 are not.
    has_checks: bool,
    /// Length of the file up to its last whole line.
    whole_bytes: u64,
    /// By how much the last line was ahead of the clock when the record was reopened:
    /// who set it back does not set back the run.
    ahead_ms: u64,
    /// The time that entries are of, where it is not now.
    at_ms: Option<u64>,
    buffer: Vec<u8>,
}

/// [`Entry`], borrowed.
#[derive(Serialize)]
struct EntryLine<'a> {
    at_ms: u64,
    #[serde(flatten)]
    event: &'a Event,
}

impl Writer {
    /// Makes the folder `<runs_dir>/<UTC time>-<name>/` (never an existing one)
    /// and writes the header. The format and version written are always this
    /// Fathom's own.
    ///
    /// # Errors
    /// When the folder or the header cannot be written; no folder is left then.
    pub fn create(runs_dir: &Path, header: &Header) -> Result<Self, RecordError> {
        let dir = claim(runs_dir, header.started_ms, &header.name)?;
        Self::begin(&dir, header).inspect_err(|_| {
            // Nothing in it is worth keeping; that it cannot be removed is the
            // lesser of the two errors.
            let _ = fs::remove_dir_all(&dir);
        })
    }

    /// Makes a record in this very folder, which is made where it is missing and
    /// must not hold one: a record within another has the name of its part.
    ///
    /// # Errors
    /// When the folder or the header cannot be written.
    pub fn create_in(dir: &Path, header: &Header) -> Result<Self, RecordError> {
        fs::create_dir_all(dir).map_err(|e| RecordError::file(dir, e))?;
        Self::begin(dir, header)
    }

    fn begin(dir: &Path, header: &Header) -> Result<Self, RecordError> {
        let reserve = make_reserve(dir)?;
        let mut log = EventLog::create(dir.join(EVENTS))?;
        let mut header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            ..header.clone()
        };
        tags::add(&mut header);
        log.push(&header)?;
        log.flush()?;
        Ok(Self::of(dir, log, header, reserve))
    }

    fn of(dir: &Path, log: EventLog, header: Header, reserve: File) -> Self {
        Self {
            packer: SegmentPacker::new(dir, log.segment),
            dir: dir.to_owned(),
            log,
            header,
            segment_bytes: SEGMENT_BYTES,
            close_at: SEGMENT_BYTES,
            jobs: 0,
            on_hosts: false,
            reserve,
            resumed: None,
            synced: Instant::now(),
            failed: false,
        }
    }

    /// Goes on with a record that was killed or has ended: takes the lock, cuts
    /// off a line that a kill tore, and appends [`Event::Resumed`].
    ///
    /// # Errors
    /// When it is no record, another process writes to it
    /// ([`RecordError::Busy`]), or it cannot be written.
    pub fn reopen(dir: &Path) -> Result<Self, RecordError> {
        // Only a record of this version, or an older one, may be appended to.
        let header = Header {
            version: VERSION,
            ..Entries::open(dir)?.header
        };
        let (log, last) = EventLog::reopen(dir)?;
        let reserve = make_reserve(dir)?;
        // Who has the lock is the only one who writes here; not every file system has any.
        if flock(&log.file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            sweep(&dir.join(JOBS));
        }
        let mut writer = Self::of(dir, log, header, reserve);
        if !writer.log.has_checks {
            // Of version 1, or gone with the power.
            let next = writer.close_segment();
            next.map_err(|e| RecordError::file(&writer.log.path, e))?;
        }
        let (at_ms, after) = match last {
            Some(Entry {
                at_ms,
                event: Event::Ended { status },
            }) => (Some(at_ms), Some(status)),
            Some(entry) => (Some(entry.at_ms), None),
            None => (None, None),
        };
        let now_ms = now_ms();
        let gap_ms = at_ms.map_or(0, |at_ms| now_ms.saturating_sub(at_ms));
        writer.log.ahead_ms = at_ms.map_or(0, |at_ms| at_ms.saturating_sub(now_ms));
        let resumed = Event::Resumed { after, gap_ms };
        writer.log.push_event(&resumed)?;
        writer.log.flush()?;
        writer.resumed = Some(resumed);
        Ok(writer)
    }

    /// Makes segments of another length than the usual one: of a few KB in tests.
    pub fn set_segment_bytes(&mut self, bytes: u64) {
        (self.segment_bytes, self.close_at) = (bytes, bytes);
    }

    /// Makes the log a closed segment and begins the next one. After an error it goes
    /// on as it was; what a kill leaves in between is told by its number.
    fn close_segment(&mut self) -> io::Result<()> {
        let number = self.log.segment;
        let closed = segment::plain(&self.dir, number);
        if let Err(error) = DirBuilder::new().create(self.dir.join(segment::FOLDER))
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        // A log that the power has taken is not kept.
        let follows = if self.log.whole_bytes > 0 {
            match fs::remove_file(&closed) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            // FAT has no links.
            fs::hard_link(&self.log.path, &closed)
                .or_else(|_| fs::copy(&self.log.path, &closed).map(drop))?;
            Some(self.log.chain.to_string())
        } else {
            None
        };
        let place = LogPlace {
            segment: number.saturating_add(u32::from(follows.is_some())),
            follows,
            jobs: self.jobs,
            on_hosts: self.on_hosts,
        };
        let next = self.dir.join(NEXT);
        let log = EventLog::next(&next, &self.header, &place)
            .and_then(|log| fs::rename(&next, &self.log.path).map(|()| log));
        let log = log.inspect_err(|_| {
            let _ = fs::remove_file(&next);
        })?;
        let before = std::mem::replace(&mut self.log, log);
        self.log.path.clone_from(&before.path);
        self.log.ahead_ms = before.ahead_ms;
        self.close_at = self.segment_bytes;
        if self.log.segment > number {
            self.packer.closed(number);
        }
        Ok(())
    }

    /// What is done between two intervals: a log that is long enough is closed, and
    /// closed ones are worked on.
    fn tend(&mut self, written: u64) {
        if self.log.whole_bytes >= self.close_at && self.close_segment().is_err() {
            // It goes on as one file, and the next attempt is made later.
            let more = self.segment_bytes / SEGMENT_PART_TO_RETRY;
            self.close_at = self.log.whole_bytes.saturating_add(more);
        }
        self.packer.step(written);
    }

    /// The [`Event::Resumed`] with which it began; `None`: the record is new.
    pub fn resumed(&self) -> Option<&Event> {
        self.resumed.as_ref()
    }

    /// The record's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Folder of the job files as run (made on first use).
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn jobs_dir(&self) -> Result<PathBuf, RecordError> {
        self.folder(JOBS)
    }

    /// Folder of the engine's raw outputs (made on first use).
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn raw_dir(&self) -> Result<PathBuf, RecordError> {
        self.folder("raw")
    }

    fn folder(&self, name: &str) -> Result<PathBuf, RecordError> {
        let path = self.dir.join(name);
        match DirBuilder::new().create(&path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(RecordError::file(&path, e)),
            _ => Ok(path),
        }
    }

    /// Appends one event; [`Event::Interval`] and everything that is no sample and no
    /// evidence is flushed to the kernel at once.
    ///
    /// After the first error the record is closing: it has noted the failure by
    /// itself in the space kept aside for it, takes no more samples (they give
    /// an error again), and still takes other events while there is room.
    ///
    /// # Errors
    /// When the line cannot be written; the record stays readable up to the
    /// line before. When a figure is NaN or infinite, which JSON cannot hold;
    /// only this event is lost then.
    pub fn append(&mut self, event: &Event) -> Result<(), RecordError> {
        let measured = waits(event) || matches!(event, Event::Interval { .. });
        if self.failed && measured {
            let reason = "an earlier write failed; the record takes no more samples";
            return Err(RecordError::file(&self.log.path, io::Error::other(reason)));
        }
        let is_due = self.synced.elapsed() >= SYNC_EVERY;
        if is_due && matches!(event, Event::Step { step: 2.., .. }) {
            self.synced = Instant::now();
            self.log.sync().inspect_err(|error| self.fail(error))?;
        }
        self.log.push_event(event)?;
        if waits(event) && self.log.buffer.len() < BUFFER_BYTES_MAX {
            return Ok(());
        }
        let before = self.log.whole_bytes;
        self.log.flush().inspect_err(|error| self.fail(error))?;
        match event {
            Event::Jobs { names, hosts } => {
                (self.jobs, self.on_hosts) = (names.len(), !hosts.is_empty());
            }
            Event::Interval { .. } => self.tend(self.log.whole_bytes - before),
            _ => {}
        }
        Ok(())
    }

    /// Appends what happened at another time than now, ms since 1970 UTC.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn append_at(&mut self, at_ms: u64, event: &Event) -> Result<(), RecordError> {
        let before = self.log.at_ms.replace(at_ms);
        let appended = self.append(event);
        self.log.at_ms = before;
        appended
    }

    /// Appends an entry of another record, at its own time, which the last line has, too.
    pub(crate) fn append_entry(&mut self, entry: &Entry) -> Result<(), RecordError> {
        self.log.at_ms = Some(entry.at_ms);
        self.append(&entry.event)
    }

    /// Closes a record that ends as its last entry says.
    ///
    /// # Errors
    /// When the last lines cannot be written.
    pub(crate) fn leave(mut self) -> Result<(), RecordError> {
        self.log.flush()?;
        self.packer.finish(PACK_PATIENCE);
        Ok(())
    }

    /// Frees the reserve, but for the last line's share, and says in the record why it ends.
    fn fail(&mut self, error: &RecordError) {
        if self.failed {
            return;
        }
        self.failed = true;
        self.packer.stop();
        let mut failure = Failure::new(FailureKind::Record, "the record could not be written");
        if let RecordError::File { path, source } = error {
            failure.message = format!("the record could not be written: {source}");
            failure.subject = Some(path.display().to_string());
            failure.errno = source.raw_os_error();
        }
        // Best effort: the caller gets the error itself in any case.
        let _ = self.reserve.set_len(RESERVE_BYTES_LAST);
        let _ = self
            .log
            .push_event(&Event::Failure(failure))
            .and_then(|()| self.log.flush());
    }

    /// Writes [`Event::Ended`], syncs, and closes the record.
    ///
    /// # Errors
    /// When the last line cannot be written; the run then reads as interrupted.
    pub fn finish(mut self, status: RunStatus) -> Result<PathBuf, RecordError> {
        // Samples of an interval that nobody closed are still facts.
        let pending = self.log.flush().inspect_err(|error| self.fail(error));
        let _ = self.reserve.set_len(0);
        let is_long = self.log.whole_bytes >= self.segment_bytes / SEGMENT_PART_AT_END;
        // Where it cannot be closed it stays as it is.
        if is_long && !self.failed && self.log.sync().is_ok() {
            let _ = self.close_segment();
        }
        self.log.push_event(&Event::Ended { status })?;
        self.log.flush()?;
        self.log.sync()?;
        // Of a folder that cannot be synced what is in it may be gone with the power.
        let _ = sync_dir(&self.dir);
        self.packer.finish(PACK_PATIENCE);
        pending.map(|()| self.dir.clone())
    }
}

impl Drop for Writer {
    /// A run that ends without [`Writer::finish`] keeps what was collected.
    fn drop(&mut self) {
        let _ = self.log.flush();
    }
}

impl Drop for EventLog {
    /// A process that is being started has a copy of the file until it executes its
    /// program: closing this one would leave the lock with it.
    fn drop(&mut self) {
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl EventLog {
    fn create(path: PathBuf) -> Result<Self, RecordError> {
        let mut options = OpenOptions::new();
        let open = options.append(true).create_new(true).open(&path);
        let file = open.and_then(|file| lock_new(&file).map(|()| file));
        let file = file.map_err(|e| RecordError::file(&path, e))?;
        Ok(Self::at(path, file, 1))
    }

    /// The log of a new segment, under another name.
    fn next(path: &Path, header: &Header, place: &LogPlace) -> io::Result<Self> {
        /// The first line of a segment.
        #[derive(Serialize)]
        struct FirstLine<'a> {
            #[serde(flatten)]
            header: &'a Header,
            #[serde(flatten)]
            place: &'a LogPlace,
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        let file = options.append(true).create_new(true).open(path)?;
        lock_new(&file)?;
        let mut log = Self::at(path.to_owned(), file, place.segment);
        let line = FirstLine { header, place };
        log.push(&line)
            .and_then(|()| log.flush())
            .map_err(|error| match error {
                RecordError::File { source, .. } => source,
                other => io::Error::other(other.to_string()),
            })?;
        Ok(log)
    }

    fn at(path: PathBuf, file: File, segment: u32) -> Self {
        Self {
            path,
            file,
            segment,
            chain: Chain::default(),
            has_checks: true,
            whole_bytes: 0,
            ahead_ms: 0,
            at_ms: None,
            buffer: Vec::new(),
        }
    }

    /// Opens an existing log at its end; gives the last whole line of the record too,
    /// when that is an event which this Fathom knows.
    fn reopen(dir: &Path) -> Result<(Self, Option<Entry>), RecordError> {
        let path = dir.join(EVENTS);
        let failed = |e| RecordError::file(&path, e);
        let mut file = loop {
            let file = OpenOptions::new()
                .read(true)
                .append(true)
                .open(&path)
                .map_err(failed)?;
            if !lock(&file).map_err(failed)? {
                let dir = dir.to_owned();
                return Err(RecordError::Busy { dir });
            }
            // Its writer may have closed this one meanwhile, and write to the next.
            if is_at(&file, &path) {
                break file;
            }
        };
        let (whole_bytes, last) = last_whole_line(&mut file).map_err(failed)?;
        file.set_len(whole_bytes).map_err(failed)?;
        let mut log = Self::at(path.clone(), file, segment::last(dir) + 1);
        log.whole_bytes = whole_bytes;
        log.read_chain().map_err(failed)?;
        let last = match log.segment {
            1 => serde_json::from_slice(&last).ok(),
            // The one before may have ended with it.
            _ => serde_json::from_slice(&last)
                .ok()
                .or_else(|| last_of(dir, log.segment - 1)),
        };
        Ok((log, last))
    }

    /// Which segment it is, and the check of everything that it holds.
    fn read_chain(&mut self) -> io::Result<()> {
        let file = File::open(&self.path)?;
        let mut lines = BlockReader::new(self.path.clone(), SegmentSource::of(file), false);
        let first = lines.first()?;
        self.has_checks = lines.has_checks();
        if matches!(first, NextEntry::Line)
            && serde_json::from_slice::<Header>(lines.line()).is_ok()
        {
            self.segment = place(lines.line()).segment;
        }
        while !matches!(lines.next()?, NextEntry::End) {}
        self.chain = lines.chain;
        Ok(())
    }

    /// Adds a line to the buffer.
    fn push(&mut self, line: &impl Serialize) -> Result<(), RecordError> {
        let start = self.buffer.len();
        if let Err(e) = serde_json::to_writer(&mut self.buffer, line) {
            self.buffer.truncate(start);
            return Err(RecordError::file(&self.path, e.into()));
        }
        self.buffer.push(b'\n');
        Ok(())
    }

    fn push_event(&mut self, event: &Event) -> Result<(), RecordError> {
        let start = self.buffer.len();
        self.push(&EntryLine {
            at_ms: self
                .at_ms
                .unwrap_or_else(|| now_ms().saturating_add(self.ahead_ms)),
            event,
        })?;
        // serde_json writes NaN as null, which could not be read back. Reading
        // it here is cheap: hardly a line holds a null at all.
        let line = &self.buffer[start..];
        let has_null = line.windows(5).any(|w| w == b":null" || w == b",null");
        if has_null && let Err(e) = serde_json::from_slice::<Entry>(line) {
            self.buffer.truncate(start);
            let reason = format!("an event holds a figure that is not a number: {e}");
            return Err(RecordError::file(&self.path, io::Error::other(reason)));
        }
        Ok(())
    }

    /// Hands the buffer to the kernel. After an error the file ends with the
    /// last whole line that it took, and the buffer is empty.
    fn flush(&mut self) -> Result<(), RecordError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let before = self.chain;
        self.chain.seal(&mut self.buffer);
        let (written, result) = write_all(&mut self.file, &self.buffer);
        let whole = match &result {
            Ok(()) => written,
            Err(_) => {
                let end = self.buffer[..written].iter().rposition(|&b| b == b'\n');
                let whole = end.map_or(0, |at| at + 1);
                self.chain = before;
                self.chain.over(&self.buffer[..whole]);
                whole
            }
        };
        self.whole_bytes += whole as u64;
        self.buffer.clear();
        if written > whole {
            // If even this fails the reader leaves the torn line out.
            let _ = self.file.set_len(self.whole_bytes);
        }
        result.map_err(|e| RecordError::file(&self.path, e))
    }

    fn sync(&self) -> Result<(), RecordError> {
        self.file
            .sync_data()
            .map_err(|e| RecordError::file(&self.path, e))
    }
}

/// Takes the lock of a log that nobody else has.
fn lock_new(file: &File) -> io::Result<()> {
    match flock(file, FlockOperation::LockExclusive) {
        // Without locks a run that goes on reads as interrupted until
        // it has ended; that is no reason not to measure.
        Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOLCK) | Ok(()) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// The last event of a closed segment.
fn last_of(dir: &Path, number: u32) -> Option<Entry> {
    let (path, input) = SegmentSource::open(dir, number);
    let mut lines = BlockReader::new(path, input.ok()?, true);
    let mut last = None;
    lines.first().ok()?;
    loop {
        match lines.next().ok()? {
            NextEntry::Line => {
                let line = lines.line();
                last = Some(line.to_vec());
            }
            NextEntry::Damage(_) => {}
            NextEntry::End => break,
        }
    }
    serde_json::from_slice(&last?).ok()
}

/// Takes the lock of a log; `false` when another writer has it. A reader that
/// asks whether a writer lives holds it for a moment, which is waited for.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    for attempt in 0..LOCK_ATTEMPTS {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if attempt + 1 < LOCK_ATTEMPTS => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            // As for a new log: without locks there is nobody to ask.
            Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOLCK) | Ok(()) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(false)
}

/// Where the last whole line of a log ends, and the line itself without its end.
fn last_whole_line(file: &mut File) -> io::Result<(u64, Vec<u8>)> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut span = TAIL_BYTES;
    loop {
        let start = length.saturating_sub(span);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        (&mut *file).take(span).read_to_end(&mut tail)?;
        let end = tail.iter().rposition(|&b| b == b'\n');
        let line = end.and_then(|end| {
            let before = tail[..end].iter().rposition(|&b| b == b'\n');
            match before {
                Some(before) => Some(before + 1..end),
                None if start == 0 => Some(0..end),
                None => None,
            }
        });
        if let Some(line) = line {
            return Ok((start + line.end as u64 + 1, tail[line].to_vec()));
        }
        if start == 0 {
            return Ok((0, Vec::new()));
        }
        // A line may hold the figures of hundreds of jobs: a few MiB.
        span = span.saturating_mul(16);
    }
}

/// `write_all` that tells how far it came.
fn write_all(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => written += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return (written, Err(e)),
        }
    }
    (written, Ok(()))
}

/// Fills the reserve with bytes that a compressing file system cannot store in
/// less (xorshift, Marsaglia 2003): zeros would keep nothing free there.
fn make_reserve(dir: &Path) -> Result<File, RecordError> {
    let path = dir.join(RESERVE);
    // Those of older versions are left behind by a kill.
    let _ = fs::remove_file(&path);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < RESERVE_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    let made = File::create_new(&path).and_then(|mut file| {
        let written = fs::remove_file(&path).and_then(|()| file.write_all(&bytes));
        written.map(|()| file)
    });
    made.map_err(|e| RecordError::file(&path, e))
}
