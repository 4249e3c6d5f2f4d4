//! Patterns of data: `0xdeadbeef`, `"text"`, `-12`, `%o`, one after the other
//! (lib/pattern.c, parse_and_fill_pattern).

use super::value::Outcome;
use crate::native::job::DataPattern;

/// fio.h, MAX_PATTERN_SIZE.
const MOST: usize = 512;

/// Bytes of an offset that stands in a pattern.
const OFFSET: usize = 8;

/// A pattern without `%o`: buffers are filled before anybody knows where they go.
pub(super) fn bytes(text: &str) -> Outcome<Vec<u8>> {
    let pattern = parse(text)?;
    if pattern.offsets.is_empty() {
        Ok(pattern.bytes)
    } else {
        Err("%o stands in a verify_pattern only".to_owned())
    }
}

/// A pattern, `%o` as eight zeros.
pub(super) fn parse(text: &str) -> Outcome<DataPattern> {
    let wrong = || format!("'{text}' is not a pattern such as 0xdeadbeef, -12, %o or \"text\"");
    let mut pattern = DataPattern::default();
    let mut rest = text;
    while !rest.is_empty() {
        rest = if let Some(quoted) = rest.strip_prefix('"') {
            let (inside, behind) = quoted.split_once('"').ok_or_else(wrong)?;
            pattern.bytes.extend_from_slice(inside.as_bytes());
            behind
        } else if let Some(behind) = rest.strip_prefix("%o") {
            pattern.offsets.push(pattern.bytes.len());
            pattern.bytes.extend_from_slice(&[0; OFFSET]);
            behind
        } else if rest.starts_with('\'') {
            return Err("the native engine reads no pattern from a file".to_owned());
        } else {
            let (number, behind) = rest.split_at(number_end(rest).ok_or_else(wrong)?);
            pattern
                .bytes
                .extend(number_bytes(number).ok_or_else(wrong)?);
            behind
        };
    }
    if pattern.bytes.is_empty() || pattern.bytes.len() > MOST {
        Err(wrong())
    } else {
        Ok(pattern)
    }
}

/// Where the number at the start ends: before what is no digit of it, and before the
/// `0x` of another one.
fn number_end(text: &str) -> Option<usize> {
    let hex = text
        .get(..2)
        .is_some_and(|two| two.eq_ignore_ascii_case("0x"));
    let from = if hex { 2 } else { 1 };
    let tail = text.get(from..)?;
    let is_digit = |c: char| c.is_ascii_digit() || (hex && c.is_ascii_hexdigit());
    let end = tail.find(|c| !is_digit(c)).unwrap_or(tail.len());
    let of_next = tail[end..].starts_with(['x', 'X']) && tail[..end].ends_with('0');
    Some(from + end - usize::from(of_next))
}

/// Hexadecimal as written; decimal as the bytes that its 32 bits need, the lowest first.
fn number_bytes(text: &str) -> Option<Vec<u8>> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let Some(hex) = hex else {
        let number = text.parse::<i32>().ok()?.to_le_bytes();
        let used = number
            .iter()
            .rposition(|&byte| byte != 0)
            .map_or(1, |at| at + 1);
        return Some(number[..used].to_vec());
    };
    if hex.is_empty() {
        return None;
    }
    let digits = format!("{}{hex}", if hex.len() % 2 == 1 { "0" } else { "" });
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of lib/pattern.c.
    #[test]
    fn patterns_are_fios() {
        let cases: [(&str, &[u8]); 8] = [
            ("\"abcd\"", b"abcd"),
            ("-1024", &[0, 0xfc, 0xff, 0xff]),
            ("66", &[0x42]),
            ("0xFF0X1", &[0xff, 1]),
            ("\"123\"0xFFeeCC", &[0x31, 0x32, 0x33, 0xff, 0xee, 0xcc]),
            ("-100xab\"1\"", &[0xf6, 0xff, 0xff, 0xff, 0xab, 0x31]),
            ("0xfff", &[0x0f, 0xff]),
            ("0", &[0]),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes(text).as_deref(), Ok(expected), "{text}");
        }
        let both = parse("%o0xdeadbeef%o").unwrap();
        assert_eq!((both.bytes.len(), both.offsets), (20, vec![0, 12]));
        for text in ["0x", "x", "\"a", "%d", "-", "%o", "99999999999"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
