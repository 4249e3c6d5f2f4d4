//! What priorities and duration limits did to I/Os, and what they cost.
//!
//! Exact where it counts: whether an I/O kept its limit is looked at for each
//! line of the latency log ([`Classes`]), not read off a histogram.

use std::collections::BTreeMap;

use fathom_model::{Direction, LogEntry};

use crate::latlog::{CollectSettings, LogCollector, Statistics, TooMany};

/// A limit of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Its descriptor, from 1.
    pub number: u8,
    /// How long an I/O may take, in ns.
    pub ns: Option<u64>,
    /// An I/O that misses it may come back without its data.
    pub may_fail: bool,
}

/// Limits by direction and number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DurationLimits(BTreeMap<(Direction, u8), Limit>);

impl DurationLimits {
    /// Adds a limit of one direction.
    pub fn add(&mut self, dir: Direction, limit: Limit) {
        self.0.insert((dir, limit.number), limit);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The limit that an I/O's priority names: its hint is the limit's number
    /// (`IOPRIO_HINT_DEV_DURATION_LIMIT_1` and on, include/uapi/linux/ioprio.h).
    pub fn of(&self, dir: Direction, prio: u16) -> Option<Limit> {
        let number = u8::try_from(prio >> 3 & 0x3ff).ok()?;
        self.0.get(&(dir, number)).copied()
    }
}

/// Holds every line of a log to the limit that it names.
#[derive(Debug, Default)]
pub struct LimitMisses {
    limits: DurationLimits,
    /// I/Os, and those over the limit, of every class that names one.
    counted: BTreeMap<(Direction, u16), (u64, u64)>,
    /// The class of the line before: most lines have the same.
    last: Option<(Direction, u16, Option<u64>)>,
}

/// I/Os that missed a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissedLimit {
    /// Whose limit: of reads or of writes.
    pub dir: Direction,
    /// The limit.
    pub limit: Limit,
    /// I/Os that named it.
    pub n: u64,
    /// Those that took longer.
    pub over: u64,
    /// Those that the disk itself counts; `None` where it does not say.
    pub disk: Option<u64>,
}

impl LimitMisses {
    /// None so far.
    pub fn new(limits: DurationLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Takes a line.
    pub fn add(&mut self, entry: &LogEntry) {
        let (dir, prio) = (entry.dir, entry.prio);
        let limit_ns = match self.last {
            Some((d, p, ns)) if (d, p) == (dir, prio) => ns,
            _ => {
                let ns = self.limits.of(dir, prio).and_then(|limit| limit.ns);
                self.last = Some((dir, prio, ns));
                ns
            }
        };
        if let Some(limit_ns) = limit_ns {
            let (n, over) = self.counted.entry((dir, prio)).or_default();
            *n += 1;
            *over += u64::from(entry.value > limit_ns);
        }
    }

    /// Adds another part.
    pub fn merge(&mut self, other: Self) {
        if self.limits.is_empty() {
            self.limits = other.limits;
        }
        for (class, (n, over)) in other.counted {
            let sum = self.counted.entry(class).or_default();
            *sum = (sum.0 + n, sum.1 + over);
        }
    }

    /// Those of a class over its limit; `None` where it names none.
    pub fn over(&self, dir: Direction, prio: u16) -> Option<u64> {
        self.counted.get(&(dir, prio)).map(|(_, over)| *over)
    }

    /// By limit; what the disk says is not known.
    pub fn by_limit(&self) -> Vec<MissedLimit> {
        let mut all: Vec<MissedLimit> = Vec::new();
        for (&(dir, prio), &(n, over)) in &self.counted {
            let Some(limit) = self.limits.of(dir, prio) else {
                continue;
            };
            let same = |one: &&mut MissedLimit| (one.dir, one.limit) == (dir, limit);
            match all.iter_mut().find(same) {
                Some(one) => (one.n, one.over) = (one.n + n, one.over + over),
                None => all.push(MissedLimit {
                    dir,
                    limit,
                    n,
                    over,
                    disk: None,
                }),
            }
        }
        all
    }
}

/// Collects the lines of one part of a log, by direction and priority.
#[derive(Debug)]
pub struct Classes {
    /// Reads, writes.
    latencies: [LogCollector; 2],
    misses: LimitMisses,
    last_ms: u64,
}

impl Classes {
    /// `memory` is for exact percentiles, in bytes.
    pub fn new(limits: DurationLimits, memory: usize) -> Self {
        let settings = CollectSettings {
            memory: memory / 2,
            interval_ms: None,
        };
        Self {
            latencies: [LogCollector::new(settings), LogCollector::new(settings)],
            misses: LimitMisses::new(limits),
            last_ms: 0,
        }
    }

    /// Takes a line.
    pub fn add(&mut self, entry: &LogEntry) {
        self.last_ms = self.last_ms.max(entry.time_ms);
        self.misses.add(entry);
        let place = usize::from(entry.dir != Direction::Read);
        self.latencies[place].add(entry);
    }

