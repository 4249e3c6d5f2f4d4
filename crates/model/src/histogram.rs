//! A log-linear latency histogram whose buckets are a superset of fio's.
//!
//! Values below 128 ns have a bucket each. Above, every power of two is cut
//! into 64 buckets, so that the middle of a bucket is at most 1/128 = 0.79 %
//! away from any value in it. fio uses the same layout (`stat.h`,
//! `FIO_IO_U_PLAT_BITS` 6) but stops at 2^34 ns = 17.18 s; this one goes on to
//! the end of `u64`, so fio's bins can be added without loss and nothing
//! saturates.

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bits of a value that are kept below its highest one: 64 buckets an octave.
const SUB_BITS: u32 = 6;
/// The widest a bucket is, as a share of its values.
pub const HISTOGRAM_STEP: f64 = 1.0 / 64.0;
/// Number of buckets that cover all of `u64`.
pub const BUCKETS: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;
/// Where fio's own histogram ends: a sample above this is put in its last bucket.
pub const FIO_SATURATION_NS: u64 = 1 << 34;

/// Counts of values in nanoseconds, with the relative error given above.
///
/// Only the buckets that hold something take memory: a report of 300 clients
/// stays small, and so does what a hostile one can make of a few bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// (bucket, count), ascending, no count 0.
    counts: Vec<(u32, u64)>,
    total: u64,
}

/// The bucket that holds `value_ns`.
#[inline]
pub fn bucket_of(value_ns: u64) -> usize {
    let top = 63 - (value_ns | 1).leading_zeros();
    if top <= SUB_BITS {
        return usize::try_from(value_ns).unwrap_or(0);
    }
    let shift = top - SUB_BITS;
    let offset = (value_ns >> shift) & ((1 << SUB_BITS) - 1);
    (((shift + 1) as usize) << SUB_BITS) + usize::try_from(offset).unwrap_or(0)
}

/// The smallest and the largest value of a bucket, in ns.
pub fn bounds_of(bucket: usize) -> (u64, u64) {
    let group = bucket >> SUB_BITS;
    if group < 2 {
        return (bucket as u64, bucket as u64);
    }
    let shift = group as u32 - 1;
    let low = ((1u64 << SUB_BITS) + (bucket as u64 & ((1 << SUB_BITS) - 1))) << shift;
    (low, low + ((1u64 << shift) - 1))
}

