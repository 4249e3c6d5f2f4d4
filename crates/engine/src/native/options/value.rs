//! The text of an option's value into numbers: fio's grammar, strictly.

use std::str::FromStr;
use std::time::Duration;

use crate::native::job::Amount;

/// What is wrong with a value, without its option's name.
pub(super) type Outcome<T> = Result<T, String>;

/// An option's value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'a>(pub(super) Option<&'a str>);

impl<'a> Value<'a> {
    /// The text; an option that needs a value and has none is an error.
    pub(super) fn text(self) -> Outcome<&'a str> {
        match self.0.map(str::trim) {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err("needs a value".to_owned()),
        }
    }

    /// A switch: without a value it is on.
    pub(super) fn flag(self) -> Outcome<bool> {
        match self.0.map(str::trim) {
            None | Some("" | "1") => Ok(true),
            Some("0") => Ok(false),
            Some(other) => Err(format!("'{other}' is neither 0 nor 1")),
        }
    }

    /// A whole number, also with a size's unit (fio takes `iodepth=1k`).
    pub(super) fn number<T: TryFrom<u64>>(self) -> Outcome<T> {
        let text = self.text()?;
        let number = bytes(text)?;
        T::try_from(number).map_err(|_| format!("{text} is too large"))
    }

    /// A size of blocks: more than 0.
    pub(super) fn block(self) -> Outcome<u32> {
        block(self.text()?)
    }

    /// A size in bytes or percent.
    pub(super) fn amount(self) -> Outcome<Amount> {
        let text = self.text()?;
        match text.strip_suffix('%') {
            Some(percent) => Ok(Amount::Percent(plain(percent)?)),
            None => Ok(Amount::Bytes(bytes(text)?)),
        }
    }

    /// A percentage without a sign.
    pub(super) fn percent(self) -> Outcome<u8> {
        percent(self.text()?)
    }

    /// A time; a number alone counts in `unit`.
    pub(super) fn time(self, unit: Duration) -> Outcome<Duration> {
        time(self.text()?, unit)
    }

    /// `read,write,trim`: what is left out is as the one before; one value is for all.
    pub(super) fn triple<T: Clone>(self, one: impl Fn(&str) -> Outcome<T>) -> Outcome<[T; 3]> {
        let text = self.text()?;
        let mut values: Vec<Option<T>> = Vec::new();
        for part in text.split(',') {
            let part = part.trim();
            values.push(if part.is_empty() {
                None
            } else {
                Some(one(part)?)
            });
        }
        if values.len() > 3 {
            return Err(format!(
                "'{text}' has more than the three values of read, write and trim"
            ));
        }
        let mut last = values
            .iter()
            .flatten()
            .next()
            .cloned()
            .ok_or("needs a value")?;
        Ok(std::array::from_fn(|place| {
            if let Some(Some(value)) = values.get(place) {
                last = value.clone();
            }
            last.clone()
        }))
    }
}

/// A number without a unit.
pub(super) fn plain<T: FromStr>(text: &str) -> Outcome<T> {
    text.trim()
        .parse()
        .map_err(|_| format!("'{text}' is not a number"))
}

/// A percentage of 0 to 100.
pub(super) fn percent(text: &str) -> Outcome<u8> {
    match plain::<u8>(text.trim_end_matches('%'))? {
        percent @ 0..=100 => Ok(percent),
        other => Err(format!("{other} is more than 100 percent")),
    }
}

/// A block size.
pub(super) fn block(text: &str) -> Outcome<u32> {
    match u32::try_from(bytes(text)?) {
        Ok(0) => Err("a block has at least one byte".to_owned()),
        Ok(size) => Ok(size),
        Err(_) => Err(format!("{text} is too large for a block")),
    }
}

/// A size in bytes: `4096`, `0x1000`, `4k`, `1.5g`; kb_base is 1024, so `k`
/// and `kb` are 1024 and `ki` and `kib` are 1000 (parse.c, get_mult_bytes).
pub(super) fn bytes(text: &str) -> Outcome<u64> {
    let text = text.trim();
    let wrong = || format!("'{text}' is not a size: a number and at most one of k, m, g, t, p");
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).map_err(|_| wrong());
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.to_ascii_lowercase();
    let power = match unit.chars().next() {
        None | Some('b') => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        Some(_) => return Err(wrong()),
    };
    let base: u64 = match unit.get(1..).unwrap_or("") {
        "" | "b" => 1024,
        "i" | "ib" if power > 0 => 1000,
        _ => return Err(wrong()),
    };
    let factor = base.pow(power);
    if let Ok(whole) = number.parse::<u64>() {
        return whole
            .checked_mul(factor)
            .ok_or_else(|| format!("{text} is too large"));
    }
    let value = number.parse::<f64>().map_err(|_| wrong())? * factor as f64;
    Ok(value as u64)
}

/// A time: `5`, `5s`, `4m`, `1.5h`, `2d`, `30ms`, `10us`.
pub(super) fn time(text: &str, default_unit: Duration) -> Outcome<Duration> {
    let text = text.trim();
    let wrong = || format!("'{text}' is not a time: a number and one of us, ms, s, m, h, d");
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let seconds = match unit.to_ascii_lowercase().as_str() {
        "" => default_unit.as_secs_f64(),
        "us" | "usec" => 1e-6,
        "ms" | "msec" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let number = number.parse::<f64>().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_read_as_fio_reads_them() {
        assert_eq!(bytes("4k"), Ok(4096));
        assert_eq!(bytes("4KB"), Ok(4096));
        assert_eq!(bytes("4kib"), Ok(4000));
        assert_eq!(bytes("0x10"), Ok(16));
        assert_eq!(bytes("1.5g"), Ok(1_610_612_736));
        assert!(bytes("4q").is_err() && bytes("").is_err() && bytes("99999999999g").is_err());
        let second = Duration::from_secs(1);
        assert_eq!(time("4m", second), Ok(Duration::from_secs(240)));
        assert_eq!(time("5", second), Ok(Duration::from_secs(5)));
        assert_eq!(time("20us", second), Ok(Duration::from_micros(20)));
        assert!(time("5x", second).is_err());
    }

    #[test]
    fn triples_fill_up_from_the_left() {
        let sizes = |text| Value(Some(text)).triple(block);
        assert_eq!(sizes("4k"), Ok([4096; 3]));
        assert_eq!(sizes("4k,8k"), Ok([4096, 8192, 8192]));
        assert_eq!(sizes(",8k"), Ok([8192, 8192, 8192]));
        assert!(sizes("1,2,3,4").is_err());
    }
}
