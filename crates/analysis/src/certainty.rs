//! How far the figures of one run can be trusted, from its intervals.
//!
//! Every figure is a ratio of two sums over the intervals: I/Os over time, latencies
//! over I/Os, I/Os beyond a percentile over I/Os. How far interval i is off is
//! (numeratorᵢ − ratio · denominatorᵢ) over the mean denominator, the linearised ratio
//! of sampling theory (W. G. Cochran, Sampling Techniques, 3rd ed., 1977, 6.4), and the
//! mean of that series of correlated values has an interval ([`crate::correlated`]).
//! That of a percentile is the interval of its share, read back as latencies: R. S.
//! Woodruff, Confidence intervals for medians and other position measures, Journal of
//! the American Statistical Association 47 (1952).

use std::collections::BTreeMap;

use fathom_model::certainty::{Certainty, LatencyCertainty, PercentileCertainty, RateCertainty};
use fathom_model::histogram::{bounds_of, bucket_of, middle_of};
use fathom_model::{Direction, Histogram, Sample};

use crate::correlated::{CorrelatedMean, INDEPENDENT_LEAST};
use crate::level_shift::{SHIFTS_MANY, level_shifts};

/// Percentiles whose certainty is told: those that tables show.
pub const PERCENTS_TOLD: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];
/// Blocks of rates that are kept of a direction; when there are more, two become one.
/// An hour of seconds is below it.
const RATES_MOST: usize = 4096;
/// The same of histograms, which take much more memory.
const HISTOGRAMS_MOST: usize = 256;
/// A block is over once it has this share of its length: intervals are not exact.
const FULL: f64 = 0.75;
/// A pause that is longer than this many blocks is no stall of a device.
const PAUSE_MOST: u64 = 100_000;

/// Some intervals of one direction of one job.
#[derive(Debug, Clone, Default)]
struct Block {
    span_ms: u64,
    ios: u64,
    bytes: u64,
    clat: Histogram,
}

impl Block {
    fn merge(&mut self, other: &Self) {
        self.span_ms = self.span_ms.saturating_add(other.span_ms);
        self.ios = self.ios.saturating_add(other.ios);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.clat.merge(&other.clat);
    }
}

/// Blocks of one length, in memory that does not grow with the run.
#[derive(Debug, Default)]
struct Blocks {
    most: usize,
    length_ms: u64,
    closed: Vec<Block>,
    open: Block,
}

impl Blocks {
    fn add(&mut self, block: &Block) {
        self.length_ms = self.length_ms.max(block.span_ms);
        self.open.merge(block);
        if (self.open.span_ms as f64) < FULL * self.length_ms as f64 {
            return;
        }
        self.closed.push(std::mem::take(&mut self.open));
        if self.closed.len() >= self.most {
            self.length_ms = self.length_ms.saturating_mul(2);
            let pairs = self.closed.chunks(2).map(|pair| {
                let mut one = pair[0].clone();
                pair[1..].iter().for_each(|other| one.merge(other));
                one
            });
            self.closed = pairs.collect();
        }
    }

