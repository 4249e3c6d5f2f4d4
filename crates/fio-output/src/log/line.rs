//! One line of a latency log: twice.
//!
//! [`parse`] takes a line apart in the plain way and says what is wrong with
//! one, and where. [`fast`] takes only lines exactly as fio writes them
//! (`iolog.c`, `flush_samples`), eight bytes at a time; whatever it does not
//! know it leaves to [`parse`]. On every line that it takes both give the same.

use std::fmt;

use fathom_model::{Direction, LogEntry, PrioColumn};

use super::LogColumns;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineError {
    /// Where in the line, in bytes, counted from 1.
    pub column: usize,
    /// What.
    pub fault: LineFault,
}

/// A way for a line to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFault {
    /// Something else than digits.
    NotANumber(Field),
    /// A number that fio cannot have written: its own end at 2^63 − 1.
    TooLarge(Field),
    /// The line ends too soon.
    Missing(Field),
    /// More columns than the lines before.
    TooMany,
    /// A direction that is not 0, 1 or 2.
    Direction,
    /// A priority in another form than that of the lines before.
    Priority(PrioColumn),
    /// The largest latency of a window is below its mean.
    MaxBelowMean,
    /// No end of line for so many KiB, longer than any line of a log can be.
    TooLong(usize),
    /// So many bins as no histogram of fio has, or not as many as the lines before.
    Bins(usize),
}

/// A column of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Time in ms.
    Time,
    /// The latency in ns.
    Latency,
    /// The largest latency of a window in ns.
    Max,
    /// 0, 1 or 2.
    Direction,
    /// Bytes.
    BlockSize,
    /// Bytes.
    Offset,
    /// Priority.
    Priority,
    /// Nanoseconds.
    IssueTime,
    /// The I/Os of a bin.
    Count,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Time => "the time",
            Self::Latency => "the latency",
            Self::Max => "the largest latency",
            Self::Direction => "the direction",
            Self::BlockSize => "the block size",
            Self::Offset => "the offset",
            Self::Priority => "the priority",
            Self::IssueTime => "the issue time",
            Self::Count => "the count of a bin",
        })
    }
}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(field) => write!(f, "{field} is not a number"),
            Self::TooLarge(field) => write!(f, "{field} is larger than fio can write"),
            Self::Missing(field) => write!(f, "the line ends before {field}"),
            Self::TooMany => f.write_str("more columns than the lines before"),
            Self::Direction => f.write_str("the direction is not 0, 1 or 2"),
            Self::Priority(PrioColumn::Value) => {
                f.write_str("the priority is not 0x and up to four hexadecimal digits")
            }
            Self::Priority(_) => f.write_str("the priority is not 0 or 1"),
            Self::MaxBelowMean => f.write_str("the largest latency is below the mean"),
            Self::Bins(bins) => write!(f, "{bins} bins: fio writes no such histogram here"),
            Self::TooLong(kib) => write!(f, "no end of line for {kib} KiB: not a log"),
        }
    }
}

/// Where in a line the parser is.
struct Cursor<'l> {
    line: &'l [u8],
    at: usize,
    /// The field before the one that comes.
    before: Option<Field>,
}

