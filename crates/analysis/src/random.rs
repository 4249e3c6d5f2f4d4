//! Numbers that look random, for simulated measurements in tests.

use fathom_model::mix::SplitMix;

/// Noise.
pub(crate) struct Random(SplitMix);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix(seed))
    }

    /// Between 0 and 1.
    pub(crate) fn share(&mut self) -> f64 {
        (self.0.number() >> 11) as f64 / (1u64 << 53) as f64 + 1e-17
    }

    /// Of the normal distribution with a deviation of 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }
}
