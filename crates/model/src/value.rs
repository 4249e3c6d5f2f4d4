//! fio's numbers: sizes, times, percentages, ranges, and lists of them.
//!
//! What fio 3.33 does with each form was found by running it
//! (`fio --debug=parse` prints what it understood). Where it silently takes
//! something else than is written, these parsers refuse. They are total: no
//! input panics, overflows or takes more than linear time.

use std::fmt;

use crate::units::unit_power;

/// What `k` means: fio's option `kb_base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Base {
    /// 1024, as fio does by default.
    #[default]
    Binary,
    /// 1000; the IEC names (`kib`) then mean 1024.
    Decimal,
}

impl Base {
    fn plain(self) -> u64 {
        match self {
            Self::Binary => 1024,
            Self::Decimal => 1000,
        }
    }

    /// With one base chosen, the three-letter names have the other: under the
    /// default, fio takes `4kib` for 4000.
    fn three_letters(self) -> u64 {
        match self {
            Self::Binary => 1000,
            Self::Decimal => 1024,
        }
    }
}

/// An amount as fio understands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// A number: bytes, µs or a count.
    Number(i64),
    /// Percent of a file's or device's size.
    Percent(u8),
    /// Zones of a zoned device.
    Zones(u64),
}

impl Amount {
    /// The number, unless it is relative.
    pub fn number(self) -> Option<u64> {
        match self {
            Self::Number(n) => u64::try_from(n).ok(),
            Self::Percent(_) | Self::Zones(_) => None,
        }
    }
}

/// Why a text is no number, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueFault {
    /// Byte offset of the part in the text.
    pub at: usize,
    /// Its length in bytes; 0 is the rest.
    pub len: usize,
    /// What is wrong.
    pub message: String,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for ValueFault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl ValueFault {
    /// `message`, about the part from `at` on.
    pub fn new(at: usize, len: usize, message: impl Into<String>) -> Self {
        Self {
            at,
            len,
            message: message.into(),
            suggestion: None,
        }
    }

    /// With what was probably meant.
    pub fn instead(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }

    /// The same fault in a longer text that has this one at `offset`.
    pub fn shifted(mut self, offset: usize) -> Self {
        self.at += offset;
        self
    }
}

/// Digits and what stands behind them.
struct SplitNumber<'t> {
    value: i64,
    /// The number as written.
    digits: &'t str,
    hex: bool,
    /// Where the unit begins.
    at: usize,
    unit: &'t str,
}

fn split(text: &str) -> Result<SplitNumber<'_>, ValueFault> {
    let start = text.len() - text.trim_start().len();
    let body = &text[start..];
    if body.is_empty() {
        return Err(ValueFault::new(0, 0, "a number is missing"));
    }
    let (negative, sign) = match body.as_bytes()[0] {
        b'-' => (true, 1),
        b'+' => (false, 1),
        _ => (false, 0),
    };
    let unsigned = &body[sign..];
    let hex = unsigned.starts_with("0x") || unsigned.starts_with("0X");
    let (prefix, radix) = if hex { (2, 16) } else { (0, 10) };
    let count = unsigned[prefix..]
        .bytes()
        .take_while(|b| (*b as char).is_digit(radix))
        .count();
    let end = sign + prefix + count;
    let digits = &unsigned[prefix..prefix + count];
    if digits.is_empty() {
        return Err(ValueFault::new(
            start,
            body.len(),
            format!("'{body}' is not a number"),
        ));
    }
    let too_large = || ValueFault::new(start, end, format!("{} is too large", &body[..end]));
    let value = i64::from_str_radix(digits, radix).map_err(|_| too_large())?;
    Ok(SplitNumber {
        value: if negative { -value } else { value },
        digits: &body[..end],
        hex,
        at: start + end,
        unit: &body[end..],
    })
}

/// A number of bytes or a count, with an optional unit (`4k`, `0x1000`, `1g`).
///
/// # Errors
/// Everything but a whole number and a unit fio knows; fio takes `4q` for 4
/// and `1.5g` for 1.
pub fn size(text: &str, base: Base) -> Result<i64, ValueFault> {
    let number = split(text)?;
    let factor = size_factor(number.unit, base).ok_or_else(|| bad_size_unit(&number))?;
    if number.hex && !number.unit.is_empty() {
        return Err(ValueFault::new(
            number.at,
            number.unit.len(),
            format!(
                "fio ignores the unit '{}' after a hexadecimal number",
                number.unit
            ),
        ));
    }
    number.value.checked_mul(factor).ok_or_else(|| {
        ValueFault::new(
            0,
            text.len(),
            format!("{} is more than 64 bits hold", text.trim()),
        )
    })
}

