//! A log over time, in so many slices as a plot can show, whatever its length.

use fathom_model::{Direction, Histogram, LogEntry};

use super::values::BucketCounts;

/// Slices of a log at most: more columns of pixels than a plot has.
const SLICES: u64 = 2048;
/// A log of so few lines is kept as it is.
const POINTS: usize = 4096;
const DIRECTIONS: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

/// What a log says of a piece of its time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineSlice {
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

impl Default for TimelineSlice {
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

impl TimelineSlice {
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

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
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
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }
}

/// One direction of a log.
#[derive(Debug, Clone)]
pub struct DirectionTrack {
    /// Read, write or trim.
    pub dir: Direction,
    /// The pieces of its time, each [`Timeline::span_ms`] long, the first from 0 on;
    /// those without anything are empty.
    pub slices: Vec<TimelineSlice>,
    /// Every line as (ms, value), when there are few; else none.
    pub points: Vec<(u64, u64)>,
    /// All lines.
    pub n: u64,
    /// Whether its lines are single I/Os, which have a size, not means over windows.
    pub single: bool,
}

impl DirectionTrack {
    fn new(dir: Direction) -> Self {
        Self {
            dir,
            slices: Vec::new(),
            points: Vec::new(),
            n: 0,
            single: false,
        }
    }

    fn slice(&mut self, place: u64) -> &mut TimelineSlice {
        let place = usize::try_from(place).expect("there are few slices");
        if place >= self.slices.len() {
            self.slices.resize_with(place + 1, TimelineSlice::default);
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
            let mut sum = TimelineSlice::default();
            slices.iter().for_each(|slice| sum.merge(slice));
            sum
        });
        self.slices = joined.collect();
    }
}

/// What is being counted of one direction.
#[derive(Debug)]
struct OpenSlice {
    slice: TimelineSlice,
    counts: Option<BucketCounts>,
}

/// A log over time, direction by direction. Its slices grow with its length, by
/// powers of two, so that parts of a log can be put together.
#[derive(Debug)]
pub struct Timeline {
    /// The shortest slice in ms.
    unit_ms: u64,
    /// How often slices have doubled.
    shift: u32,
    tracks: Vec<DirectionTrack>,
    /// The slice that is being filled.
    running: u64,
    open: [OpenSlice; 3],
    /// The latest time in ms.
    pub end_ms: u64,
}

