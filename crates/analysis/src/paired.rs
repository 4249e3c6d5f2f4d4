//! Whether one of two settings is faster, pair after pair, as soon as it is clear.
//!
//! Both settings of a pair are measured behind each other, in the order that a coin says.
//! Where they do not differ, the sign of a pair's difference is the coin's, whatever the
//! device does meanwhile: noise may be correlated, drift, or go back and forth between two
//! modes (R. A. Fisher, The Design of Experiments, 1935). For such signs the product of
//! exp(λd)/cosh(λd) over the differences d is a martingale when each λ is chosen without
//! looking at the sign (V. H. de la Peña, A general class of exponential inequalities for
//! martingales and ratios, Annals of Probability 27, 1999), and so is a weighted sum of
//! such products; the chance that it ever exceeds 1/α is below α (J. Ville, Étude critique
//! de la notion de collectif, 1939). So it may be looked at after every pair, and a
//! difference told as soon as there is one (A. Ramdas, P. Grünwald, V. Vovk, G. Shafer,
//! Game-theoretic statistics and safe anytime-valid inference, Statistical Science 38,
//! 2023). The interval of the ratio has the shifts that are not told in the same way.

use std::f64::consts::LN_2;

use crate::compare::{CompareVerdict, FigureComparison, WhyNot};

/// Chance of any false difference over all figures and settings of a table.
pub const FALSE_CHANCE: f64 = 0.05;
/// More pairs than this are not advised: another measurement is needed.
const MORE_MOST: f64 = 1000.0;
/// λ in units of one over the root mean square of the differences, with the weight of
/// each: small ones see a small difference in much noise, large ones a clear one in six
/// pairs.
const STAKES: [(f64, f64); 5] = [
    (0.25, 0.05),
    (0.5, 0.1),
    (1.0, 0.2),
    (2.0, 0.3),
    (4.0, 0.35),
];
/// How much farther from the middle the next shift is that is tried for an interval.
const REACH: f64 = 1.5;
/// Shifts that are tried on each side: the last is 10⁵ times as far as the farthest
/// difference.
const REACHES: usize = 30;
/// Halvings of the last gap: a thousandth of it is left.
const HALVINGS: usize = 10;

/// What is asked of the pairs of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedQuestion {
    /// Chance of a false difference; that of the table divided by its rows.
    pub chance: f64,
    /// Values within this share are the same.
    pub margin: f64,
    /// Whether more is better.
    pub more_is_better: bool,
    /// Step in which the values are known, as a share of them: that of a histogram.
    pub resolution: f64,
}

/// Judges all pairs of a figure so far, in the order in which they were measured.
pub fn judge(pairs: &[(f64, f64)], question: PairedQuestion) -> FigureComparison {
    let is_value = |value: f64| value.is_finite() && value > 0.0;
    let valid = pairs.iter().filter(|(a, b)| is_value(*a) && is_value(*b));
    let logs: Vec<(f64, f64)> = valid.map(|(a, b)| (a.ln(), b.ln())).collect();
    let differences: Vec<f64> = logs.iter().map(|(a, b)| b - a).collect();
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        (!logs.is_empty()).then(|| values.sum::<f64>() / logs.len() as f64)
    };
    let (a, b) = (
        mean(&mut logs.iter().map(|(a, _)| *a)),
        mean(&mut logs.iter().map(|(_, b)| *b)),
    );
    let ratio = a.zip(b).map(|(a, b)| b - a);
    let told = -question.chance.ln();
    let within = question.margin.ln_1p();
    let step = question.resolution.ln_1p();
    let ends = interval(&differences, told);
    let ends = ends.map(|(low, high)| (low - step, high + step));
    let seen = evidence(&differences, 0.0);
    let differs = seen >= told && ends.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
    let verdict = match (ends, ratio) {
        (Some((low, high)), _) if low > -within && high < within => CompareVerdict::Same,
        (_, Some(ratio)) if differs => match (ratio > 0.0) == question.more_is_better {
            true => CompareVerdict::Faster,
            false => CompareVerdict::Slower,
        },
        _ => CompareVerdict::CannotTell,
    };
    let cannot_tell = verdict == CompareVerdict::CannotTell;
    FigureComparison {
        a: a.map(f64::exp),
        b: b.map(f64::exp),
        ratio: ratio.map(f64::exp),
        ratio_low: ends.map(|(low, _)| low.exp()),
        ratio_high: ends.map(|(_, high)| high.exp()),
        verdict,
        why_not: cannot_tell.then_some(match logs.is_empty() {
            true => WhyNot::Invalid,
            false => WhyNot::Noise,
        }),
        more_runs: (cannot_tell && seen < told)
            .then(|| more_pairs(differences.len(), seen, told))
            .flatten(),
    }
}

/// So many more pairs would probably tell, if they are as those that there are.
fn more_pairs(pairs: usize, seen: f64, told: f64) -> Option<usize> {
    let each = seen / pairs as f64;
    let more = ((told - seen) / each).ceil();
    (each > 0.0 && more < MORE_MOST).then_some((more as usize).max(1))
}

/// The logarithm of what a gambler has who began with 1 and bets that the differences are
/// not symmetric about a shift: fair, if they are.
fn evidence(differences: &[f64], shift: f64) -> f64 {
    let mut wealth = [[0.0; 2]; STAKES.len()];
    let (mut squares, mut n) = (0.0_f64, 0.0_f64);
    for difference in differences {
        let d = difference - shift;
        squares += d * d;
        n += 1.0;
        if d == 0.0 {
            continue;
        }
        let size = d / (squares / n).sqrt();
        for ((stake, _), sides) in STAKES.iter().zip(&mut wealth) {
            // ln(exp(x) / cosh(x))
            let win = |x: f64| LN_2 - (-2.0 * x).exp().ln_1p();
            sides[0] += win(stake * size);
            sides[1] += win(-stake * size);
        }
    }
    let all = || {
        let each = STAKES.iter().zip(wealth);
        each.flat_map(|((_, weight), sides)| sides.map(|side| side + (weight / 2.0).ln()))
    };
    let most = all().fold(f64::NEG_INFINITY, f64::max);
    most + all().map(|one| (one - most).exp()).sum::<f64>().ln()
}

/// Between which shifts the difference lies; `None`: too few pairs have an end.
fn interval(differences: &[f64], told: f64) -> Option<(f64, f64)> {
    let mut sorted = differences.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = *sorted.get(sorted.len() / 2)?;
    let farthest = |far: f64, one: &f64| f64::max(far, (one - middle).abs());
    // Of differences that are all alike anything beside them is told.
    let scale = sorted.iter().fold(1e-9, farthest);
    let is_told = |shift: f64| evidence(differences, shift) >= told;
    let end = |side: f64| {
        let mut reach = 0.01 * scale;
        // The last shift that is not told, and the first behind it.
        let (mut last, mut behind) = (0.0, None);
        for _ in 0..REACHES {
            match is_told(middle + side * reach) {
                true => behind = behind.or(Some(reach)),
                false => (last, behind) = (reach, None),
            }
            reach *= REACH;
        }
        let mut behind = behind?;
        for _ in 0..HALVINGS {
            let between = f64::midpoint(last, behind);
            match is_told(middle + side * between) {
                true => behind = between,
                false => last = between,
            }
        }
        Some(middle + side * behind)
    };
    Some((end(-1.0)?, end(1.0)?))
}

#[cfg(test)]
mod tests;