    /// That was the last line.
    pub fn end(&mut self) {
        self.latencies.iter_mut().for_each(LogCollector::end);
    }
}

/// I/Os of one direction and priority, as a log has them.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorityClass {
    /// Direction.
    pub dir: Direction,
    /// The kernel's value of the priority.
    pub prio: u16,
    /// The limit that it names.
    pub limit: Option<Limit>,
    /// I/Os that came back with their data.
    pub n: u64,
    /// Of them a second.
    pub iops: Option<f64>,
    /// Mean latency in ns.
    pub avg_ns: f64,
    /// 99th percentile of the latency in ns.
    pub p99_ns: u64,
    /// Longest latency in ns.
    pub max_ns: u64,
    /// Those that took longer than their limit; `None` without a limit.
    pub over: Option<u64>,
    /// Those that the disk itself counts as having missed it, beside `over`; `None` where
    /// it does not say.
    pub disk_over: Option<u64>,
    /// Those that came back without their data, beside `n`; `None` where nobody
    /// can say.
    pub aborted: Option<u64>,
}

impl PriorityClass {
    /// Over their limit, of all I/Os of the class.
    pub fn over_share(&self) -> Option<IoShare> {
        IoShare::of(self.over?, self.n + self.aborted.unwrap_or(0))
    }

    /// Aborted, of all I/Os of the class.
    pub fn aborted_share(&self) -> Option<IoShare> {
        let aborted = self.aborted?;
        IoShare::of(aborted, self.n + aborted)
    }
}

/// A part of I/Os.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IoShare {
    /// In percent.
    pub percent: f64,
    /// Its standard error in percent, √(p(1 − p)/n): of independent I/Os, so that
    /// neighbours that fare alike make it a lower bound.
    pub error_percent: f64,
}

impl IoShare {
    /// `None` of nothing.
    pub fn of(part: u64, whole: u64) -> Option<Self> {
        let p = part as f64 / whole as f64;
        (whole > 0).then(|| Self {
            percent: p * 100.0,
            error_percent: (p * (1.0 - p) / whole as f64).sqrt() * 100.0,
        })
    }
}

/// One workload at one depth.
#[derive(Debug, Clone, PartialEq)]
pub struct DepthFigures {
    /// Latest time stamp of the log, ms.
    pub runtime_ms: u64,
    /// I/Os that came back with their data.
    pub n: u64,
    /// Of them a second.
    pub iops: Option<f64>,
    /// Whether percentiles are exact, and not from a histogram.
    pub exact: bool,
    /// I/Os that came back without; `None` where nobody can say.
    pub aborted: Option<u64>,
    /// By direction and priority, I/Os without a priority first.
    pub classes: Vec<PriorityClass>,
}

impl DepthFigures {
    /// What the parts of a log hold together; `None` of an empty one.
    ///
    /// # Errors
    /// More priorities than any log of fio has.
    pub fn of(parts: Vec<Classes>) -> Result<Option<Self>, TooMany> {
        let runtime_ms = parts.iter().map(|part| part.last_ms).max().unwrap_or(0);
        let mut misses = LimitMisses::default();
        let mut collected: [Vec<LogCollector>; 2] = Default::default();
        for part in parts {
            misses.merge(part.misses);
            for (all, one) in collected.iter_mut().zip(part.latencies) {
                all.push(one);
            }
        }
        let rate = |n: u64| (runtime_ms > 0).then(|| n as f64 * 1000.0 / runtime_ms as f64);
        let mut measured = Self {
            runtime_ms,
            n: 0,
            iops: None,
            exact: true,
            aborted: None,
            classes: Vec::new(),
        };
        for parts in collected {
            let Some(statistics) = Statistics::of(parts)? else {
                continue;
            };
            measured.exact &= statistics.exact;
            let Some(&(dir, _)) = statistics.directions.first() else {
                continue;
            };
            for (prio, group) in &statistics.priorities {
                let Some(figures) = &group.figures else {
                    continue;
                };
                let p99 = figures.percentiles_ns.iter().find(|(p, _)| *p == 99.0);
                measured.n += group.n;
                measured.classes.push(PriorityClass {
                    dir,
                    prio: *prio,
                    limit: misses.limits.of(dir, *prio),
                    n: group.n,
                    iops: rate(group.n),
                    avg_ns: figures.avg_ns,
                    p99_ns: p99.map_or(figures.max_ns, |&(_, ns)| ns),
                    max_ns: figures.max_ns,
                    over: misses.over(dir, *prio),
                    disk_over: None,
                    aborted: None,
                });
            }
        }
        measured.iops = rate(measured.n);
        Ok((measured.n > 0).then_some(measured))
    }

    /// Puts `aborted` I/Os to their classes. Engines tell of them all together:
    /// they are those of the only class whose limit lets I/Os fail; of several
    /// such classes nobody can say whose. Classes whose limit lets none fail have
    /// none.
    pub fn put_aborted(&mut self, aborted: Option<u64>) {
        self.aborted = aborted;
        let fails = |class: &PriorityClass| class.limit.is_some_and(|limit| limit.may_fail);
        let failing = self.classes.iter().filter(|class| fails(class)).count();
        for class in &mut self.classes {
            class.aborted = match (fails(class), failing, aborted) {
                (false, ..) | (true, _, Some(0)) => Some(0),
                (true, 1, aborted) => aborted,
                (true, ..) => None,
            };
        }
    }

