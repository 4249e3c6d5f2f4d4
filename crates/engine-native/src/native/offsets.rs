//! Where random I/O goes: block numbers, with or without repetition.
//!
//! Without repetition there are two generators. [`Permutation`] walks a keyed
//! bijection of the block numbers and needs no memory; [`FreeMap`] is a bitmap
//! for jobs whose block sizes vary, as fio's map is. The skewed distributions
//! draw a rank (0 is the most popular) and scatter it over the range by a
//! bijection, as fio scatters it by a hash.

use super::rng::{Rng, mix};

/// Every number of `0..n` once, in an order given by a key; then starts anew
/// with another key.
#[derive(Debug, Clone)]
pub(super) struct Permutation {
    n: u64,
    bijection: Bijection,
    counter: u64,
    seed: u64,
    round: u64,
}

/// A keyed bijection of the numbers of `bits` bits: additions, xor-shifts and
/// multiplications by odd numbers, each of which can be undone modulo 2^bits.
#[derive(Debug, Clone)]
struct Bijection {
    mask: u64,
    shift: u32,
    keys: [u64; 3],
    factors: [u64; 2],
}

impl Bijection {
    fn new(n: u64, seed: u64) -> Self {
        let bits = (64 - n.saturating_sub(1).leading_zeros()).max(1);
        let mask = u64::MAX >> (64 - bits);
        Self {
            mask,
            shift: bits.div_ceil(2),
            keys: [mix(seed, 1), mix(seed, 2), mix(seed, 3)],
            factors: [mix(seed, 4) | 1, mix(seed, 5) | 1],
        }
    }

    #[inline]
    fn map(&self, x: u64) -> u64 {
        let mut x = x.wrapping_add(self.keys[0]) & self.mask;
        for round in 0..2 {
            x ^= x >> self.shift;
            x = x.wrapping_mul(self.factors[round]) & self.mask;
            x = x.wrapping_add(self.keys[round + 1]) & self.mask;
        }
        x ^ (x >> self.shift)
    }

    /// Where `x < n` goes within `0..n`: cycle walking stays inside and keeps
    /// the mapping one to one (Black and Rogaway, "Ciphers with Arbitrary
    /// Finite Domains", 2002). 2^bits < 2n, so it takes two steps on average.
    fn within(&self, x: u64, n: u64) -> u64 {
        let mut y = self.map(x);
        while y >= n {
            y = self.map(y);
        }
        y
    }
}

impl Permutation {
    pub(super) fn new(n: u64, seed: u64) -> Self {
        Self {
            n,
            bijection: Bijection::new(n, mix(seed, 0)),
            counter: 0,
            seed,
            round: 0,
        }
    }

    /// From the first number on again.
    pub(super) fn rewind(&mut self) {
        *self = Self::new(self.n, self.seed);
    }

    /// Begins another round.
    pub(super) fn renew(&mut self) {
        self.round += 1;
        self.bijection = Bijection::new(self.n, mix(self.seed, self.round));
        self.counter = 0;
    }

    /// The next number. `n` must not be 0.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        loop {
            if self.counter > self.bijection.mask {
                self.renew();
            }
            let value = self.bijection.map(self.counter);
            self.counter += 1;
            // The bijection covers fewer than 2n numbers: at most every second one is skipped.
            if value < self.n {
                return value;
            }
        }
    }
}

/// Which blocks have been used: a bit each, and a bit for every full word
/// above, so that the next free block is found in a few steps.
#[derive(Debug, Clone)]
pub(super) struct FreeMap {
    n: u64,
    used: u64,
    levels: Vec<Vec<u64>>,
}

