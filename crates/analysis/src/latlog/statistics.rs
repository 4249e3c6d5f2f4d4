//! Figures of all parts of a log together, or of several logs.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::{Direction, Histogram};

use super::collector::{DirectionPriority, LogCollector, MOST_INTERVALS, MOST_KEYS};
use super::groups::{Breakdown, GroupParts, LatencyGroup, LatencyKey, WholeLog};
use super::over_time::PrioritySlice;

/// Intervals of all logs of a population together: each takes some KB.
const MOST_SLICES: u64 = 10 * MOST_INTERVALS;

/// Statistics of a log, or of several as one population.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// The latest time stamp in ms: what rates are taken over.
    pub runtime_ms: u64,
    /// Whether percentiles are exact; else they come from a histogram.
    pub exact: bool,
    /// Whether the lines are means over windows (`log_avg_msec`): no I/O has 0
    /// bytes. Nothing is known of single I/Os then, of their rate, or of bytes.
    pub averaged: bool,
    /// Of histogram logs: how far a latency may be from the middle of its bin, in
    /// percent of it. Latencies stand for that middle then, and bytes are not known.
    pub bin_error_percent: Option<f64>,
    /// Of all I/Os.
    pub all: LatencyGroup,
    /// By direction, those that occur.
    pub directions: Vec<(Direction, LatencyGroup)>,
    /// By the value of the priority's column, ascending.
    pub priorities: Vec<(u16, LatencyGroup)>,
    /// By what was asked for.
    pub combined: Vec<(LatencyKey, LatencyGroup)>,
    /// Over time, where it was asked for; without gaps from 0 on.
    pub intervals: Vec<LogInterval>,
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
    /// By what was asked for, those that occur in the log.
    pub combined: Vec<(LatencyKey, LatencyGroup)>,
}

/// More than a log of fio has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooMany {
    /// Priorities and directions; the number is the limit.
    Priorities(usize),
    /// Intervals; the number is the limit.
    Intervals(u64),
}

/// A log whose lines were collected.
#[derive(Debug)]
pub struct CollectedLog {
    /// Its host, where its name says one.
    pub host: Option<String>,
    /// What its job is called: no other log of a population is called that.
    pub job: String,
    /// Its parts, which have ended.
    pub parts: Vec<LogCollector>,
}

/// What statistics are to have besides those of all I/Os, directions and priorities.
#[derive(Debug, Clone, Copy, Default)]
pub struct StatisticsWanted<'w> {
    /// Groups by these, for [`Statistics::combined`].
    pub by: &'w [Breakdown],
    /// [`LatencyGroup::curve`] of each group.
    pub curves: bool,
}

/// What lines have in common: the place of their log, their direction and priority.
type LinesKey = (usize, Direction, u16);

impl Statistics {
    /// Of all parts of a log, which have ended; `None` without any line.
    ///
    /// # Errors
    /// When there is more than a log can have.
    pub fn of(parts: Vec<LogCollector>) -> Result<Option<Self>, TooMany> {
        let log = CollectedLog {
            host: None,
            job: String::new(),
            parts,
        };
        Self::of_logs(vec![log], StatisticsWanted::default())
    }

