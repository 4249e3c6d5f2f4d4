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

use super::line::{Field, LineError, LineFault, direction};
use super::read::BYTE_ORDER_MARK;
use super::{LogError, Options, TimeOrigin};

/// Bins of fio ≥ 3, in ns, and of fio 2, in µs (`stat.h`, `FIO_IO_U_PLAT_NR`).
const BINS: [(usize, u64); 2] = [(29 * 64, 1), (19 * 64, 1000)];
/// The largest `log_hist_coarseness` (`options.c`).
const COARSENESS_MAX: u32 = 6;
/// No line is longer: 1859 numbers of at most 20 digits.
const LINE_MAX: u64 = 64 << 10;

/// How the bins of a log lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinLayout {
    /// Bins that were joined are 2 to the power of this (`log_hist_coarseness`).
    pub coarseness: u32,
    /// What its numbers count: 1 ns, or 1000 ns of fio 2.
    pub unit_ns: u64,
    /// Columns with counts.
    bins: usize,
}

impl BinLayout {
    /// The layout that has so many columns of counts.
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
    pub fn bounds_ns(self, bin: usize) -> (u64, u64) {
        let (first, last) = (bin << self.coarseness, ((bin + 1) << self.coarseness) - 1);
        let (low, high) = (bounds_of(first).0, bounds_of(last).1);
        (low * self.unit_ns, high * self.unit_ns + (self.unit_ns - 1))
    }

    /// How far a bin reaches from its middle, in percent of that: one is 1/64 of an
    /// octave wide, each step of coarseness doubles it.
    pub fn error_percent(self) -> f64 {
        100.0 * f64::from(1u32 << self.coarseness) / 128.0
    }

    /// The bounds of the last bin, in which is everything that is larger, too.
    pub fn last_ns(self) -> (u64, u64) {
        self.bounds_ns(self.bins - 1)
    }
}

/// A line of a histogram log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramLine {
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
    pub layout: Option<BinLayout>,
    /// Its lines.
    pub intervals: Vec<HistogramLine>,
    /// When its time begins, as [`super::Log::origin_ms`].
    pub origin_ms: u64,
    /// The time of its first line as it stands there.
    pub first_ms: u64,
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
        first_ms: 0,
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
        if number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        let Some(whole) = line.strip_suffix(b"\n") else {
            log.cut_bytes = line.len() as u64;
            if line.len() as u64 == LINE_MAX {
                let (column, fault) = (1, LineFault::TooLong(LINE_MAX as usize >> 10));
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
    log.count_from(options.origin);
    Ok(log)
}

impl Histograms {
    /// How often it has a line (`log_hist_msec`): the middle of the distances, 1 ms
    /// where there are none. fio is late by some ms, sometimes.
    pub fn interval_ms(&self) -> u64 {
        let mut times: Vec<u64> = self.intervals.iter().map(|line| line.time_ms).collect();
        times.sort_unstable();
        times.dedup();
        let mut apart: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        apart.sort_unstable();
        apart.get(apart.len() / 2).copied().unwrap_or(1)
    }

    /// What its lines have counted of which the log does not say how long they took.
    pub fn beyond(&self) -> Option<(u64, u64)> {
        let (low, _) = self.layout?.last_ns();
        (self.saturated > 0).then_some((self.saturated, low))
    }

    fn count_from(&mut self, origin: TimeOrigin) {
        let Some(first) = self.intervals.first() else {
            return;
        };
        self.first_ms = first.time_ms;
        let last_ms = self.intervals.iter().map(|line| line.time_ms).max();
        let begin = origin.begin(self.first_ms);
        self.origin_ms = begin.told(last_ms.unwrap_or(0), true);
        for interval in &mut self.intervals {
            interval.time_ms = interval.time_ms.saturating_sub(self.origin_ms);
        }
    }

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
        let mut numbers = LineNumbers { line, at: 0 };
        let time_ms = numbers.next(Field::Time)?;
        numbers.skip_blanks();
        let dir_column = numbers.column();
        let dir = direction(numbers.next(Field::Direction)?).ok_or(LineError {
            column: dir_column,
            fault: LineFault::Direction,
        })?;
        numbers.next(Field::BlockSize)?;
        let bins = memchr::memchr_iter(b',', &line[numbers.at..]).count() + 1;
        let layout = match self.layout {
            Some(layout) if layout.bins == bins => layout,
            None => BinLayout::of(bins).ok_or_else(|| numbers.fail(LineFault::Bins(bins)))?,
            Some(_) => return Err(numbers.fail(LineFault::Bins(bins))),
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
        self.layout = Some(layout);
        self.intervals.push(HistogramLine {
            time_ms,
            dir,
            counts,
        });
        Ok(())
    }
}

/// The numbers of a line, one after the other.
struct LineNumbers<'l> {
    line: &'l [u8],
    at: usize,
}

