//! From a file to collectors: parts, threads, blocks.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use fathom_device::threads;
use fathom_model::LogEntry;
use flate2::read::MultiGzDecoder;
use memchr::{memchr, memchr_iter, memrchr};

use super::line::{LineError, LineFault, fast, parse};
use super::origin::{Both, FirstTime};
use super::trace::{self, TraceLines};
use super::{Collect, Log, LogColumns, LogError, Options};

/// What is read at once: fits the second-level cache of a core, so that a line
/// is parsed from there.
const BLOCK: usize = 256 << 10;
/// How much of the beginning tells the form.
const BEGINNING: usize = 64 << 10;
/// A part is at least this large: below, a thread costs more than it saves.
const PART_MIN: u64 = 4 << 20;
/// No line that fio writes is longer: eight columns of at most 20 digits.
const LINE_MAX: usize = 256;
/// The mark of UTF-8 that editors of Windows put before a text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The shortest line of a histogram log has this many commas; fio writes 1858
/// (`stat.h`, `FIO_IO_U_PLAT_NR`), coarse ones (`log_hist_coarseness`) fewer.
const HISTOGRAM_COMMAS: usize = 16;

/// A part of a file, to its end; the file's own position does not matter.
struct LogPart<'f> {
    file: &'f File,
    at: u64,
    end: u64,
}

impl Read for LogPart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let len = buffer.len().min(left);
        let got = self.file.read_at(&mut buffer[..len], self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}

/// How the lines of a log are to be read.
#[derive(Clone, Copy)]
struct LineReading {
    form: LogColumns,
    skip_bad: bool,
    unit_ns: u64,
    first_ms: u64,
    begin: FirstTime,
    /// Whether the first line is of a window.
    windows: bool,
}

impl LineReading {
    /// Told from the beginning of the log.
    fn of(form: LogColumns, head: &[u8], options: Options) -> Self {
        let mut lines = head.split(|&b| b == b'\n');
        let first = lines.find_map(|line| parse(form, line).ok());
        let first_ms = first.map_or(0, |first| first.time_ms);
        Self {
            form,
            skip_bad: options.skip_bad,
            unit_ns: options.unit_ns,
            first_ms,
            begin: options.origin.begin(first_ms),
            windows: first.is_some_and(|first| first.bs == 0),
        }
    }

    #[inline(always)]
    fn counted(self, mut entry: LogEntry) -> LogEntry {
        if let FirstTime::At(origin_ms) = self.begin {
            entry.time_ms = entry.time_ms.saturating_sub(origin_ms);
        }
        entry.value = entry.value.saturating_mul(self.unit_ns);
        entry.max = entry.max.map(|max| max.saturating_mul(self.unit_ns));
        entry
    }

    /// Reads a part to its end.
    fn collect<C: Collect>(self, input: impl Read, new: impl Fn(LogColumns) -> C) -> Done<C> {
        match self.begin {
            FirstTime::At(_) => {
                let mut part = new(self.form);
                let done = scan(input, self, &mut part);
                (Counted::One(part), done)
            }
            FirstTime::Open(first_ms) => {
                let (zero, first) = (new(self.form), new(self.form));
                let mut both = Both {
                    zero,
                    first,
                    first_ms,
                    last_ms: 0,
                };
                let done = scan(input, self, &mut both);
                (Counted::Both(both), done)
            }
        }
    }
}

/// A part's collector, or one for each origin that its log may have.
enum Counted<C> {
    One(C),
    Both(Both<C>),
}

impl<C> Counted<C> {
    fn last_ms(&self) -> u64 {
        match self {
            Self::One(_) => 0,
            Self::Both(both) => both.last_ms,
        }
    }

    fn from(self, origin_ms: u64) -> C {
        match self {
            Self::One(part) => part,
            Self::Both(both) if origin_ms == 0 => both.zero,
            Self::Both(both) => both.first,
        }
    }
}

type Done<C> = (Counted<C>, Result<PartTally, PartStop>);

