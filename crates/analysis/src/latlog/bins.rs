//! How latencies are spread: counts in bins of the same width, by priority.

use std::collections::BTreeMap;

use fathom_model::LogEntry;

use super::collector::MOST_KEYS;

/// Bins of a priority at most, 32 s in bins of 2 ms: what is beyond is counted as
/// that. A latency may be anything; memory is not.
const BINS_MAX: usize = 16_000;

/// The latencies of one priority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spread {
    /// All I/Os.
    pub n: u64,
    /// I/Os by bin; the first begins at 0.
    pub bins: Vec<u64>,
    /// I/Os beyond the last bin that is kept.
    pub beyond: u64,
}

/// Counts the lines of one part of a log.
#[derive(Debug)]
pub struct Bins {
    width_ns: u64,
    spreads: BTreeMap<u16, Spread>,
}

impl Bins {
    /// Without lines.
    #[must_use]
    pub fn new(width_ns: u64) -> Self {
        Self {
            width_ns: width_ns.max(1),
            spreads: BTreeMap::new(),
        }
    }

    /// Adds a line.
    pub fn add(&mut self, entry: &LogEntry) {
        // More priorities than logs have are told by the figures, not here.
        if self.spreads.len() == MOST_KEYS && !self.spreads.contains_key(&entry.prio) {
            return;
        }
        let spread = self.spreads.entry(entry.prio).or_default();
        spread.n += 1;
        let bin = usize::try_from(entry.value / self.width_ns).unwrap_or(BINS_MAX);
        if bin >= BINS_MAX {
            spread.beyond += 1;
            return;
        }
        if bin >= spread.bins.len() {
            spread.bins.resize(bin + 1, 0);
        }
        spread.bins[bin] += 1;
    }

    /// All parts of a log together, by priority.
    #[must_use]
    pub fn of(parts: Vec<Self>) -> BTreeMap<u16, Spread> {
        let mut all: BTreeMap<u16, Spread> = BTreeMap::new();
        for (prio, part) in parts.into_iter().flat_map(|part| part.spreads) {
            all.entry(prio).or_default().merge(&part);
        }
        all
    }
}

impl Spread {
    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.beyond += other.beyond;
        let len = self.bins.len().max(other.bins.len());
        self.bins.resize(len, 0);
        for (to, from) in self.bins.iter_mut().zip(&other.bins) {
            *to += from;
        }
    }
}
