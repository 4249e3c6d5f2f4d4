//! What the numbers on an axis are, and how they are written.

use fathom_model::units;

/// What a number is: its units, its nice steps, its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A plain number in steps of 1, 2, 5.
    Number,
    /// A number that people set in powers of two: a depth, a number of jobs.
    Binary,
    /// How often: IOPS.
    Rate,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A latency in ns.
    Latency,
    /// Time since a start in ms.
    Time,
    /// Percent.
    Percent,
}

/// A unit in which a whole axis is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisUnit {
    /// How much of the quantity's base unit it is.
    pub factor: f64,
    /// What stands in the axis's title: `MiB/s`; empty where there is none.
    pub name: &'static str,
    /// What stands behind every number: `k`.
    pub suffix: &'static str,
}

const fn unit(factor: f64, name: &'static str, suffix: &'static str) -> AxisUnit {
    AxisUnit {
        factor,
        name,
        suffix,
    }
}

const PLAIN: [AxisUnit; 1] = [unit(1.0, "", "")];
const PERCENT: [AxisUnit; 1] = [unit(1.0, "%", "")];
const RATES: [AxisUnit; 4] = [
    unit(1.0, "", ""),
    unit(1e3, "", "k"),
    unit(1e6, "", "M"),
    unit(1e9, "", "G"),
];
const BYTES: [AxisUnit; 6] = [
    unit(1.0, "B", ""),
    unit(1024.0, "KiB", ""),
    unit(1_048_576.0, "MiB", ""),
    unit(1_073_741_824.0, "GiB", ""),
    unit(1_099_511_627_776.0, "TiB", ""),
    unit(1_125_899_906_842_624.0, "PiB", ""),
];
const BYTES_PER_SECOND: [AxisUnit; 6] = [
    unit(1.0, "B/s", ""),
    unit(1024.0, "KiB/s", ""),
    unit(1_048_576.0, "MiB/s", ""),
    unit(1_073_741_824.0, "GiB/s", ""),
    unit(1_099_511_627_776.0, "TiB/s", ""),
    unit(1_125_899_906_842_624.0, "PiB/s", ""),
];
const LATENCIES: [AxisUnit; 4] = [
    unit(1.0, "ns", ""),
    unit(1e3, "µs", ""),
    unit(1e6, "ms", ""),
    unit(1e9, "s", ""),
];
const TIMES: [AxisUnit; 5] = [
    unit(1.0, "ms", ""),
    unit(1e3, "s", ""),
    unit(6e4, "min", ""),
    unit(3.6e6, "h", ""),
    unit(8.64e7, "days", ""),
];

impl Quantity {
    fn units(self) -> &'static [AxisUnit] {
        match self {
            Self::Number | Self::Binary => &PLAIN,
            Self::Percent => &PERCENT,
            Self::Rate => &RATES,
            Self::Bytes => &BYTES,
            Self::BytesPerSecond => &BYTES_PER_SECOND,
            Self::Latency => &LATENCIES,
            Self::Time => &TIMES,
        }
    }

    /// The unit for an axis that ends at `largest`: the biggest one of which
    /// there are two or more, so that an axis reads 0 … 1500 MiB/s and
    /// 0 … 12 GiB/s.
    pub fn unit(self, largest: f64) -> AxisUnit {
        let fits = |unit: &&AxisUnit| largest.abs() >= 2.0 * unit.factor;
        let units = self.units();
        *units.iter().rev().find(fits).unwrap_or(&units[0])
    }

    /// One value with its unit: `402 MiB/s`, `172 µs`, `103k`, `3m07s`.
    pub fn text(self, value: f64) -> String {
        // Beyond any unit.
        if value.abs() >= 1e18 {
            return format!("{value:.1e}");
        }
        match self {
            Self::Rate => units::count(value),
            Self::Bytes => units::bytes(value),
            Self::BytesPerSecond => units::bytes_per_second(value),
            Self::Latency => units::latency(value),
            Self::Time => units::duration(value.max(0.0) as u64),
            Self::Number | Self::Binary if value.abs() >= 1e7 => units::count(value),
            Self::Number | Self::Binary => plain(value, 6),
            Self::Percent if value.abs() >= 1e7 => format!("{value:.1e} %"),
            Self::Percent => format!("{} %", plain(value, 2)),
        }
    }
}

/// A number with at most `decimals` and no zeros at its end.
pub fn plain(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    // Rounding leaves a sign on what has become nothing.
    if text == "-0" { "0" } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_the_unit_that_fits_its_end() {
        let name = |quantity: Quantity, largest| quantity.unit(largest).name;
        assert_eq!(name(Quantity::BytesPerSecond, 1.5e9), "MiB/s");
        assert_eq!(name(Quantity::BytesPerSecond, 3e9), "GiB/s");
        assert_eq!(name(Quantity::Latency, 900.0), "ns");
        assert_eq!(name(Quantity::Latency, 15.4e6), "ms");
        assert_eq!(Quantity::Rate.unit(102_954.0).suffix, "k");
        assert_eq!(Quantity::Rate.unit(0.0).suffix, "");
        assert_eq!(name(Quantity::Time, 600_000.0), "min");
    }

    #[test]
    fn values_are_written_with_their_unit() {
        assert_eq!(Quantity::BytesPerSecond.text(421_527_552.0), "402 MiB/s");
        assert_eq!(Quantity::Latency.text(171_996.218), "172 µs");
        assert_eq!(Quantity::Binary.text(512.0), "512");
        assert_eq!(plain(-0.0001, 2), "0");
        assert_eq!(plain(2.50, 2), "2.5");
        assert_eq!(plain(100.0, 0), "100");
    }
}