/// What came of a part.
#[derive(Default)]
struct PartTally {
    lines: u64,
    skipped: u64,
    /// Line of the part, counted from 0.
    first_skipped: Option<(u64, LineError)>,
    cut_bytes: u64,
}

/// Why a part ended early.
enum PartStop {
    Io(io::Error),
    /// Line of the part, counted from 0.
    Line(u64, LineError),
}

impl From<io::Error> for PartStop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl PartTally {
    /// A malformed line: left out, or the end.
    fn bad(&mut self, error: LineError, skip: bool) -> Result<(), PartStop> {
        let line = self.lines + self.skipped;
        if !skip {
            return Err(PartStop::Line(line, error));
        }
        self.skipped += 1;
        self.first_skipped.get_or_insert((line, error));
        Ok(())
    }
}

/// Reads a log: plain or gzip, a file or a pipe.
///
/// A last line without an end is not read: it may have been cut anywhere, by a
/// kill or because fio is still writing.
///
/// # Errors
/// When the file cannot be read, is a histogram log, or has a malformed line
/// that is not to be skipped.
pub fn read<C: Collect>(
    path: &Path,
    options: Options,
    collector: impl Fn(LogColumns) -> C + Sync,
) -> Result<Log<C>, LogError> {
    let failed = |source| LogError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_file() {
        let end = metadata.len();
        let mut head = Vec::new();
        let start = LogPart {
            file: &file,
            at: 0,
            end,
        };
        start
            .take(BEGINNING as u64)
            .read_to_end(&mut head)
            .map_err(failed)?;
        // What was issued in one part is completed in another.
        if !is_gzip(&head) && !trace::detect(&head) {
            return in_parts(path, &file, end, &head, options, collector);
        }
    }
    read_from(file, path, options, collector)
}

fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(&[0x1f, 0x8b])
}

/// Reads a log, plain or gzip, from anywhere; `path` is its name in errors.
///
/// # Errors
/// Those of [`read()`].
pub fn read_from<C: Collect>(
    mut input: impl Read,
    path: &Path,
    options: Options,
    collector: impl Fn(LogColumns) -> C,
) -> Result<Log<C>, LogError> {
    let failed = |source| LogError::Io {
        path: path.to_owned(),
        source,
    };
    let mut magic = Vec::new();
    input
        .by_ref()
        .take(2)
        .read_to_end(&mut magic)
        .map_err(failed)?;
    let is_gzip = is_gzip(&magic);
    let input = Cursor::new(magic).chain(input);
    if !is_gzip {
        return in_sequence(input, path, options, collector);
    }
    let mut input = UpToCut {
        input: MultiGzDecoder::new(input),
        cut: false,
    };
    let mut log = in_sequence(&mut input, path, options, collector)?;
    log.cut_gzip = input.cut;
    Ok(log)
}

/// A compressed log that was cut ends where it was cut.
struct UpToCut<R> {
    input: R,
    cut: bool,
}

impl<R: Read> Read for UpToCut<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut = true;
                Ok(0)
            }
            done => done,
        }
    }
}

fn in_sequence<C: Collect>(
    mut input: impl Read,
    path: &Path,
    options: Options,
    collector: impl Fn(LogColumns) -> C,
) -> Result<Log<C>, LogError> {
    let mut head = Vec::new();
    input
        .by_ref()
        .take(BEGINNING as u64)
        .read_to_end(&mut head)
        .map_err(|source| LogError::Io {
            path: path.to_owned(),
            source,
        })?;
    head.drain(..marked(&head));
    if trace::detect(&head) {
        let mut lines = TraceLines::new(Cursor::new(head).chain(input));
        let mut log = of_lines(&mut lines, path, options, collector)?;
        log.traced = Some(lines.tally());
        return Ok(log);
    }
    in_form(head, input, path, options, collector)
}

/// As [`in_sequence`], of what a trace gives.
fn of_lines<C: Collect>(
    mut input: impl Read,
    path: &Path,
    options: Options,
    collector: impl Fn(LogColumns) -> C,
) -> Result<Log<C>, LogError> {
    let mut head = Vec::new();
    let got = input.by_ref().take(BEGINNING as u64).read_to_end(&mut head);
    got.map_err(|source| LogError::Io {
        path: path.to_owned(),
        source,
    })?;
    in_form(head, input, path, options, collector)
}

