//! The guard of a series: says when it only gets worse, so that the rest of it
//! need not be measured.
//!
//! A point is worse than the best before it when its bandwidth and its IOPS are
//! lower and its latency is higher, each by more than noise. The best is the
//! point with the highest bandwidth so far; a worse point never becomes it.
//! After so many worse points in a row as the [`GuardRule`] says the series is over.

use fathom_model::{Direction, JobResult, Results};

use crate::estimate::Estimate;

/// When a series is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardRule {
    /// So many points in a row must be worse than the best before them; 0 counts as 1.
    pub points: u32,
    /// A figure differs only by more than this share of the best point's.
    pub noise_percent: u32,
}

/// The figures of one measurement that the guard looks at: all jobs and
/// directions together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasurementTotals {
    /// Bytes per second.
    pub bw_bytes: f64,
    /// I/Os per second.
    pub iops: f64,
    /// Mean completion latency of all I/Os in ns; `None` when the jobs do not
    /// measure it.
    pub clat_ns: Option<f64>,
}

impl MeasurementTotals {
    /// Adds up what the jobs report; `None` when nothing was moved.
    pub fn of(results: &Results) -> Option<Self> {
        let (mut bw_bytes, mut iops) = (0.0, 0.0);
        let (mut ios, mut measured, mut waited_ns) = (0, 0, 0.0);
        let jobs = results.jobs.iter().filter(|job| !job.is_sum_of_clients());
        let data = |(dir, _): &(Direction, _)| !matches!(dir, Direction::Sync);
        for (_, found) in jobs.flat_map(JobResult::directions).filter(data) {
            bw_bytes += found.bw_bytes;
            iops += found.iops;
            ios += found.total_ios;
            if let Some(clat) = &found.clat {
                measured += found.total_ios;
                waited_ns += clat.mean_ns * found.total_ios as f64;
            }
        }
        (ios > 0).then(|| Self {
            bw_bytes,
            iops,
            // A mean over a part of the I/Os would stand for all of them.
            clat_ns: (measured == ios).then(|| waited_ns / ios as f64),
        })
    }
}

/// The estimates of a point over its repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PointEstimates {
    bw_bytes: Estimate,
    iops: Estimate,
    clat_ns: Option<Estimate>,
}

impl PointEstimates {
    fn of(repetitions: &[MeasurementTotals]) -> Option<Self> {
        let estimate = |of: fn(&MeasurementTotals) -> f64| {
            Estimate::of(&repetitions.iter().map(of).collect::<Vec<f64>>())
        };
        let clats: Option<Vec<f64>> = repetitions.iter().map(|one| one.clat_ns).collect();
        Some(Self {
            bw_bytes: estimate(|one| one.bw_bytes)?,
            iops: estimate(|one| one.iops)?,
            clat_ns: clats.and_then(|clats| Estimate::of(&clats)),
        })
    }

    /// Whether this point is worse than `best`. A latency that is not known is
    /// not higher.
    fn is_worse_than(&self, best: &Self, noise_percent: u32) -> bool {
        let below = |one: &Estimate, best: &Estimate| {
            best.mean - one.mean > noise(one, best, noise_percent)
        };
        let above = |one: &Estimate, best: &Estimate| {
            one.mean - best.mean > noise(one, best, noise_percent)
        };
        let slower = match (&self.clat_ns, &best.clat_ns) {
            (Some(one), Some(best)) => above(one, best),
            _ => false,
        };
        slower && below(&self.bw_bytes, &best.bw_bytes) && below(&self.iops, &best.iops)
    }
}

/// How far two means must lie apart to differ: the percentage of the best, or,
/// where that is wider, so far that their 95 % intervals do not overlap.
fn noise(one: &Estimate, best: &Estimate, percent: u32) -> f64 {
    let intervals = one.half_width_95.unwrap_or(0.0) + best.half_width_95.unwrap_or(0.0);
    (best.mean.abs() * f64::from(percent) / 100.0).max(intervals)
}

/// Watches one series.
#[derive(Debug, Clone)]
pub struct Guard {
    rule: GuardRule,
    best: Option<PointEstimates>,
    worse: u32,
    over: bool,
}

impl Guard {
    /// Watches a series that begins.
    pub fn new(rule: GuardRule) -> Self {
        Self {
            rule,
            best: None,
            worse: 0,
            over: false,
        }
    }

    /// Takes the next point with its good measurements, in the order of the x
    /// axis. A point without any (it failed) is passed over: it neither
    /// continues nor breaks a row. Gives whether the series is over; once it is
    /// it stays so.
    pub fn add(&mut self, repetitions: &[MeasurementTotals]) -> bool {
        let Some(figures) = PointEstimates::of(repetitions) else {
            return self.over;
        };
        match &self.best {
            Some(best) if figures.is_worse_than(best, self.rule.noise_percent) => {
                self.worse += 1;
            }
            Some(best) => {
                self.worse = 0;
                if figures.bw_bytes.mean > best.bw_bytes.mean {
                    self.best = Some(figures);
                }
            }
            None => self.best = Some(figures),
        }
        self.over |= self.worse >= self.rule.points.max(1);
        self.over
    }

    /// Whether the series is over.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Why it is over, in a sentence.
    pub fn reason(&self) -> String {
        let points = match self.rule.points.max(1) {
            1 => "one point was".to_owned(),
            n => format!("{n} points in a row were"),
        };
        format!("the guard ended the series: {points} worse than the best before")
    }
}

#[cfg(test)]
mod tests;
