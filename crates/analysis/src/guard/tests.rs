use fathom_model::{DirectionResult, Latency};
use proptest::prelude::*;

use super::*;

const RULE: GuardRule = GuardRule {
    points: 2,
    noise_percent: 5,
};

/// IOPS of 4k blocks, latency in µs.
fn totals(iops: f64, clat_us: f64) -> MeasurementTotals {
    MeasurementTotals {
        bw_bytes: iops * 4096.0,
        iops,
        clat_ns: Some(clat_us * 1000.0),
    }
}

/// After how many points the series is over; `None`: it never is.
fn over_after(rule: GuardRule, points: &[(f64, f64)]) -> Option<usize> {
    let mut guard = Guard::new(rule);
    let ends = |&(iops, clat_us): &(f64, f64)| guard.add(&[totals(iops, clat_us)]);
    points.iter().position(ends).map(|place| place + 1)
}

#[test]
fn two_worse_points_in_a_row_end_a_series() {
    let falling = [(100.0, 10.0), (200.0, 20.0), (180.0, 40.0), (170.0, 80.0)];
    assert_eq!(over_after(RULE, &falling), Some(4));
    let one = GuardRule { points: 1, ..RULE };
    assert_eq!(over_after(one, &falling), Some(3));
    // A point that is not worse breaks the row.
    let saw = [(200.0, 20.0), (180.0, 40.0), (199.0, 80.0), (180.0, 90.0)];
    assert_eq!(over_after(RULE, &saw), None);
}

#[test]
fn a_plateau_within_noise_is_not_worse() {
    let plateau = [(200.0, 20.0), (191.0, 40.0), (191.0, 80.0), (191.0, 99.0)];
    assert_eq!(over_after(RULE, &plateau), None);
}

#[test]
fn less_throughput_with_lower_latency_is_not_worse() {
    let back = [(200.0, 80.0), (100.0, 40.0), (50.0, 20.0)];
    assert_eq!(over_after(RULE, &back), None);
}

#[test]
fn fewer_ios_of_more_bandwidth_are_not_worse() {
    let mut guard = Guard::new(RULE);
    for power in 0..8 {
        // A sweep of block sizes: IOPS fall, bandwidth grows.
        let blocks = f64::from(1 << power);
        let point = MeasurementTotals {
            bw_bytes: 1e6 * (2.0 - 1.0 / blocks),
            iops: 1000.0 / blocks,
            clat_ns: Some(1000.0 * blocks),
        };
        assert!(!guard.add(&[point]));
    }
}

#[test]
fn without_latencies_nothing_is_worse_and_failed_points_are_passed_over() {
    let mut guard = Guard::new(RULE);
    guard.add(&[totals(200.0, 20.0)]);
    let silent = MeasurementTotals {
        clat_ns: None,
        ..totals(10.0, 0.0)
    };
    assert!(!guard.add(&[silent]) && !guard.add(&[silent]));
    let mut guard = Guard::new(RULE);
    guard.add(&[totals(200.0, 20.0)]);
    assert!(!guard.add(&[totals(100.0, 40.0)]) && !guard.add(&[]));
    assert!(
        guard.add(&[totals(90.0, 50.0)]),
        "a failed point between two"
    );
    assert!(guard.reason().contains("2 points in a row"));
}

#[test]
fn a_wide_confidence_interval_counts_instead_of_the_percentage() {
    let scattered = |iops: f64| [totals(iops * 0.7, 40.0), totals(iops * 1.3, 44.0)];
    let best = [totals(200.0, 20.0), totals(201.0, 20.1)];
    let mut guard = Guard::new(RULE);
    guard.add(&best);
    assert!(!guard.add(&scattered(150.0)) && !guard.add(&scattered(150.0)));
    let steady = |iops: f64| [totals(iops, 40.0), totals(iops * 1.001, 40.01)];
    assert!(!guard.add(&steady(150.0)) && guard.add(&steady(140.0)));
}

#[test]
fn totals_add_directions_and_weigh_latencies() {
    let direction = |ios: u64, mean_ns: f64| {
        Some(DirectionResult {
            total_ios: ios,
            iops: ios as f64,
            bw_bytes: ios as f64 * 4096.0,
            clat: Some(Latency {
                mean_ns,
                ..Latency::default()
            }),
            ..DirectionResult::default()
        })
    };
    let results = Results {
        jobs: vec![JobResult {
            read: direction(300, 100.0),
            write: direction(100, 500.0),
            ..JobResult::default()
        }],
        ..Results::default()
    };
    let totals = MeasurementTotals::of(&results).unwrap();
    assert_eq!((totals.iops, totals.clat_ns), (400.0, Some(200.0)));
    assert_eq!(MeasurementTotals::of(&Results::default()), None);
}

proptest! {
    /// Whatever the noise, a series whose bandwidth never falls is measured whole.
    #[test]
    fn a_series_that_only_grows_is_never_ended(
        steps in prop::collection::vec((0.0..100.0f64, 0.1..1e6f64), 1..40),
        points in 0..4u32,
        noise_percent in 0..50u32,
    ) {
        let mut guard = Guard::new(GuardRule { points, noise_percent });
        let mut iops = 1.0;
        for (more, clat_us) in steps {
            iops += more;
            prop_assert!(!guard.add(&[totals(iops, clat_us)]));
        }
    }

    /// More patience and more noise never end a series earlier.
    #[test]
    fn a_stricter_rule_never_ends_earlier(
        series in prop::collection::vec((1.0..1e5f64, 1.0..1e4f64), 1..40),
        points in 1..4u32,
        noise_percent in 0..50u32,
    ) {
        let at = |points, noise_percent| {
            over_after(GuardRule { points, noise_percent }, &series).unwrap_or(usize::MAX)
        };
        prop_assert!(at(points, noise_percent) <= at(points + 1, noise_percent));
    }

    /// A series that falls for ever is ended after exactly so many points.
    #[test]
    fn a_series_that_falls_is_ended_when_the_rule_says(points in 1..6u32) {
        let falling: Vec<(f64, f64)> =
            (0..20).map(|i| (1e5 * 0.8f64.powi(i), 10.0 * 2f64.powi(i))).collect();
        let rule = GuardRule { points, noise_percent: 5 };
        prop_assert_eq!(over_after(rule, &falling), Some(points as usize + 1));
    }
}
