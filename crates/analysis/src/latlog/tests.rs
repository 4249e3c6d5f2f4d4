use fathom_model::{Direction, Histogram, LogEntry};
use proptest::prelude::*;

use super::*;

const EXACT: CollectSettings = CollectSettings {
    memory: 1 << 20,
    interval_ms: None,
};

fn entry(time_ms: u64, value: u64, dir: Direction, bs: u64, prio: u16) -> LogEntry {
    LogEntry {
        time_ms,
        value,
        max: None,
        dir,
        bs,
        offset: None,
        prio,
        issue_ns: None,
    }
}

fn statistics(entries: &[LogEntry], parts: usize, settings: CollectSettings) -> Statistics {
    let len = entries.len().div_ceil(parts);
    let parts = entries.chunks(len).map(|entries| {
        let mut collector = LogCollector::new(settings);
        entries.iter().for_each(|entry| collector.add(entry));
        collector.end();
        collector
    });
    Statistics::of(parts.collect()).unwrap().unwrap()
}

/// The same figures, slowly and plainly.
fn plain(entries: &[&LogEntry], runtime_ms: u64) -> (u64, LatencyFigures) {
    let mut values: Vec<u64> = entries.iter().map(|entry| entry.value).collect();
    values.sort_unstable();
    let n = values.len();
    let avg = values.iter().map(|&v| v as f64).sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|&v| (v as f64 - avg).powi(2)).sum();
    let bytes: f64 = entries.iter().map(|entry| entry.bs as f64).sum();
    let rate = |what: f64| (runtime_ms > 0).then(|| what * 1000.0 / runtime_ms as f64);
    let percentile = |percent: f64, fraction: f64| {
        let element = (n as f64 * fraction) as usize;
        (percent, values[element.max(1) - 1])
    };
    let figures = LatencyFigures {
        iops: rate(n as f64),
        bw_bytes: rate(bytes),
        io_bytes: Some(bytes),
        min_ns: values[0],
        max_ns: values[n - 1],
        avg_ns: avg,
        stdev_ns: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
        percentiles_ns: PERCENTS
            .iter()
            .zip(FRACTIONS)
            .map(|(&percent, fraction)| percentile(percent, fraction))
            .collect(),
    };
    (n as u64, figures)
}

fn assert_close(group: &LatencyGroup, (n, expected): (u64, LatencyFigures), exact: bool) {
    let figures = group.figures.as_ref().unwrap();
    assert_eq!(group.n, n);
    let close = |a: Option<f64>, b: Option<f64>, by: f64| match (a, b) {
        (Some(a), Some(b)) => assert!((a - b).abs() <= by * b.abs().max(1.0), "{a} for {b}"),
        (a, b) => assert_eq!(a, b),
    };
    close(figures.iops, expected.iops, 1e-12);
    close(figures.bw_bytes, expected.bw_bytes, 1e-12);
    close(Some(figures.avg_ns), Some(expected.avg_ns), 1e-12);
    close(figures.stdev_ns, expected.stdev_ns, 1e-6);
    assert_eq!(
        (figures.min_ns, figures.max_ns),
        (expected.min_ns, expected.max_ns)
    );
    for (got, wanted) in figures.percentiles_ns.iter().zip(&expected.percentiles_ns) {
        assert_eq!(got.0, wanted.0);
        if exact {
            assert_eq!(got.1, wanted.1, "{}", got.0);
        } else {
            let by = HISTOGRAM_ERROR_PERCENT / 100.0;
            close(Some(got.1 as f64), Some(wanted.1 as f64), by);
        }
    }
}

fn any_entry() -> impl Strategy<Value = LogEntry> {
    let dir = prop::sample::select(vec![Direction::Read, Direction::Write]);
    let prio = prop::sample::select(vec![0u16, 0x4008, 0x2003]);
    // Some above 4.29 s, which take eight bytes.
    let value = (0u32..40, any::<u64>()).prop_map(|(bits, v)| v >> (63 - bits) >> 1);
    (0u64..5000, value, dir, 512u64..100_000, prio)
        .prop_map(|(time_ms, value, dir, bs, prio)| entry(time_ms, value, dir, bs, prio))
}

