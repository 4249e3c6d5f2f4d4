//! Takes lines, within its memory.

use fathom_model::histogram::middle_of;
use fathom_model::{Direction, Histogram, LogEntry};

use super::moments::LatencyMoments;
use super::over_time::OverTime;
use super::values::{BucketCounts, Exact};

/// Priorities and directions together that a log may have. Each takes 30 KB of
/// counts; real logs have a dozen.
pub(super) const MOST_KEYS: usize = 1024;
/// Intervals that a log may have together with their priorities and directions.
pub(super) const MOST_INTERVALS: u64 = 20_000;
const DIRECTIONS: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

/// How to collect.
#[derive(Debug, Clone, Copy)]
pub struct CollectSettings {
    /// Bytes that exact latencies may take; with more there is a histogram.
    pub memory: usize,
    /// Statistics over time with this interval.
    pub interval_ms: Option<u64>,
}

/// What is known of one direction and priority.
#[derive(Debug)]
pub(super) struct DirectionPriority {
    pub(super) dir: Direction,
    pub(super) prio: u16,
    pub(super) moments: LatencyMoments,
    pub(super) exact: Exact,
    pub(super) counts: Option<BucketCounts>,
}

/// The lines of one part of a log.
#[derive(Debug)]
pub struct LogCollector {
    /// By direction and priority: place in `cells`, counted from 1.
    slots: Box<[u16]>,
    pub(super) cells: Vec<DirectionPriority>,
    /// Bytes that are left for exact latencies; `None` once there is a histogram.
    left: Option<usize>,
    pub(super) over_time: Option<OverTime>,
    pub(super) last_ms: u64,
    /// Lines whose priority is one too many.
    pub(super) beyond: u64,
    /// Of a histogram log: how far its bins reach from their middle.
    pub(super) bin_error_percent: Option<f64>,
}

impl LogCollector {
    /// One without lines.
    pub fn new(settings: CollectSettings) -> Self {
        Self {
            slots: vec![0; DIRECTIONS.len() << 16].into_boxed_slice(),
            cells: Vec::new(),
            left: (settings.memory > 0).then_some(settings.memory),
            over_time: settings.interval_ms.map(OverTime::new),
            last_ms: 0,
            beyond: 0,
            bin_error_percent: None,
        }
    }

    /// One without lines, of a histogram log whose bins reach so far from their
    /// middle, in percent of it.
    pub fn of_counts(settings: CollectSettings, bin_error_percent: f64) -> Self {
        let settings = CollectSettings {
            memory: 0,
            ..settings
        };
        Self {
            bin_error_percent: Some(bin_error_percent),
            ..Self::new(settings)
        }
    }

    /// Adds a line of a histogram log: the I/Os from one time to another.
    pub fn add_counts(&mut self, (from_ms, to_ms): (u64, u64), dir: Direction, of: &Histogram) {
        self.last_ms = self.last_ms.max(to_ms);
        // fio writes a line for each direction, also for one without I/Os.
        let place = place(dir).filter(|_| !of.is_empty());
        let Some(slot) = place.and_then(|dir| self.slot(dir << 16)) else {
            return;
        };
        let cell = &mut self.cells[slot];
        let counts = cell.counts.get_or_insert_default();
        for (bucket, count) in of.buckets() {
            let middle = middle_of(bucket);
            cell.moments.add_many(middle, count);
            counts.add_many(middle, count);
            if let Some(over_time) = &mut self.over_time {
                over_time.add_many(slot, from_ms, middle, count);
            }
        }
    }

    /// Adds a line. A direction that no log has counts as beyond what is possible.
    #[inline]
    pub fn add(&mut self, entry: &LogEntry) {
        let Some(dir) = place(entry.dir) else {
            self.beyond += 1;
            return;
        };
        let Some(slot) = self.slot(dir << 16 | usize::from(entry.prio)) else {
            return;
        };
        let cell = &mut self.cells[slot];
        let max_ns = entry.max.unwrap_or(entry.value);
        cell.moments.add(entry.value, max_ns, entry.bs);
        self.last_ms = self.last_ms.max(entry.time_ms);
        match (&mut cell.counts, &mut self.left) {
            (Some(counts), _) => counts.add(entry.value),
            (None, Some(left)) => {
                let bytes = cell.exact.add(entry.value);
                match left.checked_sub(bytes) {
                    Some(less) => *left = less,
                    None => self.count(),
                }
            }
            (None, None) => cell.counts.insert(BucketCounts::default()).add(entry.value),
        }
        if let Some(over_time) = &mut self.over_time {
            over_time.add(slot, entry.time_ms, entry.value, max_ns, entry.bs);
        }
    }

    #[inline]
    fn slot(&mut self, key: usize) -> Option<usize> {
        let slot = match self.slots[key] {
            0 => self.open(key)?,
            slot => slot,
        };
        Some(usize::from(slot) - 1)
    }

    #[cold]
    fn open(&mut self, key: usize) -> Option<u16> {
        if self.cells.len() == MOST_KEYS {
            self.beyond += 1;
            return None;
        }
        self.cells.push(DirectionPriority {
            dir: DIRECTIONS[key >> 16],
            prio: key as u16,
            moments: LatencyMoments::default(),
            exact: Exact::default(),
            counts: self.left.is_none().then(BucketCounts::default),
        });
        let slot = self.cells.len() as u16;
        self.slots[key] = slot;
        Some(slot)
    }

    /// From latencies to a histogram of them.
    #[cold]
    pub(super) fn count(&mut self) {
        if self.left.take().is_some() {
            for cell in &mut self.cells {
                cell.counts = Some(std::mem::take(&mut cell.exact).counted());
            }
        }
    }

    /// After the last line: sorts. Nothing can be added any more.
    pub fn end(&mut self) {
        self.slots = Box::default();
        for cell in &mut self.cells {
            cell.exact.sort();
        }
        if let Some(over_time) = &mut self.over_time {
            over_time.close();
        }
    }

    /// What is left of the memory for exact latencies.
    pub fn memory_left(&self) -> usize {
        self.left.unwrap_or(0)
    }

    /// Whether its lines are means over windows (`log_avg_msec`): none has a size.
    pub fn is_averaged(&self) -> bool {
        self.bin_error_percent.is_none() && self.cells.iter().all(|cell| cell.moments.bytes == 0)
    }

    /// The latest time stamp in ms.
    pub fn last_ms(&self) -> u64 {
        self.last_ms
    }

    pub(super) fn is_exact(&self) -> bool {
        self.left.is_some()
    }
}

/// The place of a direction that logs have.
fn place(dir: Direction) -> Option<usize> {
    DIRECTIONS.iter().position(|&of_logs| of_logs == dir)
}

impl DirectionPriority {
    pub(super) fn histogram(&mut self) -> Histogram {
        let (min, max) = (self.moments.min_ns, self.moments.max_ns);
        self.counts
            .as_mut()
            .map(|counts| counts.take(min, max))
            .unwrap_or_default()
    }
}
