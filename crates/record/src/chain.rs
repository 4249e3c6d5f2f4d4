//! The check values of a log: they make a line that was changed, lost or added known,
//! and its place.

/// What stands before a check value, and behind it.
const FIELD: &[u8] = br#","check":""#;
const END: &[u8] = b"\"}";
/// Digits of a check value.
const DIGITS: usize = 8;

/// The running check of a file: CRC-32 (that of zlib, Ethernet, `crc32`) of all its
/// bytes so far.
///
/// The last line of each write(2) ends with the check of everything that stands before
/// the field, so that whatever changes up to there shows at the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Chain(u32);

impl Chain {
    /// That of a file which holds these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut chain = Self::default();
        chain.over(bytes);
        chain
    }

    /// Goes on over bytes that are in the file as they are.
    pub(crate) fn over(&mut self, bytes: &[u8]) {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.0);
        hasher.update(bytes);
        self.0 = hasher.finalize();
    }

    /// Puts the check into the last of these lines, which are JSON objects and whole,
    /// and goes on behind them.
    pub fn seal(&mut self, lines: &mut Vec<u8>) {
        let Some(open) = lines.strip_suffix(b"}\n").map(<[u8]>::len) else {
            self.over(lines);
            return;
        };
        lines.truncate(open);
        self.over(lines);
        lines.extend_from_slice(FIELD);
        lines.extend_from_slice(self.to_string().as_bytes());
        lines.extend_from_slice(b"\"}\n");
        self.over(&lines[open..]);
    }

    /// Goes over whole lines, the last of which may be sealed; whether its check holds.
    /// After one that does not it goes on as if the lines were what they should be.
    pub(crate) fn verify(&mut self, lines: &[u8]) -> Result<(), CheckMismatch> {
        let Some((open, told)) = check_of(lines.strip_suffix(b"\n").unwrap_or(lines)) else {
            self.over(lines);
            return Ok(());
        };
        self.over(&lines[..open]);
        let is_as_told = self.0 == told;
        self.0 = told;
        self.over(&lines[open..]);
        match is_as_told {
            true => Ok(()),
            false => Err(CheckMismatch),
        }
    }
}

/// A check that does not hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CheckMismatch;

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// Where in a line, given without its end, the field of its check begins, and the check.
fn check_of(line: &[u8]) -> Option<(usize, u32)> {
    let open = line.len().checked_sub(FIELD.len() + DIGITS + END.len())?;
    let digits = line[open..].strip_prefix(FIELD)?.strip_suffix(END)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let is_plain = digits
        .bytes()
        .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let told = u32::from_str_radix(digits, 16).ok()?;
    is_plain.then_some((open, told))
}

/// Whether a line, given without its end, closes with a check.
pub(crate) fn is_sealed(line: &[u8]) -> bool {
    check_of(line).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_the_crc_of_everything_before_its_field() {
        let mut chain = Chain::default();
        let mut first = b"{\"a\":1}\n{\"b\":2}\n".to_vec();
        chain.seal(&mut first);
        let open = b"{\"a\":1}\n{\"b\":2";
        let expected = format!("{:08x}", crc32fast::hash(open));
        let text = String::from_utf8(first.clone()).unwrap();
        assert_eq!(
            text,
            format!("{{\"a\":1}}\n{{\"b\":2,\"check\":\"{expected}\"}}\n")
        );
        let mut second = b"{\"c\":3}\n".to_vec();
        chain.seal(&mut second);
        let whole = [first.clone(), second.clone()].concat();
        assert_eq!(
            chain.to_string(),
            format!("{:08x}", crc32fast::hash(&whole))
        );

        let mut reader = Chain::default();
        assert_eq!(reader.verify(&first), Ok(()));
        assert_eq!(reader.verify(&second), Ok(()));
        assert_eq!(reader, chain);
    }

    #[test]
    fn what_is_wrong_is_told_once_and_what_follows_it_holds() {
        let mut chain = Chain::default();
        let mut blocks: Vec<Vec<u8>> = (0..3)
            .map(|n| format!("{{\"n\":{n}}}\n").into_bytes())
            .collect();
        blocks.iter_mut().for_each(|block| chain.seal(block));
        let mut changed = blocks[1].clone();
        changed[5] = b'7';
        let mut reader = Chain::default();
        assert_eq!(reader.verify(&blocks[0]), Ok(()));
        assert_eq!(reader.verify(&changed), Err(CheckMismatch));
        assert_eq!(reader.verify(&blocks[2]), Ok(()));
        assert_eq!(reader, chain);
        // A block that is gone.
        let mut reader = Chain::default();
        assert_eq!(reader.verify(&blocks[0]), Ok(()));
        assert_eq!(reader.verify(&blocks[2]), Err(CheckMismatch));
    }

    #[test]
    fn a_text_that_looks_like_a_check_is_none() {
        let text = serde_json::json!({"text": "x\",\"check\":\"00000000"}).to_string();
        assert!(!is_sealed(text.as_bytes()), "{text}");
        assert!(!is_sealed(b"{\"a\":{\"x\":1,\"check\":\"00000000\"}}"));
        assert!(!is_sealed(b"{\"x\":1,\"check\":\"0000000G\"}"));
        assert!(is_sealed(b"{\"x\":1,\"check\":\"0a00000f\"}"));
    }
}