proptest! {
    #[test]
    fn figures_are_those_of_a_plain_computation(
        mut entries in prop::collection::vec(any_entry(), 1..400),
        parts in 1usize..4,
        memory in prop::sample::select(vec![0usize, 40, 400, 1 << 20]),
        sorted in any::<bool>(),
    ) {
        if sorted {
            entries.sort_by_key(|entry| entry.time_ms);
        }
        let settings = CollectSettings { memory, interval_ms: Some(700) };
        let s = statistics(&entries, parts, settings);
        let runtime_ms = entries.iter().map(|e| e.time_ms).max().unwrap();
        prop_assert_eq!(s.runtime_ms, runtime_ms);
        prop_assert!(s.exact || memory < 1 << 20);
        let those = |wanted: &dyn Fn(&LogEntry) -> bool| -> Vec<&LogEntry> {
            entries.iter().filter(|entry| wanted(entry)).collect()
        };
        assert_close(&s.all, plain(&those(&|_| true), runtime_ms), s.exact);
        for (dir, group) in &s.directions {
            let expected = plain(&those(&|e| e.dir == *dir), runtime_ms);
            assert_close(group, expected, s.exact);
        }
        for (prio, group) in &s.priorities {
            let expected = plain(&those(&|e| e.prio == *prio), runtime_ms);
            assert_close(group, expected, s.exact);
        }
        let shares: u64 = s.priorities.iter().map(|(_, group)| group.n).sum();
        prop_assert_eq!(shares, entries.len() as u64);
        for interval in &s.intervals {
            let inside = those(&|e| e.time_ms / 700 * 700 == interval.start_ms);
            prop_assert_eq!(interval.all.n, inside.len() as u64);
            if !inside.is_empty() {
                let span_ms = interval.end_ms - interval.start_ms;
                assert_close(&interval.all, plain(&inside, span_ms), false);
            }
        }
        let over_time: u64 = s.intervals.iter().map(|interval| interval.all.n).sum();
        prop_assert_eq!(over_time, entries.len() as u64);
    }
}

/// Twelve jobs on two hosts, each slower than the one before.
fn jobs() -> Vec<Vec<LogEntry>> {
    let prio = |n: u64| if n.is_multiple_of(3) { 0x2000 } else { 0 };
    let dir = |n: u64| match n % 2 {
        0 => Direction::Read,
        _ => Direction::Write,
    };
    let line = |job: u64| move |n: u64| entry(n * 3, 100 * n * (job + 1), dir(n), 512, prio(n));
    (0..12)
        .map(|job| (1..200).map(line(job)).collect())
        .collect()
}

fn host(job: usize) -> Option<String> {
    (job > 5).then(|| "n1".to_owned())
}

fn together(jobs: &[Vec<LogEntry>], memory: usize) -> Statistics {
    let settings = CollectSettings {
        memory,
        interval_ms: Some(100),
    };
    let log = |(job, entries): (usize, &Vec<LogEntry>)| {
        let mut lines = LogCollector::new(settings);
        entries.iter().for_each(|entry| lines.add(entry));
        lines.end();
        CollectedLog {
            host: host(job),
            job: format!("job {}", job + 1),
            parts: vec![lines],
        }
    };
    let by_job = Breakdown {
        job: true,
        ..Breakdown::ALL
    };
    let by_three = Breakdown {
        host: true,
        priority: true,
        ..Breakdown::DIRECTION
    };
    let wanted = StatisticsWanted {
        by: &[by_job, by_three],
        curves: true,
    };
    let logs = jobs.iter().enumerate().map(log).collect();
    Statistics::of_logs(logs, wanted).unwrap().unwrap()
}

#[test]
fn several_logs_are_one_population() {
    let jobs = jobs();
    for memory in [1 << 20, 0] {
        let s = together(&jobs, memory);
        let all: Vec<&LogEntry> = jobs.iter().flatten().collect();
        assert_close(&s.all, plain(&all, 597), memory > 0);
        // 2 before 10, and each with the rate of its own.
        let job = |place: usize| s.combined[place].0.job.as_deref();
        assert_eq!((job(1), job(9)), (Some("job 2"), Some("job 10")));
        let jobs = &s.combined[..12];
        let rates = jobs.iter().filter_map(|(_, g)| g.figures.as_ref()?.iops);
        let sum: f64 = rates.sum();
        assert!((sum - s.all.figures.as_ref().unwrap().iops.unwrap()).abs() < 1e-6);
        let slices = s.intervals.iter().flat_map(|i| &i.combined[..12]);
        let over_time: u64 = slices.map(|(_, group)| group.n).sum();
        assert_eq!(over_time, s.all.n);
    }
}

#[test]
fn groups_are_those_of_any_combination_with_their_curves() {
    let jobs = jobs();
    for memory in [1 << 20, 0] {
        let s = together(&jobs, memory);
        assert_eq!(s.combined.len(), 12 + 2 * 2 * 2);
        for (key, group) in &s.combined[12..] {
            let mut of: Vec<&LogEntry> = Vec::new();
            for (job, entries) in jobs.iter().enumerate() {
                let here = key.host == Some(host(job).unwrap_or_default());
                let is_of = |entry: &&LogEntry| {
                    here && key.dir == Some(entry.dir) && key.prio == Some(entry.prio)
                };
                of.extend(entries.iter().filter(is_of));
            }
            assert_close(group, plain(&of, 597), memory > 0);
            let at_most = |ns: u64| of.iter().filter(|entry| entry.value <= ns).count() as u64;
            let curve = &group.curve;
            assert!(curve.iter().all(|&(ns, n)| n == at_most(ns)), "{curve:?}");
            let max = group.figures.as_ref().unwrap().max_ns;
            assert_eq!(curve.last(), Some(&(max, group.n)));
        }
    }
}