impl Cursor<'_> {
    fn fail<T>(&self, fault: LineFault) -> Result<T, LineError> {
        let column = self.at + 1;
        Err(LineError { column, fault })
    }

    fn skip_blanks(&mut self) {
        while matches!(self.line.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Goes to the begin of the next field.
    fn begin(&mut self, field: Field) -> Result<(), LineError> {
        self.skip_blanks();
        if let Some(before) = self.before.replace(field) {
            match self.line.get(self.at) {
                None => return self.fail(LineFault::Missing(field)),
                Some(b',') => self.at += 1,
                Some(_) => return self.fail(LineFault::NotANumber(before)),
            }
            self.skip_blanks();
        }
        if self.at == self.line.len() {
            return self.fail(LineFault::Missing(field));
        }
        Ok(())
    }

    fn number(&mut self, field: Field) -> Result<u64, LineError> {
        self.begin(field)?;
        let from = self.at;
        let mut value = 0u64;
        while let Some(digit) = self.line.get(self.at).filter(|b| b.is_ascii_digit()) {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(u64::from(digit - b'0')))
                .filter(|&value| i64::try_from(value).is_ok())
                .ok_or(LineError {
                    column: from + 1,
                    fault: LineFault::TooLarge(field),
                })?;
            self.at += 1;
        }
        if self.at == from {
            return self.fail(LineFault::NotANumber(field));
        }
        Ok(value)
    }

    fn direction(&mut self) -> Result<Direction, LineError> {
        let number = self.number(Field::Direction)?;
        match direction(number) {
            Some(dir) => Ok(dir),
            None => {
                self.at -= 1;
                self.fail(LineFault::Direction)
            }
        }
    }

    fn prio(&mut self, column: PrioColumn) -> Result<u16, LineError> {
        self.begin(Field::Priority)?;
        let from = self.at;
        let rest = &self.line[from..];
        let len = rest
            .iter()
            .position(|b| matches!(b, b',' | b' ' | b'\t'))
            .unwrap_or(rest.len());
        let word = &rest[..len];
        let value = match column {
            PrioColumn::Value => hexadecimal(word),
            PrioColumn::RealTime | PrioColumn::Absent => match word {
                b"0" => Some(0),
                b"1" => Some(1),
                _ => None,
            },
        };
        let Some(value) = value else {
            return self.fail(LineFault::Priority(column));
        };
        self.at += len;
        Ok(value)
    }

    fn end(&mut self) -> Result<(), LineError> {
        self.skip_blanks();
        match (self.line.get(self.at), self.before) {
            (Some(b','), _) => self.fail(LineFault::TooMany),
            (Some(_), Some(last)) => self.fail(LineFault::NotANumber(last)),
            _ => Ok(()),
        }
    }
}

pub fn direction(number: u64) -> Option<Direction> {
    match number {
        0 => Some(Direction::Read),
        1 => Some(Direction::Write),
        2 => Some(Direction::Trim),
        _ => None,
    }
}

fn hexadecimal(word: &[u8]) -> Option<u16> {
    let digits = word.strip_prefix(b"0x")?;
    if !(1..=4).contains(&digits.len()) {
        return None;
    }
    digits.iter().try_fold(0u16, |value, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(value << 4 | digit as u16)
    })
}

/// The largest latency of a window. fio leaves the column 0 on the line of a
/// single I/O (`log_window_value=both` without `log_avg_msec`), which has a size.
#[inline(always)]
fn largest(max: Option<u64>, value: u64, bs: u64) -> Result<Option<u64>, LineFault> {
    match max {
        Some(0) if bs > 0 => Ok(None),
        Some(max) if max < value => Err(LineFault::MaxBelowMean),
        max => Ok(max),
    }
}

/// Takes a line apart, without its end; blanks around fields and a carriage
/// return at the end do not matter.
///
/// # Errors
/// What is wrong with it, and where.
pub fn parse(form: LogColumns, line: &[u8]) -> Result<LogEntry, LineError> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut cursor = Cursor {
        line,
        at: 0,
        before: None,
    };
    let time_ms = cursor.number(Field::Time)?;
    let value = cursor.number(Field::Latency)?;
    let max = form.max.then(|| cursor.number(Field::Max)).transpose()?;
    let behind_max = cursor.at;
    let dir = cursor.direction()?;
    let bs = cursor.number(Field::BlockSize)?;
    let Ok(max) = largest(max, value, bs) else {
        cursor.at = behind_max;
        return cursor.fail(LineFault::MaxBelowMean);
    };
    let offset = match form.offset {
        true => Some(cursor.number(Field::Offset)?),
        false => None,
    };
    let prio = match form.prio {
        PrioColumn::Absent => 0,
        column => cursor.prio(column)?,
    };
    let issue_ns = match form.issue {
        true => Some(cursor.number(Field::IssueTime)?),
        false => None,
    };
    cursor.end()?;
    Ok(LogEntry {
        time_ms,
        value,
        max,
        dir,
        bs,
        offset,
        prio,
        issue_ns,
    })
}

/// Every byte of a word is this one.
const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The eight bytes from `at`.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*eight))
}

/// Number of digits at the begin of a word of which `'0'` was taken away, 0–8.
///
/// A byte above 9 gets its highest bit by adding 0x76, or has it; a carry only
/// disturbs the bytes behind it, of which nobody asks.
#[inline(always)]
fn digits(word: u64) -> u32 {
    (((word.wrapping_add(each(0x76))) | word) & each(0x80)).trailing_zeros() / 8
}

