//! Histograms beside the values themselves, sorted.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::collections::BTreeMap;

use fathom_model::Histogram;
use fathom_model::histogram::{BUCKETS, bounds_of, bucket_of, middle_of};
use proptest::prelude::*;

/// Latencies of every size, to some five hours.
fn latency() -> impl Strategy<Value = u64> {
    (20u32..=63, any::<u64>()).prop_map(|(shift, value)| value >> shift)
}

fn of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&value| histogram.add(value, 1));
    histogram
}

/// The rule of a log-linear histogram, worked out without the bits of
/// `bucket_of`: 64 buckets of equal width for each power of two from 64 on.
fn expected_bounds(value: u64) -> (u64, u64) {
    let mut width = 1u64;
    while value / width >= 128 {
        width *= 2;
    }
    let low = value / width * width;
    (low, low + (width - 1))
}

#[test]
fn each_bucket_holds_what_its_bounds_say_and_nothing_else() {
    for bucket in 0..BUCKETS {
        let (low, high) = bounds_of(bucket);
        assert_eq!(expected_bounds(low), (low, high), "bucket {bucket}");
        assert_eq!(expected_bounds(high), (low, high), "bucket {bucket}");
        let histogram = of(&[low, high]);
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(bucket, 2)]);
        assert_eq!(histogram.percentile_ns(50.0), Some(middle_of(bucket)));
        if low > 0 {
            assert_eq!(bucket_of(low - 1), bucket - 1);
        }
    }
}

proptest! {
    #[test]
    fn every_bucket_counts_exactly_its_values(values in prop::collection::vec(latency(), 0..400)) {
        let mut exact = BTreeMap::new();
        for &value in &values {
            *exact.entry(expected_bounds(value)).or_insert(0u64) += 1;
        }
        let histogram = of(&values);
        let counted: Vec<_> = histogram.buckets().map(|(b, n)| (bounds_of(b), n)).collect();
        prop_assert_eq!(counted, exact.into_iter().collect::<Vec<_>>());
        prop_assert_eq!(histogram.total(), values.len() as u64);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values(
        mut values in prop::collection::vec(latency(), 1..400),
        percent in 0.0..=100.0f64,
    ) {
        let histogram = of(&values);
        values.sort_unstable();
        let rank = (values.len() as f64 * percent / 100.0).ceil().max(1.0) as usize;
        let exact = values[rank - 1];
        let told = histogram.percentile_ns(percent).unwrap();
        // The middle of the value's own bucket: half of 1/64 away at most.
        prop_assert_eq!(bucket_of(told), bucket_of(exact));
        prop_assert!((told as f64 - exact as f64).abs() <= exact as f64 / 128.0);
        let mean = values.iter().map(|&v| v as f64).sum::<f64>() / values.len() as f64;
        prop_assert!((histogram.mean_ns().unwrap() - mean).abs() <= mean / 128.0 + 1e-6);
    }

    #[test]
    fn parts_add_up_in_any_order_and_deltas_lead_back(
        parts in prop::collection::vec(prop::collection::vec(latency(), 0..60), 1..6),
    ) {
        let all = of(&parts.concat());
        let (mut up, mut down) = (Histogram::new(), Histogram::new());
        for part in &parts {
            let before = up.clone();
            up.merge(&of(part));
            prop_assert_eq!(up.since(&before), of(part));
        }
        parts.iter().rev().for_each(|part| down.merge(&of(part)));
        prop_assert_eq!(&up, &all);
        prop_assert_eq!(&down, &all);
        let text = serde_json::to_string(&all).unwrap();
        prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), all);
    }
}

#[test]
fn what_a_long_value_held_back_is_added() {
    let mut all = Histogram::new();
    all.add(10, 98);
    all.add(60, 1);
    let corrected = all.corrected(10);
    // 50, 40, 30, 20 and 10 waited for the rest of 60.
    assert_eq!(corrected.total(), 99 + 5);
    assert_eq!(corrected.percentile_ns(100.0), Some(60));
    assert_eq!(corrected.percentile_ns(97.0), Some(30));
    assert_eq!(all.corrected(0), all);
    assert_eq!(all.corrected(60), all, "none was due meanwhile");
    // Values in wide buckets, one by one and by their buckets.
    let mut wide = Histogram::new();
    wide.add(1_000_000_000, 3);
    let n = wide.corrected(1_000_003).total();
    assert!((n - 3).abs_diff(3 * 999) <= 6, "{n}");
}
