//! Sums over the machines of a run, and whether they may be added up.
//!
//! A sum of rates is a rate only of the time in which all machines were at
//! work. Where they ran side by side, that is the sum of their own rates; where
//! they did not, [`Overlap`] has counted, from the samples, what all of them did
//! in the time they shared. Percentiles come from merged histograms only.

mod overlap;
mod slow;

use std::collections::BTreeMap;

use fathom_model::result::{ALL_CLIENTS, Across, PriorityResult, RatesOf};
use fathom_model::{Direction, DirectionResult, Histogram, Host, JobResult, Latency};

pub use overlap::Overlap;
pub use slow::{HostFigures, by_host, median};

/// For up to this share of the time hosts may run without all the others and
/// nothing is said: it changes a sum of rates by no more.
const APART_MOST: f64 = 0.02;

/// Where a job's figures come from, as [`Host::label`] has it.
pub fn label_of(job: &JobResult) -> Option<String> {
    let host = Host {
        name: job.hostname.clone()?,
        port: job.port,
        ..Host::default()
    };
    Some(host.label())
}

/// Whether a host has its whole part in the figures.
fn is_whole(job: &JobResult, hosts: &[Host]) -> bool {
    let label = label_of(job);
    let host = hosts.iter().find(|host| Some(host.label()) == label);
    host.is_some_and(|host| host.lost.is_none())
}

/// The sum of each job over the hosts that took part to the end; none for a run
/// of one host.
pub fn totals(jobs: &[JobResult], hosts: &[Host], overlap: &Overlap) -> Vec<JobResult> {
    if hosts.len() < 2 {
        return Vec::new();
    }
    let mut names: Vec<&str> = Vec::new();
    let whole: Vec<&JobResult> = jobs.iter().filter(|job| is_whole(job, hosts)).collect();
    for job in &whole {
        if !names.contains(&job.name.as_str()) {
            names.push(&job.name);
        }
    }
    let total = |&name: &&str| {
        let parts: Vec<&JobResult> = whole
            .iter()
            .copied()
            .filter(|job| job.name == name)
            .collect();
        let mut total = total(&parts, hosts, overlap);
        total.name = match names.len() {
            1 => ALL_CLIENTS.to_owned(),
            _ => format!("{ALL_CLIENTS}: {name}"),
        };
        total
    };
    names.iter().map(total).collect()
}

fn total(parts: &[&JobResult], hosts: &[Host], overlap: &Overlap) -> JobResult {
    let labels: std::collections::BTreeSet<String> =
        parts.iter().filter_map(|job| label_of(job)).collect();
    let mut across = across(parts, hosts);
    // What was written and not stored yet is in the samples, its end is not.
    let by_samples = is_apart(&across) && !parts.iter().any(|job| ends_in_a_sync(job));
    let errors: Vec<u64> = parts.iter().filter_map(|job| job.total_errors).collect();
    let mut total = JobResult {
        clients: Some(u32::try_from(labels.len()).unwrap_or(u32::MAX)),
        group: parts.first().map_or(0, |job| job.group),
        error: parts
            .iter()
            .map(|job| job.error)
            .find(|&e| e != 0)
            .unwrap_or(0),
        zone_resets: parts
            .iter()
            .filter_map(|job| job.zone_resets)
            .reduce(|one, other| one + other),
        total_errors: (!errors.is_empty()).then(|| errors.iter().sum()),
        runtime_ms: parts.iter().filter_map(|job| job.runtime_ms).min(),
        ..JobResult::default()
    };
    let syncs: Vec<&Latency> = parts.iter().filter_map(|job| job.sync.as_ref()).collect();
    total.sync = merged(&syncs);
    for dir in Direction::MEASURED {
        let of_dir = |job: &'_ &JobResult| -> Option<DirectionResult> {
            job.directions()
                .find(|(d, _)| *d == dir)
                .map(|(_, r)| r.clone())
        };
        let results: Vec<DirectionResult> = parts.iter().filter_map(of_dir).collect();
        if results.is_empty() {
            continue;
        }
        let mut sum = sum(&results);
        let name = parts.first().map_or("", |job| job.name.as_str());
        if let (true, Some((iops, bw_bytes, ms))) = (by_samples, overlap.rates(name, dir)) {
            (sum.iops, sum.bw_bytes, sum.runtime_ms) = (iops, bw_bytes, ms);
            total.runtime_ms = Some(ms);
            across.rates = RatesOf::SharedTime;
        }
        if let Some(place) = total.direction_mut(dir) {
            *place = Some(sum);
        }
    }
    total.across = Some(across);
    total
}