/// Of a log whose begin was read already.
fn in_form<C: Collect>(
    head: Vec<u8>,
    input: impl Read,
    path: &Path,
    options: Options,
    collector: impl Fn(LogColumns) -> C,
) -> Result<Log<C>, LogError> {
    let Some(form) = form_of(path, &head)? else {
        return Ok(without_lines(head.len()));
    };
    let lines = LineReading::of(form, &head, options);
    let input = Cursor::new(head).chain(input);
    joined(path, lines, vec![lines.collect(input, collector)])
}

/// Bytes of the byte order mark that a log begins with.
fn marked(head: &[u8]) -> usize {
    match head.starts_with(BYTE_ORDER_MARK) {
        true => BYTE_ORDER_MARK.len(),
        false => 0,
    }
}

/// A log with nothing but the begin of a line.
fn without_lines<C>(cut_bytes: usize) -> Log<C> {
    Log {
        parts: Vec::new(),
        form: None,
        origin_ms: 0,
        first_ms: 0,
        lines: 0,
        skipped: 0,
        first_skipped: None,
        cut_bytes: cut_bytes as u64,
        cut_gzip: false,
        traced: None,
    }
}

fn form_of(path: &Path, head: &[u8]) -> Result<Option<LogColumns>, LogError> {
    let first = memchr(b'\n', head).map_or(head, |end| &head[..end]);
    let is_list = first
        .iter()
        .all(|b| matches!(b, b'0'..=b'9' | b',' | b' ' | b'\r'));
    if is_list && memchr_iter(b',', first).count() >= HISTOGRAM_COMMAS {
        let path = path.to_owned();
        return Err(LogError::Histograms { path });
    }
    let form = LogColumns::of(head).map_err(|error| LogError::Line {
        path: path.to_owned(),
        line: 1,
        error,
    })?;
    if form.is_none() && !begins_a_line(head) {
        let (path, bytes) = (path.to_owned(), head.len());
        return Err(LogError::NoLines { path, bytes });
    }
    Ok(form)
}

/// Whether bytes without an end of line can be the begin of one.
fn begins_a_line(bytes: &[u8]) -> bool {
    let may_be = |b: &u8| b.is_ascii_hexdigit() || matches!(b, b',' | b' ' | b'\t' | b'\r' | b'x');
    bytes.len() <= LINE_MAX && bytes.iter().all(may_be)
}

fn in_parts<C: Collect>(
    path: &Path,
    file: &File,
    end: u64,
    head: &[u8],
    options: Options,
    collector: impl Fn(LogColumns) -> C + Sync,
) -> Result<Log<C>, LogError> {
    let marked = marked(head);
    let head = &head[marked..];
    let Some(form) = form_of(path, head)? else {
        return Ok(without_lines(head.len()));
    };
    let lines = LineReading::of(form, head, options);
    let mut bounds = bounds(file, end, options.threads).map_err(|source| LogError::Io {
        path: path.to_owned(),
        source,
    })?;
    bounds[0] = marked as u64;
    let work = |at, end| lines.collect(LogPart { file, at, end }, &collector);
    let work = &work;
    let done = thread::scope(|scope| {
        let others: Vec<_> = bounds
            .windows(2)
            .skip(1)
            .map(|bounds| {
                let (at, end) = (bounds[0], bounds[1]);
                let other = threads::spawn_scoped(scope, "log", move || work(at, end));
                (at, end, other)
            })
            .collect();
        let mut done = vec![work(bounds[0], bounds[1])];
        done.extend(others.into_iter().map(|(at, end, other)| match other {
            Ok(other) => other.join().expect("a part's own panic is the bug"),
            // Where there is no thread to be had this one does it all.
            Err(_) => work(at, end),
        }));
        done
    });
    joined(path, lines, done)
}

