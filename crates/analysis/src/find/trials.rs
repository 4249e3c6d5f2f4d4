//! Searches over simulated queues whose truth is known, and over generated curves.

use std::time::Duration;

use super::side::Part;
use super::tests::search;
use super::*;
use crate::random::Random;

/// A device that serves so many I/Os at once, each in an exponential time (M/M/c).
struct Queue {
    servers: usize,
    /// I/Os per second of one server.
    service: f64,
}

const PROBE_S: f64 = 30.0;

impl Queue {
    /// Chance that an I/O takes longer than this at this rate (Erlang C and the times of
    /// service; L. Kleinrock, Queueing Systems 1 (1975), 3.5 and 5.12).
    fn beyond(&self, rate: f64, seconds: f64) -> f64 {
        let c = self.servers as f64;
        let offered = rate / self.service;
        if offered >= c {
            return 1.0;
        }
        let mut term = 1.0;
        let mut sum = 0.0;
        for k in 0..self.servers {
            sum += term;
            term *= offered / (k as f64 + 1.0);
        }
        let wait = term * c / (c - offered);
        let waits = wait / (sum + wait);
        let served = (-self.service * seconds).exp();
        let left = c - 1.0 - offered;
        let both = match left.abs() < 1e-9 {
            true => self.service * seconds,
            false => (1.0 - (-self.service * seconds * left).exp()) / left,
        };
        served * (1.0 + waits * both)
    }

    /// The rate at which one of a hundred I/Os takes longer than this.
    fn truth(&self, seconds: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.servers as f64 * self.service);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            match self.beyond(middle, seconds) > 0.01 {
                true => high = middle,
                false => low = middle,
            }
        }
        low
    }

    /// A probe at this rate, ended as it would be.
    fn probe(&self, probe: LoadProbe, limited: Limited, random: &mut Random) -> ProbeResult {
        let capacity = self.servers as f64 * self.service;
        let length = Duration::from_secs_f64(PROBE_S);
        let Some(rate) = probe.load else {
            return ProbeResult {
                probe,
                iops: capacity * (1.0 + 0.02 * random.normal()),
                latency_ns: Some(1e9),
                cpu_percent: None,
                seconds: 10.0,
                is_early: false,
            };
        };
        let mut watch = SideWatch::new(limited, Some(rate), length);
        let span = PROBE_S / f64::from(SIDE_INTERVALS);
        let mut free = vec![0.0f64; self.servers];
        let (mut now, mut end) = (0.0, span);
        let mut latencies = Vec::new();
        let mut part = Part {
            seconds: span,
            ..Part::default()
        };
        let mut side = None;
        // I/Os are counted where they begin, which makes no difference to the whole.
        while end <= PROBE_S + 1e-9 && side.is_none() {
            now -= random.share().ln() / rate;
            while now > end && side.is_none() && end <= PROBE_S + 1e-9 {
                side = watch
                    .interval(std::mem::take(&mut part))
                    .filter(|_| !probe.is_whole);
                part.seconds = span;
                end += span;
            }
            let next = (0..free.len())
                .min_by(|&a, &b| free[a].total_cmp(&free[b]))
                .unwrap();
            free[next] = free[next].max(now) - random.share().ln() / self.service;
            let took_ns = (free[next] - now) * 1e9;
            latencies.push(took_ns);
            part.ios += 1.0;
            part.done += f64::from(u8::from(free[next] <= PROBE_S));
            part.above += f64::from(u8::from(took_ns > limited.limit_ns));
        }
        let seconds = (end - span).min(PROBE_S);
        let done = latencies.len() as f64 / seconds;
        let place = ((latencies.len() as f64 * 0.99).ceil() as usize).clamp(1, latencies.len());
        let (_, p99, _) = latencies.select_nth_unstable_by(place - 1, f64::total_cmp);
        ProbeResult {
            probe,
            iops: done.min(capacity),
            latency_ns: Some(*p99),
            cpu_percent: None,
            seconds,
            is_early: side.is_some(),
        }
    }
}

