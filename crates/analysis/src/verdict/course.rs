//! How a rate went over time: in one level, from one to another, or along a line.

use crate::step_evidence::{StepTrack, TrackRow};

/// Rows below which nothing is said: with fewer, two levels of some rows each fit any
/// noise.
const ROWS_LEAST: usize = 12;
/// Rows on each side of a break.
const SIDE_LEAST: usize = 3;
/// How far two levels are apart, of the lower one. Runs on shared machines differ by 10 %
/// and more without a change of level (Maricq et al., OSDI 2018).
const LEVELS_APART: f64 = 0.2;
/// Share of the rate's variance that two levels explain. Of independent values the best
/// break of twelve explains more than 0.7 in fewer than 1 % of all runs, and of longer runs
/// less (by simulation: the test below).
const EXPLAINED: f64 = 0.7;
/// What a straight line changes over the whole run, of the mean: the limit of SNIA's
/// steady state (SSS PTS 2.0.2, 2.1.24: slope excursion).
const TREND: f64 = 0.1;
/// Share of the variance that the line explains, with the same test.
const TREND_EXPLAINED: f64 = 0.6;
/// A break in this first part of a run is its start.
const START_PART: f64 = 1.0 / 3.0;

/// How one job went in one direction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TrackCourse {
    /// The one change of level that explains its rate.
    pub shift: Option<Break>,
    /// What came before that change was the start of the run.
    pub shift_is_start: bool,
    /// By how much it changed along a straight line, in percent of its mean.
    pub trend_percent: Option<f64>,
    /// The lengths of times without I/O between two with some, in ms.
    pub stalls_ms: Vec<u64>,
}

impl TrackCourse {
    /// Of a track that is over.
    pub fn of(track: &StepTrack) -> Self {
        let stalls_ms = track.stalls_ms().to_vec();
        let Some(course) = Course::of(track) else {
            return Self {
                stalls_ms,
                ..Self::default()
            };
        };
        let shift = course.shift();
        Self {
            shift_is_start: shift.is_some_and(|shift| course.is_start(&shift)),
            trend_percent: course.trend_percent(),
            shift,
            stalls_ms,
        }
    }
}

/// Rates closer than this factor are only a note: their mean is within a fourth of at least one
/// of them. On shared machines, undisturbed runs of a few seconds differ this much
/// (`make bench-ordinary`).
const FAR_APART: f64 = 1.5;

/// Whether the mean of two rates says little of either.
pub(super) fn are_far_apart(one: f64, other: f64) -> bool {
    one.max(other) >= FAR_APART * one.min(other)
}

/// IOPS over time.
#[derive(Debug, Clone, PartialEq)]
struct Course {
    iops: Vec<f64>,
    end_s: Vec<f64>,
    begin_s: f64,
}

/// Where a level ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Break {
    /// Time since the first I/O, in s.
    pub at_s: f64,
    /// Mean IOPS before.
    pub before: f64,
    /// Mean IOPS from there on.
    pub after: f64,
}

impl Course {
    /// That of a track; `None` where it is too short to say anything.
    fn of(track: &StepTrack) -> Option<Self> {
        // The first and the last may be parts of an interval: the job began or ended in it.
        let rows = match track.rows() {
            [_, inner @ .., _] => inner,
            _ => &[],
        };
        let first = rows.first()?;
        (rows.len() >= ROWS_LEAST).then(|| Self {
            iops: rows.iter().map(TrackRow::iops).collect(),
            end_s: rows.iter().map(|row| row.t_ms as f64 / 1000.0).collect(),
            begin_s: first.t_ms.saturating_sub(first.span_ms) as f64 / 1000.0,
        })
    }

    #[cfg(test)]
    fn of_values(iops: &[f64]) -> Self {
        Self {
            iops: iops.to_vec(),
            end_s: (1..=iops.len()).map(|s| s as f64).collect(),
            begin_s: 0.0,
        }
    }

    /// The one change of level that explains the rate; `None` where none does.
    fn shift(&self) -> Option<Break> {
        let n = self.iops.len();
        let mean = mean_of(&self.iops);
        let all = squares(&self.iops, mean);
        let (mut best, mut sum): (Option<(f64, usize)>, f64) = (None, 0.0);
        for at in 1..=n - SIDE_LEAST {
            sum += self.iops[at - 1] - mean;
            // What lies before the break is as far below the mean, in sum, as what lies
            // behind it is above.
            let between = sum * sum * (1.0 / at as f64 + 1.0 / (n - at) as f64);
            if at >= SIDE_LEAST && best.is_none_or(|(most, _)| between > most) {
                best = Some((between, at));
            }
        }
        let (between, at) = best?;
        let (before, after) = self.iops.split_at(at);
        let (before, after) = (mean_of(before), mean_of(after));
        let apart = (before - after).abs() / before.min(after).max(f64::MIN_POSITIVE);
        let explains = between >= EXPLAINED * all && between > self.line_squares(mean).0;
        (all > 0.0 && explains && apart >= LEVELS_APART).then(|| Break {
            at_s: self.end_s[at - 1] - self.begin_s,
            before,
            after,
        })
    }

