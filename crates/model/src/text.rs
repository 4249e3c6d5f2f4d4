//! Foreign text, made fit to be shown.
//!
//! Names of jobs, files and hosts, and what other programs say, come from
//! elsewhere. Raw on a terminal they could clear it, change its colours or its
//! title, or stand in another order than they are read. This is the one place
//! that says which characters those are.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Stands for a character that is not shown.
pub const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// Whether a character is obeyed by terminals or changes how others are read,
/// instead of being seen: controls, line separators, marks of direction (Unicode
/// annex 9, as in CVE-2021-42574) and what has no width. Joiners are not among
/// them: scripts and emoji need them.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text of one line: breaks and tabs become spaces, hidden characters U+FFFD.
pub fn line(text: &str) -> Cow<'_, str> {
    replace(text, |c| match c {
        '\n' | '\t' | '\r' => Some(' '),
        c => is_hidden(c).then_some(REPLACEMENT),
    })
}

/// Text of several lines: breaks and tabs stay, hidden characters become U+FFFD.
pub fn lines(text: &str) -> Cow<'_, str> {
    replace(text, |c| {
        (is_hidden(c) && c != '\n' && c != '\t').then_some(REPLACEMENT)
    })
}

fn replace(text: &str, other: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte);
    if text.bytes().all(is_plain) || !text.chars().any(|c| other(c).is_some()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| other(c).unwrap_or(c)).collect())
}

/// JSON that a terminal can show: hidden characters stand as their escapes,
/// which mean the same to every reader. In JSON they occur only within strings.
pub fn json(text: &str) -> Cow<'_, str> {
    let stays = |c: char| !is_hidden(c) || c == '\n';
    if text.is_ascii() || text.chars().all(stays) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if stays(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a String cannot fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    Cow::Owned(escaped)
}

/// Words without what Markdown obeys: no link, no HTML, no end of a field. Within a word it
/// takes `_` for a letter.
pub fn markdown(words: &str) -> String {
    let mut safe = String::with_capacity(words.len());
    let mut chars = words.chars().peekable();
    let mut is_in_word = false;
    while let Some(c) = chars.next() {
        is_in_word &= chars.peek().is_some_and(|next| next.is_alphanumeric());
        if "\\`*{}[]<>()#!|&~$".contains(c) || (c == '_' && !is_in_word) {
            safe.push('\\');
        }
        safe.push(c);
        is_in_word = c.is_alphanumeric();
    }
    safe
}

/// A field of CSV that holds text: quoted where it has to be (RFC 4180), without
/// hidden characters, and behind an apostrophe where a spreadsheet would take it
/// for a formula. A number stays a number.
pub fn csv_field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r'])
        && !text.parse::<f64>().is_ok_and(f64::is_finite);
    let guard = if is_formula { "'" } else { "" };
    let shown = line(text);
    match shown.contains([',', '"']) {
        true => format!("\"{guard}{}\"", shown.replace('"', "\"\"")),
        false => format!("{guard}{shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_not_shown() {
        let hostile = "a\u{1b}]0;title\u{7}\u{9b}31m\u{202e}b\u{2066}\u{2028}c\u{feff}\r\n\td";
        assert_eq!(
            line(hostile),
            "a\u{fffd}]0;title\u{fffd}\u{fffd}31m\u{fffd}b\u{fffd}\u{fffd}c\u{fffd}   d"
        );
        assert!(lines(hostile).ends_with("c\u{fffd}\u{fffd}\n\td"));
        for plain in ["", "p99.9 µs ± 3 %", "漢字", "👩\u{200d}💻", "x\u{a0}y"] {
            assert!(matches!(line(plain), Cow::Borrowed(_)));
            assert!(matches!(lines(plain), Cow::Borrowed(_)));
        }
    }

    #[test]
    fn json_means_the_same_and_hides_nothing() {
        let hostile = "a\u{1b}[31m\u{202e}\u{7f}\u{e0001}\"\\ä\n";
        let written = serde_json::to_string_pretty(&[hostile]).unwrap();
        let shown = json(&written);
        assert!(!shown.chars().any(|c| is_hidden(c) && c != '\n'), "{shown}");
        let back: Vec<String> = serde_json::from_str(&shown).unwrap();
        assert_eq!(back, [hostile]);
    }

    #[test]
    fn a_field_of_text_is_no_formula_and_a_number_stays_one() {
        for (text, field) in [
            ("=1+2", "'=1+2"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+x,y", "\"'+x,y\""),
            ("-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"),
            ("\t=1", "' =1"),
            ("\r=1", "' =1"),
            ("-inf", "'-inf"),
            ("-1.5", "-1.5"),
            ("+3e4", "+3e4"),
            ("16 files, \"fast\"", "\"16 files, \"\"fast\"\"\""),
            ("a=b", "a=b"),
            ("a\u{1b}[2Jb\nc", "a\u{fffd}[2Jb c"),
            ("", ""),
        ] {
            assert_eq!(csv_field(text), field, "{text:?}");
        }
    }
}
