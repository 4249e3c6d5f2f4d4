//! Numbers as symbols hold them.

/// In which way digits are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NumberBase {
    Decimal,
    /// With or without `0x`.
    Hex,
    /// By its prefix: `0x`, `0o`, `0b`, else decimal without leading zeros.
    ByPrefix,
}

/// The number that a text is, if it is one. Numbers beyond 127 bits become the
/// largest there is: the language sets no bound, and no symbol needs one.
pub(crate) fn parse(text: &str, base: NumberBase) -> Option<i128> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixed = |prefix: char| {
        let rest = digits.strip_prefix('0')?;
        rest.strip_prefix([prefix, prefix.to_ascii_uppercase()])
    };
    let (radix, digits) = match base {
        NumberBase::Decimal => (10, digits),
        NumberBase::Hex => (16, prefixed('x').unwrap_or(digits)),
        NumberBase::ByPrefix => [(16, 'x'), (8, 'o'), (2, 'b')]
            .into_iter()
            .find_map(|(radix, prefix)| Some((radix, prefixed(prefix)?)))
            .unwrap_or((10, digits)),
    };
    let has_leading_zero = digits.starts_with('0') && !digits.trim_start_matches('0').is_empty();
    if digits.is_empty() || base == NumberBase::ByPrefix && radix == 10 && has_leading_zero {
        return None;
    }
    let mut value: i128 = 0;
    for c in digits.chars() {
        let digit = i128::from(c.to_digit(radix)?);
        value = value
            .saturating_mul(i128::from(radix))
            .saturating_add(digit);
    }
    Some(if negative { -value } else { value })
}

/// A number as it is written when a range has changed it.
pub(crate) fn write(value: i128, base: NumberBase) -> String {
    match base {
        NumberBase::Hex if value < 0 => format!("-{:#x}", value.unsigned_abs()),
        NumberBase::Hex => format!("{value:#x}"),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_their_base() {
        for (text, base, expected) in [
            ("12", NumberBase::Decimal, Some(12)),
            ("-012", NumberBase::Decimal, Some(-12)),
            ("0x12", NumberBase::Decimal, None),
            ("0x1F", NumberBase::Hex, Some(31)),
            ("1f", NumberBase::Hex, Some(31)),
            ("-0x1", NumberBase::Hex, Some(-1)),
            ("0b11", NumberBase::ByPrefix, Some(3)),
            ("0o17", NumberBase::ByPrefix, Some(15)),
            ("017", NumberBase::ByPrefix, None),
            ("00", NumberBase::ByPrefix, Some(0)),
            ("", NumberBase::Decimal, None),
            ("0x", NumberBase::Hex, None),
            ("--1", NumberBase::Decimal, None),
        ] {
            assert_eq!(parse(text, base), expected, "{text} {base:?}");
        }
        assert_eq!(
            parse(&"9".repeat(100), NumberBase::Decimal),
            Some(i128::MAX)
        );
        assert_eq!(write(-31, NumberBase::Hex), "-0x1f");
        assert_eq!(write(31, NumberBase::Decimal), "31");
    }
}