    /// The ratio of two sums, and how far it can be trusted. `None` without any.
    fn ratio(
        &self,
        numerator: impl Fn(&Block) -> f64,
        denominator: impl Fn(&Block) -> f64,
    ) -> Option<(f64, Certainty)> {
        let parts: Vec<(f64, f64)> = (self.closed.iter())
            .map(|block| (numerator(block), denominator(block)))
            .collect();
        let (above, below) = (parts.iter()).fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d));
        if below <= 0.0 {
            return None;
        }
        let ratio = above / below;
        let each = below / parts.len() as f64;
        let values: Vec<f64> = (parts.iter())
            .map(|(a, b)| ratio + (a - ratio * b) / each)
            .collect();
        Some((ratio, self.judge(&values)))
    }

    fn judge(&self, values: &[f64]) -> Certainty {
        let shifts = level_shifts(values);
        let largest = shifts.iter().max_by(|a, b| {
            let size = |shift: &crate::level_shift::LevelShift| (shift.to - shift.from).abs();
            size(a).total_cmp(&size(b))
        });
        if let Some(shift) = largest.filter(|_| shifts.len() < SHIFTS_MANY) {
            return Certainty::LevelShift {
                at_ms: took_ms(&self.closed[..shift.at]),
                from: shift.from,
                to: shift.to,
            };
        }
        let least = (INDEPENDENT_LEAST as u64).saturating_mul(self.length_ms);
        let Some(mean) = CorrelatedMean::of(values) else {
            return Certainty::TooShort {
                independent: values.len() as f64,
                enough_ms: least,
            };
        };
        match mean.half_width_95 {
            Some(half) => Certainty::Interval {
                low: mean.mean - half,
                high: mean.mean + half,
                independent: mean.effective,
            },
            None => Certainty::TooShort {
                independent: mean.effective,
                enough_ms: least.max((took_ms(&self.closed) as f64 * mean.longer).ceil() as u64),
            },
        }
    }

    /// How far a percentile can be trusted, in ns.
    fn percentile(&self, percent: f64, all: &Histogram) -> Option<Certainty> {
        let place = bucket_of(all.percentile_ns(percent)?);
        let below = |block: &Block| {
            let counts = block.clat.buckets();
            let up_to = counts.take_while(|&(bucket, _)| bucket <= place);
            up_to.map(|(_, count)| count as f64).sum()
        };
        let (_, certainty) = self.ratio(below, |block| block.clat.total() as f64)?;
        let half = match certainty {
            Certainty::Interval { low, high, .. } => 100.0 * (high - low) / 2.0,
            // In its share, which nobody wants to know.
            Certainty::LevelShift { at_ms, .. } => return self.shifted(percent, at_ms),
            short @ Certainty::TooShort { .. } => return Some(short),
        };
        let Certainty::Interval { independent, .. } = certainty else {
            return Some(certainty);
        };
        if percent + half >= 100.0 {
            // The interval goes down with the root of the time.
            let longer = (half / (100.0 - percent)).powi(2).max(1.0);
            return Some(Certainty::TooShort {
                independent,
                enough_ms: (took_ms(&self.closed) as f64 * longer * 1.1).ceil() as u64,
            });
        }
        let end = |percent: f64| all.percentile_ns(percent.max(0.0)).map(bucket_of);
        Some(Certainty::Interval {
            low: bounds_of(end(percent - half)?).0 as f64,
            high: bounds_of(end(percent + half)?).1 as f64,
            independent,
        })
    }

    /// A percentile before and behind a change of level.
    fn shifted(&self, percent: f64, at_ms: u64) -> Option<Certainty> {
        let (mut before, mut behind) = (Histogram::new(), Histogram::new());
        let mut t_ms = 0;
        for block in &self.closed {
            let side = if t_ms < at_ms {
                &mut before
            } else {
                &mut behind
            };
            side.merge(&block.clat);
            t_ms = block.span_ms.saturating_add(t_ms);
        }
        Some(Certainty::LevelShift {
            at_ms,
            from: before.percentile_ns(percent)? as f64,
            to: behind.percentile_ns(percent)? as f64,
        })
    }
}

/// How long all of them took.
fn took_ms(blocks: &[Block]) -> u64 {
    let spans = blocks.iter().map(|block| block.span_ms);
    spans.fold(0, u64::saturating_add)
}

/// One direction of one job.
#[derive(Debug)]
struct Track {
    /// End of the last sample, ms since the run's start.
    end_ms: u64,
    rates: Blocks,
    latencies: Blocks,
}

impl Track {
    fn new(begin_ms: u64) -> Self {
        let of = |most| Blocks {
            most,
            ..Blocks::default()
        };
        Self {
            end_ms: begin_ms,
            rates: of(RATES_MOST),
            latencies: of(HISTOGRAMS_MOST),
        }
    }