impl Timeline {
    /// Without lines. `histograms` says whether the values of slices are wanted.
    pub fn new(histograms: bool) -> Self {
        let open = || OpenSlice {
            slice: TimelineSlice::default(),
            counts: histograms.then(BucketCounts::default),
        };
        Self {
            unit_ms: 1,
            shift: 0,
            tracks: DIRECTIONS.map(DirectionTrack::new).into(),
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

    /// Without lines, of a histogram log that has a line every so many ms.
    pub fn of_intervals(unit_ms: u64) -> Self {
        Self {
            unit_ms: unit_ms.max(1),
            ..Self::new(false)
        }
    }

    /// Adds the line of a histogram log, which is of the interval that ends then.
    pub fn add_counts(&mut self, time_ms: u64, dir: Direction, counts: &Histogram) {
        let Some(track) = DIRECTIONS.iter().position(|&d| d == dir) else {
            return;
        };
        let (Some(low), Some(high)) = (counts.element_ns(1), counts.percentile_ns(100.0)) else {
            return;
        };
        // fio is late by a few ms: to the nearest end of an interval.
        let ended = (time_ms + self.unit_ms / 2) / self.unit_ms;
        self.go_to(ended.saturating_sub(1));
        self.end_ms = self.end_ms.max(time_ms);
        let n = counts.total();
        let mean = counts.mean_ns().unwrap_or(0.0);
        let slice = TimelineSlice {
            n,
            sum: (mean * n as f64) as u128,
            bytes: 0,
            low: (time_ms, low),
            high: (time_ms, high),
            histogram: counts.clone(),
        };
        self.tracks[track].slice(self.running).merge(&slice);
    }

    /// Puts what was counted away, and goes on at another time, in units.
    #[cold]
    fn go_to(&mut self, units: u64) {
        self.close();
        let mut doublings = 0;
        while units >> (self.shift + doublings) >= SLICES {
            doublings += 1;
        }
        self.widen(doublings);
        self.running = units >> self.shift;
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
    pub fn of(parts: Vec<Self>) -> Self {
        let mut whole = Self::new(false);
        // The coarsest; of others, slices go where their middle lies.
        if let Some(part) = parts.iter().max_by_key(|part| part.span_ms()) {
            (whole.unit_ms, whole.shift) = (part.unit_ms, part.shift);
        }
        let span_ms = whole.span_ms();
        for part in parts {
            whole.end_ms = whole.end_ms.max(part.end_ms);
            let own_ms = part.span_ms();
            for (to, from) in whole.tracks.iter_mut().zip(part.tracks) {
                for (place, slice) in from.slices.iter().enumerate() {
                    let middle_ms = place as u64 * own_ms + own_ms / 2;
                    to.slice(middle_ms / span_ms).merge(slice);
                }
                to.points.extend(from.points);
            }
        }
        whole.end();
        whole
    }

    /// The ms of a slice.
    pub fn span_ms(&self) -> u64 {
        self.unit_ms << self.shift
    }

    /// The directions that occur.
    pub fn tracks(&self) -> impl Iterator<Item = &DirectionTrack> {
        self.tracks.iter().filter(|track| track.n > 0)
    }

    /// The same with at most so many slices.
    pub fn coarser(&self, slices_max: u64) -> Self {
        let mut doublings = 0;
        let spans = self.end_ms / self.unit_ms;
        while spans >> (self.shift + doublings) >= slices_max.max(1) {
            doublings += 1;
        }
        let mut coarse = Self::of_intervals(self.unit_ms);
        coarse.tracks.clone_from(&self.tracks);
        coarse.shift = self.shift;
        coarse.end_ms = self.end_ms;
        coarse.widen(doublings);
        coarse
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(time_ms: u64, value: u64, dir: Direction, bs: u64) -> LogEntry {
        LogEntry {
            time_ms,
            value,
            max: None,
            dir,
            bs,
            offset: None,
            prio: 0,
            issue_ns: None,
        }
    }

    fn timeline(entries: &[LogEntry]) -> Timeline {
        let mut timeline = Timeline::new(true);
        entries.iter().for_each(|entry| timeline.add(entry));
        timeline.end();
        timeline
    }

    /// The same slices, slowly and plainly.
    fn plain(entries: &[LogEntry], dir: Direction, span_ms: u64) -> Vec<(u64, TimelineSlice)> {
        let mut slices: std::collections::BTreeMap<u64, TimelineSlice> = Default::default();
        for entry in entries.iter().filter(|entry| entry.dir == dir) {
            let slice = slices.entry(entry.time_ms / span_ms).or_default();
            slice.n += 1;
            slice.sum += u128::from(entry.value);
            slice.bytes += u128::from(entry.bs);
            slice.low = slice.low.min_by_value((entry.time_ms, entry.value));
            slice.high.1 = slice.high.1.max(entry.value);
            slice.histogram.add(entry.value, 1);
        }
        slices.into_iter().collect()
    }

    trait MinByValue {
        fn min_by_value(self, other: Self) -> Self;
    }

    impl MinByValue for (u64, u64) {
        fn min_by_value(self, other: Self) -> Self {
            if other.1 < self.1 { other } else { self }
        }
    }

    fn any_entries() -> impl Strategy<Value = Vec<LogEntry>> {
        let dir = prop::sample::select(vec![Direction::Read, Direction::Write]);
        let one = (0u64..1 << 18, 0u64..1 << 34, dir, 512u64..9000);
        let one = one.prop_map(|(time, value, dir, bs)| entry(time, value, dir, bs));
        (prop::collection::vec(one, 1..300), 0u32..16, any::<bool>()).prop_map(
            |(mut entries, shift, sorted)| {
                // Logs of all lengths: from some ms to minutes.
                entries.iter_mut().for_each(|entry| entry.time_ms >>= shift);
                if sorted {
                    entries.sort_by_key(|entry| entry.time_ms);
                }
                entries
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn slices_are_those_of_a_plain_computation(
            entries in any_entries(),
            parts in 1usize..4,
            coarser in 1u64..300,
        ) {
            let len = entries.len().div_ceil(parts);
            let whole = Timeline::of(entries.chunks(len).map(timeline).collect());
            let end = entries.iter().map(|entry| entry.time_ms).max().unwrap();
            prop_assert_eq!(whole.end_ms, end);
            prop_assert!(end / whole.span_ms() < SLICES);
            let coarse = whole.coarser(coarser);
            prop_assert!(end / coarse.span_ms() < coarser);
            for timeline in [&whole, &coarse] {
                for track in timeline.tracks() {
                    let expected = plain(&entries, track.dir, timeline.span_ms());
                    prop_assert_eq!(track.n, expected.iter().map(|(_, s)| s.n).sum::<u64>());
                    prop_assert!(track.single);
                    let filled = track.slices.iter().enumerate().filter(|(_, s)| s.n > 0);
                    let filled: Vec<(u64, &TimelineSlice)> = filled.map(|(at, s)| (at as u64, s)).collect();
                    prop_assert_eq!(filled.len(), expected.len());
                    for ((at, slice), (wanted_at, wanted)) in filled.iter().zip(&expected) {
                        prop_assert_eq!(at, wanted_at);
                        prop_assert_eq!((slice.n, slice.sum, slice.bytes), (wanted.n, wanted.sum, wanted.bytes));
                        prop_assert_eq!((slice.low.1, slice.high.1), (wanted.low.1, wanted.high.1));
                        prop_assert_eq!(&slice.histogram, &wanted.histogram);
                    }
                    let mut times: Vec<u64> = entries.iter().filter(|e| e.dir == track.dir).map(|e| e.time_ms).collect();
                    times.sort_unstable();
                    let points: Vec<u64> = track.points.iter().map(|point| point.0).collect();
                    prop_assert_eq!(points, times);
                }
            }
        }
    }

    #[test]
    fn a_long_log_takes_little_and_keeps_its_extremes() {
        let value = |n: u64| match n {
            777_777 => 9_000_000_000,
            123_456 => 1,
            n => 100_000 + n % 997,
        };
        let entries = (0..1_000_000).map(|n| entry(n / 7, value(n), Direction::Read, 4096));
        let mut timeline = Timeline::new(false);
        entries.for_each(|entry| timeline.add(&entry));
        timeline.end();
        let track = timeline.tracks().next().unwrap();
        assert!(track.slices.len() <= SLICES as usize && track.points.is_empty());
        let high = track
            .slices
            .iter()
            .max_by_key(|slice| slice.high.1)
            .unwrap();
        assert_eq!(high.high, (777_777 / 7, 9_000_000_000));
        assert!(
            track
                .slices
                .iter()
                .any(|slice| slice.low == (123_456 / 7, 1))
        );
    }

    #[test]
    fn intervals_of_a_histogram_log_are_slices_of_their_own() {
        let mut counts = Histogram::new();
        counts.add(1000, 5);
        let mut timeline = Timeline::of_intervals(500);
        // fio is some ms late, sometimes.
        for time_ms in [501, 1000, 1507, 2001] {
            timeline.add_counts(time_ms, Direction::Write, &counts);
        }
        timeline.end();
        let track = timeline.tracks().next().unwrap();
        let n: Vec<u64> = track.slices.iter().map(|slice| slice.n).collect();
        assert_eq!((n, timeline.span_ms()), (vec![5; 4], 500));
        assert!(!track.single && track.points.is_empty());
        // Put together with one of other intervals, by where they lie.
        let mut seconds = Timeline::of_intervals(1000);
        seconds.add_counts(1000, Direction::Write, &counts);
        seconds.end();
        let both = Timeline::of(vec![timeline, seconds]);
        let track = both.tracks().next().unwrap();
        let n: Vec<u64> = track.slices.iter().map(|slice| slice.n).collect();
        assert_eq!((n, both.span_ms()), (vec![15, 10], 1000));
    }
}