/// The value that stands for a bucket: its middle, as fio prints it.
pub fn middle_of(bucket: usize) -> u64 {
    let (low, high) = bounds_of(bucket);
    low + (high - low).div_ceil(2)
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `count` values of `value_ns`.
    pub fn add(&mut self, value_ns: u64, count: u64) {
        self.add_bucket(bucket_of(value_ns), count);
    }

    fn add_bucket(&mut self, bucket: usize, count: u64) {
        if count == 0 {
            return;
        }
        let bucket = bucket as u32;
        self.total = self.total.saturating_add(count);
        // Values mostly come in ascending order: from a report, from a merge.
        if self.counts.last().is_none_or(|&(last, _)| last < bucket) {
            self.counts.push((bucket, count));
            return;
        }
        match self
            .counts
            .binary_search_by_key(&bucket, |&(bucket, _)| bucket)
        {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(count),
            Err(at) => self.counts.insert(at, (bucket, count)),
        }
    }

    /// The count of one bucket.
    fn count_of(&self, bucket: usize) -> u64 {
        self.counts
            .binary_search_by_key(&(bucket as u32), |&(bucket, _)| bucket)
            .map_or(0, |at| self.counts[at].1)
    }

    /// Adds every count of `other`: the only correct way to combine percentiles.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.is_empty() {
            self.clone_from(other);
            return;
        }
        for (bucket, count) in other.buckets() {
            self.add_bucket(bucket, count);
        }
    }

    /// What has been added since `earlier`, a former state of this histogram.
    ///
    /// A count that went down (a job restarted its statistics, as fio does at
    /// the end of a ramp) counts as started anew.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut delta = Self::new();
        for (bucket, count) in self.buckets() {
            let before = earlier.count_of(bucket);
            let added = count.checked_sub(before).unwrap_or(count);
            if added > 0 {
                delta.add_bucket(bucket, added);
            }
        }
        delta
    }

    /// A histogram from its stored form: distances to the bucket before, each with
    /// its count. Room is made for `buckets` of them. `None` for a bucket beyond
    /// the end.
    pub fn from_stored(
        pairs: impl IntoIterator<Item = (u64, u64)>,
        buckets: usize,
    ) -> Option<Self> {
        let mut histogram = Self {
            counts: Vec::with_capacity(buckets.min(BUCKETS)),
            total: 0,
        };
        let mut bucket = 0usize;
        for (distance, count) in pairs {
            bucket = bucket.checked_add(usize::try_from(distance).ok()?)?;
            if bucket >= BUCKETS {
                return None;
            }
            histogram.add_bucket(bucket, count);
        }
        Some(histogram)
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether no value was added.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The buckets that hold something, in ascending order, as (bucket, count).
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts
            .iter()
            .map(|&(bucket, count)| (bucket as usize, count))
    }

    /// The value at `percent` (0–100) in ns: the middle of the bucket in which
    /// the ⌈n·percent/100⌉-th smallest value lies. `None` when it is empty.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
        let wanted = (self.total as f64 * percent.clamp(0.0, 100.0) / 100.0)
            .ceil()
            .max(1.0);
        self.element_ns(wanted as u64)
    }

    /// The `element`-th smallest value in ns, counted from 1: the middle of the
    /// bucket in which it lies. Beyond the last it is the last; `None` when the
    /// histogram is empty.
    pub fn element_ns(&self, element: u64) -> Option<u64> {
        let mut seen = 0u64;
        let mut last = None;
        for (bucket, count) in self.buckets() {
            seen = seen.saturating_add(count);
            last = Some(middle_of(bucket));
            if seen >= element {
                break;
            }
        }
        last
    }

    /// As it would be where a value is due every `interval_ns` whether the one before is over
    /// or not: what came in the time of a long one waited for the rest of it (coordinated
    /// omission; HdrHistogram's correction). An interval of 0 changes nothing.
    pub fn corrected(&self, interval_ns: u64) -> Self {
        let mut all = self.clone();
        if interval_ns == 0 {
            return all;
        }
        for (bucket, count) in self.buckets() {
            let value = middle_of(bucket);
            // The values value - k · interval, k = 1, 2, …, down to one interval.
            let last = (value / interval_ns).saturating_sub(1);
            let Some(most) = value.checked_sub(interval_ns).filter(|_| last > 0) else {
                continue;
            };
            for bucket in bucket_of(interval_ns)..=bucket_of(most) {
                let (low, high) = bounds_of(bucket);
                let from = value.saturating_sub(high).div_ceil(interval_ns).max(1);
                let to = (value.saturating_sub(low) / interval_ns).min(last);
                let n = (to + 1).saturating_sub(from);
                all.add_bucket(bucket, n.saturating_mul(count));
            }
        }
        all
    }

    /// The mean of the buckets' middles in ns; `None` when it is empty.
    pub fn mean_ns(&self) -> Option<f64> {
        if self.total == 0 {
            return None;
        }
        let sum: f64 = self
            .buckets()
            .map(|(b, n)| middle_of(b) as f64 * n as f64)
            .sum();
        Some(sum / self.total as f64)
    }
}

impl schemars::JsonSchema for Histogram {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Distance to the bucket before, count, distance, count, …",
            "type": "array",
            "items": { "type": "integer", "minimum": 0 },
        })
    }
}

