//! Takes lines, within its memory.

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
}

impl LogCollector {
    /// One without lines.
    #[must_use]
    pub fn new(settings: CollectSettings) -> Self {
        Self {
            slots: vec![0; DIRECTIONS.len() << 16].into_boxed_slice(),
            cells: Vec::new(),
            left: (settings.memory > 0).then_some(settings.memory),
            over_time: settings.interval_ms.map(OverTime::new),
            last_ms: 0,
            beyond: 0,
        }
    }

    /// Adds a line. A direction that no log has counts as beyond what is possible.
    #[inline]
    pub fn add(&mut self, entry: &LogEntry) {
        let dir = match entry.dir {
            Direction::Read => 0,
            Direction::Write => 1,
            Direction::Trim => 2,
            Direction::Sync | Direction::Mixed => {
                self.beyond += 1;
                return;
            }
        };
        let key = dir << 16 | usize::from(entry.prio);
        let mut slot = self.slots[key];
        if slot == 0 {
            let Some(new) = self.open(key) else {
                return;
            };
            slot = new;
        }
        let cell = &mut self.cells[usize::from(slot) - 1];
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
            let slot = usize::from(slot) - 1;
            over_time.add(slot, entry.time_ms, entry.value, max_ns, entry.bs);
        }
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

    /// After the last line: sorts.
    pub fn end(&mut self) {
        for cell in &mut self.cells {
            cell.exact.sort();
        }
        if let Some(over_time) = &mut self.over_time {
            over_time.close();
        }
    }

    pub(super) fn is_exact(&self) -> bool {
        self.left.is_some()
    }
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
