use fathom_model::result::SlowBy;
use fathom_model::{Certainty, Sample};

use super::*;

fn host(name: &str, start_ms: f64) -> Host {
    Host {
        name: name.into(),
        start_ms: Some(start_ms),
        ..Host::default()
    }
}

fn latency(values: &[u64]) -> Latency {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&value| histogram.add(value, 1));
    let n = values.len() as f64;
    let mean_ns = values.iter().sum::<u64>() as f64 / n;
    let squares: f64 = values.iter().map(|&v| (v as f64 - mean_ns).powi(2)).sum();
    Latency {
        certainty: None,
        n: Some(values.len() as u64),
        min_ns: *values.iter().min().unwrap(),
        max_ns: *values.iter().max().unwrap(),
        mean_ns,
        stddev_ns: Some((squares / (n - 1.0)).sqrt()),
        percentiles_ns: vec![(50.0, 0), (99.0, 0)],
        histogram: Some(histogram),
    }
}

fn job(host: &str, iops: f64, runtime_ms: u64) -> JobResult {
    JobResult {
        name: "a".into(),
        hostname: Some(host.into()),
        runtime_ms: Some(runtime_ms),
        read: Some(DirectionResult {
            total_ios: (iops * runtime_ms as f64 / 1000.0) as u64,
            io_bytes: (iops * runtime_ms as f64 * 4.096) as u64,
            iops,
            bw_bytes: iops * 4096.0,
            runtime_ms,
            ..DirectionResult::default()
        }),
        ..JobResult::default()
    }
}

fn sample(job: u32, t_ms: u64, ios: u64) -> Sample {
    Sample {
        t_ms,
        span_ms: 1000,
        job,
        dir: Direction::Read,
        ios,
        bytes: ios * 4096,
        clat: None,
        lat: None,
    }
}

/// `what[i][k]`: I/Os of host i in second k.
fn overlap(what: &[&[u64]]) -> Overlap {
    fill(Overlap::default(), what)
}

fn fill(mut overlap: Overlap, what: &[&[u64]]) -> Overlap {
    overlap.begin(&vec!["a".to_owned(); what.len()]);
    for second in 0..what[0].len() {
        let t_ms = (second as u64 + 1) * 1000;
        for (place, ios) in (0..).zip(what) {
            if ios[second] > 0 {
                overlap.add(&sample(place, t_ms, ios[second]));
            }
        }
        overlap.interval(t_ms);
    }
    overlap
}

#[test]
fn latencies_merge_as_if_all_values_had_been_seen_together() {
    let (a, b) = (vec![100, 200, 300, 900], vec![1000, 5000, 120]);
    let merged = merged(&[&latency(&a), &latency(&b)]).unwrap();
    let all = latency(&[a, b].concat());
    assert_eq!((merged.n, merged.min_ns, merged.max_ns), (all.n, 100, 5000));
    assert!((merged.mean_ns - all.mean_ns).abs() < 1e-9);
    let (deviation, wanted) = (merged.stddev_ns.unwrap(), all.stddev_ns.unwrap());
    assert!((deviation - wanted).abs() < 1e-9, "{deviation} {wanted}");
    assert_eq!(merged.histogram, all.histogram);
    let histogram = all.histogram.unwrap();
    // The middle of the last bucket is beyond its last value.
    assert_eq!(histogram.percentile_ns(99.0), Some(5024));
    let wanted = [(50.0, histogram.percentile_ns(50.0).unwrap()), (99.0, 5000)];
    assert_eq!(merged.percentiles_ns, wanted);
}

#[test]
fn percentiles_are_never_averaged() {
    let with = latency(&[1, 2, 3]);
    let without = Latency {
        histogram: None,
        ..latency(&[4, 5, 6])
    };
    let merged = merged(&[&with, &without]).unwrap();
    assert_eq!((merged.n, merged.mean_ns), (Some(6), 3.5));
    assert!(merged.percentiles_ns.is_empty() && merged.histogram.is_none());
}