impl FreeMap {
    pub(super) fn new(n: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = n.max(1);
        loop {
            let words = bits.div_ceil(64);
            levels.push(vec![0u64; words as usize]);
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut map = Self { n, used: 0, levels };
        map.reset();
        map
    }

    /// Forgets what was used.
    pub(super) fn reset(&mut self) {
        self.used = 0;
        let mut bits = self.n;
        for level in &mut self.levels {
            level.fill(0);
            // Bits beyond the end count as used.
            let words = level.len() as u64;
            if bits < words * 64 {
                let last = level.len() - 1;
                level[last] = u64::MAX << (bits % 64);
            }
            bits = words;
        }
    }

    fn is_used(&self, block: u64) -> bool {
        self.levels[0][(block / 64) as usize] >> (block % 64) & 1 == 1
    }

    fn mark(&mut self, mut block: u64) {
        self.used += 1;
        for level in &mut self.levels {
            let word = &mut level[(block / 64) as usize];
            *word |= 1 << (block % 64);
            if *word != u64::MAX {
                break;
            }
            block /= 64;
        }
    }

    /// The first free block at or after `from`, else from the start on.
    fn free_from(&self, from: u64) -> Option<u64> {
        self.climb(from).or_else(|| self.climb(0))
    }

    fn climb(&self, from: u64) -> Option<u64> {
        let mut at = from;
        for (height, level) in self.levels.iter().enumerate() {
            let word = (at / 64) as usize;
            let free = !level.get(word)? & (u64::MAX << (at % 64));
            if free != 0 {
                let mut found = word as u64 * 64 + u64::from(free.trailing_zeros());
                for lower in self.levels[..height].iter().rev() {
                    let free = !lower[found as usize];
                    found = found * 64 + u64::from(free.trailing_zeros());
                }
                return Some(found);
            }
            at = word as u64 + 1;
        }
        None
    }

    /// A random free block, and up to `want` free blocks from there on, marked
    /// as used: (block, count). Starts anew when every block was used.
    pub(super) fn take(&mut self, rng: &mut Rng, want: u64) -> (u64, u64) {
        if self.used >= self.n {
            self.reset();
        }
        let start = self.free_from(rng.below(self.n)).unwrap_or(0);
        let mut count = 0;
        while count < want && start + count < self.n && !self.is_used(start + count) {
            self.mark(start + count);
            count += 1;
        }
        (start, count)
    }
}

/// How often the blocks of a range are used.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Distribution {
    /// All alike.
    Uniform,
    /// Rank k with a weight of 1/k^theta. The second figure is where the most
    /// popular block lies, from 0 to 1, for the next two too.
    Zipf(f64, Option<f64>),
    /// Self-similar: `h` of the accesses go to 1-h of the blocks, and so on within.
    Pareto(f64, Option<f64>),
    /// Around the middle: the mean of twelve uniform numbers, and a uniform number of
    /// this width, in percent of the range, on top (lib/gauss.c).
    Normal(f64, Option<f64>),
    /// (percent of accesses, percent of the range), in order.
    Zoned(Vec<(u8, u8)>),
    /// (percent of accesses, bytes), in order.
    ZonedBytes(Vec<(u8, u64)>),
}

impl Distribution {
    /// Bytes that it needs, where it says so.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::ZonedBytes(zones) => zones.iter().map(|zone| zone.1).fold(0, u64::saturating_add),
            _ => 0,
        }
    }
}

/// Draws block numbers of `0..n` by a distribution, with repetition.
#[derive(Debug, Clone)]
pub(super) struct OffsetSampler {
    n: u64,
    kind: OffsetKind,
    /// `None`: the most popular ones lie side by side.
    scatter: Option<Bijection>,
    /// Added to every scattered number: puts the most popular at its centre.
    shift: u64,
}

#[derive(Debug, Clone)]
enum OffsetKind {
    Uniform,
    Zipf(Zipf),
    Pareto {
        exponent: f64,
    },
    Normal {
        /// Blocks; 0: nothing on top.
        width: f64,
    },
    /// (accesses up to here in percent, first block, blocks)
    Zoned(Vec<(u8, u64, u64)>),
}