/// One search: how far from the truth, the probes, and the seconds.
fn trial(number: u64) -> (f64, usize, f64) {
    let mut random = Random::new(number);
    let servers = [1, 2, 4, 8][number as usize % 4];
    let service = (300.0 + 300.0 * random.share()) / servers as f64;
    let queue = Queue { servers, service };
    // What just keeps the limit is 0.75 to 0.95 of what the device can do.
    let wanted = (0.75 + 0.2 * random.share()) * servers as f64 * service;
    let (mut low, mut high) = (0.0, 1e3 / service);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        match queue.truth(middle) > wanted {
            true => high = middle,
            false => low = middle,
        }
    }
    let limit_ns = low * 1e9;
    let limited = Limited {
        limit_ns,
        percent: Some(99.0),
        dir: None,
    };
    let goal = FindGoal::Latency { limit_ns };
    let mut probes: Vec<ProbeResult> = Vec::new();
    let least = 10.0 / (0.01 * PROBE_S);
    loop {
        match next_probe(goal, &FindLoads::Rates { least }, &probes) {
            NextProbe::Measure(probe) => probes.push(queue.probe(probe, limited, &mut random)),
            NextProbe::Found(found) => {
                let off = found.load.unwrap_or(0.0) / queue.truth(low) - 1.0;
                let seconds = probes.iter().map(|probe| probe.seconds).sum();
                return (off, probes.len(), seconds);
            }
        }
    }
}

#[test]
fn the_rate_that_keeps_a_percentile_is_found_within_five_percent() {
    const TRIALS: u64 = 500;
    let found: Vec<(f64, usize, f64)> = (0..TRIALS).map(trial).collect();
    let good = found.iter().filter(|(off, ..)| off.abs() <= 0.05).count();
    let most = found.iter().map(|&(_, probes, _)| probes).max().unwrap();
    let whole: f64 = found
        .iter()
        .map(|&(_, probes, _)| probes as f64 * PROBE_S)
        .sum();
    let took: f64 = found.iter().map(|&(.., seconds)| seconds).sum();
    assert!(good as u64 * 100 >= 95 * TRIALS, "{good} of {TRIALS}");
    assert!(most <= 20, "{most} probes");
    // Ends of probes before their time are worth their while.
    assert!(took <= 0.9 * whole, "{}", took / whole);
}

/// Curves over depths 1 to 4096 of kinds that are known.
fn generated(random: &mut Random, kind: usize) -> Vec<(u32, f64)> {
    let top = 1e4 * (1.0 + 30.0 * random.share());
    let servers = 1.0 + 127.0 * random.share();
    let at = (2.0 + 6.0 * random.share()).exp2();
    let share = 0.3 + 0.6 * random.share();
    let of = |depth: f64| match kind {
        // A queue: more I/Os keep more servers busy.
        0 => top * depth / (depth + servers - 1.0),
        // A token bucket: straight to its limit.
        1 => top * (depth / servers).min(1.0),
        // Garbage collection: less, once more is written than it cleans.
        2 => top * (depth / 16.0).min(1.0) * if depth > at { share } else { 1.0 },
        // Two peaks, one of them lower.
        3 => {
            let peak = |place: f64| (-((depth / place).ln() / 0.9).powi(2)).exp();
            top * (peak(4.0) * share + peak(at * 4.0))
        }
        // Falls, and rises again to more.
        _ => {
            let (first, again) = (depth / 4.0, depth / 128.0);
            top * (share * first.min(1.0)).max(again.min(1.0))
        }
    };
    (0..=12)
        .map(|n| 1u32 << n)
        .map(|depth| (depth, of(f64::from(depth))))
        .collect()
}

#[test]
fn the_depth_found_on_generated_curves_is_as_good_as_the_best() {
    let mut random = Random::new(5);
    let (mut trials, mut bad) = (0, 0);
    let mut shares = Vec::new();
    for number in 0..500 {
        let curve = generated(&mut random, number % 5);
        let deviation = 0.03 * random.share();
        let rho = 0.8 * random.share();
        let (share, seconds) = search(&curve, deviation, rho, &mut random);
        trials += 1;
        bad += usize::from(share < 0.98);
        shares.push(seconds / (300.0 * curve.len() as f64));
    }
    shares.sort_by(f64::total_cmp);
    let median = shares[shares.len() / 2];
    assert!(bad * 100 <= trials, "{bad} of {trials}");
    assert!(median <= 0.25, "{median} of the time");
    assert!(shares.last().unwrap() <= &0.4);
}
