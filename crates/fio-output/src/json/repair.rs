//! Makes JSON of what fio sometimes prints instead.

/// What had to be done to a document before it could be read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Bytes of the input that were gone over.
    pub consumed: usize,
    /// `nan`, `-nan`, `inf`, … made into `null`.
    pub not_numbers: usize,
    /// Control characters, stray backslashes and bytes that are no UTF-8 in strings.
    pub in_strings: usize,
    /// Lines of other text between the lines of the document.
    pub foreign_lines: Vec<String>,
}

/// Goes once over `input`, up to the end of its first object, and returns what
/// a strict reader accepts; `None` when the object does not end.
///
/// - numbers that are not (`-nan`, printed by old versions) become `null`
/// - what is not allowed inside a string is replaced or escaped: fio escapes
///   quotes and backslashes only, and old versions not even these
/// - a line outside of strings that begins like no JSON is left out: messages
///   of fio or its jobs that went to the same file
pub fn repair(input: &[u8]) -> Option<(Vec<u8>, Repairs)> {
    let mut repairs = Repairs::default();
    let mut out = Vec::with_capacity(input.len());
    let mut depth = 0usize;
    let mut line_start = true;
    while repairs.consumed < input.len() {
        let rest = &input[repairs.consumed..];
        if line_start && let Some(length) = foreign_line(rest) {
            let line = String::from_utf8_lossy(&rest[..length]);
            repairs.foreign_lines.push(line.trim().to_owned());
            repairs.consumed += length;
            continue;
        }
        line_start = rest[0] == b'\n';
        let length = match rest[0] {
            b'"' => string(rest, &mut out, &mut repairs),
            b'-' | b'+' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                word(rest, &mut out, &mut repairs)
            }
            byte => {
                out.push(byte);
                1
            }
        };
        repairs.consumed += length;
        match rest[0] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return Some((valid_utf8(out, &mut repairs), repairs));
        }
    }
    None
}

fn valid_utf8(bytes: Vec<u8>, repairs: &mut Repairs) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) => text.into_bytes(),
        Err(error) => {
            repairs.in_strings += 1;
            String::from_utf8_lossy(error.as_bytes())
                .into_owned()
                .into_bytes()
        }
    }
}

/// Copies a string, quotes included; returns its length in the input.
fn string(bytes: &[u8], out: &mut Vec<u8>, repairs: &mut Repairs) -> usize {
    out.push(b'"');
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                out.push(b'"');
                return at + 1;
            }
            b'\\' => {
                let next = bytes.get(at + 1).copied();
                let known = matches!(
                    next,
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u')
                );
                if known {
                    out.extend([b'\\', next.unwrap_or(b'\\')]);
                    at += 2;
                } else {
                    repairs.in_strings += 1;
                    out.extend(b"\\\\");
                    at += 1;
                }
            }
            0..0x20 => {
                repairs.in_strings += 1;
                out.push(b' ');
                at += 1;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
    at
}

/// Copies a word or a signed number, unless it stands for no number.
fn word(bytes: &[u8], out: &mut Vec<u8>, repairs: &mut Repairs) -> usize {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"-+.#()".contains(b);
    let end = bytes
        .iter()
        .position(|b| !is_part(b))
        .unwrap_or(bytes.len());
    let word = &bytes[..end];
    let letters = word.iter().position(u8::is_ascii_alphabetic).unwrap_or(end);
    let name = word[letters..].get(..3).unwrap_or_default();
    // Windows writes 1.#QNAN, -1.#IND00, -nan(ind).
    let is_no_number = name.eq_ignore_ascii_case(b"nan")
        || name.eq_ignore_ascii_case(b"inf")
        || word.contains(&b'#');
    if is_no_number {
        repairs.not_numbers += 1;
        out.extend(b"null");
    } else {
        out.extend(word);
    }
    end
}

/// The length, newline included, of a line that begins like no JSON.
fn foreign_line(bytes: &[u8]) -> Option<usize> {
    let start = bytes.iter().position(|b| !matches!(b, b' ' | b'\t'))?;
    let is_foreign = match bytes[start] {
        b'{' | b'}' | b'[' | b']' | b'"' | b',' | b':' | b'-' | b'+' | b'0'..=b'9' => false,
        b'\r' | b'\n' => false,
        _ => !["null", "true", "false", "nan", "inf"]
            .iter()
            .any(|word| bytes[start..].starts_with(word.as_bytes())),
    };
    is_foreign.then(|| memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1))
}