/// Where parts begin and the last one ends: behind an end of line each.
fn bounds(file: &File, end: u64, threads: usize) -> io::Result<Vec<u64>> {
    let parts = (end / PART_MIN).clamp(1, threads.max(1) as u64);
    let mut bounds = vec![0];
    let mut buffer = vec![0; BEGINNING];
    for part in 1..parts {
        let at = (u128::from(end) * u128::from(part) / u128::from(parts)) as u64;
        let got = file.read_at(&mut buffer, at)?;
        // Without an end of line there, this part and the next stay one.
        if let Some(newline) = memchr(b'\n', &buffer[..got]) {
            bounds.push(at + newline as u64 + 1);
        }
    }
    bounds.push(end);
    Ok(bounds)
}

/// Puts together what the parts found, in the order of the file.
fn joined<C>(path: &Path, read: LineReading, done: Vec<Done<C>>) -> Result<Log<C>, LogError> {
    let path = path.to_owned();
    let last_ms = done.iter().map(|(part, _)| part.last_ms()).max();
    let origin_ms = read.begin.told(last_ms.unwrap_or(0), read.windows);
    let mut log = Log {
        form: Some(read.form),
        origin_ms,
        first_ms: read.first_ms,
        ..without_lines(0)
    };
    for (part, done) in done {
        let before = log.lines + log.skipped;
        let tally = match done {
            Ok(tally) => tally,
            Err(PartStop::Io(source)) => return Err(LogError::Io { path, source }),
            Err(PartStop::Line(line, error)) => {
                let line = before + line + 1;
                return Err(LogError::Line { path, line, error });
            }
        };
        log.parts.push(part.from(origin_ms));
        log.lines += tally.lines;
        log.skipped += tally.skipped;
        log.cut_bytes = tally.cut_bytes;
        let first = tally.first_skipped;
        log.first_skipped = log
            .first_skipped
            .or(first.map(|(line, error)| (before + line + 1, error)));
    }
    Ok(log)
}

/// Reads to the end in blocks of whole lines.
fn scan(
    mut input: impl Read,
    read: LineReading,
    to: &mut impl Collect,
) -> Result<PartTally, PartStop> {
    let mut tally = PartTally::default();
    let mut buffer = vec![0; BLOCK];
    let mut held = 0;
    loop {
        let got = match input.read(&mut buffer[held..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            got => got?,
        };
        if got == 0 {
            break;
        }
        let filled = held + got;
        let Some(last) = memrchr(b'\n', &buffer[held..filled]) else {
            held = filled;
            if filled == buffer.len() {
                let fault = LineFault::TooLong(BLOCK >> 10);
                if !read.skip_bad {
                    tally.bad(LineError { column: 1, fault }, false)?;
                }
                // Whatever is to come of it: it stays one malformed line.
                buffer[0] = b'?';
                held = 1;
            }
            continue;
        };
        let whole = held + last + 1;
        lines(&buffer[..filled], whole, read, &mut tally, to)?;
        buffer.copy_within(whole..filled, 0);
        held = filled - whole;
    }
    tally.cut_bytes = held as u64;
    to.end();
    Ok(tally)
}

/// The whole lines of a block, which end at `whole`.
fn lines(
    block: &[u8],
    whole: usize,
    read: LineReading,
    tally: &mut PartTally,
    to: &mut impl Collect,
) -> Result<(), PartStop> {
    let mut at = 0;
    let mut lines = 0;
    while at < whole {
        if let Some((entry, next)) = fast(read.form, block, at) {
            to.add(&read.counted(entry));
            lines += 1;
            at = next;
            continue;
        }
        let end = at + memchr(b'\n', &block[at..whole]).unwrap_or(whole - at);
        match parse(read.form, &block[at..end]) {
            Ok(entry) => {
                to.add(&read.counted(entry));
                lines += 1;
            }
            Err(error) => {
                tally.lines += std::mem::take(&mut lines);
                tally.bad(error, read.skip_bad)?;
            }
        }
        at = end + 1;
    }
    tally.lines += lines;
    Ok(())
}
