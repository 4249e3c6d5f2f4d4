//! fio's histogram logs (`write_hist_log`): a line for each interval and direction.
//!
//! A line is `time ms, direction, block size`, then the I/Os of the interval in
//! each bin (`iolog.c`, `flush_hist_samples`). The bins are those of fio's own
//! statistics, 29 groups of 64 (`stat.h`); `log_hist_coarseness=C` joins 2^C
//! neighbours, C ≤ 6. fio 2 had 19 groups, and counted µs. The number of columns
//! tells all of this: no two layouts have the same.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use fathom_model::histogram::bounds_of;
use fathom_model::{Direction, Histogram};
use flate2::read::MultiGzDecoder;

use super::line::{Fault, Field, LineError, direction};
use super::read::SINCE_1970_MS;
use super::{LogError, Options};

/// Bins of fio ≥ 3, in ns, and of fio 2, in µs (`stat.h`, `FIO_IO_U_PLAT_NR`).
const BINS: [(usize, u64); 2] = [(29 * 64, 1), (19 * 64, 1000)];
/// The largest `log_hist_coarseness` (`options.c`).
const COARSENESS_MAX: u32 = 6;
/// No line is longer: 1859 numbers of at most 20 digits.
const LINE_MAX: u64 = 64 << 10;

/// How the bins of a log lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bins that were joined are 2 to the power of this (`log_hist_coarseness`).
    pub coarseness: u32,
    /// What its numbers count: 1 ns, or 1000 ns of fio 2.
    pub unit_ns: u64,
    /// Columns with counts.
    bins: usize,
}

impl Layout {
    /// The layout that has so many columns of counts.
    #[must_use]
    pub fn of(bins: usize) -> Option<Self> {
        BINS.into_iter().find_map(|(all, unit_ns)| {
            let coarseness = (0..=COARSENESS_MAX).find(|&c| all >> c == bins)?;
            Some(Self {
                coarseness,
                unit_ns,
                bins,
            })
        })
    }

    /// The smallest and the largest latency of a bin in ns.
    #[must_use]
    pub fn bounds_ns(self, bin: usize) -> (u64, u64) {
        let (first, last) = (bin << self.coarseness, ((bin + 1) << self.coarseness) - 1);
        let (low, high) = (bounds_of(first).0, bounds_of(last).1);
        (low * self.unit_ns, high * self.unit_ns + (self.unit_ns - 1))
    }

    /// The bounds of the last bin, in which is everything that is larger, too.
    #[must_use]
    pub fn last_ns(self) -> (u64, u64) {
        self.bounds_ns(self.bins - 1)
    }
}

/// A line of a histogram log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Its end, ms after the start of the job.
    pub time_ms: u64,
    /// Read, write or trim.
    pub dir: Direction,
    /// The I/Os, each in the middle of its bin.
    pub counts: Histogram,
}

/// A histogram log.
#[derive(Debug)]
pub struct Histograms {
    /// Its bins; `None` when there was no whole line.
    pub layout: Option<Layout>,
    /// Its lines.
    pub intervals: Vec<Interval>,
    /// When its time begins, as [`super::Log::origin_ms`].
    pub origin_ms: u64,
    /// I/Os in the last bin, which holds all that took longer than it reaches.
    pub saturated: u64,
    /// Malformed lines that were left out.
    pub skipped: u64,
    /// The first of them: its line, counted from 1, and what is wrong with it.
    pub first_skipped: Option<(u64, LineError)>,
    /// Bytes of an unfinished last line, which was not read.
    pub cut_bytes: u64,
    /// Whether a compressed log ends before its end.
    pub cut_gzip: bool,
}

/// Reads a histogram log, plain or gzip.
///
/// # Errors
/// When the file cannot be read, or has a malformed line that is not to be skipped.
pub fn read_histograms(path: &Path, options: Options) -> Result<Histograms, LogError> {
    let failed = |source| LogError::Io {
        path: path.to_owned(),
        source,
    };
    let mut file = BufReader::with_capacity(256 << 10, File::open(path).map_err(failed)?);
    let is_gzip = file.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]);
    if is_gzip {
        let unpacked = BufReader::with_capacity(256 << 10, MultiGzDecoder::new(file));
        return read_lines(unpacked, path, options);
    }
    read_lines(file, path, options)
}