/// The value of eight digits, the first in the lowest byte: pairs, then fours,
/// then all eight are joined by multiplications (Lemire, "Quickly parsing eight
/// digits", 2018).
#[inline(always)]
fn eight(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    low.wrapping_add(high) >> 32
}

/// A number of one to fifteen digits, and where it ends.
#[inline(always)]
fn number(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    const POWERS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    let first = word(bytes, at)? ^ each(b'0');
    let n = digits(first);
    if n == 8 {
        let second = word(bytes, at + 8)? ^ each(b'0');
        let m = digits(second);
        let power = *POWERS.get(m as usize)?;
        // Nothing is shifted in two steps: by 64 is not a shift.
        let rest = eight(second << 8 << (56 - 8 * m));
        return Some((eight(first) * power + rest, at + 8 + m as usize));
    }
    if n == 0 {
        return None;
    }
    Some((eight(first << (64 - 8 * n)), at + n as usize))
}

/// The next number behind a comma and a blank.
#[inline(always)]
fn next_number(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    number(bytes, comma(bytes, at)?)
}

#[inline(always)]
fn comma(bytes: &[u8], at: usize) -> Option<usize> {
    (bytes.get(at..at + 2)? == b", ").then_some(at + 2)
}

/// `, 0xhhhh`, exactly four digits: fio pads them.
#[inline(always)]
fn next_prio(bytes: &[u8], at: usize) -> Option<(u16, usize)> {
    let word = word(bytes, at)?;
    if word as u32 != u32::from_le_bytes(*b", 0x") {
        return None;
    }
    let digits = (word >> 32) as u32;
    let value = HEX[usize::from(digits as u8)] << 12
        | HEX[usize::from((digits >> 8) as u8)] << 8
        | HEX[usize::from((digits >> 16) as u8)] << 4
        | HEX[usize::from((digits >> 24) as u8)];
    (value <= 0xffff).then_some((value as u16, at + 8))
}

/// The value of a hexadecimal digit; of any other byte more than fits a priority,
/// at whatever place.
const HEX: [u32; 256] = {
    let mut table = [1 << 16; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u32;
        table[b"0123456789ABCDEF"[digit] as usize] = digit as u32;
        digit += 1;
    }
    table
};

/// The line that begins at `at`, if it is exactly as fio writes it, and where
/// the next one begins.
#[inline(always)]
pub fn fast(form: LogColumns, bytes: &[u8], at: usize) -> Option<(LogEntry, usize)> {
    let (time_ms, at) = number(bytes, at)?;
    let (value, mut at) = next_number(bytes, at)?;
    let mut max = None;
    if form.max {
        let (number, next) = next_number(bytes, at)?;
        (max, at) = (Some(number), next);
    }
    // ", 0, "
    let begin = bytes.get(at..)?.first_chunk::<5>()?;
    let dir = direction(u64::from(begin[2].wrapping_sub(b'0')))?;
    if begin[..2] != *b", " || begin[3..] != *b", " {
        return None;
    }
    let (bs, mut at) = number(bytes, at + 5)?;
    if form.max {
        max = largest(max, value, bs).ok()?;
    }
    let mut offset = None;
    if form.offset {
        let (bytes_in, next) = next_number(bytes, at)?;
        (offset, at) = (Some(bytes_in), next);
    }
    let (prio, mut at) = match form.prio {
        PrioColumn::Value => next_prio(bytes, at)?,
        PrioColumn::Absent => (0, at),
        PrioColumn::RealTime => {
            let three = bytes.get(at..)?.first_chunk::<3>()?;
            let digit = three[2].wrapping_sub(b'0');
            if digit > 1 || three[..2] != *b", " {
                return None;
            }
            (u16::from(digit), at + 3)
        }
    };
    let mut issue_ns = None;
    if form.issue {
        let (time, next) = next_number(bytes, at)?;
        (issue_ns, at) = (Some(time), next);
    }
    if *bytes.get(at)? != b'\n' {
        return None;
    }
    let entry = LogEntry {
        time_ms,
        value,
        max,
        dir,
        bs,
        offset,
        prio,
        issue_ns,
    };
    Some((entry, at + 1))
}
