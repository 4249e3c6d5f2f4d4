//! The rate of all jobs in one direction over one interval.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::histogram::bounds_of;
use fathom_model::{Direction, Event, Histogram, Latency, Sample};

/// Percentiles that are shown when the engine reported none: fio's own default
/// list (`stat.c`), so that records of all kinds have the same.
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Below this share of the rate that was asked for a load is behind it. fio makes
/// up for what it missed (`usec_for_io`, backend.c), so that storage that can do
/// the rate reaches it but for the last I/Os.
pub const BEHIND_RATE_SHARE: f64 = 0.95;

/// One direction of all jobs in one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rate {
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bw_bytes: f64,
    /// Completion latencies; empty when the jobs do not measure them.
    pub clat: Histogram,
    /// What each job did in each direction, by its place: I/Os, bytes, and in how
    /// many ms.
    jobs: BTreeMap<(u32, Direction), (u64, u64, u64)>,
}

impl Rate {
    /// Adds a sample of the interval.
    pub fn add(&mut self, sample: &Sample) {
        self.add_counts(sample);
        if let Some(clat) = &sample.clat {
            self.clat.merge(clat);
        }
    }

    /// As [`Rate::add`], without the latencies. Jobs run side by side, and so do their
    /// directions: the rates add up. Several samples of one of them came one after the other, as from
    /// a machine that was not heard for a while: they make one rate, over the time
    /// of all of them.
    pub fn add_counts(&mut self, sample: &Sample) {
        let per_second = |count: u64, ms: u64| match ms {
            0 => 0.0,
            ms => count as f64 * 1000.0 / ms as f64,
        };
        let (ios, bytes, ms) = self.jobs.entry((sample.job, sample.dir)).or_default();
        let before = (per_second(*ios, *ms), per_second(*bytes, *ms));
        *ios += sample.ios;
        *bytes += sample.bytes;
        *ms += sample.span_ms;
        self.iops += per_second(*ios, *ms) - before.0;
        self.bw_bytes += per_second(*bytes, *ms) - before.1;
    }

    /// Mean and 99th percentile of the completion latencies in ns, when there
    /// are any.
    pub fn latencies_ns(&self) -> Option<(f64, f64)> {
        let p99 = self.clat.percentile_ns(99.0)? as f64;
        Some((self.clat.mean_ns()?, p99))
    }
}

/// The rates of an interval by direction.
pub type Rates = BTreeMap<Direction, Rate>;

/// What each machine of a run did in its last interval.
#[derive(Debug, Clone, Default)]
pub struct HostRates {
    /// Where each job runs, by its place.
    of_job: Vec<String>,
    adding: BTreeMap<String, Rates>,
    last: BTreeMap<String, Rates>,
}

impl HostRates {
    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        match event {
            // The machines of the jobs that samples refer to by place.
            Event::Jobs { hosts, .. } => {
                self.of_job.clone_from(hosts);
                self.adding.clear();
                self.last.clear();
            }
            Event::Sample(sample) => {
                if let Some(host) = self.of_job.get(sample.job as usize) {
                    let rates = self.adding.entry(host.clone()).or_default();
                    rates.entry(sample.dir).or_default().add_counts(sample);
                }
            }
            Event::Interval { .. } => self.last = std::mem::take(&mut self.adding),
            Event::StepEnded { .. } => self.last.clear(),
            _ => {}
        }
    }

    /// Every machine with its rates in the last interval, the slowest first; none where
    /// there is only one.
    pub fn slowest_first(&self) -> Vec<(&str, Rates)> {
        let names: BTreeSet<&String> = self.of_job.iter().collect();
        let rates = |host: &String| self.last.get(host).cloned().unwrap_or_default();
        let mut hosts: Vec<(&str, Rates)> = match names.len() {
            0 | 1 => Vec::new(),
            _ => names.iter().map(|it| (it.as_str(), rates(it))).collect(),
        };
        let bandwidth = |rates: &Rates| -> f64 { rates.values().map(|rate| rate.bw_bytes).sum() };
        hosts.sort_by(|(_, a), (_, b)| bandwidth(a).total_cmp(&bandwidth(b)));
        hosts
    }
}

/// What a histogram tells of its values. Minimum and maximum are the outer
/// bounds of its outer buckets: no value was beyond them.
pub fn latency(histogram: &Histogram) -> Option<Latency> {
    let mean_ns = histogram.mean_ns()?;
    let (first, _) = histogram.buckets().next()?;
    let (last, _) = histogram.buckets().last()?;
    let squares: f64 = histogram
        .buckets()
        .map(|(bucket, n)| {
            let (low, high) = bounds_of(bucket);
            let middle = low as f64 + (high - low) as f64 / 2.0;
            (middle - mean_ns).powi(2) * n as f64
        })
        .sum();
    let n = histogram.total();
    Some(Latency {
        certainty: None,
        n: Some(n),
        min_ns: bounds_of(first).0,
        max_ns: bounds_of(last).1,
        mean_ns,
        stddev_ns: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
        percentiles_ns: PERCENTILES
            .iter()
            .filter_map(|&percent| Some((percent, histogram.percentile_ns(percent)?)))
            .collect(),
        histogram: Some(histogram.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_late_is_a_rate_over_its_own_time() {
        let sample = |job, t_ms, ios| Sample {
            t_ms,
            span_ms: 1000,
            job,
            dir: Direction::Read,
            ios,
            bytes: ios * 4096,
            clat: None,
            lat: None,
        };
        let mut rate = Rate::default();
        rate.add(&sample(0, 5000, 100));
        // Five seconds of a machine that was not heard meanwhile.
        for second in 1..=5 {
            rate.add(&sample(1, second * 1000, 100));
        }
        assert!((rate.iops - 200.0).abs() < 1e-6, "{}", rate.iops);
        assert!(
            (rate.bw_bytes - 200.0 * 4096.0).abs() < 1e-3,
            "{}",
            rate.bw_bytes
        );
    }
}
