//! How fio writes numbers.

/// `count` per second of `runtime_ms`, cut to a whole number; 0 without time.
pub fn per_second(count: u64, runtime_ms: u64) -> u64 {
    let all = u128::from(count) * 1000;
    let whole = all.checked_div(u128::from(runtime_ms)).unwrap_or(0);
    u64::try_from(whole).unwrap_or(u64::MAX)
}

/// A figure as a whole number, 0 for one that is none.
pub fn whole(value: f64) -> u64 {
    value as u64
}

/// A figure as decimals can be written of it: 0 for one that is no number, and
/// without the sign of a negative zero.
pub fn finite(value: f64) -> f64 {
    if value.is_finite() { value + 0.0 } else { 0.0 }
}

/// What a step up in unit is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UnitStep {
    /// k, M, G: 1000.
    Decimal,
    /// Ki, Mi, Gi: 1024.
    Binary,
}

impl UnitStep {
    fn factor(self) -> u64 {
        match self {
            Self::Decimal => 1000,
            Self::Binary => 1024,
        }
    }

    fn prefix(self, steps: usize) -> &'static str {
        let prefixes = match self {
            Self::Decimal => ["", "k", "M", "G", "T", "P", "E"],
            Self::Binary => ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"],
        };
        prefixes.get(steps).copied().unwrap_or_default()
    }
}

/// A number in at most `digits` digits, the point counted, with the prefix of
/// its unit: `1598Ki`, `10.7Gi`, `4205.0k`. A number that fits is not scaled.
pub fn scaled(value: u64, digits: usize, step: UnitStep) -> String {
    let width = |number: u64| number.to_string().len();
    let (mut number, mut rest, mut steps) = (value, 0, 0);
    while width(number) > digits {
        rest = number % step.factor();
        number /= step.factor();
        steps += 1;
    }
    let prefix = step.prefix(steps);
    // One place is the point's.
    let decimals = digits.saturating_sub(width(number) + 1);
    if steps == 0 {
        format!("{number}")
    } else if decimals == 0 {
        let carry = u64::from(rest * 2 >= step.factor());
        format!("{}{prefix}", number + carry)
    } else {
        let exact = number as f64 + rest as f64 / step.factor() as f64;
        format!("{exact:.decimals$}{prefix}")
    }
}

/// Digits of bandwidths, sizes and I/Os per second (fio's default `significant_figures`).
const DIGITS: usize = 4;

/// `1598KiB`, `1637kB`.
pub fn bytes(value: u64, step: UnitStep) -> String {
    format!("{}B", scaled(value, DIGITS, step))
}

/// A plain number: `42.7k`.
pub fn count(value: u64) -> String {
    scaled(value, DIGITS, UnitStep::Decimal)
}

/// `1598KiB/s`.
pub fn rate(value: u64, step: UnitStep) -> String {
    format!("{}/s", bytes(value, step))
}

/// In which unit times are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeUnit {
    /// `nsec`, `usec`, `msec`.
    pub name: &'static str,
    /// ns of one.
    pub ns: u64,
}

const UNITS: [TimeUnit; 3] = [
    TimeUnit {
        name: "msec",
        ns: 1_000_000,
    },
    TimeUnit {
        name: "usec",
        ns: 1_000,
    },
    TimeUnit {
        name: "nsec",
        ns: 1,
    },
];

/// The unit of values that lie between these: the largest of which the
/// smallest value is more than two and the largest at least a hundred.
pub fn unit_of_range(min_ns: u64, max_ns: u64) -> TimeUnit {
    unit_where(|unit| min_ns > 2 * unit.ns && max_ns >= 100 * unit.ns)
}

/// The unit of a latency: as of its range, but the deviation must be more than
/// one of it, too.
pub fn unit_of_latency(min_ns: u64, max_ns: u64, stddev_ns: f64) -> TimeUnit {
    unit_where(|unit| min_ns > 2 * unit.ns && max_ns >= 100 * unit.ns && stddev_ns > unit.ns as f64)
}

fn unit_where(fits: impl Fn(&TimeUnit) -> bool) -> TimeUnit {
    let [msec, usec, nsec] = UNITS;
    [msec, usec].into_iter().find(fits).unwrap_or(nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures printed by fio 3.33 for sizes and rates that are known.
    #[test]
    fn numbers_are_scaled_as_fio_does() {
        let binary = [
            (9_216, "9216"),
            (11_233 << 10, "11.0Mi"),
            (2_047 << 10, "2047Ki"),
            (10_229 << 10, "9.99Mi"),
            (102_390 << 10, "100.0Mi"),
            (1 << 30, "1024Mi"),
            (65_536, "64.0Ki"),
        ];
        for (value, text) in binary {
            assert_eq!(scaled(value, 4, UnitStep::Binary), text);
        }
        let decimal = [
            (11_233_000, "11.2M"),
            (5_114_500, "5115k"),
            (42_666, "42.7k"),
            (1_047_552, "1048k"),
            (0, "0"),
            (u64::MAX, "18.4E"),
        ];
        for (value, text) in decimal {
            assert_eq!(scaled(value, 4, UnitStep::Decimal), text);
        }
        assert_eq!(scaled(4_205_014, 6, UnitStep::Decimal), "4205.0k");
        assert_eq!(scaled(366_617, 6, UnitStep::Decimal), "366617");
    }

    #[test]
    fn a_negative_zero_has_no_sign() {
        assert_eq!(format!("{:.6}", finite(-0.0)), "0.000000");
    }

    #[test]
    fn the_unit_of_a_latency_keeps_its_digits() {
        let of = |min, max, dev| unit_of_latency(min, max, dev).name;
        assert_eq!(of(2_001, 100_000, 1_000.5), "usec");
        assert_eq!(of(2_000, 100_000, 1_000.5), "nsec");
        assert_eq!(of(2_001, 99_999, 1_000.5), "nsec");
        assert_eq!(of(2_001, 100_000, 1_000.0), "nsec");
        assert_eq!(of(2_000_001, 100_000_000, 1e6 + 1.0), "msec");
        assert_eq!(of(2_000_001, 100_000_000, 1e6), "usec");
        assert_eq!(unit_of_range(2_001, 100_000).name, "usec");
        assert_eq!(unit_of_range(2_000_001, u64::MAX).name, "msec");
        assert_eq!(unit_of_range(0, u64::MAX).name, "nsec");
    }
}
