use fathom_model::{Direction, LogEntry};
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
