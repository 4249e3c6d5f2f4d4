//! Reading a record back, whole or entry by entry.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use fathom_model::{Entry, RunStatus, StepEnds};

use crate::chain::is_sealed;
use crate::digest::{Digest, DigestSums};
use crate::first_line::{header, id_of, is_newer, remains, version};
use crate::line::parse;
use crate::lines::{BlockReader, Damage, NextEntry};
use crate::live::{LiveFile, no_log, place};
use crate::segment::{self, SegmentSource};
use crate::{EVENTS, Header, RecordError};

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
    pub fn id(&self) -> String {
        id_of(&self.dir)
    }

    /// As the last line says; without one, [`RunStatus::Interrupted`], unless
    /// the writing process still lived when the record was opened (then `None`).
    pub fn status(&self) -> Option<RunStatus> {
        self.status
    }
}

/// A record's entries in order, one at a time, in memory that does not grow
/// with their number.
///
/// It ends after the last whole line. Damage is given as an error in the place of the
/// lines that it costs, and the entries behind it follow; of a log of version 1, which
/// has no checks, it is the end. One that was opened by [`Entries::salvage`] gives
/// whatever line can be read.
#[derive(Debug)]
pub struct Entries {
    /// The record's first line.
    pub header: Header,
    /// Bytes of a cut last line, once it has been reached.
    pub torn_bytes: u64,
    /// Events passed over so far because this Fathom does not know their kind.
    pub unknown_events: u64,
    /// Damage met so far; none but by [`Entries::salvage`].
    pub damaged: DamagedLines,
    /// As [`Record::status`].
    pub status: Option<RunStatus>,
    /// Time of the line [`fathom_model::Event::Ended`], ms since 1970 UTC.
    pub ended_ms: Option<u64>,
    dir: PathBuf,
    /// The file that is being read, and the number of its segment.
    lines: BlockReader,
    number: u32,
    /// The number of the live file, and the file until it is reached.
    live_number: u32,
    live: Option<(BlockReader, Option<Damage>)>,
    /// Sums of closed segments, where these are enough.
    digest: Option<Digest>,
    /// Whether the segment is read from its digest.
    in_digest: bool,
    /// The check of everything in the segment; `None`: a part of it could not be read.
    is_whole: bool,
    /// Damage that is to be told next.
    told: VecDeque<RecordError>,
    done: bool,
    failed: bool,
    salvage: bool,
    /// Whether a line since the last check could not be read.
    unread: bool,
    /// A check that does not hold, when no line before it was counted.
    mismatch: Option<u64>,
    /// Of version 1.
    /// Whether the segment is of a version that does not tell them.
    lacks_step_ends: bool,
    step_ends: StepEnds,
    /// The entry behind the end of a step that was just given.
    next: Option<Entry>,
    last_ms: u64,
}

/// Lines that could not be read, or are not as they were written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DamagedLines {
    /// How many.
    pub count: u64,
    /// The first one, counted from 1 in its file.
    pub first: u64,
}

/// What a record is read as by who needs no single sample.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordPart {
    /// A line.
    Entry(Entry),
    /// What many samples add up to.
    Sums(Box<DigestSums>),
}

impl Entries {
    /// Opens a record folder and reads its header.
    ///
    /// # Errors
    /// When it is no record, is of a newer version, or cannot be read.
    pub fn open(dir: &Path) -> Result<Self, RecordError> {
        let mut live = LiveFile::open(dir, false)?;
        let last = segment::last(dir);
        match live.header(dir) {
            Err(error) if last == 0 => Err(error),
            // What its check does not hold of is damaged, not newer.
            Err(error) if is_newer(live.lines.line()) && matches!(live.first, NextEntry::Line) => {
                Err(error)
            }
            Ok((header, _)) if last == 0 => Ok(Self::begin(dir, live, header, 1, false)),
            Ok((header, place)) if matches!(live.first, NextEntry::Line) => {
                Ok(Self::begin(dir, live, header, place.segment, false))
            }
            // Those before it tell what the run is.
            _ => {
                let header = header_of(dir, last)?;
                if matches!(live.first, NextEntry::Line) {
                    live.first = NextEntry::Damage(live.lines.lacks_check());
                }
                Ok(Self::begin(dir, live, header, last + 1, false))
            }
        }
    }

