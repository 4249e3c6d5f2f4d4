//! Random numbers for offsets, sizes and mixes: small, fast, seedable.

pub(super) use fathom_model::mix::mix;

/// xoshiro256++ (Blackman and Vigna, <https://prng.di.unimi.it/>): passes the
/// usual batteries, a few instructions a number.
#[derive(Debug, Clone)]
pub(super) struct Rng {
    state: [u64; 4],
}

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: std::array::from_fn(|i| mix(seed, i as u64 + 1)),
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let out = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let [mut a, mut b, mut c, mut d] = [a, b, c ^ a, d ^ b];
        let shifted = b << 17;
        b ^= c;
        a ^= d;
        c ^= shifted;
        d = d.rotate_left(45);
        self.state = [a, b, c, d];
        out
    }

    /// Uniform in `0..n` (Lemire's multiplication; its bias is below n/2^64).
    #[inline]
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in [0, 1) with 53 bits.
    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True in `percent` of the cases.
    #[inline]
    pub(super) fn percent(&mut self, percent: u8) -> bool {
        self.below(100) < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_spread_evenly_and_repeat_with_their_seed() {
        let mut rng = Rng::new(7);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        // Six standard deviations of a binomial of 10,000: 570.
        assert!(
            counts.iter().all(|&n| n.abs_diff(10_000) < 570),
            "{counts:?}"
        );
        let again: Vec<u64> = (0..4)
            .map({
                let mut r = Rng::new(9);
                move |_| r.next()
            })
            .collect();
        let same: Vec<u64> = (0..4)
            .map({
                let mut r = Rng::new(9);
                move |_| r.next()
            })
            .collect();
        assert_eq!(again, same);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit())));
    }
}