    fn add(&mut self, begin_ms: u64, block: Block) {
        // Intervals without any I/O have no sample.
        let pause_ms = begin_ms.saturating_sub(self.end_ms);
        let length_ms = self.rates.length_ms.max(1);
        let missing = (pause_ms as f64 / length_ms as f64).round() as u64;
        for _ in 0..Some(missing).filter(|&n| n < PAUSE_MOST).unwrap_or(0) {
            let nothing = Block {
                span_ms: length_ms,
                ..Block::default()
            };
            self.rates.add(&nothing);
        }
        self.end_ms = begin_ms.saturating_add(block.span_ms);
        if !block.clat.is_empty() {
            self.latencies.add(&block);
        }
        let clat = Histogram::new();
        self.rates.add(&Block { clat, ..block });
    }
}

/// How far the figures of one direction of a job can be trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct JobCertainty {
    /// Its rates.
    pub rates: RateCertainty,
    /// Its completion latencies, where samples have them.
    pub clat: Option<LatencyCertainty>,
}

/// Gathers the intervals of a step's jobs.
#[derive(Debug, Default)]
pub struct CertaintyCollector {
    tracks: BTreeMap<(u32, Direction), Track>,
}

impl CertaintyCollector {
    /// Adds an interval.
    pub fn add(&mut self, sample: &Sample) {
        let begin_ms = sample.t_ms.saturating_sub(sample.span_ms);
        let block = Block {
            span_ms: sample.span_ms,
            ios: sample.ios,
            bytes: sample.bytes,
            clat: sample.clat.clone().unwrap_or_default(),
        };
        let place = (sample.job, sample.dir);
        let track = self
            .tracks
            .entry(place)
            .or_insert_with(|| Track::new(begin_ms));
        track.add(begin_ms, block);
    }

    /// Adds many intervals as one: samples without latencies, and these.
    pub fn add_many(&mut self, sample: &Sample, clat: Option<&Histogram>) {
        self.add(&Sample {
            clat: clat.cloned(),
            lat: None,
            ..sample.clone()
        });
    }

    /// What was gathered, by place and direction of the jobs.
    pub fn finish(self) -> BTreeMap<(u32, Direction), JobCertainty> {
        let judged = self.tracks.into_iter().filter_map(|(place, track)| {
            let span = |block: &Block| block.span_ms as f64 / 1000.0;
            let nothing = Certainty::TooShort {
                independent: 0.0,
                enough_ms: 0,
            };
            let of = |figure: fn(&Block) -> f64| {
                let ratio = track.rates.ratio(figure, span);
                ratio.map_or(nothing, |(_, certainty)| certainty)
            };
            let rates = RateCertainty {
                intervals: track.rates.closed.len() as u64,
                iops: of(|block| block.ios as f64),
                bw_bytes: of(|block| block.bytes as f64),
            };
            // A direction that ended before its first interval has nothing to tell.
            (rates.intervals > 0).then(|| {
                let clat = latencies(&track.latencies);
                (place, JobCertainty { rates, clat })
            })
        });
        judged.collect()
    }
}

fn latencies(blocks: &Blocks) -> Option<LatencyCertainty> {
    let mut all = Histogram::new();
    blocks
        .closed
        .iter()
        .for_each(|block| all.merge(&block.clat));
    let sum = |block: &Block| {
        let each = block.clat.buckets();
        each.map(|(bucket, count)| middle_of(bucket) as f64 * count as f64)
            .sum()
    };
    let (_, mean_ns) = blocks.ratio(sum, |block| block.clat.total() as f64)?;
    let is_short = matches!(mean_ns, Certainty::TooShort { .. });
    let percents = PERCENTS_TOLD.into_iter().filter(|_| !is_short);
    let percentiles = percents.filter_map(|percent| {
        Some(PercentileCertainty {
            percent,
            certainty: blocks.percentile(percent, &all)?,
        })
    });
    Some(LatencyCertainty {
        mean_ns,
        percentiles: percentiles.collect(),
    })
}

#[cfg(test)]
mod tests;
