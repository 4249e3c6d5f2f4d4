//! A part of a campaign, as `--only` and `D=` name it.

use std::str::FromStr;

use fathom_kconfig::matches;
use fathom_model::Point;
use serde::{Deserialize, Serialize};

/// Names a test, a folder, a series, a profile or a single point.
///
/// With a `/` it is a path below the campaign's folder, and means everything
/// under it. Without, it is the name of a folder or job file anywhere, with or
/// without its number, or of a profile. `*`, `?` and `[a-z]` stand for
/// characters of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub struct Only {
    written: String,
    parts: Vec<String>,
}

impl FromStr for Only {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(text))
    }
}

impl From<Only> for String {
    fn from(only: Only) -> Self {
        only.written
    }
}

impl From<String> for Only {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl Only {
    /// What a text names.
    pub fn new(text: &str) -> Self {
        let plain = text.strip_suffix(".ini").unwrap_or(text);
        let parts = plain.split('/').filter(|part| !matches!(*part, "" | "."));
        Self {
            written: text.to_owned(),
            parts: parts.map(str::to_owned).collect(),
        }
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Whether a point belongs to it.
    pub fn has(&self, point: &Point) -> bool {
        self.has_id(&point.id)
    }

    /// The same of a point by its id.
    pub fn has_id(&self, id: &str) -> bool {
        let mut levels = id.split('/');
        match self.parts.as_slice() {
            [] => true,
            [name] => levels.any(|level| is_called(level, name)),
            parts => parts
                .iter()
                .all(|part| levels.next().is_some_and(|level| matches(part, level))),
        }
    }

    /// The same of a point whose profile is known.
    pub(crate) fn has_of_profile(&self, id: &str, profile: &str) -> bool {
        let is_profile = matches!(self.parts.as_slice(), [name] if matches(name, profile));
        is_profile || self.has_id(id)
    }
}

/// Whether a folder or file has this name, or has it behind its number and
/// test: `0004-maxiobatch-randread` is called `maxiobatch-randread` and
/// `randread`.
fn is_called(level: &str, name: &str) -> bool {
    let behind = level.match_indices('-').map(|(at, _)| &level[at + 1..]);
    std::iter::once(level)
        .chain(behind)
        .any(|end| matches(name, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_named_by_path_name_or_profile() {
        let id = "0004-maxiobatch-jobs/0004-maxiobatch-randread/0001-256qd-randread/0003-bs4k-4j-256qd-randread";
        for (text, expected) in [
            ("", true),
            (".", true),
            ("0004-maxiobatch-jobs", true),
            ("./0004-maxiobatch-jobs/", true),
            ("maxiobatch-jobs", true),
            ("0004-maxiobatch-jobs/0004-maxiobatch-randread", true),
            (
                "0004-maxiobatch-jobs/0005-maxiobatch-randwrite-70-30",
                false,
            ),
            ("randread", true),
            ("read", false),
            ("randwrite", false),
            ("*/*/0001-256qd-*", true),
            ("*/*/0002-*", false),
            ("256qd-randread", true),
            ("0003-bs4k-4j-256qd-randread.ini", true),
            ("0001-basic-tests", false),
        ] {
            assert_eq!(Only::new(text).has_id(id), expected, "{text}");
        }
        assert!(!Only::new("seqread").has_id("0003-x/0002-maxiobatch-read/0001-y"));
        assert!(
            Only::new("seqread").has_of_profile("0003-x/0002-maxiobatch-read/0001-y", "seqread")
        );
    }
}