fn read_lines(
    mut input: impl BufRead,
    path: &Path,
    options: Options,
) -> Result<Histograms, LogError> {
    let mut log = Histograms {
        layout: None,
        intervals: Vec::new(),
        origin_ms: 0,
        saturated: 0,
        skipped: 0,
        first_skipped: None,
        cut_bytes: 0,
        cut_gzip: false,
    };
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        match input.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                log.cut_gzip = true;
                break;
            }
            Err(source) => {
                let path = path.to_owned();
                return Err(LogError::Io { path, source });
            }
        }
        let Some(whole) = line.strip_suffix(b"\n") else {
            log.cut_bytes = line.len() as u64;
            if line.len() as u64 == LINE_MAX {
                let (column, fault) = (1, Fault::TooLong);
                log.bad(path, number, LineError { column, fault }, options)?;
                input.skip_until(b'\n').ok();
                log.cut_bytes = 0;
            }
            continue;
        };
        if let Err(error) = log.add(whole) {
            log.bad(path, number, error, options)?;
        }
    }
    Ok(log)
}

impl Histograms {
    fn bad(
        &mut self,
        path: &Path,
        line: u64,
        error: LineError,
        options: Options,
    ) -> Result<(), LogError> {
        if !options.skip_bad {
            let path = path.to_owned();
            return Err(LogError::Line { path, line, error });
        }
        self.skipped += 1;
        self.first_skipped.get_or_insert((line, error));
        Ok(())
    }

    fn add(&mut self, line: &[u8]) -> Result<(), LineError> {
        let mut numbers = Numbers { line, at: 0 };
        let time_ms = numbers.next(Field::Time)?;
        let dir_column = numbers.column();
        let dir = direction(numbers.next(Field::Direction)?).ok_or(LineError {
            column: dir_column,
            fault: Fault::Direction,
        })?;
        numbers.next(Field::BlockSize)?;
        let bins = memchr::memchr_iter(b',', &line[numbers.at..]).count() + 1;
        let layout = match self.layout {
            Some(layout) if layout.bins == bins => layout,
            None => Layout::of(bins).ok_or_else(|| numbers.fail(Fault::Bins(bins)))?,
            Some(_) => return Err(numbers.fail(Fault::Bins(bins))),
        };
        let mut counts = Histogram::new();
        for bin in 0..bins {
            let count = numbers.next(Field::Count)?;
            if count > 0 {
                let (low, high) = layout.bounds_ns(bin);
                counts.add(low + (high - low).div_ceil(2), count);
                if bin + 1 == bins {
                    self.saturated += count;
                }
            }
        }
        numbers.end()?;
        if self.layout.is_none() && time_ms >= SINCE_1970_MS {
            self.origin_ms = time_ms;
        }
        self.layout = Some(layout);
        let time_ms = time_ms.saturating_sub(self.origin_ms);
        self.intervals.push(Interval {
            time_ms,
            dir,
            counts,
        });
        Ok(())
    }
}

/// The numbers of a line, one after the other.
struct Numbers<'l> {
    line: &'l [u8],
    at: usize,
}

impl Numbers<'_> {
    fn column(&self) -> usize {
        self.at + 1
    }

    fn fail(&self, fault: Fault) -> LineError {
        let column = self.column();
        LineError { column, fault }
    }

    fn skip_blanks(&mut self) {
        while matches!(self.line.get(self.at), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// The next number, and goes behind the comma that follows it.
    fn next(&mut self, field: Field) -> Result<u64, LineError> {
        self.skip_blanks();
        if self.at == self.line.len() {
            return Err(self.fail(Fault::Missing(field)));
        }
        let from = self.at;
        let mut value = 0u64;
        while let Some(digit) = self.line.get(self.at).filter(|b| b.is_ascii_digit()) {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(u64::from(digit - b'0')))
                .ok_or(LineError {
                    column: from + 1,
                    fault: Fault::TooLarge(field),
                })?;
            self.at += 1;
        }
        if self.at == from {
            return Err(self.fail(Fault::NotANumber(field)));
        }
        self.skip_blanks();
        match self.line.get(self.at) {
            Some(b',') => self.at += 1,
            Some(_) => return Err(self.fail(Fault::NotANumber(field))),
            None => {}
        }
        Ok(value)
    }

    fn end(&mut self) -> Result<(), LineError> {
        match self.at == self.line.len() {
            true => Ok(()),
            false => Err(self.fail(Fault::TooMany)),
        }
    }
}
