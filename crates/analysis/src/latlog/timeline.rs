//! A log over time, in so many slices as a plot can show, whatever its length.

use fathom_model::{Direction, Histogram, LogEntry};

use super::values::Counts;

/// Slices of a log at most: more columns of pixels than a plot has.
const SLICES: u64 = 2048;
/// A log of so few lines is kept as it is.
const POINTS: usize = 4096;
const DIRECTIONS: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

/// What a log says of a piece of its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Lines; of a histogram log, I/Os.
    pub n: u64,
    /// Sum of the values.
    pub sum: u128,
    /// Sum of the I/Os' bytes; 0 where lines are means over windows.
    pub bytes: u128,
    /// The lowest value and its time in ms.
    pub low: (u64, u64),
    /// The highest value and its time in ms.
    pub high: (u64, u64),
    /// The values, where they are wanted.
    pub histogram: Histogram,
}

impl Default for Slice {
    fn default() -> Self {
        Self {
            n: 0,
            sum: 0,
            bytes: 0,
            low: (0, u64::MAX),
            high: (0, 0),
            histogram: Histogram::new(),
        }
    }
}

impl Slice {
    #[inline]
    fn add(&mut self, time_ms: u64, value: u64, max: u64, bytes: u64) {
        self.n += 1;
        self.sum += u128::from(value);
        self.bytes += u128::from(bytes);
        if value < self.low.1 {
            self.low = (time_ms, value);
        }
        if max > self.high.1 {
            self.high = (time_ms, max);
        }
    }

    fn merge(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        self.n += other.n;
        self.sum += other.sum;
        self.bytes += other.bytes;
        if other.low.1 < self.low.1 {
            self.low = other.low;
        }
        if self.n == other.n || other.high.1 > self.high.1 {
            self.high = other.high;
        }
        self.histogram.merge(&other.histogram);
    }

    /// The mean value; `None` without any.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }
}

/// One direction of a log.
#[derive(Debug, Clone)]
pub struct Track {
    /// Read, write or trim.
    pub dir: Direction,
    /// The pieces of its time, each [`Timeline::span_ms`] long, the first from 0 on;
    /// those without anything are empty.
    pub slices: Vec<Slice>,
    /// Every line as (ms, value), when there are few; else none.
    pub points: Vec<(u64, u64)>,
    /// All lines.
    pub n: u64,
    /// Whether its lines are single I/Os, which have a size, not means over windows.
    pub single: bool,
}

impl Track {
    fn new(dir: Direction) -> Self {
        Self {
            dir,
            slices: Vec::new(),
            points: Vec::new(),
            n: 0,
            single: false,
        }
    }

    fn slice(&mut self, place: u64) -> &mut Slice {
        let place = usize::try_from(place).expect("there are few slices");
        if place >= self.slices.len() {
            self.slices.resize_with(place + 1, Slice::default);
        }
        &mut self.slices[place]
    }

    /// Joins neighbours, `2^doublings` each.
    fn widen(&mut self, doublings: u32) {
        let together = 1usize.checked_shl(doublings).unwrap_or(usize::MAX);
        if doublings == 0 || self.slices.is_empty() {
            return;
        }
        let joined = self.slices.chunks(together).map(|slices| {
            let mut sum = Slice::default();
            slices.iter().for_each(|slice| sum.merge(slice));
            sum
        });
        self.slices = joined.collect();
    }
}

/// What is being counted of one direction.
#[derive(Debug)]
struct Open {
    slice: Slice,
    counts: Option<Counts>,
}

/// A log over time, direction by direction. Its slices grow with its length:
/// they are powers of two in ms, so that parts of a log can be put together.
#[derive(Debug)]
pub struct Timeline {
    /// Two to the power of this are the ms of a slice.
    shift: u32,
    tracks: Vec<Track>,
    /// The slice that is being filled.
    running: u64,
    open: [Open; 3],
    /// The latest time in ms.
    pub end_ms: u64,
}

impl Timeline {
    /// Without lines. `histograms` says whether the values of slices are wanted.
    #[must_use]
    pub fn new(histograms: bool) -> Self {
        let open = || Open {
            slice: Slice::default(),
            counts: histograms.then(Counts::default),
        };
        Self {
            shift: 0,
            tracks: DIRECTIONS.map(Track::new).into(),
            running: 0,
            open: [open(), open(), open()],
            end_ms: 0,
        }
    }

