//! fio's text logs (HOWTO, "Trace file format"): lines of `[TIME] FILE ACTION [OFFSET
//! LENGTH]`.
//!
//! fio passes over lines that it does not understand. Here they are faults: who judges a
//! log must see everything in it that somebody else may.

use std::io::{BufRead, Read};

use fathom_model::text;

use super::{IologEntry, IologFault, IologOp, IologReader, MOST_FILES, ends_in_range};

/// Longest line in bytes, without its end: what fio reads at once (iolog.c,
/// read_iolog). It takes the rest of a longer one for a line of its own.
const MOST_LINE: usize = 4094;
/// Longest name in bytes that fio reads whole (iolog.c, read_iolog).
pub const MOST_NAME: usize = 256;
/// Characters of a log that a message shows.
const MOST_SHOWN: usize = 40;

/// The versions that fio reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextVersion {
    /// Version 2; has waits.
    Untimed,
    /// Version 3: each line begins with its time in µs.
    Timed,
}

/// The first line of a log with times; fio appends to a log that is there, with one more.
pub const TIMED_HEADLINE: &str = "fio version 3 iolog";

impl TextVersion {
    fn headline(self) -> &'static str {
        match self {
            Self::Untimed => "fio version 2 iolog",
            Self::Timed => TIMED_HEADLINE,
        }
    }
}

/// What is wrong with a line, and in which word; without one, with all of it.
struct LineFault<'l>(Option<&'l str>, String);

/// A line, taken apart.
struct TextLine<'l> {
    file: &'l str,
    op: IologOp,
    offset: u64,
    len: u32,
    at_ns: u64,
}

impl IologReader {
    pub(super) fn text_version(&mut self) -> Result<TextVersion, IologFault> {
        let first = self.line()?;
        let mut known = [TextVersion::Untimed, TextVersion::Timed].into_iter();
        let version = known.find(|version| first.as_deref() == Some(version.headline()));
        version.ok_or_else(|| {
            let what = "is neither a block trace nor a log of fio's of version 2 or 3";
            self.fault("", &LineFault(None, what.to_owned()))
        })
    }

    pub(super) fn next_of_text(
        &mut self,
        version: TextVersion,
    ) -> Result<Option<IologEntry>, IologFault> {
        loop {
            let Some(line) = self.line()? else {
                return Ok(None);
            };
            if line == version.headline() {
                continue;
            }
            let parsed = parse(&line, version).map_err(|fault| self.fault(&line, &fault))?;
            let place = match parsed.op {
                IologOp::Add => self.add_file(parsed.file),
                _ => self.by_name.get(parsed.file).copied(),
            };
            let Some(file) = place else {
                let what = match parsed.op {
                    IologOp::Add => format!("names more than {MOST_FILES} files"),
                    _ => format!("'{}' was not added before", shown(parsed.file)),
                };
                return Err(self.fault(&line, &LineFault(Some(parsed.file), what)));
            };
            return Ok(Some(IologEntry {
                op: parsed.op,
                file,
                offset: parsed.offset,
                len: parsed.len,
                at_ns: parsed.at_ns,
            }));
        }
    }

    /// The next line, without its end.
    fn line(&mut self) -> Result<Option<String>, IologFault> {
        let mut bytes = Vec::new();
        let most = MOST_LINE as u64 + 1;
        let read = self.input.by_ref().take(most).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| self.unreadable(error))?;
        if read == 0 {
            return Ok(None);
        }
        self.taken += 1;
        let whole = bytes.last() == Some(&b'\n') || bytes.len() <= MOST_LINE;
        let refused = |what: String| self.fault("", &LineFault(None, what));
        if !whole {
            return Err(refused(format!("is longer than {MOST_LINE} bytes")));
        }
        let line = String::from_utf8(bytes).map_err(|_| refused("is no text".to_owned()))?;
        let line = line.trim_end_matches(['\n', '\r']);
        if line.contains(|c: char| c.is_control() && c != '\t') {
            return Err(refused("holds control characters".to_owned()));
        }
        Ok(Some(line.to_owned()))
    }

    fn fault(&self, line: &str, LineFault(word, what): &LineFault<'_>) -> IologFault {
        let at = word.map_or(0, |word| word.as_ptr() as usize - line.as_ptr() as usize);
        IologFault::Line {
            name: self.name.clone(),
            line: self.taken.max(1),
            column: at + 1,
            what: what.clone(),
        }
    }
}

/// The begin of a word, for a message.
fn shown(word: &str) -> String {
    let short: String = word.chars().take(MOST_SHOWN).collect();
    let end = if short.len() < word.len() { "…" } else { "" };
    format!("{}{end}", text::line(&short))
}

fn parse(line: &str, version: TextVersion) -> Result<TextLine<'_>, LineFault<'_>> {
    let mut words = line.split_ascii_whitespace();
    let at_us = match version {
        TextVersion::Untimed => 0,
        TextVersion::Timed => number(words.next())?,
    };
    let (Some(file), Some(action)) = (words.next(), words.next()) else {
        let what = "needs a file and what is done to it";
        return Err(LineFault(None, what.to_owned()));
    };
    if file.len() > MOST_NAME {
        let what = format!("a name has at most {MOST_NAME} bytes");
        return Err(LineFault(Some(file), what));
    }
    let (op, moves) = act(action, version)?;
    let place = words.next();
    let (offset, len) = match (moves, place) {
        (true, _) => (number(place)?, number(words.next())?),
        (false, None) => (0, 0),
        (false, Some(_)) => {
            let what = format!("'{action}' has no offset");
            return Err(LineFault(place, what));
        }
    };
    if let Some(more) = words.next() {
        return Err(LineFault(Some(more), "nothing is expected here".to_owned()));
    }
    let len = u32::try_from(len);
    match len {
        Ok(len) if ends_in_range(offset, len) => Ok(TextLine {
            file,
            op,
            offset,
            len,
            at_ns: at_us.saturating_mul(1000),
        }),
        _ => Err(LineFault(place, "is larger than an I/O can be".to_owned())),
    }
}

/// What an action's name means, and whether an offset and a length follow.
fn act(name: &str, version: TextVersion) -> Result<(IologOp, bool), LineFault<'_>> {
    Ok(match (name, version) {
        ("add", _) => (IologOp::Add, false),
        ("open", _) => (IologOp::Open, false),
        ("close", _) => (IologOp::Close, false),
        ("read", _) => (IologOp::Read, true),
        ("write", _) => (IologOp::Write, true),
        ("trim", _) => (IologOp::Trim, true),
        ("sync", _) => (IologOp::Sync, true),
        ("datasync", _) => (IologOp::DataSync, true),
        ("wait", TextVersion::Untimed) => (IologOp::Wait, true),
        _ => {
            let what = format!("'{}' is nothing that can be replayed", shown(name));
            return Err(LineFault(Some(name), what));
        }
    })
}

fn number(word: Option<&str>) -> Result<u64, LineFault<'_>> {
    match word {
        None => Err(LineFault(None, "a number is missing".to_owned())),
        Some(word) => word.parse().map_err(|_| {
            let what = format!("'{}' is not a number from 0 to 2^64-1", shown(word));
            LineFault(Some(word), what)
        }),
    }
}
