//! Statistics of latency logs: of all I/Os, by direction, priority, job and host in
//! any combination, over time.
//!
//! A [`LogCollector`] takes the lines of one part of a log, in whatever memory it
//! is allowed; [`Statistics`] are made of all parts. Count, sum and sum of
//! squares are whole numbers, so that figures do not depend on how a log was cut
//! into parts. Several logs may be one population. Percentiles follow one rule: of n latencies in ascending order
//! the element int(n·p), counted from 1 (the smallest where that is 0).

mod bins;
mod collector;
mod groups;
mod moments;
mod over_time;
mod statistics;
#[cfg(test)]
mod tests;
mod timeline;
mod values;

pub use bins::{PriorityBins, PrioritySpread};
pub use collector::{CollectSettings, LogCollector};
pub use groups::{Breakdown, LatencyFigures, LatencyGroup, LatencyKey};
pub use moments::LatencyMoments;
pub use statistics::{CollectedLog, LogInterval, Statistics, StatisticsWanted, TooMany};
pub use timeline::{DirectionTrack, Timeline, TimelineSlice};

/// The percentiles, as fractions: 1, 5, 10 … 90, 95, 99, 99.5, 99.9, 99.95, 99.99 %.
pub const FRACTIONS: [f64; 17] = [
    0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995,
    0.9999,
];
/// The same in percent, as they are written.
pub const PERCENTS: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];
/// How far a percentile from a histogram is at most from the exact one, in
/// percent of it ([`fathom_model::histogram`]).
pub const HISTOGRAM_ERROR_PERCENT: f64 = 0.79;

/// The element, counted from 1, that stands for a fraction of n: int(n·p) in
/// double precision, as awk computes it.
fn element(n: u64, fraction: f64) -> u64 {
    ((n as f64 * fraction) as u64).max(1)
}