fn size_factor(unit: &str, base: Base) -> Option<i64> {
    let unit = unit.to_ascii_lowercase();
    if unit.is_empty() || unit == "b" {
        return Some(1);
    }
    let mut letters = unit.chars();
    let power = unit_power(letters.next()?)?;
    let base = match letters.as_str() {
        // fio reads `ki` as it reads `k`.
        "" | "b" | "i" => base.plain(),
        "ib" => base.three_letters(),
        _ => return None,
    };
    i64::try_from(base.checked_pow(power)?).ok()
}

fn bad_size_unit(number: &SplitNumber<'_>) -> ValueFault {
    let (digits, unit) = (number.digits, number.unit);
    let fault = |message| ValueFault::new(number.at, unit.len(), message);
    if unit.starts_with('.') || unit.starts_with(['e', 'E']) && unit.len() > 1 {
        return fault(format!(
            "not a whole number: fio stops reading at '{}' and takes {digits}",
            unit.chars().next().unwrap_or('.')
        ));
    }
    let trimmed = unit.trim();
    if trimmed.len() < unit.len() && size_factor(trimmed, Base::Binary).is_some() {
        return fault(format!("a blank before the unit: fio takes {digits}"))
            .instead(format!("{digits}{trimmed}"));
    }
    match trimmed.to_ascii_lowercase().as_str() {
        "us" | "usec" | "ms" | "msec" | "s" | "sec" | "min" | "h" | "d" => fault(format!(
            "a time unit where a plain number is meant; fio reads '{trimmed}' as it can"
        )),
        _ => fault(format!("unknown unit '{trimmed}' (k, m, g, t or p)")),
    }
}

/// Whether a size is written with a unit that does not mean in fio what it
/// means elsewhere; gives the sentence that says so.
pub fn surprising_unit(text: &str, base: Base) -> Option<String> {
    let number = split(text).ok()?;
    let value = size(text, base).ok()?;
    let unit = number.unit.to_ascii_lowercase();
    let surprising = matches!((unit.len(), base), (3, Base::Binary))
        || (unit.len() == 2 && unit.ends_with('i') && base == Base::Decimal);
    surprising.then(|| {
        let kb_base = base.plain();
        format!("fio takes {} for {value} (kb_base={kb_base})", text.trim())
    })
}

/// What a bare number of time is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareTimeUnit {
    /// Seconds, as in `runtime`.
    Seconds,
    /// Microseconds, as in `thinktime`.
    Micros,
}

/// A time in µs, with an optional unit (`10`, `500ms`, `2h`).
///
/// # Errors
/// Everything but a whole number and a unit fio knows; fio takes `10min` and
/// `10sec` for 10 µs.
pub fn time_us(text: &str, bare: BareTimeUnit) -> Result<i64, ValueFault> {
    const SECOND: i64 = 1_000_000;
    let number = split(text)?;
    let (digits, unit) = (number.digits, number.unit.to_ascii_lowercase());
    let fault = |message| ValueFault::new(number.at, number.unit.len(), message);
    if number.hex {
        return Err(
            ValueFault::new(0, 0, "fio takes a hexadecimal time for microseconds")
                .instead(number.value.to_string()),
        );
    }
    let factor = match unit.as_str() {
        "" if bare == BareTimeUnit::Micros => 1,
        "" | "s" => SECOND,
        "us" | "usec" => 1,
        "ms" | "msec" => 1000,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        "d" => 24 * 3600 * SECOND,
        _ => {
            let meant = match unit.trim() {
                "sec" | "secs" | "second" | "seconds" | "s" => Some('s'),
                "min" | "mins" | "minute" | "minutes" | "m" => Some('m'),
                "hour" | "hours" | "hr" | "h" => Some('h'),
                "day" | "days" | "d" => Some('d'),
                _ => None,
            };
            return Err(match meant {
                Some(meant) => fault(format!(
                    "fio takes {} for {digits} microseconds",
                    text.trim()
                ))
                .instead(format!("{digits}{meant}")),
                None if unit.starts_with('.') => {
                    fault(format!("not a whole number: fio takes {digits}"))
                }
                None => fault(format!(
                    "unknown unit '{}' (us, ms, s, m, h or d)",
                    number.unit.trim()
                )),
            });
        }
    };
    number.value.checked_mul(factor).ok_or_else(|| {
        ValueFault::new(
            0,
            text.len(),
            format!("{} is more than 64 bits hold", text.trim()),
        )
    })
}

/// A size that may be relative: `10%`, `4z`, `1g`.
///
/// # Errors
/// As [`size`]; percentages must be whole and 1 to 100.
pub fn amount(text: &str, base: Base) -> Result<Amount, ValueFault> {
    let body = text.trim();
    if let Some(percent) = body.strip_suffix('%') {
        let fault = |message: String| ValueFault::new(0, text.len(), message);
        return match percent.trim_start().parse::<u64>() {
            Ok(n @ 1..=100) => Ok(Amount::Percent(n as u8)),
            Ok(0) => Err(fault("0% is nothing".into())),
            Ok(n) => Err(fault(format!("{n}% is more than 100%"))),
            Err(_) => Err(fault(format!("'{body}' is not a whole percentage"))),
        };
    }
    if let Some(zones) = body.strip_suffix(['z', 'Z'])
        && let Ok(zones) = zones.parse()
    {
        return Ok(Amount::Zones(zones));
    }
    size(text, base).map(Amount::Number)
}

