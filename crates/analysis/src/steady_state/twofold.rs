//! Sums that lose nothing worth mentioning: two floats hold 106 bits.
//!
//! A window slides over a day of samples by adding one value and taking another
//! away, 86 400 times; in plain floats what is left behind grows with every
//! step. Dekker, A floating-point technique for extending the available
//! precision, Numerische Mathematik 18 (1971); the sum of two numbers with its
//! error is Knuth's (The Art of Computer Programming, 4.2.2).

/// The unevaluated sum of a float and what did not fit into it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Twofold {
    high: f64,
    low: f64,
}

impl Twofold {
    /// The product of two floats, without error.
    pub(super) fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        let ((a1, a2), (b1, b2)) = (halves(a), halves(b));
        let low = ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2;
        Self { high, low }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let high = self.high + other.high;
        let part = high - self.high;
        let lost = (self.high - (high - part)) + (other.high - part);
        let low = lost + self.low + other.low;
        let sum = high + low;
        Self {
            high: sum,
            low: low - (sum - high),
        }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.plus(Self {
            high: -other.high,
            low: -other.low,
        })
    }

    pub(super) fn times(self, factor: f64) -> Self {
        Self::product(self.high, factor).plus(Self::product(self.low, factor))
    }

    pub(super) fn squared(self) -> Self {
        self.times(self.high).plus(self.times(self.low))
    }

    /// The float next to it.
    pub(super) fn value(self) -> f64 {
        self.high + self.low
    }
}

impl From<f64> for Twofold {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

/// A float as the sum of two with 26 bits each (Veltkamp), whose products are exact.
fn halves(value: f64) -> (f64, f64) {
    const SPLIT: f64 = ((1u32 << 27) + 1) as f64;
    let scaled = SPLIT * value;
    let high = scaled - (scaled - value);
    (high, value - high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_can_be_taken_away_again() {
        let mut sum = Twofold::from(0.1);
        for _ in 0..10_000 {
            sum = sum.plus(1e15.into());
            sum = sum.plus(Twofold::product(1e5, 0.3));
        }
        for _ in 0..10_000 {
            sum = sum.minus(1e15.into());
            sum = sum.minus(Twofold::product(1e5, 0.3));
        }
        // 2^-104 of 10^19 at each step; of floats alone it would be thousands.
        assert!((sum.value() - 0.1).abs() < 1e-9, "{}", sum.value());
    }

    #[test]
    fn products_are_exact() {
        let big = 123_456_789_012_345.0;
        let product = Twofold::product(big, 86_399.0);
        let exact = 123_456_789_012_345_i128 * 86_399;
        assert_eq!(product.high as i128 + product.low as i128, exact);
        assert_eq!(product.minus(big.into()).plus(big.into()), product);
        assert_eq!(Twofold::from(0.1).times(3.0).minus(0.1.into()).value(), 0.2);
    }
}