    /// Whether a break is so early that what lies before it is the run's start.
    fn is_start(&self, it: &Break) -> bool {
        let length = self.end_s.last().map_or(0.0, |end| end - self.begin_s);
        it.at_s <= length * START_PART
    }

    /// By how much a straight line changes from the first to the last row, in percent of
    /// the mean; `None` where it stays or no line explains the rate.
    fn trend_percent(&self) -> Option<f64> {
        if self.shift().is_some() {
            return None;
        }
        let mean = mean_of(&self.iops);
        let (by_line, slope) = self.line_squares(mean);
        let change = slope * (self.iops.len() - 1) as f64 / mean;
        let all = squares(&self.iops, mean);
        let holds = all > 0.0 && by_line >= TREND_EXPLAINED * all && change.abs() >= TREND;
        holds.then_some(change * 100.0)
    }

    /// The squares that a straight line explains, and its slope for each row.
    fn line_squares(&self, mean: f64) -> (f64, f64) {
        let middle = (self.iops.len() - 1) as f64 / 2.0;
        let places = (0..self.iops.len()).map(|k| k as f64 - middle);
        let (mut of_places, mut both) = (0.0, 0.0);
        for (place, iops) in places.zip(&self.iops) {
            of_places += place * place;
            both += place * (iops - mean);
        }
        (both * both / of_places, both / of_places)
    }
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn squares(values: &[f64], mean: f64) -> f64 {
    values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Independent numbers around 0, by the sum of twelve uniform ones.
    fn noise(seed: &mut u64) -> f64 {
        let mut next = || {
            // Marsaglia, Xorshift RNGs, Journal of Statistical Software 8 (2003).
            *seed ^= *seed << 13;
            *seed ^= *seed >> 7;
            *seed ^= *seed << 17;
            (*seed >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..12).map(|_| next()).sum::<f64>() - 6.0
    }

    #[test]
    fn noise_alone_is_neither_a_shift_nor_a_trend() {
        let mut seed = 42;
        for n in [12, 30, 60, 512] {
            // Of 30 %: levels that are 20 % apart come about by chance.
            let mut found = 0;
            for _ in 0..500 {
                let values: Vec<f64> = (0..n)
                    .map(|_| (1000.0 + 300.0 * noise(&mut seed)).max(1.0))
                    .collect();
                let course = Course::of_values(&values);
                found += u32::from(course.shift().is_some() || course.trend_percent().is_some());
            }
            assert!(found <= 5, "{found} of 500 with {n} rows");
        }
    }

    #[test]
    fn a_burst_and_then_the_base_is_a_shift() {
        let mut seed = 7;
        let values: Vec<f64> = (0..60)
            .map(|k| if k < 40 { 3000.0 } else { 1000.0 } + 100.0 * noise(&mut seed))
            .collect();
        let course = Course::of_values(&values);
        let found = course.shift().unwrap();
        assert_eq!(found.at_s, 40.0);
        assert!((found.before - 3000.0).abs() < 100.0 && (found.after - 1000.0).abs() < 100.0);
        assert!(!course.is_start(&found));
        assert_eq!(course.trend_percent(), None);
    }

    #[test]
    fn a_line_is_a_trend_and_no_shift() {
        let values: Vec<f64> = (0..30).map(|k| 1000.0 - 10.0 * f64::from(k)).collect();
        let course = Course::of_values(&values);
        assert_eq!(course.shift(), None);
        let percent = course.trend_percent().unwrap();
        assert!((percent + 290.0 / 855.0 * 100.0).abs() < 1e-6, "{percent}");
    }

    #[test]
    fn a_start_that_differs_is_one() {
        let values: Vec<f64> = (0..30)
            .map(|k| if k < 5 { 200.0 } else { 1000.0 })
            .collect();
        let course = Course::of_values(&values);
        let found = course.shift().unwrap();
        assert!(course.is_start(&found));
        assert_eq!(found.at_s, 5.0);
    }
}
