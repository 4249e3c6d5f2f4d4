//! Count, sum and sum of squares, without rounding.

/// What can be added up of latencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyMoments {
    /// How many.
    pub n: u64,
    /// Their sum in ns.
    sum: u128,
    /// The sum of their squares; modulo 2^128 when `overflow`.
    squares: u128,
    overflow: bool,
    /// The smallest in ns; the largest number there is without any.
    pub min_ns: u64,
    /// The largest in ns; 0 without any.
    pub max_ns: u64,
    /// Sum of the I/Os' bytes.
    pub bytes: u128,
}

impl Default for LatencyMoments {
    fn default() -> Self {
        Self {
            n: 0,
            sum: 0,
            squares: 0,
            overflow: false,
            min_ns: u64::MAX,
            max_ns: 0,
            bytes: 0,
        }
    }
}

impl LatencyMoments {
    /// Adds a latency, the largest that it stands for, and the bytes of its I/O.
    #[inline]
    pub fn add(&mut self, value_ns: u64, max_ns: u64, bytes: u64) {
        self.n += 1;
        self.sum += u128::from(value_ns);
        let square = u128::from(value_ns) * u128::from(value_ns);
        let (squares, overflow) = self.squares.overflowing_add(square);
        self.squares = squares;
        self.overflow |= overflow;
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(max_ns);
        self.bytes += u128::from(bytes);
    }

    /// Adds I/Os that took about as long, whose bytes are not known.
    pub fn add_many(&mut self, value_ns: u64, count: u64) {
        self.n += count;
        let value = u128::from(value_ns);
        self.sum += value * u128::from(count);
        let (squares, overflow) = (value * value).overflowing_mul(u128::from(count));
        let (sum, beyond) = self.squares.overflowing_add(squares);
        self.squares = sum;
        self.overflow |= overflow || beyond;
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Adds all that `other` has.
    pub fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.sum += other.sum;
        let (squares, overflow) = self.squares.overflowing_add(other.squares);
        self.squares = squares;
        self.overflow |= overflow || other.overflow;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.bytes += other.bytes;
    }

    /// The mean in ns; `None` without any.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }

    /// The standard deviation of the sample (n − 1) in ns; `None` below two, and
    /// where latencies of centuries are too large to be squared.
    ///
    /// The subtraction of the two large sums is done in whole numbers, where it
    /// loses nothing: sum²/n = ⌊sum/n⌋·sum + (sum mod n)·sum/n.
    pub fn stdev_ns(&self) -> Option<f64> {
        if self.n < 2 || self.overflow {
            return None;
        }
        let n = u128::from(self.n);
        let (whole, rest) = (self.sum / n, self.sum % n);
        let left = self.squares - whole * self.sum;
        let rest = rest as f64 * (self.sum as f64 / self.n as f64);
        let variance = (left as f64 - rest) / (self.n - 1) as f64;
        Some(variance.max(0.0).sqrt())
    }
}