    /// Of several logs as one population, whose times count from the same begin;
    /// `None` without any line. Rates are those of all together, over the time of the
    /// one that took longest.
    ///
    /// # Errors
    /// When there is more than logs can have.
    pub fn of_logs(
        mut logs: Vec<CollectedLog>,
        wanted: StatisticsWanted,
    ) -> Result<Option<Self>, TooMany> {
        let names: Vec<(Option<String>, String)> = logs
            .iter_mut()
            .map(|log| (log.host.take(), std::mem::take(&mut log.job)))
            .collect();
        let mut parts: Vec<(usize, LogCollector)> = Vec::new();
        for (place, log) in logs.into_iter().enumerate() {
            parts.extend(log.parts.into_iter().map(|part| (place, part)));
        }
        let of_parts = || parts.iter().map(|(_, part)| part);
        let runtime_ms = of_parts().map(|part| part.last_ms).max().unwrap_or(0);
        check(of_parts(), runtime_ms)?;
        let exact = of_parts().all(LogCollector::is_exact);
        let bin_error_percent = of_parts()
            .filter_map(|part| part.bin_error_percent)
            .reduce(f64::max);
        if !exact {
            parts.iter_mut().for_each(|(_, part)| part.count());
        }
        let over_time = slices(&mut parts);
        let mut cells: Vec<(LinesKey, DirectionPriority)> = Vec::new();
        for (place, part) in parts {
            let keyed = |cell: DirectionPriority| ((place, cell.dir, cell.prio), cell);
            cells.extend(part.cells.into_iter().map(keyed));
        }
        let of: u64 = cells.iter().map(|(_, cell)| cell.moments.n).sum();
        if of == 0 {
            return Ok(None);
        }
        let histograms: Vec<Histogram> =
            cells.iter_mut().map(|(_, cell)| cell.histogram()).collect();
        let counted = bin_error_percent.is_some();
        let whole = WholeLog {
            of,
            span_ms: runtime_ms,
            exact,
            averaged: !counted && cells.iter().all(|(_, cell)| cell.moments.bytes == 0),
            counted,
            curves: wanted.curves,
        };
        let keys: BTreeSet<LinesKey> = cells.iter().map(|&(key, _)| key).collect();
        let groups = LogGroups::new(&names, &keys, wanted.by);
        let all = groups.of(|takes| {
            let mut parts = GroupParts::default();
            let of = cells.iter().zip(&histograms);
            for ((_, cell), histogram) in of.filter(|((key, _), _)| takes(key)) {
                parts.moments.merge(&cell.moments);
                parts.exact.push(&cell.exact);
                parts.histogram.merge(histogram);
            }
            parts.group(whole)
        });
        let mut statistics = Self {
            runtime_ms,
            exact,
            averaged: whole.averaged,
            bin_error_percent,
            all: all.all,
            directions: all.directions,
            priorities: all.priorities,
            combined: all.combined,
            intervals: Vec::new(),
        };
        if let Some((interval_ms, slices)) = over_time {
            statistics.intervals = over_time_of(&groups, whole, interval_ms, &slices);
        }
        Ok(Some(statistics))
    }
}

fn over_time_of(
    groups: &LogGroups,
    whole: WholeLog,
    interval_ms: u64,
    slices: &Slices,
) -> Vec<LogInterval> {
    let empty = BTreeMap::new();
    let runtime_ms = whole.span_ms;
    let interval = |number: u64| {
        let start_ms = number * interval_ms;
        let end_ms = start_ms.saturating_add(interval_ms).min(runtime_ms);
        let slices = slices.get(&number).unwrap_or(&empty);
        let whole = WholeLog {
            of: slices.values().map(|slice| slice.moments.n).sum(),
            span_ms: end_ms - start_ms,
            exact: false,
            ..whole
        };
        let of = groups.of(|takes| {
            let mut parts = GroupParts::default();
            for (_, slice) in slices.iter().filter(|(key, _)| takes(key)) {
                parts.moments.merge(&slice.moments);
                parts.histogram.merge(&slice.histogram);
            }
            parts.group(whole)
        });
        LogInterval {
            start_ms,
            end_ms,
            all: of.all,
            directions: of.directions,
            priorities: of.priorities,
            combined: of.combined,
        }
    };
    // A histogram log's last line ends with the log: nothing begins there.
    let last = match whole.counted {
        true => runtime_ms.saturating_sub(1) / interval_ms,
        false => runtime_ms / interval_ms,
    };
    (0..=last).map(interval).collect()
}

/// Which groups there are, the same of the whole and of each interval.
struct LogGroups<'n> {
    names: &'n [(Option<String>, String)],
    directions: BTreeSet<Direction>,
    priorities: BTreeSet<u16>,
    combined: Vec<LatencyKey>,
}

/// One thing of each group.
struct OfEach<T> {
    all: T,
    directions: Vec<(Direction, T)>,
    priorities: Vec<(u16, T)>,
    combined: Vec<(LatencyKey, T)>,
}