impl LineNumbers<'_> {
    fn column(&self) -> usize {
        self.at + 1
    }

    fn fail(&self, fault: LineFault) -> LineError {
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
            return Err(self.fail(LineFault::Missing(field)));
        }
        let from = self.at;
        let mut value = 0u64;
        while let Some(digit) = self.line.get(self.at).filter(|b| b.is_ascii_digit()) {
            value = value
                .checked_mul(10)
                .and_then(|value| value.checked_add(u64::from(digit - b'0')))
                .ok_or(LineError {
                    column: from + 1,
                    fault: LineFault::TooLarge(field),
                })?;
            self.at += 1;
        }
        if self.at == from {
            return Err(self.fail(LineFault::NotANumber(field)));
        }
        self.skip_blanks();
        match self.line.get(self.at) {
            Some(b',') => self.at += 1,
            Some(_) => return Err(self.fail(LineFault::NotANumber(field))),
            None => {}
        }
        Ok(value)
    }

    fn end(&mut self) -> Result<(), LineError> {
        match self.at == self.line.len() {
            true => Ok(()),
            false => Err(self.fail(LineFault::TooMany)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use fathom_model::histogram::{BUCKETS, middle_of};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    const STRICT: Options = Options {
        threads: 1,
        skip_bad: false,
        origin: TimeOrigin::Told,
        unit_ns: 1,
    };
    const LENIENT: Options = Options {
        skip_bad: true,
        ..STRICT
    };

    fn read_text(text: &[u8], options: Options) -> Result<Histograms, LogError> {
        read_lines(text, Path::new("x_clat_hist.1.log"), options)
    }

    fn line(time_ms: u64, dir: u8, counts: &[u64]) -> String {
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        format!("{time_ms}, {dir}, 4096, {}\n", counts.join(", "))
    }

    #[test]
    fn every_layout_is_told_by_its_columns_and_no_two_are_alike() {
        let mut all = Vec::new();
        for (bins, unit_ns) in BINS {
            for coarseness in 0..=COARSENESS_MAX {
                let layout = BinLayout::of(bins >> coarseness).unwrap();
                assert_eq!((layout.coarseness, layout.unit_ns), (coarseness, unit_ns));
                all.push(layout.bins);
                // Bins follow each other without gaps, and end where fio's do.
                let mut next = 0;
                for bin in 0..layout.bins {
                    let (low, high) = layout.bounds_ns(bin);
                    assert_eq!(low, next, "bin {bin} of {layout:?}");
                    next = high + 1;
                }
                let end = if unit_ns == 1 {
                    1 << 34
                } else {
                    (1 << 24) * 1000
                };
                assert_eq!(next, end);
            }
        }
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 14);
        assert_eq!(BinLayout::of(1857), None);
    }

    proptest! {
        #[test]
        fn counts_stand_in_the_middle_of_their_bins(
            coarseness in 0u32..=6,
            micros in any::<bool>(),
            filled in prop::collection::vec((any::<prop::sample::Index>(), 1u64..1000), 1..20),
        ) {
            let (bins, unit_ns) = BINS[usize::from(micros)];
            let layout = BinLayout::of(bins >> coarseness).unwrap();
            let mut counts = vec![0; layout.bins];
            for (bin, count) in filled {
                counts[bin.index(layout.bins)] += count;
            }
            let log = read_text(line(7, 1, &counts).as_bytes(), STRICT).unwrap();
            // The plain way: each raw bin has its bounds, joined ones those of all.
            let mut plain = Histogram::new();
            for (bin, &count) in counts.iter().enumerate() {
                let raw = bin << coarseness..(bin + 1) << coarseness;
                let low = raw.clone().map(|bin| bounds_of(bin).0).min().unwrap() * unit_ns;
                let high = (raw.map(|bin| bounds_of(bin).1).max().unwrap() + 1) * unit_ns - 1;
                plain.add(low + (high - low).div_ceil(2), count);
            }
            prop_assert_eq!(&log.intervals[0].counts, &plain);
            prop_assert_eq!(log.intervals[0].dir, Direction::Write);
            prop_assert_eq!(log.layout, Some(layout));
            prop_assert_eq!(log.saturated, counts[layout.bins - 1]);
            let all: u64 = counts.iter().sum();
            prop_assert_eq!(log.intervals[0].counts.total(), all);
            prop_assert!(plain.buckets().all(|(bucket, _)| bucket < BUCKETS && middle_of(bucket) > 0 || bucket == 0));
        }

        #[test]
        fn no_bytes_make_it_panic(text in prop::collection::vec(
            prop::sample::select(b"0123456789, \n\r-x".to_vec()), 0..300)) {
            let _ = read_text(&text, STRICT);
            let log = read_text(&text, LENIENT).unwrap();
            let whole = text.iter().filter(|&&b| b == b'\n').count() as u64;
            prop_assert_eq!(log.intervals.len() as u64 + log.skipped, whole);
        }
    }

    #[test]
    fn malformed_and_cut_lines_are_told() {
        let good = line(100, 0, &[1; 29]);
        let bad = |bad: &str| {
            let text = format!("{good}{bad}\n{good}");
            let log = read_text(text.as_bytes(), LENIENT).unwrap();
            assert_eq!((log.intervals.len(), log.skipped), (2, 1), "{bad}");
            let error = read_text(text.as_bytes(), STRICT).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
            error
        };
        assert!(bad("100, 0, 4096, 1, 2, 3").contains("3 bins"));
        assert!(
            bad(line(1, 0, &[1; 58]).trim()).contains("58 bins"),
            "another layout"
        );
        assert!(bad(line(1, 3, &[1; 29]).trim()).contains("column 4: the direction"));
        assert!(bad("").contains("the line ends before the time"));
        assert!(
            bad(&line(1, 0, &[1; 29]).trim().replace("1, 1", "1, -1"))
                .contains("the count of a bin")
        );
        let cut = read_text(&good.as_bytes()[..40], STRICT).unwrap();
        assert_eq!((cut.layout, cut.cut_bytes), (None, 40));
        let endless = [good.as_bytes(), &[b'7'; 200_000], b"\n", good.as_bytes()].concat();
        assert_eq!(read_text(&endless, LENIENT).unwrap().intervals.len(), 2);
    }

    #[test]
    fn gzip_is_read_as_far_as_it_goes() {
        let text: String = (1..500u64)
            .map(|n| line(n * 100, (n % 2) as u8, &[n * 7919 % 101; 1856]))
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        let packed = encoder.finish().unwrap();
        let read = |bytes: &[u8]| {
            let path = dir.path().join("a_clat_hist.1.log.gz");
            std::fs::write(&path, bytes).unwrap();
            read_histograms(&path, STRICT).unwrap()
        };
        let whole = read(&packed);
        assert_eq!((whole.intervals.len(), whole.cut_gzip), (499, false));
        let cut = read(&packed[..packed.len() / 2]);
        assert!(cut.cut_gzip && cut.intervals.len() > 10 && cut.intervals.len() < 499);
    }
}
