//! Results of every kind: nothing panics, and JSON stays JSON.

use fathom_fio_output::write::{FormatFacts, JobFacts, OutputFormat, render};
use fathom_fio_output::{import, json};
use fathom_model::result::{CpuUse, LatencyTarget, PriorityResult, Spread};
use fathom_model::{DirectionResult, DiskUse, Histogram, JobResult, Latency, Results};
use proptest::prelude::*;

/// Numbers that are none among them.
fn decimal() -> impl Strategy<Value = f64> + Clone {
    proptest::num::f64::ANY
}

fn latency() -> impl Strategy<Value = Latency> {
    let bins = proptest::collection::vec((any::<u64>(), any::<u64>()), 0..4);
    let percentiles = proptest::collection::vec((0.0..=100.0, any::<u64>()), 0..4);
    let plain = (
        any::<Option<u64>>(),
        any::<[u64; 2]>(),
        decimal(),
        decimal(),
    );
    (plain, percentiles, bins).prop_map(
        |((n, [min_ns, max_ns], mean_ns, dev), percentiles, bins)| {
            let mut histogram = Histogram::new();
            bins.iter()
                .for_each(|&(ns, count)| histogram.add(ns, count));
            Latency {
                certainty: None,
                n,
                min_ns,
                max_ns,
                mean_ns,
                stddev_ns: Some(dev).filter(|dev| *dev > 0.0),
                percentiles_ns: percentiles,
                histogram: (!bins.is_empty()).then_some(histogram),
            }
        },
    )
}

fn spread() -> impl Strategy<Value = Spread> {
    let all = (any::<Option<u64>>(), decimal(), decimal(), decimal());
    all.prop_map(|(n, min, max, mean)| Spread {
        n,
        min,
        max,
        mean,
        stddev: Some(mean),
    })
}

fn direction() -> impl Strategy<Value = DirectionResult> {
    let latencies = proptest::collection::vec(proptest::option::of(latency()), 4);
    let priorities = proptest::collection::vec((any::<u16>(), latency()), 0..3);
    let spreads = (
        proptest::option::of(spread()),
        proptest::option::of(spread()),
    );
    let counts = (any::<[u64; 3]>(), any::<Option<u64>>());
    (
        counts,
        [decimal(), decimal()],
        latencies,
        priorities,
        spreads,
    )
        .prop_map(
            |((counts, short_ios), rates, mut latencies, priorities, spreads)| DirectionResult {
                total_ios: counts[0],
                io_bytes: counts[1],
                runtime_ms: counts[2],
                bw_bytes: rates[0],
                iops: rates[1],
                short_ios,
                drop_ios: short_ios,
                lag: latencies.remove(0),
                slat: latencies.remove(0),
                clat: latencies.remove(0),
                lat: latencies.remove(0),
                priorities: priorities
                    .into_iter()
                    .map(|(value, clat)| PriorityResult { value, clat })
                    .collect(),
                bw_intervals: spreads.0,
                iops_intervals: spreads.1,
                ..DirectionResult::default()
            },
        )
}

fn steady_state() -> impl Strategy<Value = serde_json::Value> {
    (
        any::<String>(),
        any::<String>(),
        0..2u8,
        proptest::collection::vec(any::<u64>(), 0..3),
    )
        .prop_map(|(rule, criterion, attained, iops)| {
            serde_json::json!({
                "ss": rule, "criterion": criterion, "attained": attained,
                "data": { "bw_mean": 1.5, "iops": iops }, "more": [null, true, {}]
            })
        })
}

fn job() -> impl Strategy<Value = JobResult> {
    let dirs = proptest::collection::vec(proptest::option::of(direction()), 4);
    let texts = (any::<String>(), any::<Option<String>>());
    let counts = (any::<u32>(), any::<i32>(), any::<Option<u64>>());
    let options = proptest::collection::btree_map(any::<String>(), any::<String>(), 0..3);
    let depths = proptest::collection::vec((any::<String>(), decimal()), 0..9);
    let others = (
        options,
        depths,
        proptest::option::of(steady_state()),
        decimal(),
    );
    (texts, counts, dirs, proptest::option::of(latency()), others).prop_map(
        |((name, description), (group, error, total_errors), mut dirs, sync, others)| JobResult {
            name,
            description,
            group,
            members: Some(group),
            error,
            total_errors,
            runtime_ms: total_errors,
            options: others.0,
            read: dirs.remove(0),
            write: dirs.remove(0),
            trim: dirs.remove(0),
            mixed: dirs.remove(0),
            sync,
            cpu: Some(CpuUse {
                user_percent: others.3,
                ..CpuUse::default()
            }),
            iodepth_percent: others.1,
            fio_steady_state: others.2,
            latency_target: total_errors
                .filter(|&ns| ns > 0)
                .map(|target_ns| LatencyTarget {
                    depth: group,
                    target_ns,
                    percentile: others.3,
                    window_us: target_ns,
                }),
            ..JobResult::default()
        },
    )
}

fn results() -> impl Strategy<Value = Results> {
    let disk = (any::<String>(), any::<u64>(), decimal());
    let disk = disk.prop_map(|(name, read_ios, util_percent)| DiskUse {
        name,
        read_ios,
        util_percent,
        ..DiskUse::default()
    });
    (
        any::<Option<String>>(),
        any::<Option<u64>>(),
        proptest::collection::vec(job(), 0..3),
        proptest::collection::vec(disk, 0..2),
    )
        .prop_map(|(engine_version, timestamp_ms, jobs, disks)| Results {
            engine_version,
            timestamp_ms,
            jobs,
            disks,
            ..Results::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_results_can_be_written_and_json_read_again(
        results in results(),
        terse_version in 2u8..=5,
        percent in decimal(),
    ) {
        let job = JobFacts { submit_percent: [percent; 7], iodepth: 1, ..JobFacts::default() };
        let facts = FormatFacts { terse_version, jobs: vec![job], ..FormatFacts::default() };
        for format in [OutputFormat::Json, OutputFormat::JsonPlus] {
            let text = render(&results, &facts, format);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
            let read = json::parse_document(text.as_bytes()).unwrap();
            prop_assert_eq!(read.jobs.len(), results.jobs.len());
            for (read, job) in read.jobs.iter().zip(&results.jobs) {
                prop_assert_eq!(&read.name, &job.name);
                prop_assert_eq!(read.group, job.group);
                prop_assert_eq!(&read.options, &job.options);
                let ios = |job: &JobResult| -> Vec<u64> {
                    let all = [&job.read, &job.write, &job.trim, &job.mixed];
                    all.map(|dir| dir.as_ref().map_or(0, |dir| dir.total_ios)).to_vec()
                };
                prop_assert_eq!(ios(read), ios(job));
            }
        }
        let terse = render(&results, &facts, OutputFormat::Terse);
        let read = import::read(terse.as_bytes());
        if !results.jobs.is_empty() {
            let (_, read, _) = read.unwrap();
            prop_assert_eq!(read[0].jobs.len(), results.jobs.len());
        }
        let normal = render(&results, &facts, OutputFormat::Normal);
        let _ = import::read(normal.as_bytes());
    }
}
