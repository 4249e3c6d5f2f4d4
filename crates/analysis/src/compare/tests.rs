use super::*;

fn runs(values: &[f64], first_ms: u64, every_ms: u64) -> Vec<RunValue> {
    let each = (0..).zip(values);
    each.map(|(n, &value)| RunValue {
        value,
        own_error: None,
        at_ms: first_ms + n * every_ms,
    })
    .collect()
}

/// Sides that were measured in turn.
fn sides(a: &[f64], b: &[f64]) -> FigureSides {
    FigureSides {
        a: runs(a, 0, 2000),
        b: runs(b, 1000, 2000),
        more_is_better: true,
        ..FigureSides::default()
    }
}

fn one(sides: FigureSides) -> FigureComparison {
    compare(&[sides], 0.02)[0]
}

#[test]
fn a_clear_difference_is_told_and_by_which_direction_is_better() {
    let found = one(sides(&[100.0, 101.0, 99.0], &[120.0, 121.0, 119.0]));
    assert_eq!(found.verdict, CompareVerdict::Faster);
    let (low, high) = (found.ratio_low.unwrap(), found.ratio_high.unwrap());
    assert!(low > 1.15 && high < 1.25, "{low} {high}");
    let latency = FigureSides {
        more_is_better: false,
        ..sides(&[100.0, 101.0, 99.0], &[120.0, 121.0, 119.0])
    };
    assert_eq!(one(latency).verdict, CompareVerdict::Slower);
}

#[test]
fn one_run_of_each_does_not_tell_unless_earlier_ones_do() {
    let single = sides(&[100.0], &[150.0]);
    let found = one(single.clone());
    assert_eq!(found.why_not, Some(WhyNot::SpreadUnknown));
    assert_eq!((found.more_runs, found.ratio_low), (Some(2), None));
    let known = FigureSides {
        earlier: vec![vec![98.0, 100.0, 101.0, 99.0, 102.0]],
        ..single
    };
    assert_eq!(one(known).verdict, CompareVerdict::Faster);
    // Two of each could be two modes of the device.
    let pairs = one(sides(&[100.0, 100.1], &[150.0, 150.1]));
    assert_eq!(pairs.why_not, Some(WhyNot::SpreadUnknown));
}

#[test]
fn the_same_needs_an_interval_within_the_margin() {
    let found = one(sides(
        &[100.0, 100.2, 99.9, 100.1],
        &[100.3, 100.1, 100.0, 100.2],
    ));
    assert_eq!(found.verdict, CompareVerdict::Same);
    let noisy = one(sides(&[100.0, 80.0, 120.0], &[101.0, 85.0, 118.0]));
    assert_eq!(noisy.why_not, Some(WhyNot::Noise));
    assert!(noisy.more_runs.is_none_or(|more| more > 20));
}

#[test]
fn repetitions_that_it_would_take_are_told() {
    let found = one(sides(&[100.0, 110.0, 95.0], &[120.0, 108.0, 115.0]));
    assert_eq!(found.verdict, CompareVerdict::CannotTell);
    assert!((1..30).contains(&found.more_runs.unwrap()), "{found:?}");
}

#[test]
fn a_drift_over_sides_one_after_the_other_is_no_difference() {
    let drifting = FigureSides {
        a: runs(&[100.0, 104.0, 108.0, 112.0], 0, 1000),
        b: runs(&[116.0, 120.0, 124.0, 128.0], 4000, 1000),
        more_is_better: true,
        ..FigureSides::default()
    };
    assert_eq!(one(drifting).why_not, Some(WhyNot::Drift));
    let step = FigureSides {
        a: runs(&[100.0, 101.0, 99.0, 100.0], 0, 1000),
        b: runs(&[120.0, 121.0, 119.0, 120.0], 4000, 1000),
        more_is_better: true,
        ..FigureSides::default()
    };
    assert_eq!(one(step).verdict, CompareVerdict::Faster);
}

#[test]
fn values_a_bucket_apart_are_no_difference() {
    let buckets = FigureSides {
        resolution: 1.0 / 64.0,
        ..sides(&[1.0, 1.0, 1.0], &[1.0155, 1.0155, 1.0155])
    };
    assert_ne!(compare(&[buckets], 0.01)[0].verdict, CompareVerdict::Faster);
}

#[test]
fn nothing_is_compared_with_nothing() {
    let found = one(sides(&[0.0, 0.0, 0.0], &[1.0, 2.0, 3.0]));
    assert_eq!((found.why_not, found.a), (Some(WhyNot::Invalid), None));
    assert_eq!(one(sides(&[], &[1.0])).why_not, Some(WhyNot::Invalid));
}