/// The sum of one direction over hosts, or jobs of one host, that ran side by side.
pub fn sum(parts: &[DirectionResult]) -> DirectionResult {
    let latencies = |which: fn(&DirectionResult) -> &Option<Latency>| {
        let moved = parts.iter().filter(|part| part.total_ios > 0);
        let all: Vec<Option<&Latency>> = moved.map(|part| which(part).as_ref()).collect();
        // Of some alone it would not be that of the sum.
        let all: Option<Vec<&Latency>> = all.into_iter().collect();
        merged(&all?)
    };
    let count = |which: fn(&DirectionResult) -> Option<u64>| {
        let known: Vec<u64> = parts.iter().filter_map(which).collect();
        (known.len() == parts.len()).then(|| known.iter().sum())
    };
    let mut told: Vec<_> = parts.iter().flat_map(DirectionResult::kinds).collect();
    told.sort_unstable();
    told.dedup();
    let active = parts
        .iter()
        .map(|part| part.runtime_ms)
        .filter(|&ms| ms > 0);
    DirectionResult {
        certainty: None,
        total_ios: parts.iter().map(|part| part.total_ios).sum(),
        io_bytes: parts.iter().map(|part| part.io_bytes).sum(),
        bw_bytes: parts.iter().map(|part| part.bw_bytes).sum(),
        iops: parts.iter().map(|part| part.iops).sum(),
        runtime_ms: active.min().unwrap_or(0),
        told,
        verdict: None,
        short_ios: count(|part| part.short_ios),
        drop_ios: count(|part| part.drop_ios),
        errors: count(|part| part.errors),
        lag: latencies(|part| &part.lag),
        slat: latencies(|part| &part.slat),
        clat: latencies(|part| &part.clat),
        lat: latencies(|part| &part.lat),
        priorities: priorities(parts),
        bw_intervals: None,
        iops_intervals: None,
    }
}

fn priorities(parts: &[DirectionResult]) -> Vec<PriorityResult> {
    let mut by_value: BTreeMap<u16, Vec<&Latency>> = BTreeMap::new();
    for prio in parts.iter().flat_map(|part| &part.priorities) {
        by_value.entry(prio.value).or_default().push(&prio.clat);
    }
    by_value
        .into_iter()
        .filter_map(|(value, all)| {
            let clat = merged(&all)?;
            Some(PriorityResult { value, clat })
        })
        .collect()
}

