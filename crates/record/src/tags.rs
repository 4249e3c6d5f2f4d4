//! Words that a user gives runs, to find them again: `host=a`, `build=old`.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::Header;

/// Where tags stand among a header's facts.
const FACT: &str = "tags";
/// A longer word is no tag.
const BYTES_MAX: usize = 200;

static OF_THIS_PROCESS: OnceLock<Vec<Tag>> = OnceLock::new();

/// A tag, `NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    name: String,
    value: String,
}

impl FromStr for Tag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| format!("'{text}' is not NAME=VALUE"))?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!(
                "'{name}': names of tags are of letters, digits, . _ and -"
            ));
        }
        if text.len() > BYTES_MAX || text.chars().any(char::is_control) {
            return Err(format!("a tag is one line of {BYTES_MAX} bytes at most"));
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// Gives these tags to every record that this process makes from now on. Only the first
/// call does anything.
pub fn tag_records(tags: &[Tag]) {
    let _ = OF_THIS_PROCESS.set(tags.to_vec());
}

/// Adds the tags of this process to a new record's header.
pub(crate) fn add(header: &mut Header) {
    let tags = OF_THIS_PROCESS.get().map_or(&[][..], Vec::as_slice);
    if !tags.is_empty() {
        let each = tags.iter().map(|tag| (tag.name.clone(), json!(tag.value)));
        header
            .facts
            .insert(FACT.to_owned(), Value::Object(each.collect()));
    }
}

impl Header {
    /// The run's tags.
    #[must_use]
    pub fn tags(&self) -> BTreeMap<&str, &str> {
        let tags = self.facts.get(FACT).and_then(Value::as_object);
        let each = tags.into_iter().flatten();
        each.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect()
    }

    /// Whether the run has all of these tags.
    #[must_use]
    pub fn has_tags(&self, tags: &[Tag]) -> bool {
        let own = self.tags();
        tags.iter()
            .all(|tag| own.get(tag.name.as_str()) == Some(&tag.value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_a_name_and_a_value() {
        let tag: Tag = "host=a=b c".parse().unwrap();
        assert_eq!((tag.name.as_str(), tag.value.as_str()), ("host", "a=b c"));
        for bad in ["host", "=a", "a b=c", "a=\n", "a=\u{1b}[31m"] {
            assert!(bad.parse::<Tag>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn runs_are_chosen_by_all_of_the_tags() {
        let mut header = Header::new("a", "job run");
        header
            .facts
            .insert(FACT.into(), json!({"host": "a", "build": "old"}));
        let has = |tags: &[&str]| {
            let tags: Vec<Tag> = tags.iter().map(|tag| tag.parse().unwrap()).collect();
            header.has_tags(&tags)
        };
        assert!(has(&[]) && has(&["host=a"]) && has(&["host=a", "build=old"]));
        assert!(!has(&["host=b"]) && !has(&["host=a", "x=y"]));
    }
}