    /// Adds a line. What is neither read, write nor trim is in no log.
    #[inline]
    pub fn add(&mut self, entry: &LogEntry) {
        let dir = match entry.dir {
            Direction::Read => 0,
            Direction::Write => 1,
            Direction::Trim => 2,
            Direction::Sync | Direction::Mixed => return,
        };
        if entry.time_ms >> self.shift != self.running {
            self.go_to(entry.time_ms);
        }
        self.end_ms = self.end_ms.max(entry.time_ms);
        let open = &mut self.open[dir];
        let max = entry.max.unwrap_or(entry.value);
        open.slice.add(entry.time_ms, entry.value, max, entry.bs);
        if let Some(counts) = &mut open.counts {
            counts.add(entry.value);
        }
        let points = &mut self.tracks[dir].points;
        if points.len() <= POINTS {
            points.push((entry.time_ms, entry.value));
        }
    }

    /// Adds the line of a histogram log.
    pub fn add_counts(&mut self, time_ms: u64, dir: Direction, counts: &Histogram) {
        let Some(track) = DIRECTIONS.iter().position(|&d| d == dir) else {
            return;
        };
        let (Some(low), Some(high)) = (counts.element_ns(1), counts.percentile_ns(100.0)) else {
            return;
        };
        self.go_to(time_ms);
        self.end_ms = self.end_ms.max(time_ms);
        let n = counts.total();
        let mean = counts.mean_ns().unwrap_or(0.0);
        let slice = Slice {
            n,
            sum: (mean * n as f64) as u128,
            bytes: 0,
            low: (time_ms, low),
            high: (time_ms, high),
            histogram: counts.clone(),
        };
        self.tracks[track].slice(self.running).merge(&slice);
    }

    /// Puts what was counted away, and goes on at another time.
    #[cold]
    fn go_to(&mut self, time_ms: u64) {
        self.close();
        let mut doublings = 0;
        while time_ms >> (self.shift + doublings) >= SLICES {
            doublings += 1;
        }
        self.widen(doublings);
        self.running = time_ms >> self.shift;
    }

    fn close(&mut self) {
        for (track, open) in self.tracks.iter_mut().zip(&mut self.open) {
            let mut slice = std::mem::take(&mut open.slice);
            if slice.n == 0 {
                continue;
            }
            if let Some(counts) = &mut open.counts {
                // The highest of windows is beyond what was counted.
                slice.histogram = counts.take(slice.low.1, slice.high.1);
            }
            track.slice(self.running).merge(&slice);
        }
    }

    fn widen(&mut self, doublings: u32) {
        self.shift += doublings;
        for track in &mut self.tracks {
            track.widen(doublings);
        }
    }

    /// After the last line.
    pub fn end(&mut self) {
        self.close();
        for track in &mut self.tracks {
            track.n = track.slices.iter().map(|slice| slice.n).sum();
            track.single = track.slices.iter().any(|slice| slice.bytes > 0);
            if track.points.len() > POINTS || track.points.len() as u64 != track.n {
                track.points = Vec::new();
            }
            track.points.sort_by_key(|&(time_ms, _)| time_ms);
        }
    }

    /// All parts of a log, or all logs of some jobs, together; each has ended.
    #[must_use]
    pub fn of(parts: Vec<Self>) -> Self {
        let mut whole = Self::new(false);
        let shift = parts.iter().map(|part| part.shift).max().unwrap_or(0);
        whole.shift = shift;
        for mut part in parts {
            part.widen(shift - part.shift);
            whole.end_ms = whole.end_ms.max(part.end_ms);
            for (to, from) in whole.tracks.iter_mut().zip(part.tracks) {
                for (place, slice) in from.slices.iter().enumerate() {
                    to.slice(place as u64).merge(slice);
                }
                to.points.extend(from.points);
            }
        }
        whole.end();
        whole
    }

    /// The ms of a slice.
    #[must_use]
    pub fn span_ms(&self) -> u64 {
        1 << self.shift
    }

    /// The directions that occur.
    pub fn tracks(&self) -> impl Iterator<Item = &Track> {
        self.tracks.iter().filter(|track| track.n > 0)
    }

    /// The same with at most so many slices.
    #[must_use]
    pub fn coarser(&self, slices_max: u64) -> Self {
        let mut doublings = 0;
        while self.end_ms >> (self.shift + doublings) >= slices_max.max(1) {
            doublings += 1;
        }
        let mut coarse = Self::new(false);
        coarse.tracks.clone_from(&self.tracks);
        coarse.shift = self.shift;
        coarse.end_ms = self.end_ms;
        coarse.widen(doublings);
        coarse
    }
}