/// Latencies of several sources as one: the mean and deviation of all values
/// together, percentiles from the merged histograms, and none where a histogram
/// is missing.
pub fn merged(all: &[&Latency]) -> Option<Latency> {
    match all {
        [] => return None,
        [one] => return Some((*one).clone()),
        _ => {}
    }
    let known: Option<Vec<u64>> = all.iter().map(|latency| latency.n).collect();
    let histograms: Option<Vec<&Histogram>> = all
        .iter()
        .map(|latency| latency.histogram.as_ref())
        .collect();
    let histogram = histograms.map(|all| {
        let mut sum = Histogram::new();
        all.into_iter().for_each(|histogram| sum.merge(histogram));
        sum
    });
    let ns = known?;
    let n: u64 = ns.iter().sum();
    if n == 0 {
        return None;
    }
    let weighted = |value: &dyn Fn(&Latency) -> f64| -> f64 {
        let parts = all.iter().zip(&ns);
        parts
            .map(|(latency, &n)| value(latency) * n as f64)
            .sum::<f64>()
            / n as f64
    };
    let mean_ns = weighted(&|latency| latency.mean_ns);
    let deviations: Option<Vec<f64>> = all.iter().map(|latency| latency.stddev_ns).collect();
    let stddev_ns = deviations.filter(|_| n > 1).map(|deviations| {
        // Sums of squares about the common mean: those about the own means, and
        // those of the own means (analysis of variance).
        let parts = all.iter().zip(&ns).zip(deviations);
        let squares: f64 = parts
            .map(|((latency, &n), dev)| {
                let within = dev.powi(2) * n.saturating_sub(1) as f64;
                within + (latency.mean_ns - mean_ns).powi(2) * n as f64
            })
            .sum();
        (squares / (n - 1) as f64).sqrt()
    });
    let percents: Vec<f64> = all[0]
        .percentiles_ns
        .iter()
        .map(|&(percent, _)| percent)
        .collect();
    let mut sum = Latency {
        certainty: None,
        n: Some(n),
        min_ns: all.iter().map(|latency| latency.min_ns).min()?,
        max_ns: all.iter().map(|latency| latency.max_ns).max()?,
        mean_ns,
        stddev_ns,
        percentiles_ns: Vec::new(),
        histogram,
    };
    let each = percents.into_iter();
    sum.percentiles_ns = each
        .filter_map(|percent| Some((percent, sum.percentile_ns(percent)?)))
        .collect();
    Some(sum)
}

/// How the hosts of these figures ran beside each other. Where a start is not
/// known, all are taken to have begun together.
fn across(parts: &[&JobResult], hosts: &[Host]) -> Across {
    let start_ms = |job: &JobResult| {
        let label = label_of(job);
        let host = hosts.iter().find(|host| Some(host.label()) == label);
        host.and_then(|host| host.start_ms)
    };
    let starts: Option<Vec<f64>> = parts.iter().map(|job| start_ms(job)).collect();
    let starts = starts.unwrap_or_else(|| vec![0.0; parts.len()]);
    let ran_ms = |job: &&JobResult| job.directions().map(|(_, result)| result.runtime_ms).max();
    let ends = parts.iter().zip(&starts);
    let ends =
        ends.filter_map(|(job, start)| Some(start + ran_ms(job).filter(|&ms| ms > 0)? as f64));
    let ends: Vec<f64> = ends.collect();
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let ms = |from: f64, to: f64| (to - from).round().max(0.0) as u64; // no times: 0
    Across {
        span_ms: ms(least(&starts), most(&ends)),
        shared_ms: ms(most(&starts), least(&ends)),
        rates: RatesOf::OwnTimes,
        slow: slow::hosts(parts),
    }
}

/// Whether hosts ran so far apart that their rates must not simply be added.
pub fn is_apart(across: &Across) -> bool {
    let alone_ms = across.span_ms.saturating_sub(across.shared_ms);
    alone_ms as f64 > APART_MOST * across.span_ms as f64
}

/// Whether a job waits at its end for what it wrote. In the samples of that
/// time nothing moves, so that they would tell the speed of the page cache.
fn ends_in_a_sync(job: &JobResult) -> bool {
    let is_on = |name| job.options.get(name).is_some_and(|value| value != "0");
    ["end_fsync", "fsync_on_close"].into_iter().any(is_on)
}

/// The figures that a sum was made of.
pub fn parts_of<'j>(
    total: &JobResult,
    jobs: &'j [JobResult],
    hosts: &[Host],
) -> Vec<&'j JobResult> {
    let name = total.name.strip_prefix(ALL_CLIENTS).unwrap_or_default();
    let name = name.strip_prefix(": ");
    let is_part = |job: &&JobResult| {
        job.step == total.step && name.is_none_or(|name| job.name == name) && is_whole(job, hosts)
    };
    jobs.iter().filter(is_part).collect()
}

#[cfg(test)]
mod tests;
