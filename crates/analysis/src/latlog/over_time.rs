//! What was measured in each interval.

use std::collections::BTreeMap;

use fathom_model::Histogram;

use super::collector::MOST_INTERVALS;
use super::moments::LatencyMoments;
use super::values::BucketCounts;

/// One interval of one priority and direction, complete.
#[derive(Debug, Clone, Default)]
pub(super) struct PrioritySlice {
    pub(super) moments: LatencyMoments,
    pub(super) histogram: Histogram,
}

impl PrioritySlice {
    pub(super) fn merge(&mut self, other: &Self) {
        self.moments.merge(&other.moments);
        self.histogram.merge(&other.histogram);
    }
}

/// Slices of a log whose lines mostly come in the order of time: those of the
/// running interval are counted in place, complete ones are kept small.
#[derive(Debug)]
pub(super) struct OverTime {
    interval_ms: u64,
    running: u64,
    /// By slot of the collector.
    open: Vec<(LatencyMoments, BucketCounts)>,
    /// By interval, then slot.
    pub(super) done: BTreeMap<(u64, usize), PrioritySlice>,
}

impl OverTime {
    pub(super) fn new(interval_ms: u64) -> Self {
        Self {
            interval_ms: interval_ms.max(1),
            running: 0,
            open: Vec::new(),
            done: BTreeMap::new(),
        }
    }

    pub(super) fn interval_ms(&self) -> u64 {
        self.interval_ms
    }

    pub(super) fn add(&mut self, slot: usize, time_ms: u64, value_ns: u64, max_ns: u64, bs: u64) {
        if let Some((moments, counts)) = self.open(slot, time_ms) {
            moments.add(value_ns, max_ns, bs);
            counts.add(value_ns);
        }
    }

    /// Adds the counts of a histogram log's line.
    pub(super) fn add_many(&mut self, slot: usize, time_ms: u64, value_ns: u64, count: u64) {
        if let Some((moments, counts)) = self.open(slot, time_ms) {
            moments.add_many(value_ns, count);
            counts.add_many(value_ns, count);
        }
    }

    #[inline]
    fn open(&mut self, slot: usize, time_ms: u64) -> Option<&mut (LatencyMoments, BucketCounts)> {
        if self.is_full() {
            return None;
        }
        let interval = time_ms / self.interval_ms;
        if interval != self.running {
            self.close();
            self.running = interval;
        }
        if slot >= self.open.len() {
            self.open.resize_with(slot + 1, Default::default);
        }
        Some(&mut self.open[slot])
    }

    /// Whether there are more intervals than a log may have.
    pub(super) fn is_full(&self) -> bool {
        self.done.len() as u64 > MOST_INTERVALS
    }

    /// Puts the running interval away.
    pub(super) fn close(&mut self) {
        for (slot, (moments, counts)) in self.open.iter_mut().enumerate() {
            let moments = std::mem::take(moments);
            if moments.n == 0 {
                continue;
            }
            let histogram = counts.take(moments.min_ns, moments.max_ns);
            let slice = PrioritySlice { moments, histogram };
            self.done
                .entry((self.running, slot))
                .or_default()
                .merge(&slice);
        }
    }
}
