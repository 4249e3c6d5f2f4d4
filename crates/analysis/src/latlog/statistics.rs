//! Figures of all parts of a log together.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::{Direction, Histogram};
use serde::Serialize;

use super::collector::{DirectionPriority, LogCollector, MOST_INTERVALS, MOST_KEYS};
use super::moments::LatencyMoments;
use super::over_time::PrioritySlice;
use super::values::Exact;
use super::{FRACTIONS, PERCENTS, element};

/// Statistics of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// The latest time stamp in ms: what rates are taken over.
    pub runtime_ms: u64,
    /// Whether percentiles are exact; else they come from a histogram.
    pub exact: bool,
    /// Whether the lines are means over windows (`log_avg_msec`): no I/O has 0
    /// bytes. Nothing is known of single I/Os then, of their rate, or of bytes.
    pub averaged: bool,
    /// Of all I/Os.
    pub all: LatencyGroup,
    /// By direction, those that occur.
    pub directions: Vec<(Direction, LatencyGroup)>,
    /// By the value of the priority's column, ascending.
    pub priorities: Vec<(u16, LatencyGroup)>,
    /// Over time, where it was asked for; without gaps from 0 on.
    pub intervals: Vec<LogInterval>,
}

/// I/Os that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyGroup {
    /// I/Os; lines of an averaged log.
    pub n: u64,
    /// I/Os of the whole, of which this is a part.
    pub of: u64,
    /// The figures; `None` without any I/O.
    pub figures: Option<LatencyFigures>,
}

/// Figures of at least one I/O.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LatencyFigures {
    /// I/Os per second; not known of an averaged log, nor of no time at all.
    pub iops: Option<f64>,
    /// Bytes per second; likewise.
    pub bw_bytes: Option<f64>,
    /// Bytes of all I/Os; not known of an averaged log.
    pub io_bytes: Option<f64>,
    /// Smallest latency.
    pub min_ns: u64,
    /// Largest latency.
    pub max_ns: u64,
    /// Mean latency.
    pub avg_ns: f64,
    /// Standard deviation of the sample; `None` of one.
    pub stdev_ns: Option<f64>,
    /// The percentiles of [`PERCENTS`].
    #[serde(with = "fathom_model::percentiles")]
    #[schemars(with = "std::collections::BTreeMap<String, u64>")]
    pub percentiles_ns: Vec<(f64, u64)>,
}

/// A piece of the log's time; percentiles come from histograms.
#[derive(Debug, Clone, PartialEq)]
pub struct LogInterval {
    /// Begin in ms.
    pub start_ms: u64,
    /// End in ms; of the last one, the end of the log.
    pub end_ms: u64,
    /// Of all I/Os.
    pub all: LatencyGroup,
    /// By direction, those that occur in the log.
    pub directions: Vec<(Direction, LatencyGroup)>,
    /// By priority, those that occur in the log.
    pub priorities: Vec<(u16, LatencyGroup)>,
}

/// More than a log of fio has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMany {
    /// Priorities and directions; the number is the limit.
    Priorities(usize),
    /// Intervals; the number is the limit.
    Intervals(u64),
}

/// What a group's figures are made of.
#[derive(Default)]
struct GroupParts<'c> {
    moments: LatencyMoments,
    exact: Vec<&'c Exact>,
    histogram: Histogram,
}

impl GroupParts<'_> {
    fn group(&self, of: u64, span_ms: u64, exact: bool, averaged: bool) -> LatencyGroup {
        let moments = &self.moments;
        let n = moments.n;
        let rate = |amount: f64| {
            let known = span_ms > 0 && !averaged;
            known.then(|| amount * 1000.0 / span_ms as f64)
        };
        let percentile = |fraction| {
            let element = element(n, fraction);
            let (min, max) = (moments.min_ns, moments.max_ns);
            match exact {
                true => Some(Exact::element_ns(&self.exact, element, min, max)),
                // The middle of the outermost bucket may lie beyond what it holds.
                false => Some(self.histogram.element_ns(element)?.clamp(min, max)),
            }
        };
        let figures = moments.mean_ns().map(|avg_ns| LatencyFigures {
            iops: rate(n as f64),
            bw_bytes: rate(moments.bytes as f64),
            io_bytes: (!averaged).then_some(moments.bytes as f64),
            min_ns: moments.min_ns,
            max_ns: moments.max_ns,
            avg_ns,
            stdev_ns: moments.stdev_ns(),
            percentiles_ns: PERCENTS
                .iter()
                .zip(FRACTIONS)
                .filter_map(|(&percent, fraction)| Some((percent, percentile(fraction)?)))
                .collect(),
        });
        LatencyGroup { n, of, figures }
    }
}