    /// Puts what a disk counts of each limit to the class that names it; of several that
    /// name one nobody can say whose.
    pub fn put_disk_counts(&mut self, counts: impl Fn(Direction, u8) -> Option<u64>) {
        let limit = |class: &PriorityClass| Some((class.dir, class.limit?.number));
        let named: Vec<_> = self.classes.iter().map(limit).collect();
        for class in &mut self.classes {
            let own = limit(class);
            let is_alone = named.iter().filter(|&&other| other == own).count() == 1;
            class.disk_over = own
                .filter(|_| is_alone)
                .and_then(|(dir, number)| counts(dir, number));
        }
    }

    /// What it has more (or, negative, less) of IOPS than another, in percent.
    pub fn iops_against_percent(&self, baseline: &Self) -> Option<f64> {
        let base = baseline.iops.filter(|&iops| iops > 0.0)?;
        Some((self.iops? / base - 1.0) * 100.0)
    }
}

/// How many I/Os were aborted in the time that is measured, from what an engine
/// reports: its errors, all since its start, and the I/Os that it issued in the
/// time measured, failed ones among them (as fio counts). With a ramp some
/// errors are of the time before, so no more than the issued ones that the log
/// lacks; I/Os under way when the ramp ends make that wrong by no more than the
/// depth.
pub fn aborted(errors: u64, issued: Option<u64>, logged: u64, ramp: bool) -> u64 {
    match issued {
        Some(issued) if ramp => errors.min(issued.saturating_sub(logged)),
        _ => errors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(time_ms: u64, value: u64, dir: Direction, prio: u16) -> LogEntry {
        LogEntry {
            time_ms,
            value,
            max: None,
            dir,
            bs: 4096,
            offset: None,
            prio,
            issue_ns: None,
        }
    }

    fn measured() -> DepthFigures {
        let mut limits = DurationLimits::default();
        for (dir, number, ns, may_fail) in [
            (Direction::Read, 1, Some(100), false),
            (Direction::Read, 7, Some(50), true),
            (Direction::Write, 1, None, false),
        ] {
            limits.add(
                dir,
                Limit {
                    number,
                    ns,
                    may_fail,
                },
            );
        }
        let mut parts = Vec::new();
        for part in 0..2 {
            let mut classes = Classes::new(limits.clone(), 1 << 20);
            for i in 1..=100u64 {
                let time = part * 500 + i * 5;
                classes.add(&entry(time, i, Direction::Read, 0));
                classes.add(&entry(time, i + 90, Direction::Read, 0x4008));
                classes.add(&entry(time, 2 * i, Direction::Read, 0x4038));
                classes.add(&entry(time, 1000, Direction::Write, 0x4008));
            }
            classes.end();
            parts.push(classes);
        }
        DepthFigures::of(parts).unwrap().unwrap()
    }

    #[test]
    fn every_io_is_held_to_the_limit_that_it_names() {
        let measured = measured();
        let over: Vec<_> = measured
            .classes
            .iter()
            .map(|class| (class.dir, class.prio, class.n, class.over))
            .collect();
        assert_eq!(
            over,
            [
                (Direction::Read, 0, 200, None),
                (Direction::Read, 0x4008, 200, Some(180)),
                (Direction::Read, 0x4038, 200, Some(150)),
                (Direction::Write, 0x4008, 200, None),
            ]
        );
        assert_eq!((measured.n, measured.iops), (800, Some(800.0)));
        let share = measured.classes[1].over_share().unwrap();
        assert_eq!(share.percent, 90.0);
        assert!((share.error_percent - 2.121).abs() < 1e-3);
    }

    #[test]
    fn aborted_ios_are_those_of_the_only_limit_that_lets_any_fail() {
        let mut one = measured();
        one.put_aborted(Some(50));
        let of: Vec<_> = one.classes.iter().map(|class| class.aborted).collect();
        assert_eq!(of, [Some(0), Some(0), Some(50), Some(0)]);
        assert_eq!(one.classes[2].aborted_share().unwrap().percent, 20.0);
        assert_eq!(one.classes[2].over_share().unwrap().percent, 60.0);
        let mut two = measured();
        if let Some(limit) = &mut two.classes[1].limit {
            limit.may_fail = true;
        }
        two.put_aborted(Some(50));
        assert_eq!(two.classes[1].aborted, None);
        two.put_aborted(Some(0));
        assert_eq!(two.classes[1].aborted, Some(0));
    }

    #[test]
    fn errors_of_the_ramp_are_not_of_the_time_measured() {
        assert_eq!(aborted(30, Some(110), 100, true), 10);
        assert_eq!(aborted(30, Some(110), 100, false), 30);
        assert_eq!(aborted(0, Some(110), 100, true), 0);
        assert_eq!(aborted(30, None, 100, true), 30);
    }

    #[test]
    fn iops_are_held_against_a_baseline() {
        let (mut limited, base) = (measured(), measured());
        limited.iops = Some(600.0);
        assert_eq!(limited.iops_against_percent(&base), Some(-25.0));
    }
}
