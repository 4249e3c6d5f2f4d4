//! The lines of one file of a log, as far as its checks hold.

use std::io::{self, BufRead as _, Read as _};
use std::path::PathBuf;

use fathom_model::{Entry, Event, units};
use memchr::memchr;

use crate::chain::{Chain, CheckMismatch, is_sealed};
use crate::quick;
use crate::segment::SegmentSource;

/// Longest line that is read. The longest ones hold the results of hundreds of
/// jobs with their histograms, a few MiB; a file without line ends must not be
/// taken into memory whole. Lines up to a check are no longer together.
pub(crate) const LINE_BYTES_MAX: u64 = 64 << 20;

/// What of a file could not be read as it was written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The first line, counted from 1.
    pub line: u64,
    /// What is wrong.
    pub reason: String,
    /// Whether nothing of it is given, even where everything is to be salvaged.
    pub is_lost: bool,
}

impl Damage {
    /// Lines of which nothing can be read.
    pub(crate) fn lost(line: u64, reason: impl Into<String>) -> Self {
        Self {
            line,
            reason: reason.into(),
            is_lost: true,
        }
    }
}

/// What reading on gave.
#[derive(Debug)]
pub(crate) enum NextEntry {
    /// A line, in [`BlockReader::line`].
    Line,
    /// Lines that are not as they were written; those behind them follow.
    Damage(Damage),
    /// The end of what is there.
    End,
}

impl NextEntry {
    /// The damage, where it is any.
    pub(crate) fn damage(self) -> Option<Damage> {
        match self {
            Self::Damage(damage) => Some(damage),
            Self::Line | Self::End => None,
        }
    }
}

/// Reads a file block by block: a *block* is what stands up to a check, and its lines
/// are given once that holds. Lines behind the last check, of which a kill has taken
/// the rest, are given at the end of the file. A log of version 1 has no checks.
#[derive(Debug)]
pub(crate) struct BlockReader {
    /// The file.
    pub path: PathBuf,
    /// Number of the line that was given last, from 1.
    pub number: u64,
    /// Bytes behind the last whole line, at the end.
    pub torn_bytes: u64,
    /// The check of everything that was read.
    pub chain: Chain,
    /// Whether every line that is whole is given, damaged or not.
    salvage: bool,
    /// Whether lines that no check follows are damaged, as in what nobody writes to.
    pub only_sealed: bool,
    has_checks: bool,
    input: SegmentSource,
    block: Vec<u8>,
    /// The line that was given last, without its end, in `block`.
    line: std::ops::Range<usize>,
    /// Where the next one begins.
    next: usize,
    /// Lines of blocks whose check does not hold: first, last, and what they were.
    damaged: Option<(u64, u64, String)>,
    /// Whether nothing can be read any more.
    broken: bool,
}

/// What reading to the next check, or to the end, gave.
enum CheckedBlock {
    Sealed,
    Open,
    End,
    TooLong,
}

impl BlockReader {
    pub(crate) fn new(path: PathBuf, input: SegmentSource, salvage: bool) -> Self {
        Self {
            path,
            number: 0,
            torn_bytes: 0,
            chain: Chain::default(),
            salvage,
            only_sealed: false,
            has_checks: false,
            input,
            block: Vec::new(),
            line: 0..0,
            next: 0,
            damaged: None,
            broken: false,
        }
    }

    /// The line that was given last, without its end.
    pub(crate) fn line(&self) -> &[u8] {
        &self.block[self.line.clone()]
    }

    /// Reads the first line, which tells whether the file has checks: it has one itself.
    pub(crate) fn first(&mut self) -> io::Result<NextEntry> {
        let read = self.next()?;
        if !matches!(read, NextEntry::Line) {
            return Ok(read);
        }
        self.has_checks = is_sealed(self.line());
        self.chain = Chain::default();
        let is_as_told = self.chain.verify(&self.block) == Ok(());
        Ok(match (self.has_checks, is_as_told) {
            (true, false) => NextEntry::Damage(Damage {
                line: 1,
                reason: "it was changed or damaged: its check value does not match".to_owned(),
                is_lost: false,
            }),
            _ => read,
        })
    }

    /// Says that lines are checked although the first one has none that can be read.
    pub(crate) fn lacks_check(&mut self) -> Damage {
        self.has_checks = true;
        Damage {
            line: 1,
            reason: "it was changed or damaged: it has no check value".to_owned(),
            is_lost: false,
        }
    }

    /// Whether the first line has told that lines are checked.
    pub(crate) fn has_checks(&self) -> bool {
        self.has_checks
    }

    /// Gives the first line once more, as if nothing had been read.
    pub(crate) fn again(&mut self) {
        (self.next, self.number) = (0, 0);
    }

    /// Nothing more is read of it.
    pub(crate) fn end(&mut self) {
        self.broken = true;
        self.block.clear();
        (self.line, self.next) = (0..0, 0);
    }

    /// Reads on behind the end: a cut line is read as a whole later.
    pub(crate) fn look_again(&mut self) -> io::Result<()> {
        let torn = i64::try_from(std::mem::take(&mut self.torn_bytes)).unwrap_or(0);
        match &mut self.input {
            SegmentSource::Plain(file) => file.seek_relative(-torn),
            SegmentSource::Packed(_) | SegmentSource::Nothing(_) => Ok(()),
        }
    }

