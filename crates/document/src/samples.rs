//! Figures of jobs that left none of their own, counted from the samples.

use std::collections::BTreeMap;

use fathom_analysis::rate::latency;
use fathom_model::{
    Direction, DirectionResult, Histogram, Host, JobResult, Moments, ReasonKind, Sample,
};
use fathom_record::SampleSum;

/// What the samples of one engine's run add up to.
#[derive(Debug, Default)]
pub struct SampleTally {
    jobs: Vec<SeenJob>,
}

/// What was seen of one job.
#[derive(Debug, Default)]
struct SeenJob {
    name: String,
    /// Where it runs, when it is not this machine: a host's label.
    host: Option<String>,
    /// Begin of its first and end of its last sample, ms since the run's start.
    time: Option<(u64, u64)>,
    sums: BTreeMap<Direction, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    ios: u64,
    bytes: u64,
    clat: Histogram,
    iops: Moments,
    bw_bytes: Moments,
}

impl SampleTally {
    /// The jobs that the following samples refer to by place.
    pub fn begin(&mut self, names: &[String], hosts: &[String]) {
        self.jobs = (0..)
            .zip(names)
            .map(|(place, name): (usize, _)| SeenJob {
                name: name.clone(),
                host: hosts.get(place).cloned(),
                ..SeenJob::default()
            })
            .collect();
    }

    /// Adds a sample. One of a job that was never announced is left out: there
    /// is no name to show it under.
    pub fn add(&mut self, sample: &Sample) {
        let Some(job) = self.jobs.get_mut(sample.job as usize) else {
            return;
        };
        let begin = sample.t_ms.saturating_sub(sample.span_ms);
        let (first, last) = job.time.unwrap_or((begin, sample.t_ms));
        job.time = Some((first.min(begin), last.max(sample.t_ms)));
        let sum = job.sums.entry(sample.dir).or_default();
        sum.ios = sum.ios.saturating_add(sample.ios);
        sum.bytes = sum.bytes.saturating_add(sample.bytes);
        if let Some(clat) = &sample.clat {
            sum.clat.merge(clat);
        }
        if let (Some(iops), Some(bw_bytes)) = (sample.iops(), sample.bw_bytes()) {
            sum.iops.add(iops);
            sum.bw_bytes.add(bw_bytes);
        }
    }

    /// Adds what many samples add up to.
    pub fn add_sum(&mut self, of: &SampleSum) {
        let Some(job) = self.jobs.get_mut(of.job as usize) else {
            return;
        };
        let (first, last) = job.time.unwrap_or((of.begin_ms, of.end_ms));
        job.time = Some((first.min(of.begin_ms), last.max(of.end_ms)));
        let sum = job.sums.entry(of.dir).or_default();
        sum.ios = sum.ios.saturating_add(of.ios);
        sum.bytes = sum.bytes.saturating_add(of.bytes);
        if let Some(clat) = &of.clat {
            sum.clat.merge(clat);
        }
        sum.iops.merge(&of.iops);
        sum.bw_bytes.merge(&of.bw_bytes);
    }
}

/// Gives `jobs` the figures that only the samples know: all of them when the
/// engine reported no job, else those of jobs that moved data and reported no
/// time for it, as fio does for a job killed by a signal. Says whether any
/// figure came from samples.
///
/// Of several `hosts`, those that were lost have such figures only.
pub fn fill(jobs: &mut Vec<JobResult>, tally: SampleTally, hosts: &[Host]) -> bool {
    if !hosts.is_empty() || tally.jobs.iter().any(|seen| seen.host.is_some()) {
        return fill_hosts(jobs, tally, hosts);
    }
    if jobs.is_empty() {
        jobs.extend(tally.jobs.into_iter().map(SeenJob::into_job));
        return jobs.iter().any(|job| job.directions().next().is_some());
    }
    // Places agree only when the engine reported exactly the announced jobs.
    if jobs.len() != tally.jobs.len() {
        return false;
    }
    let mut any = false;
    for (job, seen) in jobs.iter_mut().zip(tally.jobs) {
        let timeless = job
            .directions()
            .any(|(_, result)| result.total_ios > 0 && result.runtime_ms == 0);
        // The rounds of an engine that moves nothing (cpuio) have no time either.
        let moved = seen.sums.values().any(|sum| sum.bytes > 0);
        if timeless && moved && job.name == seen.name {
            let rebuilt = seen.into_job();
            job.read = rebuilt.read;
            job.write = rebuilt.write;
            job.trim = rebuilt.trim;
            job.mixed = rebuilt.mixed;
            job.sync = rebuilt.sync;
            job.runtime_ms = rebuilt.runtime_ms;
            any = true;
        }
    }
    any
}

/// The figures of hosts that reported none.
fn fill_hosts(jobs: &mut Vec<JobResult>, tally: SampleTally, hosts: &[Host]) -> bool {
    let labels: Vec<String> = jobs
        .iter()
        .filter_map(fathom_analysis::hosts::label_of)
        .collect();
    let mut any = false;
    for seen in tally.jobs {
        let moved = seen.sums.values().any(|sum| sum.bytes > 0);
        let Some(label) = seen.host.clone().filter(|_| moved) else {
            continue;
        };
        if labels.contains(&label) {
            continue;
        }
        let host = hosts.iter().find(|host| host.label() == label);
        let mut job = seen.into_job();
        job.hostname = Some(host.map_or(label, |host| host.name.clone()));
        job.port = host.and_then(|host| host.port);
        jobs.push(job);
        any = true;
    }
    any
}

impl SeenJob {
    fn into_job(self) -> JobResult {
        let mut job = JobResult {
            name: self.name,
            ..JobResult::default()
        };
        let Some((begin, end)) = self.time else {
            return job;
        };
        let runtime_ms = end - begin;
        job.runtime_ms = Some(runtime_ms);
        if !self.sums.contains_key(&Direction::Mixed) {
            // Samples were taken and none told of this direction: it did nothing.
            let idle = || Some(Sum::default().into_result(runtime_ms));
            (job.read, job.write, job.trim) = (idle(), idle(), idle());
        }
        for (dir, sum) in self.sums {
            match job.direction_mut(dir) {
                Some(place) => *place = Some(sum.into_result(runtime_ms)),
                None => job.sync = latency(&sum.clat),
            }
        }
        job
    }
}

impl Sum {
    fn into_result(self, runtime_ms: u64) -> DirectionResult {
        let per_second = |count: u64| match runtime_ms {
            0 => 0.0,
            ms => count as f64 * 1000.0 / ms as f64,
        };
        let idle = self.ios == 0;
        DirectionResult {
            total_ios: self.ios,
            io_bytes: self.bytes,
            bw_bytes: per_second(self.bytes),
            iops: per_second(self.ios),
            runtime_ms: if idle { 0 } else { runtime_ms },
            told: if idle {
                Vec::new()
            } else {
                vec![ReasonKind::FromSamples]
            },
            clat: latency(&self.clat),
            bw_intervals: self.bw_bytes.spread(),
            iops_intervals: self.iops.spread(),
            ..DirectionResult::default()
        }
    }
}