impl Statistics {
    /// Of all parts, which have ended; `None` without any line.
    ///
    /// # Errors
    /// When there is more than a log can have.
    pub fn of(mut parts: Vec<LogCollector>) -> Result<Option<Self>, TooMany> {
        let runtime_ms = parts.iter().map(|part| part.last_ms).max().unwrap_or(0);
        check(&parts, runtime_ms)?;
        let exact = parts.iter().all(LogCollector::is_exact);
        if !exact {
            parts.iter_mut().for_each(LogCollector::count);
        }
        let over_time = slices(&mut parts);
        let mut cells: Vec<DirectionPriority> =
            parts.into_iter().flat_map(|part| part.cells).collect();
        let histograms: Vec<Histogram> =
            cells.iter_mut().map(DirectionPriority::histogram).collect();
        let of: u64 = cells.iter().map(|cell| cell.moments.n).sum();
        if of == 0 {
            return Ok(None);
        }
        let averaged = cells.iter().all(|cell| cell.moments.bytes == 0);
        let group = |wanted: &dyn Fn(&DirectionPriority) -> bool| {
            let mut parts = GroupParts::default();
            for (cell, histogram) in cells.iter().zip(&histograms).filter(|(c, _)| wanted(c)) {
                parts.moments.merge(&cell.moments);
                parts.exact.push(&cell.exact);
                parts.histogram.merge(histogram);
            }
            parts.group(of, runtime_ms, exact, averaged)
        };
        let directions: BTreeSet<Direction> = cells.iter().map(|cell| cell.dir).collect();
        let priorities: BTreeSet<u16> = cells.iter().map(|cell| cell.prio).collect();
        let mut statistics = Self {
            runtime_ms,
            exact,
            averaged,
            all: group(&|_| true),
            directions: directions
                .iter()
                .map(|&dir| (dir, group(&|cell| cell.dir == dir)))
                .collect(),
            priorities: priorities
                .iter()
                .map(|&prio| (prio, group(&|cell| cell.prio == prio)))
                .collect(),
            intervals: Vec::new(),
        };
        if let Some((interval_ms, slices)) = over_time {
            statistics.intervals = statistics.over_time(interval_ms, &slices);
        }
        Ok(Some(statistics))
    }

    fn over_time(&self, interval_ms: u64, slices: &Slices) -> Vec<LogInterval> {
        let empty = BTreeMap::new();
        let interval = |number: u64| {
            let start_ms = number * interval_ms;
            let end_ms = start_ms.saturating_add(interval_ms).min(self.runtime_ms);
            let slices = slices.get(&number).unwrap_or(&empty);
            let group = |wanted: &dyn Fn(Direction, u16) -> bool| {
                let mut parts = GroupParts::default();
                for (_, slice) in slices.iter().filter(|&(&(d, p), _)| wanted(d, p)) {
                    parts.moments.merge(&slice.moments);
                    parts.histogram.merge(&slice.histogram);
                }
                let of = slices.values().map(|slice| slice.moments.n).sum();
                parts.group(of, end_ms - start_ms, false, self.averaged)
            };
            LogInterval {
                start_ms,
                end_ms,
                all: group(&|_, _| true),
                directions: self
                    .directions
                    .iter()
                    .map(|&(dir, _)| (dir, group(&|d, _| d == dir)))
                    .collect(),
                priorities: self
                    .priorities
                    .iter()
                    .map(|&(prio, _)| (prio, group(&|_, p| p == prio)))
                    .collect(),
            }
        };
        (0..=self.runtime_ms / interval_ms).map(interval).collect()
    }
}

type Slices = BTreeMap<u64, BTreeMap<(Direction, u16), PrioritySlice>>;

/// The slices of all parts by interval, then by direction and priority.
fn slices(parts: &mut [LogCollector]) -> Option<(u64, Slices)> {
    let mut all = Slices::new();
    let mut interval_ms = None;
    for part in parts {
        let Some(over_time) = part.over_time.take() else {
            continue;
        };
        interval_ms = Some(over_time.interval_ms());
        for ((interval, slot), slice) in over_time.done {
            let cell = &part.cells[slot];
            let interval = all.entry(interval).or_default();
            let sum = interval.entry((cell.dir, cell.prio)).or_default();
            sum.merge(&slice);
        }
    }
    interval_ms.map(|interval_ms| (interval_ms, all))
}

fn check(parts: &[LogCollector], runtime_ms: u64) -> Result<(), TooMany> {
    let intervals = parts
        .iter()
        .filter_map(|part| part.over_time.as_ref())
        .any(|over_time| {
            over_time.is_full() || runtime_ms / over_time.interval_ms() >= MOST_INTERVALS
        });
    if intervals {
        return Err(TooMany::Intervals(MOST_INTERVALS));
    }
    let too_many = parts
        .iter()
        .any(|part| part.beyond > 0 || part.cells.len() > MOST_KEYS);
    match too_many {
        true => Err(TooMany::Priorities(MOST_KEYS)),
        false => Ok(()),
    }
}