impl OffsetSampler {
    /// Of `n` blocks of `unit` bytes.
    pub(super) fn new(n: u64, unit: u64, distribution: &Distribution, seed: u64) -> Self {
        let scatter = Bijection::new(n, mix(seed, 11));
        let (kind, center, favourite) = match distribution {
            Distribution::Uniform => (OffsetKind::Uniform, None, 0),
            Distribution::Zipf(theta, center) => {
                (OffsetKind::Zipf(Zipf::new(n, *theta)), *center, 0)
            }
            // Gray et al., "Quickly Generating Billion-Record Synthetic
            // Databases" (1994), self-similar; fio's exponent is the same.
            Distribution::Pareto(h, center) => {
                let exponent = h.ln() / (1.0 - h).ln();
                (OffsetKind::Pareto { exponent }, *center, 0)
            }
            Distribution::Normal(percent, center) => {
                let width = (n as f64 * percent / 100.0).ceil().min((n / 2) as f64);
                (OffsetKind::Normal { width }, *center, n / 2)
            }
            Distribution::Zoned(zones) => (OffsetKind::Zoned(zone_table(n, zones)), None, 0),
            Distribution::ZonedBytes(zones) => {
                (OffsetKind::Zoned(byte_table(n, unit, zones)), None, 0)
            }
        };
        let shift = center.map_or(0, |center| {
            let place = ((n as f64 * center) as u64).min(n - 1);
            place + (n - scatter.within(favourite, n))
        });
        Self {
            n,
            kind,
            scatter: Some(scatter),
            shift,
        }
    }

    /// The same with popular numbers side by side from a place of the seed's on
    /// (lib/zipf.c, zipf_disable_hash).
    pub(super) fn in_order(n: u64, distribution: &Distribution, seed: u64) -> Self {
        let place = |center: f64| (n as f64 * center) as u64 % n;
        let shift = match distribution {
            Distribution::Zipf(_, center) | Distribution::Pareto(_, center) => {
                center.map_or(mix(seed, 12) % n, place)
            }
            Distribution::Normal(_, Some(center)) => place(center + 0.5),
            _ => 0,
        };
        Self {
            scatter: None,
            shift,
            ..Self::new(n, 1, distribution, seed)
        }
    }

    /// A block number. `n` must not be 0.
    #[inline]
    pub(super) fn next(&self, rng: &mut Rng) -> u64 {
        let rank = match &self.kind {
            OffsetKind::Uniform => return rng.below(self.n),
            OffsetKind::Zoned(zones) => return zoned(zones, rng),
            OffsetKind::Zipf(zipf) => zipf.next(rng),
            OffsetKind::Pareto { exponent } => (self.n as f64 * rng.unit().powf(*exponent)) as u64,
            OffsetKind::Normal { width } => self.normal(*width, rng),
        };
        let rank = rank.min(self.n - 1);
        let place = match &self.scatter {
            Some(scatter) => scatter.within(rank, self.n),
            None => rank,
        };
        if self.shift == 0 {
            place
        } else {
            (place + self.shift) % self.n
        }
    }
}

impl OffsetSampler {
    /// As gauss_next of lib/gauss.c: what goes beyond an end is halved until it does not,
    /// so that nothing piles up there.
    fn normal(&self, width: f64, rng: &mut Rng) -> u64 {
        let sum: u64 = (0..12).map(|_| rng.below(self.n + 1)).sum();
        let middle = sum.div_ceil(12) as i64;
        let mut on_top = if width > 0.0 {
            (width * rng.unit()) as i64 - (width as i64) / 2
        } else {
            0
        };
        while on_top != 0 && !(0..self.n as i64).contains(&(middle + on_top)) {
            on_top /= 2;
        }
        (middle + on_top).max(0) as u64
    }
}

fn zone_table(n: u64, zones: &[(u8, u8)]) -> Vec<(u8, u64, u64)> {
    let (mut access, mut size) = (0u8, 0u64);
    let mut table = Vec::new();
    for &(access_percent, size_percent) in zones {
        let first = (u128::from(n) * u128::from(size) / 100) as u64;
        size += u64::from(size_percent);
        access = access.saturating_add(access_percent);
        let end = (u128::from(n) * u128::from(size) / 100) as u64;
        // A zone that got no accesses, or no block of a small range, is never drawn.
        if access_percent > 0 && end > first {
            table.push((access, first, end - first));
        }
    }
    table
}

/// The same by bytes.
fn byte_table(n: u64, unit: u64, zones: &[(u8, u64)]) -> Vec<(u8, u64, u64)> {
    let (mut access, mut at) = (0u8, 0u64);
    let mut table = Vec::new();
    for &(access_percent, bytes) in zones {
        let first = at / unit;
        at += bytes;
        access = access.saturating_add(access_percent);
        let end = (at / unit).min(n);
        if access_percent > 0 && end > first {
            table.push((access, first, end - first));
        }
    }
    table
}

