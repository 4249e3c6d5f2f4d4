//! Numbers as fio prints them for people.

/// How a version of fio names its multiples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Up to 2.x: `KB`, `MB` are powers of 1024.
    Two,
    /// From 3.0: `KiB` is 1024, `kB` 1000.
    Three,
}

/// What follows `key=` in a line: up to a comma, a blank or a bracket.
pub fn value<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let mut from = 0;
    loop {
        let at = from + line.get(from..)?.find(key)?;
        from = at + key.len();
        let begins = line[..at]
            .chars()
            .next_back()
            .is_none_or(|c| !c.is_alphanumeric());
        if let Some(rest) = line[from..].strip_prefix('=')
            && begins
        {
            let rest = rest.trim_start();
            let end = rest.find([',', ' ', ')', '(', ';']).unwrap_or(rest.len());
            return Some(&rest[..end]);
        }
    }
}

/// The number at the beginning of `text` and what follows it.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    Some((digits.parse().ok()?, unit))
}

/// A count with an optional decimal multiple: `1234`, `16.1k`, `1577.6K`, `1.2M`.
pub fn count(text: &str) -> Option<f64> {
    let (value, unit) = number(text)?;
    let power = match unit.trim_end_matches(['%', '/']) {
        "" => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        "E" => 6,
        _ => return None,
    };
    Some(value * 1000f64.powi(power))
}

/// A percentage with or without its sign; none for `nan`.
pub fn percent(text: &str) -> Option<f64> {
    let value: f64 = text.trim_end_matches('%').parse().ok()?;
    value.is_finite().then_some(value)
}

/// Bytes, or bytes per second: `800KiB`, `818kB/s`, `12.5Mibit/s`, `4768.1MB`,
/// `4096B`, and `1598Ki` as the sum over clients is printed.
pub fn bytes(text: &str, era: Era) -> Option<f64> {
    let (value, unit) = number(text)?;
    let unit = unit.strip_suffix("/s").unwrap_or(unit);
    let (unit, divisor) = match unit.strip_suffix("bit") {
        Some(unit) => (unit, 8.0),
        None => (unit.strip_suffix('B').unwrap_or(unit), 1.0),
    };
    let (unit, binary) = match unit.strip_suffix('i') {
        Some(unit) => (unit, true),
        None => (unit, era == Era::Two),
    };
    let power = match unit {
        "" => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        // fio 2.x has no T: its list of prefixes goes from G to P (lib/num2str.c).
        "P" if era == Era::Two => 4,
        "P" => 5,
        "E" if era == Era::Two => 5,
        "E" => 6,
        _ => return None,
    };
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    Some(value * base.powi(power) / divisor)
}

/// ns in the unit between brackets: `nsec`, `usec`, `msec`, `sec`.
pub fn time_unit(name: &str) -> Option<f64> {
    Some(match name {
        "nsec" => 1.0,
        "usec" => 1e3,
        "msec" => 1e6,
        "sec" => 1e9,
        _ => return None,
    })
}

/// `72001msec` in ms.
pub fn msec(text: &str) -> Option<u64> {
    text.strip_suffix("msec")?.parse().ok()
}

/// Rounds a figure that is a count; negative and absurd ones are none.
pub fn whole(value: f64) -> Option<u64> {
    (0.0..1.8e19).contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_mean_what_each_era_means() {
        let two = |text| bytes(text, Era::Two);
        let three = |text| bytes(text, Era::Three);
        assert_eq!(two("4768.1MB"), Some(4768.1 * 1048576.0));
        assert_eq!(two("67824KB/s"), Some(67824.0 * 1024.0));
        assert_eq!(two("1.5PB"), Some(1.5 * 1024f64.powi(4)));
        assert_eq!(three("818kB/s"), Some(818_000.0));
        assert_eq!(three("799KiB/s"), Some(799.0 * 1024.0));
        assert_eq!(three("1598Ki"), Some(1598.0 * 1024.0));
        assert_eq!(three("8Mibit/s"), Some(1048576.0));
        assert_eq!(three("0"), Some(0.0));
        assert_eq!(three("4096B"), Some(4096.0));
        assert_eq!(three("12XB"), None);
        assert_eq!(count("1577.6K"), Some(1_577_600.0));
        assert_eq!(count("16.5k"), Some(16_500.0));
        assert_eq!(count("-nan"), None);
        assert_eq!(msec("72001msec"), Some(72001));
    }

    #[test]
    fn values_are_found_by_whole_names() {
        let line = "min= 378, max=191247, per=12.54%, avg=54676.03 (x=1)";
        assert_eq!(value(line, "min"), Some("378"));
        assert_eq!(value(line, "max"), Some("191247"));
        assert_eq!(value(line, "x"), Some("1"));
        assert_eq!(value(line, "in"), None);
        assert_eq!(value("aggrios=3", "ios"), None);
        assert_eq!(value("é=", "é"), Some(""));
    }
}
