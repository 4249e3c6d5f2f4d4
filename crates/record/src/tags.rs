//! Words that a user gives runs, to find them again: `host=a`, `build=old`. Those of the
//! beginning stand in the header; what is said afterwards lies beside the log, which nobody
//! changes.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::first_line::not_a_record;
use crate::segment::regular;
use crate::{Entries, Header, RecordError, now_ms, replace};

/// Name of the file that holds what was said of a run afterwards.
pub(crate) const REMARKS: &str = "remarks.json";
/// Its format.
const REMARKS_FORMAT: &str = "fathom.remarks/1";
/// More than anybody says of a run.
const REMARKS_BYTES_MAX: u64 = 1 << 20;
/// A longer text is no remark.
const TEXT_BYTES_MAX: usize = 4 << 10;

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

/// What was said of a run after it began: tags in addition to those of its header, or in
/// their place, and notes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRemarks {
    schema: String,
    /// Of a tag that was taken away there is no value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, Option<String>>,
    /// Oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<RunRemark>,
}

/// One note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRemark {
    /// When it was said, ms since 1970 UTC.
    pub at_ms: u64,
    /// What.
    pub text: String,
}

impl Default for RunRemarks {
    fn default() -> Self {
        Self {
            schema: REMARKS_FORMAT.to_owned(),
            tags: BTreeMap::new(),
            notes: Vec::new(),
        }
    }
}

impl RunRemarks {
    /// Those of a record; none where nothing was said.
    ///
    /// # Errors
    /// When they cannot be read, or are of a newer Fathom.
    pub fn read(dir: &Path) -> Result<Self, RecordError> {
        let path = dir.join(REMARKS);
        let file = match regular(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            file => file.map_err(|e| RecordError::file(&path, e))?,
        };
        let mut text = String::new();
        file.take(REMARKS_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(|e| RecordError::file(&path, e))?;
        let remarks: Self =
            serde_json::from_str(&text).map_err(|e| not_a_record(&path, e.to_string()))?;
        match remarks.schema == REMARKS_FORMAT {
            true => Ok(remarks),
            false => {
                let reason = format!("it is of '{}', not {REMARKS_FORMAT}", remarks.schema);
                Err(not_a_record(&path, reason))
            }
        }
    }

    /// Gives the run a tag, in the place of one of the same name.
    pub fn tag(&mut self, tag: &Tag) {
        self.tags.insert(tag.name.clone(), Some(tag.value.clone()));
    }

    /// Takes a tag away.
    pub fn untag(&mut self, name: &str) {
        self.tags.insert(name.to_owned(), None);
    }

    /// Adds a note.
    ///
    /// # Errors
    /// When it is too long, or empty.
    pub fn note(&mut self, text: &str) -> Result<(), String> {
        if text.trim().is_empty() || text.len() > TEXT_BYTES_MAX {
            return Err(format!(
                "a note is a text of {TEXT_BYTES_MAX} bytes at most"
            ));
        }
        self.notes.push(RunRemark {
            at_ms: now_ms(),
            text: text.to_owned(),
        });
        Ok(())
    }

    /// Puts them beside the log of a record.
    ///
    /// # Errors
    /// When they are too many, or cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), RecordError> {
        let path = dir.join(REMARKS);
        let failed = |e| RecordError::file(&path, e);
        let mut text = serde_json::to_vec_pretty(self).map_err(|e| failed(e.into()))?;
        text.push(b'\n');
        if text.len() as u64 >= REMARKS_BYTES_MAX {
            return Err(RecordError::kept(dir, "too much is said of it already"));
        }
        replace(&path, |file| {
            file.write_all(&text).and_then(|()| file.sync_all())
        })
        .map_err(failed)
    }
}

impl Entries {
    /// The run's tags: of its header and of what was said later. What cannot be read of
    /// that says nothing.
    pub fn tags(&self) -> BTreeMap<String, String> {
        let own = self.header.tags().into_iter();
        let mut tags: BTreeMap<String, String> = own
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        for (name, value) in RunRemarks::read(self.dir()).unwrap_or_default().tags {
            match value {
                Some(value) => tags.insert(name, value),
                None => tags.remove(&name),
            };
        }
        tags
    }

    /// Whether the run has all of these tags.
    pub fn has_tags(&self, tags: &[Tag]) -> bool {
        let own = self.tags();
        tags.iter()
            .all(|tag| own.get(&tag.name) == Some(&tag.value))
    }
}

impl Header {
    /// The tags that the run was begun with; [`Entries::tags`] has what was said later, too.
    pub fn tags(&self) -> BTreeMap<&str, &str> {
        let tags = self.facts.get(FACT).and_then(Value::as_object);
        let each = tags.into_iter().flatten();
        each.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use fathom_model::RunStatus;

    use super::*;
    use crate::{EVENTS, Writer};

    #[test]
    fn a_tag_is_a_name_and_a_value() {
        let tag: Tag = "host=a=b c".parse().unwrap();
        assert_eq!((tag.name.as_str(), tag.value.as_str()), ("host", "a=b c"));
        for bad in ["host", "=a", "a b=c", "a=\n", "a=\u{1b}[31m"] {
            assert!(bad.parse::<Tag>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn runs_are_chosen_by_all_of_the_tags_also_those_of_later() {
        let runs = tempfile::tempdir().unwrap();
        let mut header = Header::new("a", "job run");
        header
            .facts
            .insert(FACT.into(), json!({"host": "a", "build": "old"}));
        let writer = Writer::create(runs.path(), &header).unwrap();
        let dir = writer.finish(RunStatus::Complete).unwrap();
        let log = fs::read(dir.join(EVENTS)).unwrap();
        let has = |tags: &[&str]| {
            let tags: Vec<Tag> = tags.iter().map(|tag| tag.parse().unwrap()).collect();
            Entries::open(&dir).unwrap().has_tags(&tags)
        };
        assert!(has(&[]) && has(&["host=a"]) && has(&["host=a", "build=old"]));
        assert!(!has(&["host=b"]) && !has(&["host=a", "x=y"]));
        let mut remarks = RunRemarks::read(&dir).unwrap();
        remarks.tag(&"x=y".parse().unwrap());
        remarks.tag(&"host=b".parse().unwrap());
        remarks.untag("build");
        remarks.note("a cable was loose").unwrap();
        assert!(remarks.note(" ").is_err());
        remarks.write(&dir).unwrap();
        assert_eq!(RunRemarks::read(&dir).unwrap(), remarks);
        assert!(has(&["host=b", "x=y"]) && !has(&["build=old"]));
        assert_eq!(fs::read(dir.join(EVENTS)).unwrap(), log);
        // Of a newer Fathom, or damaged: never overwritten.
        let newer = json!({"schema": REMARKS_FORMAT.replace('1', "2")}).to_string();
        for text in [newer.as_str(), "{"] {
            fs::write(dir.join(REMARKS), text).unwrap();
            assert!(RunRemarks::read(&dir).is_err());
        }
    }
}