/// The parts of a list with their byte offsets.
pub fn parts(text: &str, separator: char) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split(separator).map(move |part| {
        let start = at;
        at += part.len() + separator.len_utf8();
        (start, part)
    })
}

/// Up to three values for read, write and trim: `4k`, `4k,8k`, `4k,,8k`. A
/// value that is left out repeats the one before, the first one is fio's default.
///
/// # Errors
/// The first value that `parse` refuses, or a fourth.
pub fn triple<T: Copy>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, ValueFault>,
) -> Result<[Option<T>; 3], ValueFault> {
    let mut values = [None; 3];
    let mut last = None;
    let mut given = 0;
    for (place, (at, part)) in parts(text, ',').enumerate() {
        let Some(slot) = values.get_mut(place) else {
            return Err(ValueFault::new(
                at,
                part.len(),
                "more than three values (read,write,trim)",
            ));
        };
        if !part.is_empty() || (place == 0 && !text.contains(',')) {
            last = Some(parse(part).map_err(|fault| fault.shifted(at))?);
        }
        *slot = last;
        given = place + 1;
    }
    values[given..].fill(last);
    if last.is_none() {
        return Err(ValueFault::new(0, 0, "no value"));
    }
    Ok(values)
}

/// `LOW-HIGH` or `LOW:HIGH`.
///
/// # Errors
/// When one bound is no number, or the first is larger (fio swaps them).
pub fn range<T: PartialOrd + Copy>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, ValueFault>,
) -> Result<(T, T), ValueFault> {
    let Some(middle) = text.find(['-', ':']) else {
        return Err(ValueFault::new(
            0,
            0,
            format!("'{text}' is not a range (as 4k-64k)"),
        ));
    };
    let (first, second) = (&text[..middle], &text[middle + 1..]);
    let low = parse(first)?;
    let high = parse(second).map_err(|fault| fault.shifted(middle + 1))?;
    if low > high {
        return Err(
            ValueFault::new(0, 0, format!("the range {text} is reversed"))
                .instead(format!("{second}-{first}")),
        );
    }
    Ok((low, high))
}

/// One direction of `bssplit`: block sizes and their shares in percent;
/// `None` where the share is left to fio (what the others leave, evenly).
pub type Split1 = Vec<(i64, Option<u8>)>;

/// `bssplit`: `4k/60:64k/40`, for read,write,trim.
///
/// # Errors
/// A size or share that is no number, shares above 100 %, more than three directions.
pub fn bssplit(text: &str, base: Base) -> Result<Vec<Split1>, ValueFault> {
    let mut directions = Vec::new();
    for (at, direction) in parts(text, ',') {
        if directions.len() == 3 {
            return Err(ValueFault::new(
                at,
                direction.len(),
                "more than three directions",
            ));
        }
        directions.push(split_one(direction, base).map_err(|fault| fault.shifted(at))?);
    }
    Ok(directions)
}

fn split_one(text: &str, base: Base) -> Result<Split1, ValueFault> {
    let mut entries = Split1::new();
    let mut sum = 0u32;
    for (at, entry) in parts(text, ':') {
        let (bs, share) = match entry.split_once('/') {
            Some((bs, share)) => (bs, Some(share)),
            None => (entry, None),
        };
        let bytes = size(bs, base).map_err(|fault| fault.shifted(at))?;
        if bytes < 1 {
            return Err(ValueFault::new(
                at,
                bs.len(),
                "a block has at least one byte",
            ));
        }
        let share = match share {
            None | Some("") => None,
            Some(share) => {
                let percent = share
                    .parse::<u8>()
                    .ok()
                    .filter(|&p| p <= 100)
                    .ok_or_else(|| {
                        ValueFault::new(
                            at + bs.len() + 1,
                            share.len(),
                            format!("'{share}' is not a percentage"),
                        )
                    })?;
                sum += u32::from(percent);
                Some(percent)
            }
        };
        entries.push((bytes, share));
    }
    if sum > 100 {
        return Err(ValueFault::new(
            0,
            text.len(),
            format!("the shares add up to {sum} %"),
        ));
    }
    let open = entries.iter().any(|(_, share)| share.is_none());
    if sum < 100 && !open {
        return Err(ValueFault::new(
            0,
            text.len(),
            format!("the shares add up to only {sum} %"),
        ));
    }
    Ok(entries)
}