    /// As [`Entries::open`], for who needs no single sample: [`Entries::next_part`]
    /// gives sums in the place of the samples of closed segments.
    ///
    /// # Errors
    /// As those of [`Entries::open`].
    pub fn summed(dir: &Path) -> Result<Self, RecordError> {
        let mut entries = Self::open(dir)?;
        if entries.live_number > 1 {
            entries.digest = Digest::open(dir);
            entries.told.clear();
            entries.enter(1);
        }
        Ok(entries)
    }

    /// How many segments of the log are closed.
    pub fn closed_segments(&self) -> u32 {
        self.live_number.saturating_sub(1)
    }

    /// Opens a record folder to read whatever line of it is intact. Of a header
    /// that is damaged the folder's name takes the place.
    ///
    /// # Errors
    /// When it is no record, is of a newer version, or cannot be read.
    pub fn salvage(dir: &Path) -> Result<Self, RecordError> {
        let mut live = LiveFile::open(dir, true)?;
        let last = segment::last(dir);
        if let Ok(version) = version(live.lines.line()) {
            version.check(dir)?;
        }
        if let Ok((header, place)) = live.header(dir) {
            let number = match live.first {
                NextEntry::Line => place.segment,
                _ => last + 1,
            };
            return Ok(Self::begin(dir, live, header, number, true));
        }
        if matches!(live.first, NextEntry::End) && last == 0 {
            return Err(live.header(dir).err().unwrap_or_else(|| no_log(dir)));
        }
        let header = header_of(dir, last).unwrap_or_else(|_| Header {
            started_ms: remains(dir).0,
            ..Header::new(&id_of(dir), "")
        });
        // The first line that is there may be an event.
        if !matches!(live.first, NextEntry::End) {
            live.lines.again();
        }
        live.first = NextEntry::Line;
        Ok(Self::begin(dir, live, header, last + 1, true))
    }

    fn begin(dir: &Path, live: LiveFile, header: Header, number: u32, salvage: bool) -> Self {
        let mut entries = Self {
            header,
            torn_bytes: 0,
            unknown_events: 0,
            damaged: DamagedLines::default(),
            status: live.status,
            ended_ms: live.ended_ms,
            dir: dir.to_owned(),
            // Checks and the ends of steps came with the same version.
            lacks_step_ends: number <= 1 && !live.lines.has_checks(),
            lines: live.lines,
            number,
            live_number: number,
            live: None,
            digest: None,
            in_digest: false,
            is_whole: true,
            told: VecDeque::new(),
            done: false,
            failed: false,
            salvage,
            unread: false,
            mismatch: None,
            step_ends: StepEnds::default(),
            next: None,
            last_ms: 0,
        };
        if number > 1 {
            let nothing = BlockReader::new(
                dir.join(EVENTS),
                SegmentSource::Nothing(io::empty()),
                salvage,
            );
            let lines = std::mem::replace(&mut entries.lines, nothing);
            entries.live = Some((lines, live.first.damage()));
            entries.enter(1);
        } else if let Some(damage) = live.first.damage() {
            entries.tell(damage);
        }
        entries
    }

    /// The record's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Name of the record's folder.
    pub fn id(&self) -> String {
        id_of(&self.dir)
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
        self.torn_bytes = 0;
        let again = self.lines.look_again();
        again.map_err(|e| RecordError::file(&self.lines.path, e))?;
        let live = LiveFile::open(&self.dir, self.salvage)?;
        (self.status, self.ended_ms) = (live.status, live.ended_ms);
        if let Ok((_, place)) = live.header(&self.dir)
            && place.segment > self.live_number
        {
            // The one that was read was closed, and others may have been since.
            self.live_number = place.segment;
            self.live = Some((live.lines, live.first.damage()));
        }
        self.done = false;
        Ok(())
    }

    /// Tells damage, or counts it.
    fn tell(&mut self, Damage { line, reason, .. }: Damage) {
        self.is_whole = false;
        if self.salvage {
            self.count(line);
            return;
        }
        self.told.push_back(RecordError::Damaged {
            path: self.lines.path.clone(),
            line,
            reason,
        });
    }

    fn count(&mut self, line: u64) {
        self.damaged.count += 1;
        if self.damaged.count == 1 {
            self.damaged.first = line;
        }
    }

