//! The latencies of one priority and direction: each, or a histogram of them.

use fathom_model::Histogram;
use fathom_model::histogram::{BUCKETS, bucket_of, middle_of};

/// Every latency: four bytes each, eight above 4.29 s.
#[derive(Debug, Default)]
pub(super) struct Exact {
    small: Vec<u32>,
    large: Vec<u64>,
}

impl Exact {
    /// Adds one; gives the bytes it takes.
    #[inline]
    pub(super) fn add(&mut self, value_ns: u64) -> usize {
        match u32::try_from(value_ns) {
            Ok(small) => {
                self.small.push(small);
                4
            }
            Err(_) => {
                self.large.push(value_ns);
                8
            }
        }
    }

    pub(super) fn sort(&mut self) {
        self.small.sort_unstable();
        self.large.sort_unstable();
    }

    /// How many are at most this; they are sorted.
    fn up_to(&self, value_ns: u64) -> u64 {
        let small = match u32::try_from(value_ns) {
            Ok(value) => self.small.partition_point(|&v| v <= value),
            Err(_) => self.small.len(),
        };
        (small + self.large.partition_point(|&v| v <= value_ns)) as u64
    }

    /// The `element`-th smallest of several, counted from 1, all sorted: the
    /// smallest value that so many do not exceed, found by halving between the
    /// smallest and the largest.
    pub(super) fn element_ns(of: &[&Self], element: u64, min_ns: u64, max_ns: u64) -> u64 {
        let (mut low, mut high) = (min_ns, max_ns);
        while low < high {
            let middle = low + (high - low) / 2;
            match of.iter().map(|values| values.up_to(middle)).sum::<u64>() >= element {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    pub(super) fn counted(&self) -> BucketCounts {
        let mut counts = BucketCounts::default();
        for &value in &self.small {
            counts.add(u64::from(value));
        }
        for &value in &self.large {
            counts.add(value);
        }
        counts
    }
}

/// Counts in the buckets of the model's histogram, all of them in place, so
/// that adding is one increment.
#[derive(Debug)]
pub(super) struct BucketCounts {
    buckets: Box<[u64]>,
}

impl Default for BucketCounts {
    fn default() -> Self {
        let buckets = vec![0; BUCKETS].into_boxed_slice();
        Self { buckets }
    }
}

impl BucketCounts {
    #[inline]
    pub(super) fn add(&mut self, value_ns: u64) {
        self.buckets[bucket_of(value_ns)] += 1;
    }

    pub(super) fn add_many(&mut self, value_ns: u64, count: u64) {
        self.buckets[bucket_of(value_ns)] += count;
    }

    /// The counts between two values, which are set back to none.
    pub(super) fn take(&mut self, min_ns: u64, max_ns: u64) -> Histogram {
        let mut histogram = Histogram::new();
        if min_ns <= max_ns {
            let (from, to) = (bucket_of(min_ns), bucket_of(max_ns));
            for (at, count) in self.buckets[from..=to].iter_mut().enumerate() {
                histogram.add(middle_of(from + at), std::mem::take(count));
            }
        }
        histogram
    }
}