/// Stored as a flat list: distance to the previous bucket, count, distance, count, …
/// (the first distance counts from bucket 0), which keeps a sample line short.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        let mut previous = 0;
        for (bucket, count) in self.buckets() {
            seq.serialize_element(&(bucket - previous))?;
            seq.serialize_element(&count)?;
            previous = bucket;
        }
        seq.end()
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Histogram;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a list of bucket distances and counts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Histogram, A::Error> {
                let mut histogram = Histogram::new();
                let mut bucket = 0usize;
                while let Some(distance) = seq.next_element::<usize>()? {
                    let count = seq
                        .next_element::<u64>()?
                        .ok_or_else(|| A::Error::custom("a bucket without its count"))?;
                    bucket = bucket.saturating_add(distance);
                    if bucket >= BUCKETS {
                        return Err(A::Error::custom("bucket beyond the histogram's end"));
                    }
                    histogram.add_bucket(bucket, count);
                }
                Ok(histogram)
            }
        }
        deserializer.deserialize_seq(Pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_begins_where_the_one_before_ends() {
        for bucket in 1..BUCKETS {
            let (low, high) = bounds_of(bucket);
            assert_eq!(bounds_of(bucket - 1).1 + 1, low, "bucket {bucket}");
            assert_eq!((bucket_of(low), bucket_of(high)), (bucket, bucket));
            let middle = middle_of(bucket);
            assert_eq!(bucket_of(middle), bucket);
            let error = (middle - low).max(high - middle) as f64 / low as f64;
            assert!(error <= 0.0079, "bucket {bucket}: {error}");
        }
        assert_eq!(bounds_of(BUCKETS - 1).1, u64::MAX);
    }

    #[test]
    fn values_may_come_in_any_order() {
        let (mut up, mut down) = (Histogram::new(), Histogram::new());
        for value in [3u64, 5, 900, 40_000, 40_001, u64::MAX] {
            up.add(value, 2);
        }
        for value in [u64::MAX, 40_001, 900, 5, 3, 40_000] {
            down.add(value, 1);
            down.add(value, 1);
            down.add(value, 0);
        }
        assert_eq!(up, down);
        assert_eq!(up.total(), 12);
        assert_eq!(up.buckets().count(), 5);
    }

    #[test]
    fn counts_do_not_overflow() {
        let mut h = Histogram::new();
        h.add(1, u64::MAX);
        h.add(2, u64::MAX);
        h.add(2, u64::MAX);
        assert_eq!(h.percentile_ns(100.0), Some(1));
    }

    #[test]
    fn percentiles_count_from_the_smallest_value() {
        let mut h = Histogram::new();
        assert_eq!(h.percentile_ns(50.0), None);
        for value in 1..=100 {
            h.add(value, 1);
        }
        assert_eq!(h.percentile_ns(0.0), Some(1));
        assert_eq!(h.percentile_ns(50.0), Some(50));
        assert_eq!(h.percentile_ns(99.0), Some(99));
        assert_eq!(h.percentile_ns(100.0), Some(100));
    }

    #[test]
    fn a_delta_added_again_gives_the_later_state() {
        let mut earlier = Histogram::new();
        earlier.add(1_000, 3);
        let mut later = earlier.clone();
        later.add(1_000, 2);
        later.add(9_000_000_000, 1);
        let mut rebuilt = earlier.clone();
        rebuilt.merge(&later.since(&earlier));
        assert_eq!(rebuilt, later);
    }

    #[test]
    fn the_stored_form_reads_back_and_refuses_nonsense() {
        let mut h = Histogram::new();
        h.add(5, 1);
        h.add(u64::MAX, 7);
        let text = serde_json::to_string(&h).unwrap();
        assert_eq!(text, "[5,1,3770,7]");
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), h);
        assert!(serde_json::from_str::<Histogram>("[1]").is_err());
        assert!(serde_json::from_str::<Histogram>("[99999999,1]").is_err());
    }
}
