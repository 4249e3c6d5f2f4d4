//! Numbers as people write and read them: sizes, rates, times.
//!
//! Sizes are shown in powers of 1024 (`KiB`, `MiB`), counts in powers of 1000.
//! fio's own number grammar, in which `kB`, `kiB` and hexadecimal numbers mean
//! things of their own, is the job file's business.

use std::fmt::Display;

/// Bytes with a binary unit and about three digits: `4 KiB`, `1.50 GiB`.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (scaled, unit) = scale(value, 1024.0, &UNITS);
    format!("{} {unit}", three_digits(scaled))
}

/// Bytes per second: `318 MiB/s`.
pub fn bytes_per_second(value: f64) -> String {
    format!("{}/s", bytes(value))
}

/// A count with a decimal suffix and about three digits: `812`, `12.3k`, `1.20M`.
pub fn count(value: f64) -> String {
    const UNITS: [&str; 5] = ["", "k", "M", "G", "T"];
    let (scaled, unit) = scale(value, 1000.0, &UNITS);
    format!("{}{unit}", three_digits(scaled))
}

/// So many of something: `1 run`, `3 runs`, `2 processes`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, noun: &str) -> String {
    let plural = match (n == N::from(1), noun.ends_with('s')) {
        (true, _) => "",
        (false, true) => "es",
        (false, false) => "s",
    };
    format!("{n} {noun}{plural}")
}

/// A latency in the unit that fits: `84 ns`, `1.25 µs`, `3.10 ms`, `17.2 s`.
pub fn latency(value_ns: f64) -> String {
    const UNITS: [&str; 4] = ["ns", "µs", "ms", "s"];
    let (scaled, unit) = scale(value_ns, 1000.0, &UNITS);
    format!("{} {unit}", three_digits(scaled))
}

/// A duration for people: `950 ms`, `12.5 s`, `3m07s`, `2h05m`, `1d04h`.
pub fn duration(value_ms: u64) -> String {
    let seconds = value_ms / 1000;
    match seconds {
        0 => format!("{value_ms} ms"),
        1..60 => format!("{}.{} s", seconds, value_ms % 1000 / 100),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Which power of a unit's base a letter stands for: 1 for `k`, 4 for `T`.
pub fn unit_power(letter: char) -> Option<u32> {
    let at = "kmgtp".find(letter.to_ascii_lowercase())?;
    u32::try_from(at + 1).ok()
}

/// A size as people write it: digits and `k`, `M`, `G`, `T` or `P` (powers of 1024),
/// optionally followed by `B` or `iB`. `None` for anything else, 0 included.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.to_ascii_lowercase();
    let power = match unit.as_str() {
        "" | "b" => 0,
        unit => {
            let mut letters = unit.chars();
            let power = unit_power(letters.next()?)?;
            matches!(letters.as_str(), "" | "b" | "ib").then_some(power)?
        }
    };
    let value: u64 = digits.parse().ok()?;
    value
        .checked_mul(1 << (10 * power))
        .filter(|&bytes| bytes > 0)
}

/// The shortest exact form that [`parse_size`] and fio read: `512M`, `16k`, `1000`.
pub fn format_size(size_bytes: u64) -> String {
    for (shift, unit) in [(40, "T"), (30, "G"), (20, "M"), (10, "k")] {
        if size_bytes >= 1 << shift && size_bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", size_bytes >> shift);
        }
    }
    size_bytes.to_string()
}

fn scale<'u>(mut value: f64, base: f64, units: &[&'u str]) -> (f64, &'u str) {
    let mut unit = 0;
    // The sum of no floats at all is -0.0, which nobody should read.
    value += 0.0;
    // 999.5 would be shown as 1000: it belongs to the next unit.
    while value.abs() >= base.min(999.5) && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    (value, units[unit])
}

fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    if value.fract() == 0.0 || magnitude >= 99.95 {
        format!("{value:.0}")
    } else if magnitude >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_nothing_is_shown_as_zero() {
        let nothing: f64 = [0.0; 0].iter().sum();
        assert_eq!(count(nothing), "0");
        assert_eq!(bytes(nothing), "0 B");
    }

    #[test]
    fn units_fit_the_number() {
        assert_eq!(bytes(4096.0), "4 KiB");
        assert_eq!(bytes(1_610_612_736.0), "1.50 GiB");
        assert_eq!(bytes(1023.0), "1.00 KiB");
        assert_eq!(bytes_per_second(333_447_168.0), "318 MiB/s");
        assert_eq!(count(812.0), "812");
        assert_eq!(count(12_345.0), "12.3k");
        assert_eq!(count(999_600.0), "1.00M");
        assert_eq!(latency(84.0), "84 ns");
        assert_eq!(latency(1_250.0), "1.25 µs");
        assert_eq!(latency(17_180_000_000.0), "17.2 s");
        assert_eq!(latency(0.0), "0 ns");
    }

    #[test]
    fn durations_read_as_people_say_them() {
        assert_eq!(duration(950), "950 ms");
        assert_eq!(duration(12_540), "12.5 s");
        assert_eq!(duration(187_000), "3m07s");
        assert_eq!(duration(7_500_000), "2h05m");
        assert_eq!(duration(100_800_000), "1d04h");
    }

    #[test]
    fn sizes_go_both_ways() {
        for (text, size_bytes) in [
            ("512M", 512 << 20),
            ("16k", 16 << 10),
            ("1000", 1000),
            ("3G", 3 << 30),
        ] {
            assert_eq!(parse_size(text), Some(size_bytes));
            assert_eq!(format_size(size_bytes), text);
        }
        assert_eq!(parse_size("64MiB"), Some(64 << 20));
        assert_eq!(parse_size(" 64mb"), Some(64 << 20));
        assert_eq!(parse_size("1P"), Some(1 << 50));
        for bad in [
            "",
            "0",
            "M",
            "4q",
            "-1",
            "1.5G",
            "1ib",
            "1kibib",
            "1kbb",
            "b",
            "1µ",
            "1 M",
            "99999999999T",
        ] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }
}
