//! Which columns a log has: told from its first lines.

use fathom_model::{LogEntry, PrioColumn};
use memchr::memchr_iter;

use super::line::{LineError, parse};

/// The columns of a log: `time, latency[, max], direction, block size[, offset]
/// [, priority][, issue time]`, the same on every line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogColumns {
    /// A column with the largest latency of a window (`log_window_value=both`, fio ≥ 3.37).
    pub max: bool,
    /// A column with the offset (`log_offset`).
    pub offset: bool,
    /// The priority's column.
    pub prio: PrioColumn,
    /// A column with the time of issue (`log_issue_time`, fio ≥ 3.38).
    pub issue: bool,
}

const fn form(max: bool, offset: bool, prio: PrioColumn, issue: bool) -> LogColumns {
    LogColumns {
        max,
        offset,
        prio,
        issue,
    }
}

/// Every form, the likelier one first where the same lines could be of two:
/// priorities in hexadecimal stand for themselves; a 0 or 1 at the end is a
/// priority unless a line denies it; fio gives issue times with offsets only.
pub const FORMS: [LogColumns; 18] = {
    use PrioColumn::{Absent, RealTime, Value};
    [
        form(false, false, Value, false),
        form(false, true, Value, false),
        form(false, true, Value, true),
        form(true, false, Value, false),
        form(true, true, Value, false),
        form(true, true, Value, true),
        form(false, false, Value, true),
        form(true, false, Value, true),
        form(false, false, RealTime, false),
        form(false, true, RealTime, false),
        form(true, false, RealTime, false),
        form(false, true, RealTime, true),
        form(true, true, RealTime, false),
        form(true, true, RealTime, true),
        form(false, false, RealTime, true),
        form(true, false, RealTime, true),
        form(false, false, Absent, false),
        form(false, true, Absent, false),
    ]
};

impl LogColumns {
    /// The form in which all lines of the beginning of a log can be read, and
    /// mean what fio can have meant; lines that are in none do not count. `None`
    /// without a whole line.
    ///
    /// # Errors
    /// What is wrong with the first line when no line is in any form, as that
    /// form has it that gets furthest.
    pub fn of(beginning: &[u8]) -> Result<Option<Self>, LineError> {
        match Self::read_by(beginning, is_likely) {
            None => {}
            found => return Ok(found),
        }
        match memchr::memchr(b'\n', beginning) {
            None => Ok(None),
            Some(end) => match Self::read_by(beginning, |_, _| true) {
                None => Err(furthest(&beginning[..end])),
                found => Ok(found),
            },
        }
    }

    /// The first form that is left when every line has had its say.
    fn read_by(beginning: &[u8], wanted: impl Fn(Self, &LogEntry) -> bool) -> Option<Self> {
        let mut left: Vec<Self> = FORMS.to_vec();
        let mut known = false;
        let mut begin = 0;
        for end in memchr_iter(b'\n', beginning) {
            let line = &beginning[begin..end];
            begin = end + 1;
            let fits: Vec<Self> = left
                .iter()
                .copied()
                .filter(|&form| parse(form, line).is_ok_and(|entry| wanted(form, &entry)))
                .collect();
            if !fits.is_empty() {
                known = true;
                left = fits;
            }
        }
        known.then(|| left.first().copied()).flatten()
    }
}

/// A column more could be the largest latency or the offset: with the latter,
/// blocks of 1 or 2 bytes are directions, and so is one of 0 bytes that lies
/// somewhere, as fio gives windows no offset.
fn is_likely(form: LogColumns, entry: &LogEntry) -> bool {
    form.max || !form.offset || entry.bs > 2 || (entry.bs == 0 && entry.offset == Some(0))
}

fn furthest(line: &[u8]) -> LineError {
    let errors = FORMS
        .iter()
        .filter_map(|&form| parse(form, line).err())
        .max_by_key(|error| error.column);
    errors.expect("a line in some form would have told the form")
}
