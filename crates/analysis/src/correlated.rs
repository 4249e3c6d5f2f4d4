//! The mean of values that follow one another, and how far it can be trusted.
//!
//! Interval values of storage are correlated: queues, garbage collection and throttles
//! last longer than an interval. n of them then tell as much as n/τ independent ones,
//! τ being the integrated autocorrelation time. Two estimates of τ are made, and the
//! larger counts:
//! - the initial monotone sequence: C. J. Geyer, Practical Markov Chain Monte Carlo,
//!   Statistical Science 7 (1992), 3.3. It assumes no form of the correlation, and is
//!   far too small for a series of few τ;
//! - that of an autoregressive process of order 1, (1+ρ)/(1−ρ), with ρ corrected for
//!   its bias: M. G. Kendall, Note on bias in the estimation of autocorrelation,
//!   Biometrika 41 (1954). It assumes a form, and is right early.
//!
//! Who tells an interval from too few independent values is over-sure, so that none is
//! told then. docs/METHODOLOGY.md has what came of it in simulations.

use crate::student;

/// So many independent values an interval needs at the least. With fewer neither
/// estimate of τ can be relied on.
pub const INDEPENDENT_LEAST: f64 = 12.0;
/// One-sided 95 % of the normal distribution: ρ may be so many standard errors larger
/// than it seems.
const RHO_ERRORS: f64 = 1.645;
/// Chance that the interval of independent values misses: τ is estimated too, which
/// costs correlated ones the rest of the 5 %.
const MISSED: f64 = 0.045;
/// A mean of skewed values is near enough to normal from so many times the square of
/// their skewness on: W. G. Cochran, Sampling Techniques, 3rd ed. (1977), 2.15.
const COCHRAN: f64 = 50.0;
/// No series is so long that more could be told from it.
const RHO_MOST: f64 = 0.999;
/// How finely the length that would do is looked for.
const LONGER_BY: f64 = 1.05;
/// What differs by less than this share of the mean is rounding.
const ROUNDING: f64 = 1e-12;

/// A mean of correlated values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorrelatedMean {
    /// Arithmetic mean.
    pub mean: f64,
    /// As many independent values would tell as much.
    pub effective: f64,
    /// Half the width of the 95 % interval; `None` where the values are too few.
    pub half_width_95: Option<f64>,
    /// How many times as long a series would probably do; 1 where this one does.
    pub longer: f64,
}

impl CorrelatedMean {
    /// Of values in their order; `None` for fewer than three.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 3 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let off: Vec<f64> = values.iter().map(|value| value - mean).collect();
        let variance = autocovariance(&off, 0);
        if variance.sqrt() <= ROUNDING * mean.abs() {
            // All alike: nothing is uncertain, once there are enough of them.
            let is_enough = n >= INDEPENDENT_LEAST;
            return Some(Self {
                mean,
                effective: n,
                half_width_95: is_enough.then_some(0.0),
                longer: (INDEPENDENT_LEAST / n).max(1.0),
            });
        }
        let rho = autocovariance(&off, 1) / variance;
        let corrected = (rho + (1.0 + 3.0 * rho) / n).clamp(-RHO_MOST, RHO_MOST);
        let of_rho = |rho: f64| (1.0 + rho) / (1.0 - rho);
        let tau = initial_sequence(&off, variance)
            .max(of_rho(corrected))
            .max(1.0);
        let tau_most = |n: f64| {
            let error = RHO_ERRORS * ((1.0 - corrected * corrected) / n).sqrt();
            tau.max(of_rho((corrected + error).min(RHO_MOST)))
        };
        let effective = n / tau;
        let wanted = INDEPENDENT_LEAST.max(COCHRAN * skewness(&off, variance).powi(2));
        let mut enough = n.max(wanted * tau);
        while enough < INDEPENDENT_LEAST * tau_most(enough) {
            enough *= LONGER_BY;
        }
        let longer = enough / n;
        // What varies slowly varies less within the series than it does at all.
        let variance = variance / (1.0 - (tau / n).min(0.9));
        let half = student::quantile(MISSED, effective - 1.0) * (variance * tau / n).sqrt();
        Some(Self {
            mean,
            effective,
            half_width_95: (longer <= 1.0).then_some(half),
            longer,
        })
    }
}

impl CorrelatedMean {
    /// The chance that a mean is off by so much if `value` is the true one (Student's t,
    /// both sides); `None` where the values are too few.
    pub fn chance_of(&self, value: f64) -> Option<f64> {
        let freedom = self.effective - 1.0;
        let error = self.half_width_95? / student::quantile(MISSED, freedom);
        let off = (self.mean - value).abs();
        Some(match error > 0.0 {
            true => student::two_sided_p(off / error, freedom),
            false if off > 0.0 => 0.0,
            false => 1.0,
        })
    }
}

/// Σ xᵢ·xᵢ₊ₖ / n of values whose mean is 0.
fn autocovariance(off: &[f64], lag: usize) -> f64 {
    let pairs = off.iter().zip(&off[lag.min(off.len())..]);
    pairs.map(|(a, b)| a * b).sum::<f64>() / off.len() as f64
}

/// τ by Geyer's initial monotone sequence: sums of two neighbouring autocovariances,
/// as long as they are positive, none larger than the one before.
fn initial_sequence(off: &[f64], variance: f64) -> f64 {
    let mut sum = 0.0;
    let mut last = f64::INFINITY;
    for lag in (0..off.len() / 2).step_by(2) {
        let pair = autocovariance(off, lag) + autocovariance(off, lag + 1);
        if pair <= 0.0 {
            break;
        }
        last = pair.min(last);
        sum += last;
    }
    2.0 * sum / variance - 1.0
}

fn skewness(off: &[f64], variance: f64) -> f64 {
    let cubes = off.iter().map(|x| x.powi(3)).sum::<f64>() / off.len() as f64;
    cubes / variance.powf(1.5)
}
