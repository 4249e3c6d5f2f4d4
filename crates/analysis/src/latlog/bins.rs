//! How latencies are spread: counts in bins of the same width, by priority.

use std::collections::BTreeMap;

use fathom_model::LogEntry;

use super::collector::MOST_KEYS;

/// Bins of a priority at most, 32 s in bins of 2 ms: what is beyond is counted as
/// that. A latency may be anything; memory is not.
const BINS_MAX: usize = 16_000;

/// The latencies of one priority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrioritySpread {
    /// All I/Os.
    pub n: u64,
    /// I/Os by bin; the first begins at 0.
    pub bins: Vec<u64>,
    /// I/Os beyond the last bin that is kept.
    pub beyond: u64,
}

/// Counts the lines of one part of a log.
#[derive(Debug)]
pub struct PriorityBins {
    width_ns: u64,
    spreads: BTreeMap<u16, PrioritySpread>,
}

impl PriorityBins {
    /// Without lines.
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
    pub fn of(parts: Vec<Self>) -> BTreeMap<u16, PrioritySpread> {
        let mut all: BTreeMap<u16, PrioritySpread> = BTreeMap::new();
        for (prio, part) in parts.into_iter().flat_map(|part| part.spreads) {
            all.entry(prio).or_default().merge(&part);
        }
        all
    }
}

impl PrioritySpread {
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

#[cfg(test)]
mod tests {
    use fathom_model::Direction;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_io_is_in_its_bin(
            lines in prop::collection::vec((0u64..1 << 36, 0u16..3), 0..300),
            parts in 1usize..4,
            width_ns in prop::sample::select(vec![20_000u64, 2_000_000]),
        ) {
            let entry = |&(value, prio): &(u64, u16)| LogEntry {
                time_ms: 0, value, max: None, dir: Direction::Read, bs: 512,
                offset: None, prio, issue_ns: None,
            };
            let part = |lines: &[(u64, u16)]| {
                let mut bins = PriorityBins::new(width_ns);
                lines.iter().for_each(|line| bins.add(&entry(line)));
                bins
            };
            let len = lines.len().div_ceil(parts).max(1);
            let all = PriorityBins::of(lines.chunks(len).map(part).collect());
            for (prio, spread) in &all {
                let of: Vec<u64> = lines.iter().filter(|l| l.1 == *prio).map(|l| l.0).collect();
                prop_assert_eq!(spread.n, of.len() as u64);
                let mut inside = vec![0; spread.bins.len()];
                for &value in &of {
                    if let Some(bin) = inside.get_mut((value / width_ns) as usize) {
                        *bin += 1;
                    }
                }
                prop_assert!(spread.bins == inside);
                let beyond = of.iter().filter(|&&v| v / width_ns >= BINS_MAX as u64).count();
                prop_assert_eq!(spread.beyond, beyond as u64);
            }
            let n: u64 = all.values().map(|spread| spread.n).sum();
            prop_assert_eq!(n, lines.len() as u64);
        }
    }
}