#[test]
fn counts_have_iops_and_no_bandwidth() {
    let mut counts = Histogram::new();
    counts.add(1000, 30);
    counts.add(5000, 10);
    let settings = CollectSettings {
        interval_ms: Some(500),
        ..EXACT
    };
    let mut lines = LogCollector::of_counts(settings, 3.1);
    for end in [500, 1000] {
        lines.add_counts((end - 500, end), Direction::Write, &counts);
        lines.add_counts((end - 500, end), Direction::Read, &Histogram::new());
    }
    lines.end();
    let s = Statistics::of(vec![lines]).unwrap().unwrap();
    assert_eq!(
        (s.exact, s.averaged, s.bin_error_percent),
        (false, false, Some(3.1))
    );
    assert_eq!(
        (s.runtime_ms, s.directions.len(), s.intervals.len()),
        (1000, 1, 2)
    );
    let figures = s.all.figures.unwrap();
    assert_eq!(
        (s.all.n, figures.iops, figures.bw_bytes),
        (80, Some(80.0), None)
    );
    let (low, high) = (figures.min_ns as f64, figures.max_ns as f64);
    assert!((low / 1000.0 - 1.0).abs() < 0.01 && (high / 5000.0 - 1.0).abs() < 0.01);
    assert!(
        (figures.avg_ns / 2000.0 - 1.0).abs() < 0.01,
        "{}",
        figures.avg_ns
    );
    assert_eq!(
        s.intervals[1].all.figures.as_ref().unwrap().iops,
        Some(80.0)
    );
}

#[test]
fn percentiles_are_the_elements_that_awk_takes() {
    let entries: Vec<LogEntry> = (1..=90)
        .map(|n| entry(n, n, Direction::Read, 512, 0))
        .collect();
    let s = statistics(&entries, 1, EXACT);
    let figures = s.all.figures.unwrap();
    let of = |percent: f64| {
        figures
            .percentiles_ns
            .iter()
            .find(|p| p.0 == percent)
            .unwrap()
            .1
    };
    assert_eq!(of(1.0), 1, "int(0.9) is 0: the smallest");
    assert_eq!(of(50.0), 45);
    // awk 'BEGIN { print int(90 * 0.7) }' prints 62.
    assert_eq!(of(70.0), 62);
    assert_eq!(of(99.0), 89);
}

#[test]
fn a_small_deviation_of_large_latencies_is_not_lost() {
    let base = 1 << 61;
    let entries: Vec<LogEntry> = (0..30)
        .map(|n| entry(n, base + n % 3, Direction::Read, 512, 0))
        .collect();
    let figures = statistics(&entries, 2, EXACT).all.figures.unwrap();
    let expected = (20.0f64 / 29.0).sqrt();
    assert!((figures.stdev_ns.unwrap() - expected).abs() < 1e-9);
    let largest = |_| entry(1, i64::MAX as u64, Direction::Read, 512, 0);
    let entries: Vec<LogEntry> = (0..9).map(largest).collect();
    let figures = statistics(&entries, 1, EXACT).all.figures.unwrap();
    assert_eq!(figures.stdev_ns, None, "their squares are beyond 128 bits");
    assert_eq!(figures.max_ns, i64::MAX as u64);
}

#[test]
fn means_over_windows_have_no_rate() {
    let window = |n: u64| LogEntry {
        max: Some(1000 * n),
        ..entry(500 * n, 100 * n, Direction::Write, 0, 0)
    };
    let entries: Vec<LogEntry> = (1..5).map(window).collect();
    let s = statistics(&entries, 1, EXACT);
    let figures = s.all.figures.unwrap();
    assert!(s.averaged);
    assert_eq!(
        (figures.iops, figures.bw_bytes, figures.io_bytes),
        (None, None, None)
    );
    assert_eq!((figures.min_ns, figures.max_ns), (100, 4000));
}

#[test]
fn what_no_log_has_is_refused_within_bounds() {
    let mut collector = LogCollector::new(EXACT);
    for prio in 0..2000 {
        collector.add(&entry(1, 1, Direction::Read, 512, prio));
    }
    assert_eq!(
        Statistics::of(vec![collector]),
        Err(TooMany::Priorities(1024))
    );
    let over_time = CollectSettings {
        interval_ms: Some(1),
        ..EXACT
    };
    let mut collector = LogCollector::new(over_time);
    collector.add(&entry(u64::MAX, 1, Direction::Read, 512, 0));
    assert_eq!(
        Statistics::of(vec![collector]),
        Err(TooMany::Intervals(20_000))
    );
    assert_eq!(Statistics::of(vec![LogCollector::new(EXACT)]), Ok(None));
}
