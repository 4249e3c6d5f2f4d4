//! Sudden changes of level amid a series: burst credits that are used up, a cache that
//! is full, another mode of the device.

use crate::hosts::median;

/// Values on either side of a place that are held against each other: fewer than half
/// of them may be outliers.
const SIDE: usize = 5;
/// A step counts from so many times the ordinary difference of neighbouring values on.
/// A random walk of 3,600 values, whose medians wander most, stays below it.
const STEP_LEAST: f64 = 10.0;
const SUDDEN_LEAST: f64 = 0.75;
/// A step counts from this share of the series' own mean on: less is no other level.
const SHARE_LEAST: f64 = 0.05;
/// From so many shifts on they are how the device works, and the mean over them tells.
pub const SHIFTS_MANY: usize = 20;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelShift {
    /// Place of the first value of the new level.
    pub at: usize,
    /// Median before.
    pub from: f64,
    /// Median behind.
    pub to: f64,
}

/// The shifts of a series, in their order.
pub fn level_shifts(values: &[f64]) -> Vec<LevelShift> {
    if values.len() < 2 * SIDE {
        return Vec::new();
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let steps: Vec<f64> = values
        .windows(2)
        .map(|two| (two[1] - two[0]).abs())
        .collect();
    let least = (STEP_LEAST * middle(&steps)).max(SHARE_LEAST * mean.abs());
    let mut shifts: Vec<LevelShift> = Vec::new();
    for at in SIDE..=values.len() - SIDE {
        let (from, to) = (
            middle(&values[at - SIDE..at]),
            middle(&values[at..at + SIDE]),
        );
        let size = (to - from).abs();
        if size < least || size == 0.0 {
            continue;
        }
        // A level is left at once, within two intervals; what wanders takes longer.
        let sudden = (values[at + 1] - values[at - 1])
            .abs()
            .max((values[at] - values[at.saturating_sub(2)]).abs());
        if sudden < SUDDEN_LEAST * size {
            continue;
        }
        // The step itself is where neighbours differ most.
        match shifts.last_mut() {
            Some(last) if at < last.at + SIDE => {
                let jump = |at: usize| (values[at] - values[at - 1]).abs();
                if jump(at) > jump(last.at) {
                    *last = LevelShift { at, from, to };
                }
            }
            _ => shifts.push(LevelShift { at, from, to }),
        }
    }
    shifts
}

/// The median; 0 of none.
fn middle(values: &[f64]) -> f64 {
    median(values.iter().copied()).unwrap_or(0.0)
}
