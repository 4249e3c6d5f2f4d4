//! The lines of samples exactly as [`crate::Writer`] writes them, taken apart
//! without a JSON parser: a record of days has millions of them. Every other line
//! is for the parser, which alone knows errors.

use fathom_model::{Direction, Entry, Event, Histogram, Sample};

/// The sample in a line; `None`: the parser must look.
pub(crate) fn sample(line: &[u8]) -> Option<Entry> {
    let mut rest = Rest(line);
    rest.expect(br#"{"at_ms":"#)?;
    let at_ms = rest.number()?;
    rest.expect(br#","event":"sample","t_ms":"#)?;
    let t_ms = rest.number()?;
    rest.expect(br#","span_ms":"#)?;
    let span_ms = rest.number()?;
    rest.expect(br#","job":"#)?;
    let job = u32::try_from(rest.number()?).ok()?;
    rest.expect(br#","dir":""#)?;
    let dir = rest.direction()?;
    rest.expect(br#"","ios":"#)?;
    let ios = rest.number()?;
    rest.expect(br#","bytes":"#)?;
    let bytes = rest.number()?;
    let clat = match rest.0 {
        b"}" => None,
        _ => {
            rest.expect(br#","clat":["#)?;
            Some(rest.histogram()?)
        }
    };
    let event = Event::Sample(Sample {
        t_ms,
        span_ms,
        job,
        dir,
        ios,
        bytes,
        clat,
        lat: None,
    });
    (rest.0 == b"}").then_some(Entry { at_ms, event })
}

/// What is left of a line.
struct Rest<'l>(&'l [u8]);

impl Rest<'_> {
    fn expect(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// A whole number, without the leading zeros that JSON forbids.
    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        let mut digits = 0;
        while let Some(digit @ b'0'..=b'9') = self.0.get(digits) {
            value = value
                .checked_mul(10)?
                .checked_add(u64::from(digit - b'0'))?;
            digits += 1;
        }
        let is_one = digits == 1 || (digits > 1 && self.0[0] != b'0');
        self.0 = &self.0[digits..];
        is_one.then_some(value)
    }

    fn direction(&mut self) -> Option<Direction> {
        let found = Direction::ALL
            .into_iter()
            .find(|dir| self.0.starts_with(dir.name().as_bytes()))?;
        self.expect(found.name().as_bytes())?;
        Some(found)
    }

    /// What stands between `[` and `]`, and the `]`.
    fn histogram(&mut self) -> Option<Histogram> {
        if self.expect(b"]").is_some() {
            return Some(Histogram::new());
        }
        // A comma between each two numbers.
        let commas = self.0.iter().filter(|&&byte| byte == b',').count();
        let mut is_good = true;
        let mut is_over = false;
        let pairs = std::iter::from_fn(|| {
            if is_over {
                return None;
            }
            let pair = (|| {
                let distance = self.number()?;
                self.expect(b",")?;
                Some((distance, self.number()?))
            })();
            is_over = self.expect(b"]").is_some();
            is_good &= pair.is_some() && (is_over || self.expect(b",").is_some());
            is_over |= !is_good;
            pair
        });
        let histogram = Histogram::from_stored(pairs, commas / 2 + 1)?;
        is_good.then_some(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(line: &str) -> Entry {
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn what_the_writer_writes_is_taken_apart() {
        for line in [
            r#"{"at_ms":7,"event":"sample","t_ms":1,"span_ms":0,"job":3,"dir":"read","ios":1,"bytes":2}"#,
            r#"{"at_ms":7,"event":"sample","t_ms":1,"span_ms":0,"job":3,"dir":"mixed","ios":1,"bytes":2,"clat":[]}"#,
            r#"{"at_ms":7,"event":"sample","t_ms":1,"span_ms":9,"job":0,"dir":"write","ios":1,"bytes":2,"clat":[400,1,3,18446744073709551615]}"#,
        ] {
            assert_eq!(sample(line.as_bytes()).unwrap(), parsed(line));
        }
    }

    #[test]
    fn what_is_written_otherwise_is_left_to_the_parser() {
        let good = r#"{"at_ms":7,"event":"sample","t_ms":1,"span_ms":0,"job":3,"dir":"read","ios":1,"bytes":2,"clat":[4,1,5,2]}"#;
        assert!(sample(good.as_bytes()).is_some());
        for (from, to) in [
            ("[4,1,5,2]", "[4,1,5]"),
            ("[4,1,5,2]", "[4,1,5,2,]"),
            ("[4,1,5,2]", "[4,1,,2]"),
            ("[4,1,5,2]", "[99999,1]"),
            ("[4,1,5,2]", "[4,1,5,2"),
            ("\"job\":3", "\"job\":4294967296"),
            ("\"ios\":1", "\"ios\":01"),
            ("\"ios\":1", "\"ios\":18446744073709551616"),
            ("\"ios\":1", "\"ios\":-1"),
            ("read", "reads"),
            ("]}", "]} "),
            ("]}", "],\"more\":1}"),
            ("{\"at_ms\"", "{ \"at_ms\""),
        ] {
            let line = good.replace(from, to);
            assert_ne!(line, good);
            assert_eq!(sample(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn cut_and_changed_lines_are_read_as_the_parser_reads_them_or_not_at_all(
            at in 0usize..200, byte in any::<u8>(), cut in any::<bool>(),
            counts in prop::collection::vec((0u64..300, 0u64..9), 0..20),
        ) {
            let clat: Vec<String> = counts.iter().map(|(d, n)| format!("{d},{n}")).collect();
            let mut line = format!(
                r#"{{"at_ms":7,"event":"sample","t_ms":10,"span_ms":0,"job":3,"dir":"trim","ios":1,"bytes":2,"clat":[{}]}}"#,
                clat.join(",")
            ).into_bytes();
            let at = at.min(line.len() - 1);
            match cut {
                true => line.truncate(at),
                false => line[at] = byte,
            }
            if let Some(entry) = sample(&line) {
                let parsed: Entry = serde_json::from_slice(&line).unwrap();
                prop_assert_eq!(entry, parsed);
            }
        }
    }
}