#[test]
fn rates_of_hosts_that_ran_side_by_side_are_added() {
    let jobs = [job("x", 100.0, 60_000), job("y", 300.0, 60_020)];
    let hosts = [host("x", 0.0), host("y", 12.0)];
    let totals = totals(&jobs, &hosts, &Overlap::default());
    let [total] = &totals[..] else {
        panic!("{totals:?}")
    };
    assert_eq!((total.name.as_str(), total.clients), (ALL_CLIENTS, Some(2)));
    let read = total.read.as_ref().unwrap();
    assert_eq!((read.iops, read.bw_bytes), (400.0, 400.0 * 4096.0));
    assert_eq!((read.total_ios, read.runtime_ms), (6000 + 18_006, 60_000));
}

#[test]
fn hosts_that_ran_apart_count_in_the_time_they_shared() {
    // y begins 3 s late and is done 2 s after x.
    let x: &[u64] = &[100, 100, 100, 100, 100, 100, 100, 0, 0];
    let y: &[u64] = &[0, 0, 0, 50, 200, 200, 200, 400, 400];
    let overlap = overlap(&[x, y]);
    let jobs = [job("x", 100.0, 7000), job("y", 242.0, 6000)];
    let hosts = [host("x", 0.0), host("y", 3000.0)];
    let total = &totals(&jobs, &hosts, &overlap)[0];
    let across = total.across.as_ref().unwrap();
    assert!(is_apart(across));
    assert_eq!((across.span_ms, across.shared_ms), (9000, 4000));
    assert_eq!(across.rates, RatesOf::SharedTime);
    let read = total.read.as_ref().unwrap();
    // Second 4 may hold a start and second 7 an end: 5 and 6 are shared for certain.
    assert_eq!((read.iops, read.runtime_ms), (300.0, 2000));
    assert_eq!(read.total_ios, 700 + 1452);
}

#[test]
fn a_host_that_stalls_is_in_the_sum_with_its_stall() {
    let x: &[u64] = &[100; 8];
    let y: &[u64] = &[100, 100, 0, 0, 0, 100, 100, 100];
    let overlap = overlap(&[x, y]);
    let (iops, _, ms) = overlap.rates("a", Direction::Read).unwrap();
    assert_eq!(ms, 6000);
    assert_eq!(iops, (600.0 + 300.0) / 6.0);
}

#[test]
fn a_lost_host_has_no_part_in_the_sum() {
    let jobs = [
        job("x", 100.0, 5000),
        job("y", 100.0, 5000),
        job("z", 100.0, 2000),
    ];
    let mut hosts = vec![host("x", 0.0), host("y", 0.0), host("z", 0.0)];
    hosts[2].lost = Some("the connection was lost".into());
    let total = &totals(&jobs, &hosts, &Overlap::default())[0];
    assert_eq!(total.clients, Some(2));
    assert_eq!(total.read.as_ref().unwrap().iops, 200.0);
    assert_eq!(parts_of(total, &jobs, &hosts).len(), 2);
}

#[test]
fn jobs_of_several_names_have_a_sum_each_and_one_host_has_none() {
    let mut jobs = vec![job("x", 1.0, 5000), job("y", 2.0, 5000)];
    jobs.extend(jobs.clone());
    jobs[2].name = "b".into();
    jobs[3].name = "b".into();
    let hosts = [host("x", 0.0), host("y", 0.0)];
    let totals_of = |hosts: &[Host]| totals(&jobs, hosts, &Overlap::default());
    let names: Vec<String> = totals_of(&hosts).iter().map(|t| t.name.clone()).collect();
    assert_eq!(names, ["All clients: a", "All clients: b"]);
    assert!(totals_of(&hosts[..1]).is_empty());
}

/// What was found slow among these jobs of a host each.
fn slow(jobs: &[JobResult]) -> Vec<(String, SlowBy)> {
    let name = |job: &JobResult| host(job.hostname.as_deref().unwrap(), 0.0);
    let hosts: Vec<Host> = jobs.iter().map(name).collect();
    let totals = totals(jobs, &hosts, &Overlap::default());
    let slow = totals[0].across.clone().unwrap().slow;
    slow.into_iter().map(|one| (one.host, one.figure)).collect()
}

