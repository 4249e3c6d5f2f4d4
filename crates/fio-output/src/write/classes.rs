//! Completion latencies by class: fio's `lat (usec): 2=…, 4=…` tables.

use fathom_model::histogram::middle_of;
use fathom_model::{Histogram, JobResult};

/// Upper borders of the classes of ns and µs; a class holds what is below its
/// border and not below the one before. Of ms there are two more (fio
/// HOWTO, "Interpreting the output").
const BORDERS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
const BORDERS_MS: [u64; 11] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000];
/// Names of the classes of ms; the first ten are those of ns and µs too.
pub const NAMES: [&str; 12] = [
    "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
];
/// What a class that holds anything shows at least, so that it is not taken for empty.
const SMALLEST_PERCENT: f64 = 0.01;

/// Share of all I/Os in each class of completion latency, in percent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatencyClasses {
    /// Below 1 µs, by upper border in ns: 2, 4, 10, 20, 50, 100, 250, 500, 750, 1000.
    pub ns: [f64; 10],
    /// From 1 µs to below 1 ms, by the same numbers of µs.
    pub us: [f64; 10],
    /// From 1 ms, by the same numbers of ms, then 2000 and what is longer.
    pub ms: [f64; 12],
}

impl LatencyClasses {
    /// Counts the completion latencies of a job from its histograms: exact but
    /// for the buckets across a border, which count where their middle is.
    pub fn of(job: &JobResult) -> Self {
        let mut all = Histogram::new();
        let mut ios = 0u64;
        let data = [&job.read, &job.write, &job.trim];
        let parts = if data.iter().any(|part| part.is_some()) {
            data.to_vec()
        } else {
            vec![&job.mixed]
        };
        for part in parts.into_iter().flatten() {
            ios = ios.saturating_add(part.total_ios);
            if let Some(histogram) = part.clat.as_ref().and_then(|clat| clat.histogram.as_ref()) {
                all.merge(histogram);
            }
        }
        Self::count(&all, ios)
    }

    fn count(histogram: &Histogram, ios: u64) -> Self {
        let mut classes = Self::default();
        for (bucket, count) in histogram.buckets() {
            let value_ns = middle_of(bucket);
            let place = match value_ns {
                0..1_000 => &mut classes.ns[class_of(value_ns, &BORDERS)],
                1_000..1_000_000 => &mut classes.us[class_of(value_ns / 1_000, &BORDERS)],
                _ => &mut classes.ms[class_of(value_ns / 1_000_000, &BORDERS_MS)],
            };
            *place += count as f64;
        }
        let all = classes
            .ns
            .iter_mut()
            .chain(&mut classes.us)
            .chain(&mut classes.ms);
        for class in all.filter(|class| **class > 0.0) {
            *class *= 100.0 / ios.max(1) as f64;
        }
        classes
    }
}

/// The percentage that is shown of one.
pub fn shown(percent: f64) -> f64 {
    if percent > 0.0 {
        percent.max(SMALLEST_PERCENT)
    } else {
        0.0
    }
}

fn class_of(value: u64, borders: &[u64]) -> usize {
    borders.partition_point(|&border| border <= value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_border_belongs_to_the_class_above_it() {
        let mut histogram = Histogram::new();
        for ns in [0, 1, 2, 100, 1_000_000_000, 2_000_000_000, u64::MAX] {
            histogram.add(ns, 1);
        }
        histogram.add(30_000, 1_000_000);
        let classes = LatencyClasses::count(&histogram, 1_000_007);
        let shown =
            |list: &[f64]| -> Vec<usize> { (0..list.len()).filter(|&at| list[at] > 0.0).collect() };
        assert_eq!(shown(&classes.ns), [0, 1, 6]);
        assert_eq!(shown(&classes.us), [4]);
        assert_eq!(shown(&classes.ms), [10, 11]);
        assert!(classes.ns[1] < 0.001);
        assert_eq!(super::shown(classes.ns[1]), 0.01, "never shown as 0");
    }
}