impl<'n> LogGroups<'n> {
    fn new(
        names: &'n [(Option<String>, String)],
        keys: &BTreeSet<LinesKey>,
        by: &[Breakdown],
    ) -> Self {
        let mut combined: Vec<LatencyKey> = Vec::new();
        for &by in by {
            // Jobs in the order of their logs: 2 before 10.
            let mut of_by: BTreeMap<LatencyKey, usize> = BTreeMap::new();
            for key in keys {
                of_by.entry(named(names, key, by)).or_insert(key.0);
            }
            let mut of_by: Vec<(LatencyKey, usize)> = of_by.into_iter().collect();
            of_by.sort_by_key(|(key, place)| (key.host.clone(), by.job.then_some(*place)));
            combined.extend(of_by.into_iter().map(|(key, _)| key));
        }
        Self {
            names,
            directions: keys.iter().map(|&(_, dir, _)| dir).collect(),
            priorities: keys.iter().map(|&(.., prio)| prio).collect(),
            combined,
        }
    }

    /// What `make` makes of the lines that each group takes.
    fn of<T>(&self, make: impl Fn(&dyn Fn(&LinesKey) -> bool) -> T) -> OfEach<T> {
        let direction = |&dir: &Direction| (dir, make(&|key| key.1 == dir));
        let priority = |&prio: &u16| (prio, make(&|key| key.2 == prio));
        let combined = |wanted: &LatencyKey| {
            let takes = |key: &LinesKey| belong(self.names, key, wanted);
            (wanted.clone(), make(&takes))
        };
        OfEach {
            all: make(&|_| true),
            directions: self.directions.iter().map(direction).collect(),
            priorities: self.priorities.iter().map(priority).collect(),
            combined: self.combined.iter().map(combined).collect(),
        }
    }
}

/// Which group lines belong to.
fn named(names: &[(Option<String>, String)], key: &LinesKey, by: Breakdown) -> LatencyKey {
    let &(place, dir, prio) = key;
    let (host, job) = &names[place];
    LatencyKey {
        host: by.host.then(|| host.clone().unwrap_or_default()),
        job: by.job.then(|| job.clone()),
        dir: by.direction.then_some(dir),
        prio: by.priority.then_some(prio),
    }
}

/// Whether lines belong to a group: [`named`] without making the name.
fn belong(names: &[(Option<String>, String)], key: &LinesKey, to: &LatencyKey) -> bool {
    let &(place, dir, prio) = key;
    let (host, job) = &names[place];
    let is_host = |to: &String| host.as_deref().unwrap_or_default() == to;
    to.host.as_ref().is_none_or(is_host)
        && to.job.as_ref().is_none_or(|to| job == to)
        && to.dir.is_none_or(|to| dir == to)
        && to.prio.is_none_or(|to| prio == to)
}

type Slices = BTreeMap<u64, BTreeMap<LinesKey, PrioritySlice>>;

/// The slices of all parts by interval, then by what their lines have in common.
fn slices(parts: &mut [(usize, LogCollector)]) -> Option<(u64, Slices)> {
    let mut all = Slices::new();
    let mut interval_ms = None;
    for (place, part) in parts {
        let Some(over_time) = part.over_time.take() else {
            continue;
        };
        interval_ms = Some(over_time.interval_ms());
        for ((interval, slot), slice) in over_time.done {
            let cell = &part.cells[slot];
            let interval = all.entry(interval).or_default();
            let sum = interval.entry((*place, cell.dir, cell.prio)).or_default();
            sum.merge(&slice);
        }
    }
    interval_ms.map(|interval_ms| (interval_ms, all))
}

fn check<'p>(
    parts: impl Iterator<Item = &'p LogCollector> + Clone,
    runtime_ms: u64,
) -> Result<(), TooMany> {
    let over_time = || parts.clone().filter_map(|part| part.over_time.as_ref());
    let one = over_time().any(|over_time| {
        over_time.is_full() || runtime_ms / over_time.interval_ms() >= MOST_INTERVALS
    });
    let all: usize = over_time().map(|over_time| over_time.done.len()).sum();
    if one || all as u64 > MOST_SLICES {
        return Err(TooMany::Intervals(MOST_INTERVALS));
    }
    let too_many = parts
        .clone()
        .any(|part| part.beyond > 0 || part.cells.len() > MOST_KEYS);
    match too_many {
        true => Err(TooMany::Priorities(MOST_KEYS)),
        false => Ok(()),
    }
}