#[test]
fn a_slow_host_is_found_among_three_and_more() {
    let jobs = [
        job("x", 100.0, 5000),
        job("y", 96.0, 5000),
        job("z", 60.0, 5000),
    ];
    let z = |figure| ("z".to_owned(), figure);
    assert_eq!(slow(&jobs), [z(SlowBy::Bandwidth), z(SlowBy::Iops)]);
    // Of two nobody knows which is as it should be.
    assert!(slow(&jobs[1..]).is_empty());
}

#[test]
fn a_long_tail_makes_a_host_slow_whose_rate_is_as_the_others() {
    let with = |name: &str, values: &[u64]| {
        let mut job = job(name, 100.0, 5000);
        let percentiles_ns = Vec::new();
        job.read.as_mut().unwrap().clat = Some(Latency {
            percentiles_ns,
            ..latency(values)
        });
        job
    };
    let usual = vec![100_000; 1000];
    let tailed = [vec![100_000; 980], vec![900_000; 20]].concat();
    let jobs = [with("x", &usual), with("y", &usual), with("z", &tailed)];
    assert_eq!(slow(&jobs), [("z".to_owned(), SlowBy::ClatP99)]);
    // A tail of few I/Os is luck.
    let few = with("z", &tailed[900..]);
    assert!(slow(&[jobs[0].clone(), jobs[1].clone(), few]).is_empty());
}

/// What is written and not stored yet is fast: the samples end before the sync.
#[test]
fn jobs_that_end_in_a_sync_are_not_counted_from_samples() {
    let overlap = overlap(&[&[100, 100, 100, 0, 0, 0], &[100, 100, 100, 100, 100, 100]]);
    let mut jobs = [job("x", 50.0, 6000), job("y", 100.0, 9000)];
    for job in &mut jobs {
        job.options.insert("end_fsync".into(), "1".into());
    }
    let hosts = [host("x", 0.0), host("y", 0.0)];
    let total = &totals(&jobs, &hosts, &overlap)[0];
    assert_eq!(total.read.as_ref().unwrap().iops, 150.0);
    assert_eq!(total.across.as_ref().unwrap().rates, RatesOf::OwnTimes);
}

#[test]
fn the_sum_of_hosts_has_an_interval_of_its_own() {
    // Each goes up when the other goes down: of either alone little could be told.
    let mut random = crate::random::Random::new(7);
    let noise: Vec<u64> = (0..120).map(|_| (random.share() * 400.0) as u64).collect();
    let x: Vec<u64> = noise.iter().map(|n| 500 + n).collect();
    let y: Vec<u64> = noise.iter().map(|n| 1000 - n).collect();
    let certainty = |what: &[&[u64]]| {
        let mut overlap = fill(Overlap::of_intervals(), what).certainties();
        let mut of = overlap.remove("a").unwrap();
        of.remove(&Direction::Read).unwrap().rates
    };
    let sum = certainty(&[&x, &y]);
    let Certainty::Interval { low, high, .. } = sum.iops else {
        panic!("{sum:?}");
    };
    assert!((low, high) == (1500.0, 1500.0), "{low} to {high}");
    // The first is the one in which a host may have begun, the last is not known to end.
    assert_eq!(sum.intervals, 118);
    // A host that stalls is missing in intervals, and not in time.
    let mut stalled = y.clone();
    stalled[50..60].fill(0);
    let sum = certainty(&[&x, &stalled]);
    assert_eq!(sum.intervals, 118);
    // One that ends is waited for, and what the other does alone does not count.
    let mut ended = y;
    ended[60..].fill(0);
    assert_eq!(certainty(&[&x, &ended]).intervals, 58);
    assert!(fill(Overlap::default(), &[&x, &x]).certainties().is_empty());
}