    /// Reads on. An error is one of the file, or of what has compressed it.
    pub(crate) fn next(&mut self) -> io::Result<NextEntry> {
        loop {
            if let Some(end) = memchr(b'\n', &self.block[self.next..]) {
                self.line = self.next..self.next + end;
                self.next += end + 1;
                self.number += 1;
                return Ok(NextEntry::Line);
            }
            if self.broken {
                return Ok(self.told().map_or(NextEntry::End, NextEntry::Damage));
            }
            (self.line, self.next) = (0..0, 0);
            self.block.clear();
            match self.fill() {
                Ok(CheckedBlock::Sealed) => self.judge(),
                Ok(CheckedBlock::Open) => {
                    self.chain.over(&self.block);
                    if self.has_checks && (self.only_sealed || !is_cut(&self.block)) {
                        self.lose();
                    }
                }
                Ok(CheckedBlock::TooLong) => {
                    let reason = format!("a line longer than {LINE_BYTES_MAX} bytes");
                    let line = self.number + 1;
                    self.skip()?;
                    return Ok(NextEntry::Damage(Damage::lost(line, reason)));
                }
                Ok(CheckedBlock::End) => {
                    return Ok(self.told().map_or(NextEntry::End, NextEntry::Damage));
                }
                Err(error) => {
                    self.broken = true;
                    self.block.clear();
                    return Err(error);
                }
            }
            if (!self.block.is_empty() || self.salvage)
                && let Some(damage) = self.told()
            {
                return Ok(NextEntry::Damage(damage));
            }
        }
    }

    /// Reads whole lines up to one with a check.
    fn fill(&mut self) -> io::Result<CheckedBlock> {
        loop {
            let begin = self.block.len();
            let left = LINE_BYTES_MAX.saturating_sub(begin as u64);
            let input = self.input.reader();
            let read = input.take(left).read_until(b'\n', &mut self.block);
            let read = read? as u64;
            if self.block.len() > begin && self.block.ends_with(b"\n") {
                let line = &self.block[begin..self.block.len() - 1];
                if !self.has_checks || self.salvage || is_sealed(line) {
                    return Ok(CheckedBlock::Sealed);
                }
                continue;
            }
            if read == left {
                return Ok(CheckedBlock::TooLong);
            }
            self.torn_bytes = read;
            self.block.truncate(begin);
            return Ok(match begin {
                0 => CheckedBlock::End,
                _ => CheckedBlock::Open,
            });
        }
    }

    /// Goes on behind the end of a line that is too long to be read.
    fn skip(&mut self) -> io::Result<()> {
        // What of it has been read is passed over, with the lines before it that no
        // check has followed.
        self.number += self.block.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
        self.block.clear();
        self.input.reader().skip_until(b'\n').map(drop)
    }

    /// Looks whether the check of a block holds; without, its lines are taken out.
    fn judge(&mut self) {
        if !self.has_checks {
            self.chain.over(&self.block);
            return;
        }
        if self.chain.verify(&self.block) == Err(CheckMismatch) {
            self.lose();
        }
    }

    /// Takes out the lines of a block.
    fn lose(&mut self) {
        let lines = self.block.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let (from, to) = (self.number + 1, self.number + lines);
        let what = what_is(&self.block);
        let first = self.damaged.take();
        let (from, what) = first.map_or((from, what), |(from, _, what)| (from, what));
        self.damaged = Some((from, to, what));
        if !self.salvage {
            self.number = to;
            self.block.clear();
        }
    }

    /// The damage that has come to its end.
    fn told(&mut self) -> Option<Damage> {
        let (line, last, what) = self.damaged.take()?;
        let lines = match last == line {
            true => "it is".to_owned(),
            false => format!("lines {line} to {last} are"),
        };
        let reason = format!("{lines} not as written{what}: the check does not hold");
        let is_lost = false;
        Some(Damage {
            line,
            reason,
            is_lost,
        })
    }
}

/// Whether lines without a check can be what a kill has left of a write: the last one of
/// each is sealed, and those before it wait for it.
fn is_cut(block: &[u8]) -> bool {
    let last = block.strip_suffix(b"\n").unwrap_or(block);
    let last = last.rsplit(|&byte| byte == b'\n').next();
    last.is_some_and(|line| {
        quick::sample(line).is_some()
            || serde_json::from_slice(line).is_ok_and(|entry: Entry| waits(&entry.event))
    })
}

/// Whether an event is written together with the one that follows it.
pub(crate) fn waits(event: &Event) -> bool {
    matches!(event, Event::Sample(_) | Event::Evidence(_))
}

/// Which interval a block was.
fn what_is(block: &[u8]) -> String {
    let last = block.strip_suffix(b"\n").unwrap_or(block);
    let last = last
        .rsplit(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    match serde_json::from_slice(last) {
        Ok(Entry {
            event: Event::Interval { t_ms, .. },
            ..
        }) => format!(", the interval that ends at {}", units::duration(t_ms)),
        _ => String::new(),
    }
}