    /// Goes to the beginning of a segment.
    fn enter(&mut self, number: u32) {
        let before = (number > 1 && self.is_whole).then(|| match (self.in_digest, &self.digest) {
            (true, Some(digest)) => digest.crc.clone(),
            _ => self.lines.chain.to_string(),
        });
        (self.number, self.is_whole, self.in_digest) = (number, true, false);
        self.lacks_step_ends &= number == 1;
        let follows = match number == self.live_number {
            true => {
                if let Some((lines, damage)) = self.live.take() {
                    self.lines = lines;
                    damage.into_iter().for_each(|damage| self.tell(damage));
                }
                // It was read up to its first line when it was opened.
                match self.lines.number {
                    0 => None,
                    _ => place(self.lines.line()).follows,
                }
            }
            false => match self.digest.as_mut().and_then(|digest| digest.begin(number)) {
                Some(follows) => {
                    self.in_digest = true;
                    follows
                }
                None => self.enter_file(number),
            },
        };
        if let (Some(before), Some(follows)) = (before, follows)
            && before != follows
        {
            self.tell(Damage::lost(
                1,
                "it does not follow the segment before it, which lacks lines",
            ));
            self.is_whole = true;
        }
    }

    /// Opens a closed segment; the check of the one that it follows.
    fn enter_file(&mut self, number: u32) -> Option<String> {
        let (path, input) = SegmentSource::open(&self.dir, number);
        let first = input.and_then(|input| {
            self.lines = BlockReader::new(path.clone(), input, self.salvage);
            self.lines.only_sealed = true;
            self.lines.first()
        });
        let reason = match first {
            // Only the first one can be of version 1.
            Ok(NextEntry::Line) if number > 1 && !self.lines.has_checks() => {
                let damage = self.lines.lacks_check();
                self.tell(damage);
                return None;
            }
            Ok(NextEntry::Line) => {
                self.lacks_step_ends = number == 1 && !self.lines.has_checks();
                if header(&self.dir, self.lines.line()).is_err() {
                    self.tell(Damage::lost(1, "it is no header"));
                }
                return place(self.lines.line()).follows;
            }
            Ok(NextEntry::Damage(damage)) => {
                self.tell(damage);
                return None;
            }
            Ok(NextEntry::End) => "the segment is empty".to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A number that is wrong could make it look for billions.
                let there = segment::first_from(&self.dir, number).unwrap_or(u32::MAX);
                let next = there.min(self.live_number);
                self.number = next.max(number + 1) - 1;
                match self.number == number {
                    true => "the segment is gone".to_owned(),
                    false => format!("the segments {number} to {} are gone", self.number),
                }
            }
            Err(error) => format!("the segment cannot be read: {error}"),
        };
        self.lines = BlockReader::new(path, SegmentSource::Nothing(io::empty()), self.salvage);
        self.tell(Damage::lost(1, reason));
        None
    }

    /// Goes on to the next line, of the next segment where one is over; whether there
    /// is one. There is none either where the next segment is read from its digest.
    fn next_line(&mut self) -> Result<bool, RecordError> {
        loop {
            if let Some(error) = self.told.pop_front() {
                return Err(error);
            }
            let is_live = self.number == self.live_number;
            match self.lines.next() {
                Ok(NextEntry::Line) => return Ok(true),
                Ok(NextEntry::Damage(damage)) if self.salvage && !damage.is_lost => {
                    self.is_whole = false;
                    self.mismatch = (!self.unread).then_some(damage.line);
                }
                Ok(NextEntry::Damage(damage)) => self.tell(damage),
                Ok(NextEntry::End) if is_live => {
                    self.torn_bytes = self.lines.torn_bytes;
                    return Ok(false);
                }
                Ok(NextEntry::End) => {
                    if self.lines.torn_bytes > 0 {
                        let line = self.lines.number + 1;
                        self.tell(Damage::lost(line, "the segment was cut"));
                    }
                    self.enter(self.number + 1);
                    if self.in_digest {
                        return Ok(false);
                    }
                }
                Err(error) if is_live => return Err(RecordError::file(&self.lines.path, error)),
                Err(error) => {
                    let line = self.lines.number + 1;
                    let reason = format!("the rest of the segment cannot be read: {error}");
                    self.tell(Damage::lost(line, reason));
                }
            }
        }
    }

    /// The next line as it stands in the log, without its end; headers are none.
    ///
    /// # Errors
    /// As of the entries themselves.
    pub fn next_raw(&mut self) -> Option<Result<&[u8], RecordError>> {
        if self.done {
            return None;
        }
        match self.next_line() {
            Ok(true) => Some(Ok(self.lines.line())),
            Ok(false) => {
                self.done = true;
                None
            }
            Err(error) => Some(Err(self.failure(error))),
        }
    }

    /// After what error there is nothing more.
    fn failure(&mut self, error: RecordError) -> RecordError {
        let goes_on = matches!(error, RecordError::Damaged { .. })
            && (self.lines.has_checks() || self.number < self.live_number || self.live_number > 1);
        (self.done, self.failed) = (!goes_on, !goes_on);
        error
    }

    /// The next entry; or, of one that was opened by [`Entries::summed`], what the
    /// samples of a closed segment add up to.
    pub fn next_part(&mut self) -> Option<Result<RecordPart, RecordError>> {
        if let Some(entry) = self.next.take() {
            return Some(Ok(RecordPart::Entry(entry)));
        }
        if self.done {
            return None;
        }
        match self.part() {
            Ok(Some(RecordPart::Entry(entry))) => {
                Some(Ok(RecordPart::Entry(self.with_step_end(entry))))
            }
            Ok(Some(part)) => Some(Ok(part)),
            Ok(None) => {
                self.done = true;
                None
            }
            Err(error) => Some(Err(self.failure(error))),
        }
    }

    fn part(&mut self) -> Result<Option<RecordPart>, RecordError> {
        loop {
            if self.in_digest {
                if let Some(error) = self.told.pop_front() {
                    return Err(error);
                }
                match self.digest.as_mut().and_then(Digest::next) {
                    Some(part) => return Ok(Some(part)),
                    None => self.enter(self.number + 1),
                }
                continue;
            }
            if !self.next_line()? {
                if self.in_digest {
                    continue;
                }
                return Ok(None);
            }
            let parsed = parse(self.lines.line());
            if self.salvage {
                self.look_at(parsed.is_err());
            }
            match parsed {
                Ok(Some(entry)) => return Ok(Some(RecordPart::Entry(entry))),
                Ok(None) => self.unknown_events += 1,
                Err(_) if self.salvage => {}
                Err(error) => {
                    if !self.lines.has_checks() {
                        self.is_whole = false;
                        self.lines.end();
                    }
                    return Err(RecordError::Damaged {
                        path: self.lines.path.clone(),
                        line: self.lines.number,
                        reason: error.to_string(),
                    });
                }
            }
        }
    }

    /// Counts what is wrong with a line that is to be salvaged: it cannot be read, or
    /// it closes lines that can be read and are not as they were written.
    fn look_at(&mut self, is_unreadable: bool) {
        let mismatch = self.mismatch.take();
        match (is_unreadable, mismatch) {
            (true, _) => self.count(self.lines.number),
            (false, Some(line)) => self.count(line),
            (false, None) => {}
        }
        self.unread |= is_unreadable;
        if is_sealed(self.lines.line()) {
            self.unread = false;
        }
    }
}

impl Entries {
    /// Puts the end of a step before the entry that tells it, in a record that has
    /// none.
    fn with_step_end(&mut self, entry: Entry) -> Entry {
        let last_ms = std::mem::replace(&mut self.last_ms, entry.at_ms);
        let end = match self.lacks_step_ends {
            true => self.step_ends.before(&entry.event),
            false => None,
        };
        let Some(event) = end else { return entry };
        self.next = Some(entry);
        let at_ms = last_ms;
        Entry { at_ms, event }
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_part()? {
                Ok(RecordPart::Entry(entry)) => return Some(Ok(entry)),
                // Who wants single samples does not ask for sums.
                Ok(RecordPart::Sums(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The header of a closed segment.
fn header_of(dir: &Path, number: u32) -> Result<Header, RecordError> {
    let (path, input) = SegmentSource::open(dir, number);
    let mut lines = BlockReader::new(
        path.clone(),
        input.map_err(|e| RecordError::file(&path, e))?,
        false,
    );
    match lines.first() {
        Ok(NextEntry::Line | NextEntry::Damage(_)) => header(dir, lines.line()),
        Ok(NextEntry::End) => Err(no_log(dir)),
        Err(error) => Err(RecordError::file(&path, error)),
    }
}
