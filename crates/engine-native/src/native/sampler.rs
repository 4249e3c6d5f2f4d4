//! Interval figures of units while their workers run.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use fathom_model::{Histogram, Sample};

use super::clock::TickClock;
use super::job::DirIndex;
use super::members::{Member, ReportUnit};
use super::results::UnitIntervals;
use super::stats::WorkerPhase;

/// One unit's state at the last sample.
#[derive(Debug, Default, Clone)]
struct LastSample {
    /// Ticks of the last sample, or of the unit's beginning; 0: not begun.
    at: u64,
    clat: [Histogram; 3],
    lat: [Histogram; 3],
    bytes: [u64; 3],
    over: bool,
}

/// Takes samples of all units.
pub(super) struct Sampler {
    last: Vec<LastSample>,
    /// What the intervals were, for the spreads of the results.
    pub(super) intervals: Vec<UnitIntervals>,
}

impl Sampler {
    pub(super) fn new(units: usize) -> Self {
        Self {
            last: vec![LastSample::default(); units],
            intervals: vec![UnitIntervals::default(); units],
        }
    }

    /// The samples of the interval that ends now, for the units that measure
    /// or did so since the last call.
    pub(super) fn take(
        &mut self,
        members: &[Member],
        units: &[ReportUnit],
        clock: &TickClock,
        elapsed: Duration,
    ) -> Vec<Sample> {
        let t_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let mut samples = Vec::new();
        for (place, unit) in units.iter().enumerate() {
            let mut of_unit = self.unit(place, members, unit, clock);
            for sample in &mut of_unit {
                sample.t_ms = t_ms;
            }
            samples.extend(of_unit);
        }
        samples
    }

    fn unit(
        &mut self,
        place: usize,
        members: &[Member],
        unit: &ReportUnit,
        clock: &TickClock,
    ) -> Vec<Sample> {
        let last = &mut self.last[place];
        if last.over {
            return Vec::new();
        }
        let members: Vec<&Member> = unit
            .members
            .iter()
            .map(|&member| &members[member])
            .collect();
        let begun = members
            .iter()
            .map(|m| m.stats.began.load(Relaxed))
            .filter(|&at| at > 0)
            .min();
        let Some(begun) = begun else {
            return Vec::new();
        };
        last.over = members
            .iter()
            .all(|member| member.stats.phase() == WorkerPhase::Done);
        let now = if last.over {
            members
                .iter()
                .map(|member| member.stats.ended.load(Relaxed))
                .max()
                .unwrap_or(0)
        } else {
            clock.now()
        };
        let since = if last.at == 0 { begun } else { last.at };
        let span_ns = clock.ns(now.saturating_sub(since));
        last.at = now;
        let mut samples = Vec::new();
        for dir in DirIndex::ALL {
            let Some(read) = Counted::of(&members, dir) else {
                continue;
            };
            let delta = read.clat.since(&last.clat[dir as usize]);
            let lat_delta = read.lat.map(|lat| {
                let delta = lat.since(&last.lat[dir as usize]);
                last.lat[dir as usize] = lat;
                delta
            });
            let sample = Sample {
                t_ms: 0,
                span_ms: span_ns / 1_000_000,
                job: place as u32,
                dir: dir.model(),
                ios: delta.total(),
                // What was measured may have been forgotten meanwhile.
                bytes: read
                    .bytes
                    .checked_sub(last.bytes[dir as usize])
                    .unwrap_or(read.bytes),
                clat: Some(delta).filter(|delta| read.measured && !delta.is_empty()),
                lat: lat_delta.filter(|delta| !delta.is_empty()),
            };
            // The rest after the last whole interval is no interval of its own.
            if span_ns >= 100_000_000 {
                let seconds = span_ns as f64 / 1e9;
                self.intervals[place].iops[dir as usize].push(sample.ios as f64 / seconds);
                self.intervals[place].bw[dir as usize].push(sample.bytes as f64 / seconds);
            }
            last.clat[dir as usize] = read.clat;
            last.bytes[dir as usize] = read.bytes;
            // Bytes of an I/O may be seen one reading later than the I/O.
            if !last.over || sample.ios > 0 || sample.bytes > 0 {
                samples.push(sample);
            }
        }
        samples
    }
}

/// What a direction of a unit has counted since it began.
#[derive(Debug, Default)]
struct Counted {
    clat: Histogram,
    /// Only of a rate lat says more: it counts from the intended start.
    lat: Option<Histogram>,
    bytes: u64,
    /// Whether `clat` has latencies, and not I/Os alone.
    measured: bool,
}

impl Counted {
    /// `None`: nobody in the unit has this direction.
    fn of(members: &[&Member], dir: DirIndex) -> Option<Self> {
        let mut all: Option<Self> = None;
        for member in members {
            let Some(stats) = &member.stats.dirs[dir as usize] else {
                continue;
            };
            let all = all.get_or_insert_with(|| Self {
                measured: true,
                ..Self::default()
            });
            all.measured &= member.job.measures().clat;
            all.bytes += stats.bytes.load(Relaxed);
            all.clat.merge(&stats.clat().histogram);
            if stats.lag.is_some() {
                let lat = all.lat.get_or_insert_default();
                lat.merge(&stats.lat.read().histogram);
            }
        }
        all
    }
}
