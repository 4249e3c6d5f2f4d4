//! A copy of a record that does not say whose it is: serial numbers, WWNs, names of hosts
//! and users, paths and addresses have pseudonyms, the same one wherever the same word
//! stands. What a report or an archive is made of then is a record like any other.

mod looks;
mod words;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_model::Event;
use serde_json::Value;

use crate::first_line::{id_of, not_a_record};
use crate::{EVENTS, Entries, Header, RecordError, Writer};
use words::Pseudonyms;

/// What is made of a record and would have to be made anew of the copy.
const MADE_OF_IT: [&str; 6] = [
    "graphs",
    "exports",
    "report.html",
    "report.redacted.html",
    "snia.html",
    ".reserve",
];
/// A file that is longer is left out: no job file and no text of a run is.
const TEXT_BYTES_MAX: u64 = 256 << 20;

/// What became of a record.
#[derive(Debug)]
pub struct RedactedRecord {
    /// The folder of the copy.
    pub dir: PathBuf,
    /// Files that are not in it: no text in which words could be found.
    pub left_out: Vec<PathBuf>,
}

/// Writes a redacted copy of a record into a folder of runs. Several records that are
/// given one after the other to the same [`Redaction`] share their pseudonyms.
#[derive(Debug, Default)]
pub struct Redaction(Pseudonyms);

impl Redaction {
    /// Copies a record.
    ///
    /// # Errors
    /// When it is damaged, cannot be read or written, or would not be a record any more.
    pub fn copy(&mut self, dir: &Path, runs_dir: &Path) -> Result<RedactedRecord, RecordError> {
        // First all words, so that none is met before it is known.
        for record in records(dir)? {
            self.learn(&record)?;
        }
        let mut left_out = Vec::new();
        for file in files(dir)? {
            if let Some(text) = text_of(&file)? {
                self.0.learn_from_text(&text);
            }
        }
        let to = runs_dir.join(self.0.replace(&id_of(dir)));
        self.copy_folder(dir, &to, &mut left_out)?;
        Ok(RedactedRecord { dir: to, left_out })
    }

    /// Takes the words of a record's own fields.
    fn learn(&mut self, dir: &Path) -> Result<(), RecordError> {
        let mut entries = Entries::open(dir)?;
        entries.header.forget_start();
        self.0.learn(&as_value(dir, &entries.header)?);
        for entry in entries.by_ref() {
            let entry = entry?;
            if has_words(&entry.event) {
                self.0.learn(&as_value(dir, &entry)?);
            }
        }
        Ok(())
    }

    fn copy_folder(
        &mut self,
        from: &Path,
        to: &Path,
        left_out: &mut Vec<PathBuf>,
    ) -> Result<(), RecordError> {
        fs::create_dir_all(to).map_err(|e| RecordError::file(to, e))?;
        let is_record = from.join(EVENTS).is_file();
        if is_record {
            self.copy_log(from, to)?;
        }
        for path in entries_of(from)? {
            let name = id_of(&path);
            let is_log = is_record && crate::is_log(Path::new(&name));
            if is_log || MADE_OF_IT.contains(&name.as_str()) {
                continue;
            }
            let place = to.join(self.0.replace(&name));
            let kind = fs::symlink_metadata(&path).map_err(|e| RecordError::file(&path, e))?;
            if kind.is_dir() {
                self.copy_folder(&path, &place, left_out)?;
                continue;
            }
            match text_of(&path)? {
                Some(text) => {
                    let text = self.text(&name, &text);
                    fs::write(&place, text).map_err(|e| RecordError::file(&place, e))?;
                }
                None => left_out.push(path),
            }
        }
        Ok(())
    }

    /// A file's text; of JSON what stands in its strings.
    fn text(&mut self, name: &str, text: &str) -> String {
        let is_lines = name.ends_with(".jsonl");
        if !is_lines && !name.ends_with(".json") {
            return self.0.redact(text);
        }
        let mut parts = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let mut redacted = String::new();
        while let Some(Ok(part)) = parts.next() {
            let part = self.0.redact_value(part, "");
            redacted += &match is_lines {
                true => part.to_string(),
                false => format!("{part:#}"),
            };
            redacted.push('\n');
        }
        // What is no JSON, or not all of it.
        let rest = parts.byte_offset();
        let rest = text.get(rest..).unwrap_or_default();
        redacted + &self.0.redact(rest.trim_start())
    }

    fn copy_log(&mut self, from: &Path, to: &Path) -> Result<(), RecordError> {
        let mut entries = Entries::open(from)?;
        // A copy does not go on, and nobody knows what they hold.
        entries.header.forget_start();
        let header = as_value(from, &entries.header)?;
        let header: Header = back(from, self.0.redact_value(header, ""))?;
        let mut writer = Writer::create_in(to, &header)?;
        for entry in entries.by_ref() {
            let mut entry = entry?;
            if has_words(&entry.event) {
                let kind = std::mem::discriminant(&entry.event);
                let redacted = self.0.redact_value(as_value(from, &entry)?, "");
                entry = back(from, redacted)?;
                if std::mem::discriminant(&entry.event) != kind {
                    let reason = "a name in it is a word that the record itself needs";
                    return Err(not_a_record(from, reason.to_owned()));
                }
            }
            writer.append_entry(&entry)?;
        }
        writer.leave()
    }
}

/// Whether an event can say anything but figures.
fn has_words(event: &Event) -> bool {
    !matches!(event, Event::Sample(_) | Event::Interval { .. })
}

fn as_value(dir: &Path, of: &impl serde::Serialize) -> Result<Value, RecordError> {
    serde_json::to_value(of).map_err(|e| not_a_record(dir, e.to_string()))
}

fn back<T: serde::de::DeserializeOwned>(dir: &Path, value: Value) -> Result<T, RecordError> {
    serde_json::from_value(value)
        .map_err(|e| not_a_record(dir, format!("it cannot be redacted: {e}")))
}

/// The record and those of machines in it.
fn records(dir: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let logs = files(dir)?
        .into_iter()
        .filter(|file| file.file_name().is_some_and(|name| name == EVENTS));
    Ok(logs
        .filter_map(|log| Some(log.parent()?.to_owned()))
        .collect())
}

/// All files below a folder, in their order.
fn files(dir: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let mut files = Vec::new();
    for path in entries_of(dir)? {
        // What is made of the record says nothing new, or speaks in pseudonyms already.
        if MADE_OF_IT.contains(&id_of(&path).as_str()) {
            continue;
        }
        match fs::symlink_metadata(&path) {
            Ok(kind) if kind.is_dir() => files.extend(self::files(&path)?),
            _ => files.push(path),
        }
    }
    Ok(files)
}

fn entries_of(dir: &Path) -> Result<BTreeSet<PathBuf>, RecordError> {
    let entries = fs::read_dir(dir).and_then(|it| it.map(|it| Ok(it?.path())).collect());
    entries.map_err(|e| RecordError::file(dir, e))
}

/// The text of a file that is one.
fn text_of(path: &Path) -> Result<Option<String>, RecordError> {
    let kind = fs::symlink_metadata(path).map_err(|e| RecordError::file(path, e))?;
    if !kind.is_file() || kind.len() > TEXT_BYTES_MAX {
        return Ok(None);
    }
    match fs::read_to_string(path) {
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Ok(None),
        // A file of zeros and the like is no text either.
        text => text
            .map(|text| (!text.contains('\0')).then_some(text))
            .map_err(|e| RecordError::file(path, e)),
    }
}

#[cfg(test)]
mod tests;
