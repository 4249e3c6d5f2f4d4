use super::*;

/// A second with so many I/Os, of 4 KiB and 100 µs each.
fn second(n: u64, ios: u64) -> Sample {
    let mut clat = Histogram::new();
    clat.add(100_000, ios - ios / 50);
    clat.add(900_000, ios / 50);
    Sample {
        t_ms: n * 1000,
        span_ms: 1000,
        job: 0,
        dir: Direction::Read,
        ios,
        bytes: ios * 4096,
        clat: Some(clat),
        lat: None,
    }
}

fn of(samples: impl IntoIterator<Item = Sample>) -> JobCertainty {
    let mut collector = CertaintyCollector::default();
    samples
        .into_iter()
        .for_each(|sample| collector.add(&sample));
    collector.finish().remove(&(0, Direction::Read)).unwrap()
}

/// Noise of no period: the digits of a multiplication.
fn noise(n: u64) -> u64 {
    (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % 1000
}

#[test]
fn a_steady_minute_has_intervals_for_rates_means_and_percentiles() {
    let found = of((1..=60).map(|n| second(n, 10_000 + noise(n))));
    assert_eq!(found.rates.intervals, 60);
    let Certainty::Interval {
        low,
        high,
        independent,
    } = found.rates.iops
    else {
        panic!("{:?}", found.rates);
    };
    assert!(
        low > 10_000.0 && high < 11_000.0 && high - low < 400.0,
        "{low} {high}"
    );
    assert!((12.0..=60.0).contains(&independent));
    let clat = found.clat.unwrap();
    let mean = (clat.mean_ns.half_width()).unwrap();
    assert!(mean < 2_000.0, "{mean}");
    // 2 % are slow, so that the 90th percentile is one of the fast ones.
    let Some(Certainty::Interval { low, high, .. }) = clat.percentile(90.0) else {
        panic!("{clat:?}");
    };
    assert!(low <= 100_000.0 && high >= 100_000.0 && high - low < 2_000.0);
    assert_eq!(clat.percentile(75.0), None);
}

#[test]
fn a_few_seconds_are_too_short_to_say() {
    let found = of((1..=5).map(|n| second(n, 10_000 + noise(n))));
    let Certainty::TooShort {
        independent,
        enough_ms,
    } = found.rates.iops
    else {
        panic!("{:?}", found.rates);
    };
    assert!(
        independent <= 5.0 && (12_000..600_000).contains(&enough_ms),
        "{enough_ms}"
    );
    let one = of([second(1, 10_000)]);
    assert!(matches!(
        one.rates.iops,
        Certainty::TooShort {
            enough_ms: 12_000,
            ..
        }
    ));
}

#[test]
fn burst_credits_that_end_are_a_level_shift() {
    let ios = |n| if n <= 40 { 20_000 } else { 5_000 } + noise(n);
    let found = of((1..=100).map(|n| second(n, ios(n))));
    let Certainty::LevelShift { at_ms, from, to } = found.rates.iops else {
        panic!("{:?}", found.rates);
    };
    assert_eq!(at_ms, 40_000);
    assert!((19_000.0..22_000.0).contains(&from) && (4_000.0..7_000.0).contains(&to));
}

#[test]
fn a_stall_counts_as_intervals_without_io() {
    let with = of((1..=60)
        .filter(|n| !(20..26).contains(n))
        .map(|n| second(n, 10_000 + noise(n))));
    assert_eq!(with.rates.intervals, 60);
}

#[test]
fn a_long_run_takes_no_more_memory_and_says_the_same() {
    let mut collector = CertaintyCollector::default();
    for n in 1..=20_000 {
        collector.add(&second(n, 10_000 + noise(n)));
    }
    let track = &collector.tracks[&(0, Direction::Read)];
    assert!(track.rates.closed.len() < RATES_MOST);
    assert!(track.latencies.closed.len() < HISTOGRAMS_MOST);
    let found = collector.finish().remove(&(0, Direction::Read)).unwrap();
    let half = found.rates.iops.half_width().unwrap();
    // 289 IOPS of deviation over the root of 20,000, twice.
    assert!((2.0..8.0).contains(&half), "{half}");
}

#[test]
fn hostile_samples_end_nothing() {
    let mut far = second(3, 100);
    far.t_ms = u64::MAX;
    let mut long = second(4, 100);
    long.span_ms = u64::MAX;
    let mut none = second(5, 100);
    (none.span_ms, none.ios, none.bytes) = (0, u64::MAX, u64::MAX);
    of([second(1, 100), far, long, none, second(2, 100)]);
}
