//! Sizes as a benchmark in a cluster is told them.

use std::fmt;
use std::str::FromStr;

use fathom_model::units::{format_size, parse_size};
use serde::{Deserialize, Serialize};

/// Bytes of a gigabyte as claims and file sizes count it (`Gi`, fio's `g`).
pub(super) const GIB: u64 = 1 << 30;
/// Files have whole blocks of any size that people take, and claims are counted
/// in this.
const MIB: u64 = 1 << 20;

/// A size: in GiB where no unit is named (`2`, `0.3`), else as everywhere
/// (`300M`). Whole MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "WrittenSize", into = "String")]
pub struct GibSize(u64);

/// As a file of parameters has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenSize {
    Whole(u64),
    Part(f64),
    Text(String),
}

impl GibSize {
    /// So many GiB.
    pub fn of_gib(gib: u64) -> Self {
        Self(gib.saturating_mul(GIB))
    }

    /// The size in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for GibSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let is_number = text.chars().all(|c| c.is_ascii_digit() || c == '.');
        let bytes = match text.parse::<f64>() {
            Ok(gib) if is_number => Some((gib * GIB as f64) as u64),
            _ => parse_size(text),
        };
        // Beyond this JSON and YAML have no exact numbers any more.
        let bytes = bytes.filter(|bytes| (MIB..1 << 53).contains(bytes));
        bytes.map(|bytes| Self(bytes / MIB * MIB)).ok_or_else(|| {
            format!("'{text}' is no size of 1 MiB or more, like 2, 0.3 (GiB) or 300M")
        })
    }
}

impl TryFrom<WrittenSize> for GibSize {
    type Error = String;

    fn try_from(written: WrittenSize) -> Result<Self, String> {
        match written {
            WrittenSize::Whole(gib) => gib.to_string().parse(),
            WrittenSize::Part(gib) => gib.to_string().parse(),
            WrittenSize::Text(text) => text.parse(),
        }
    }
}

impl fmt::Display for GibSize {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&format_size(self.0))
    }
}

impl From<GibSize> for String {
    fn from(size: GibSize) -> Self {
        size.to_string()
    }
}

/// A size as fio's job files have it: `2g`, `307m`.
pub(super) fn in_job(bytes: u64) -> String {
    format_size(bytes).to_ascii_lowercase()
}

/// A size as claims have it: `40Gi`, `307Mi`.
pub(super) fn in_claim(bytes: u64) -> String {
    match bytes % GIB {
        0 => format!("{}Gi", bytes / GIB),
        _ => format!("{}Mi", bytes.div_ceil(MIB)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_gib_and_units_are_sizes() {
        let bytes = |text: &str| text.parse::<GibSize>().map(GibSize::bytes);
        assert_eq!(bytes("2"), Ok(2 << 30));
        assert_eq!(bytes("0.3"), Ok(307 << 20), "whole MiB");
        assert_eq!(bytes("300M"), Ok(300 << 20));
        assert_eq!(bytes("1TiB"), Ok(1 << 40));
        for wrong in [
            "",
            "0",
            "-1",
            "1e3",
            "inf",
            "NaN",
            "2x",
            "100k",
            "99999999999",
            ".",
        ] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            (in_job(307 << 20), in_claim(307 << 20)),
            ("307m".into(), "307Mi".into())
        );
        assert_eq!(
            (in_job(2 << 30), in_claim(2 << 30)),
            ("2g".into(), "2Gi".into())
        );
    }

    #[test]
    fn a_file_has_them_as_numbers_or_as_texts() {
        #[derive(Deserialize, Serialize)]
        struct File {
            a: GibSize,
            b: GibSize,
            c: GibSize,
        }
        let file: File = toml::from_str("a = 2\nb = 0.5\nc = '300M'\n").unwrap();
        assert_eq!(
            [file.a.0, file.b.0, file.c.0],
            [2 << 30, 512 << 20, 300 << 20]
        );
        let again: File = toml::from_str(&toml::to_string(&file).unwrap()).unwrap();
        assert_eq!([again.a, again.b, again.c], [file.a, file.b, file.c]);
        assert!(toml::from_str::<File>("a = -1\nb = 1\nc = 1\n").is_err());
    }
}
