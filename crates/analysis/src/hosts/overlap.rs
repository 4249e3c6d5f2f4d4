//! What hosts did in the time that all of them shared, as a whole and interval by interval.

use std::collections::BTreeMap;
use std::mem;

use fathom_model::{Direction, Histogram, Sample};

use crate::certainty::{CertaintyCollector, JobCertainty};

/// Intervals in which one host is waited for that are kept one by one.
const WAITED_MOST: usize = 1024;

/// What happened in the time that all members of a job shared, from samples in
/// order. Takes memory for the members, not for the time.
#[derive(Debug, Default)]
pub struct Overlap {
    /// Name of the job at each place that samples refer to.
    names: Vec<String>,
    jobs: BTreeMap<String, Shared>,
    t_ms: u64,
    keeps_intervals: bool,
}

/// One job's shared time. What all did since the last time when everyone had
/// been seen is kept apart: only when everyone is seen once more was it a time
/// that all shared. A host that stalls is waited for, one that has ended is not.
#[derive(Debug, Default)]
struct Shared {
    /// Members, and whether each was seen since all had been.
    seen: BTreeMap<u32, bool>,
    begun: bool,
    interval: Sums,
    seen_now: Vec<u32>,
    open: Sums,
    shared: Sums,
    intervals: Option<Intervals>,
}

/// The sums of a job's shared intervals, one by one.
#[derive(Debug, Default)]
struct Intervals {
    collector: CertaintyCollector,
    /// Those that are shared once everyone is seen again; beyond [`WAITED_MOST`] the rest
    /// counts as one.
    open: Vec<(u64, Sums)>,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    ms: u64,
    moved: BTreeMap<Direction, (u64, u64)>,
    /// Where intervals are looked at: what all I/Os of an interval took. Only of
    /// directions in which every sample tells.
    clat: BTreeMap<Direction, Option<Histogram>>,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.ms += other.ms;
        for (dir, (ios, bytes)) in &other.moved {
            let sum = self.moved.entry(*dir).or_default();
            *sum = (sum.0 + ios, sum.1 + bytes);
        }
    }

    /// As samples of the interval that ends at `t_ms`.
    fn samples(mut self, t_ms: u64) -> impl Iterator<Item = Sample> {
        let moved = mem::take(&mut self.moved).into_iter();
        moved.map(move |(dir, (ios, bytes))| Sample {
            t_ms,
            span_ms: self.ms,
            job: 0,
            dir,
            ios,
            bytes,
            clat: self.clat.remove(&dir).flatten(),
            lat: None,
        })
    }
}

impl Overlap {
    /// One that also tells how far the sums can be trusted.
    pub fn of_intervals() -> Self {
        Self {
            keeps_intervals: true,
            ..Self::default()
        }
    }

    /// How far the sums of each job can be trusted, by its name, from the sums of the
    /// intervals that all its members shared.
    pub fn certainties(self) -> BTreeMap<String, BTreeMap<Direction, JobCertainty>> {
        let jobs = self.jobs.into_iter().filter_map(|(name, shared)| {
            let of = shared.intervals?.collector.finish();
            let of = of.into_iter().map(|((_, dir), of)| (dir, of));
            Some((name, of.collect()))
        });
        jobs.collect()
    }

    /// The jobs that the following samples refer to by place.
    pub fn begin(&mut self, names: &[String]) {
        let mut jobs: BTreeMap<String, Shared> = BTreeMap::new();
        for (place, name) in (0..).zip(names) {
            jobs.entry(name.clone())
                .or_default()
                .seen
                .insert(place, false);
        }
        // Nothing is added up of what runs alone.
        jobs.retain(|_, shared| shared.seen.len() > 1);
        if self.keeps_intervals {
            jobs.values_mut()
                .for_each(|shared| shared.intervals = Some(Intervals::default()));
        }
        (self.names, self.jobs) = (names.to_vec(), jobs);
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample) {
        let name = self.names.get(sample.job as usize);
        let Some(shared) = name.and_then(|name| self.jobs.get_mut(name)) else {
            return;
        };
        let sum = shared.interval.moved.entry(sample.dir).or_default();
        *sum = (sum.0 + sample.ios, sum.1 + sample.bytes);
        if shared.intervals.is_some() {
            let all = shared.interval.clat.entry(sample.dir);
            let all = all.or_insert_with(|| Some(Histogram::new()));
            match (&mut *all, &sample.clat) {
                (Some(all), Some(clat)) => all.merge(clat),
                (all, _) if sample.ios > 0 => *all = None,
                _ => {}
            }
        }
        shared.seen_now.push(sample.job);
    }

    /// The interval of the samples so far has ended, at `t_ms` of the run.
    pub fn interval(&mut self, t_ms: u64) {
        let ms = t_ms.saturating_sub(self.t_ms);
        self.t_ms = t_ms;
        for shared in self.jobs.values_mut() {
            shared.interval.ms = ms;
            shared.end_interval(t_ms);
        }
    }

    /// I/Os and bytes per second of a job and direction, and the shared time in
    /// ms; `None` where there was none.
    pub(super) fn rates(&self, job: &str, dir: Direction) -> Option<(f64, f64, u64)> {
        let shared = &self.jobs.get(job)?.shared;
        if shared.ms == 0 {
            return None;
        }
        let (ios, bytes) = shared.moved.get(&dir).copied().unwrap_or_default();
        let per_second = |count: u64| count as f64 * 1000.0 / shared.ms as f64;
        Some((per_second(ios), per_second(bytes), shared.ms))
    }
}

impl Shared {
    fn end_interval(&mut self, t_ms: u64) {
        let interval = std::mem::take(&mut self.interval);
        let now = std::mem::take(&mut self.seen_now);
        for member in now {
            self.seen.insert(member, true);
        }
        if !self.seen.values().all(|&seen| seen) {
            if self.begun {
                self.open.add(&interval);
                if let Some(intervals) = &mut self.intervals {
                    intervals.wait(t_ms, interval);
                }
            }
            return;
        }
        // The interval in which the last one is seen is whole only once all are
        // seen again: it may be the one in which a host begins or ends.
        if self.begun {
            self.shared.add(&self.open);
            if let Some(intervals) = &mut self.intervals {
                intervals.share(t_ms, interval.clone());
            }
            self.open = interval;
        }
        self.begun = true;
        self.seen.values_mut().for_each(|seen| *seen = false);
    }
}

impl Intervals {
    /// Somebody has not been seen in this one.
    fn wait(&mut self, t_ms: u64, interval: Sums) {
        if self.open.len() < WAITED_MOST {
            self.open.push((t_ms, interval));
        } else if let Some((end_ms, last)) = self.open.last_mut() {
            // A host that has ended is waited for to the end of the others.
            *end_ms = t_ms;
            last.add(&interval);
            last.clat.clear();
        }
    }

    /// Everyone has been seen: what was waited for was shared, and this one may be.
    fn share(&mut self, t_ms: u64, interval: Sums) {
        for (t_ms, sums) in mem::replace(&mut self.open, vec![(t_ms, interval)]) {
            sums.samples(t_ms)
                .for_each(|sample| self.collector.add(&sample));
        }
    }
}