fn zoned(zones: &[(u8, u64, u64)], rng: &mut Rng) -> u64 {
    let roll = rng.below(100) as u8;
    let zone = zones.iter().find(|zone| roll < zone.0).or(zones.last());
    zone.map_or(0, |&(_, first, blocks)| first + rng.below(blocks))
}

/// Zipf by rejection-inversion (Hörmann and Derflinger, "Rejection-inversion
/// to generate variates from monotone discrete distributions", ACM TOMACS
/// 6(3), 1996): exact, no table, the same cost for any range.
#[derive(Debug, Clone)]
struct Zipf {
    theta: f64,
    h_first: f64,
    h_last: f64,
    skip: f64,
}

impl Zipf {
    fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Self {
            theta,
            h_first: 0.0,
            h_last: 0.0,
            skip: 0.0,
        };
        zipf.h_first = zipf.h(1.5) - 1.0;
        zipf.h_last = zipf.h(n as f64 + 0.5);
        zipf.skip = 2.0 - zipf.h_inverse(zipf.h(2.5) - 2f64.powf(-theta));
        zipf
    }

    /// The integral of x^-theta.
    fn h(&self, x: f64) -> f64 {
        let e = 1.0 - self.theta;
        if e.abs() < 1e-9 {
            x.ln()
        } else {
            x.powf(e) / e
        }
    }

    fn h_inverse(&self, y: f64) -> f64 {
        let e = 1.0 - self.theta;
        if e.abs() < 1e-9 {
            y.exp()
        } else {
            (y * e).powf(1.0 / e)
        }
    }

    /// A rank, from 0 on.
    fn next(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.h_last + rng.unit() * (self.h_first - self.h_last);
            let x = self.h_inverse(u);
            let k = (x + 0.5).floor().max(1.0);
            if k - x <= self.skip || u >= self.h(k + 0.5) - k.powf(-self.theta) {
                return k as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    proptest! {
        #[test]
        fn a_permutation_gives_every_number_once_a_round(n in 1u64..5000, seed: u64) {
            let mut permutation = Permutation::new(n, seed);
            for _ in 0..2 {
                let mut seen = vec![false; n as usize];
                for _ in 0..n {
                    let value = permutation.next() as usize;
                    prop_assert!(!std::mem::replace(&mut seen[value], true));
                }
            }
        }

        #[test]
        fn a_free_map_gives_every_block_once(n in 1u64..9000, want in 1u64..9, seed: u64) {
            let mut map = FreeMap::new(n);
            let mut rng = Rng::new(seed);
            let mut seen = vec![false; n as usize];
            let mut left = n;
            while left > 0 {
                let (block, count) = map.take(&mut rng, want);
                prop_assert!(count >= 1 && count <= want);
                for b in block..block + count {
                    prop_assert!(!std::mem::replace(&mut seen[b as usize], true));
                }
                left -= count;
            }
            prop_assert!(map.take(&mut rng, want).1 >= 1);
        }

        #[test]
        fn draws_stay_in_their_range(n in 1u64..100_000, seed: u64, which in 0usize..6) {
            let distribution = [
                Distribution::Uniform,
                Distribution::Zipf(1.2, None),
                Distribution::Pareto(0.2, Some(0.0)),
                Distribution::Normal(15.0, Some(1.0)),
                Distribution::Zoned(vec![(60, 10), (30, 20), (10, 70)]),
                Distribution::ZonedBytes(vec![(60, 5000), (40, 40_000)]),
            ][which].clone();
            let draw = OffsetSampler::new(n, 512, &distribution, seed);
            let mut rng = Rng::new(seed);
            for _ in 0..200 {
                prop_assert!(draw.next(&mut rng) < n);
            }
        }
    }

    #[test]
    fn a_permutation_seeks_like_random_numbers() {
        // The mean distance of two uniform numbers of 0..n is n/3.
        for n in [1000u64, 65_536, 1 << 28] {
            let mut permutation = Permutation::new(n, 3);
            let rounds = 900.min(n - 1);
            let mut last = permutation.next();
            let mut sum = 0.0;
            for _ in 0..rounds {
                let next = permutation.next();
                sum += next.abs_diff(last) as f64;
                last = next;
            }
            let mean = sum / rounds as f64 / n as f64;
            assert!((mean - 1.0 / 3.0).abs() < 0.04, "{n}: {mean}");
        }
    }

    fn ranks(distribution: &Distribution, n: u64, draws: usize) -> Vec<u64> {
        let draw = OffsetSampler::new(n, 1, distribution, 5);
        let mut rng = Rng::new(17);
        let mut counts = vec![0u64; n as usize];
        for _ in 0..draws {
            counts[draw.next(&mut rng) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn zipf_gives_each_rank_its_share() {
        for theta in [0.8, 1.0, 1.2] {
            let counts = ranks(&Distribution::Zipf(theta, None), 100, 200_000);
            let norm: f64 = (1..=100).map(|k| f64::from(k).powf(-theta)).sum();
            for rank in [1usize, 2, 5, 10] {
                let expected = 200_000.0 * (rank as f64).powf(-theta) / norm;
                let error = (counts[rank - 1] as f64 - expected).abs() / expected;
                assert!(error < 0.06, "theta {theta}, rank {rank}: {error}");
            }
        }
    }

    #[test]
    fn pareto_and_normal_are_as_skewed_as_asked() {
        // Of 100 blocks the 20 most popular take 80 % of the accesses at h = 0.2.
        let counts = ranks(&Distribution::Pareto(0.2, None), 100, 100_000);
        let top: u64 = counts[..20].iter().sum();
        assert!((78_000..82_000).contains(&top), "{top}");
        // The mean of twelve has a deviation of n/12, the width of 10 % on top one of n/35
        // (a uniform's is its width by the root of twelve): within 1.14 of both together.
        let counts = ranks(&Distribution::Normal(10.0, None), 1000, 100_000);
        let middle: u64 = counts[..200].iter().sum();
        assert!((72_500..76_500).contains(&middle), "{middle}");
    }

    #[test]
    fn zones_get_their_accesses() {
        let draw = OffsetSampler::new(
            1000,
            1,
            &Distribution::Zoned(vec![(60, 10), (30, 20), (10, 70)]),
            1,
        );
        let mut rng = Rng::new(2);
        let hits = (0..100_000).filter(|_| draw.next(&mut rng) < 100).count();
        assert!((59_000..61_000).contains(&hits), "{hits}");
    }

    #[test]
    fn absolute_zones_get_their_accesses() {
        let zones = Distribution::ZonedBytes(vec![(70, 8192), (30, 65_536)]);
        let draw = OffsetSampler::new(1000, 4096, &zones, 1);
        let mut rng = Rng::new(2);
        let mut hits = [0u32; 1000];
        (0..100_000).for_each(|_| hits[draw.next(&mut rng) as usize] += 1);
        let first: u32 = hits[..2].iter().sum();
        assert!((69_000..71_000).contains(&first), "{first}");
        assert!(hits[18..].iter().all(|&n| n == 0));
    }

    #[test]
    fn the_most_popular_block_lies_at_the_centre() {
        let centre = Some(0.25);
        for distribution in [
            Distribution::Zipf(1.2, centre),
            Distribution::Pareto(0.2, centre),
        ] {
            let draw = OffsetSampler::new(1000, 1, &distribution, 9);
            let mut rng = Rng::new(2);
            let mut hits = [0u32; 1000];
            (0..50_000).for_each(|_| hits[draw.next(&mut rng) as usize] += 1);
            let most = hits.iter().copied().max();
            assert_eq!(Some(hits[250]), most, "{distribution:?}");
        }
    }

    /// fio's places are hashed; before that they lie as here.
    #[test]
    fn a_wide_normal_distribution_piles_up_nowhere() {
        for percent in [0.0, 10.0, 40.0, 99.0] {
            let draw = OffsetSampler::new(1000, 1, &Distribution::Normal(percent, None), 9);
            let mut rng = Rng::new(2);
            let mut hits = [0u32; 1000];
            (0..100_000).for_each(|_| hits[draw.next(&mut rng) as usize] += 1);
            let most = hits.iter().max().copied().unwrap_or(0);
            // The mean of twelve alone has its peak at 0.5 %.
            assert!(most < 700, "{percent}: {most}");
        }
    }
}
