//! The record of one machine, as it made it, within the record of all:
//! `hosts/NAME/`. What has no meaning as a sum is judged from it, and a run that
//! is resumed gets it back.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use fathom_model::{Event, RunStatus};
use fathom_record::{Chain, EVENTS, Entries, Header, RecordError, VERSION, Writer, is_log};

use super::file_parts::{plain, read_files, write_part};
use super::wire::{RUNS, Say, now_ms};

/// Folder of these records in the record of all.
pub const FOLDER: &str = "hosts";
/// Key of a record's header that names the machines.
pub const FACTS: &str = "hosts";
/// Name of the folder below [`RUNS`] in which a machine gets its record back.
const BACK: &str = "before";

/// So much of the events travels at once.
const PART_BYTES: usize = 1 << 20;

/// A machine's name as that of a folder.
pub fn folder_name(label: &str) -> String {
    let safe = |c: char| match c.is_alphanumeric() || "._-@".contains(c) {
        true => c,
        false => '_',
    };
    let name: String = label.chars().map(safe).collect();
    name.trim_start_matches('.').to_owned()
}

/// What names a step on every machine: the point that it measures, or the
/// step's own name.
pub fn key(event: &Event) -> Option<String> {
    match event {
        Event::Step { point: Some(p), .. } | Event::Skipped { point: p, .. } => {
            Some(key_of(&p.id, p.repetition))
        }
        Event::Step { name, .. } => Some(name.clone()),
        _ => None,
    }
}

/// The [`key`] of a measurement of a point.
pub fn key_of(id: &str, repetition: u32) -> String {
    match repetition {
        1 => id.to_owned(),
        n => format!("{id} #{n}"),
    }
}

/// A machine's own record.
#[derive(Debug)]
pub struct HostRecord {
    dir: PathBuf,
    writer: Option<Writer>,
    /// Where in the time of the whole run its step has begun, ms.
    offset_ms: u64,
}

impl HostRecord {
    /// Of a machine, in the record of all.
    pub fn new(record: &Path, label: &str) -> Self {
        Self {
            dir: record.join(FOLDER).join(folder_name(label)),
            writer: None,
            offset_ms: 0,
        }
    }

    /// The machine has begun its record, or goes on with that it was given.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn begin(&mut self, header: &Header) -> Result<(), RecordError> {
        self.writer = Some(match self.dir.join(EVENTS).exists() {
            true => Writer::reopen(&self.dir)?,
            // Its entries carry this machine's time.
            false => {
                let started_ms = now_ms() as u64;
                let header = Header {
                    started_ms,
                    ..header.clone()
                };
                Writer::create_in(&self.dir, &header)?
            }
        });
        Ok(())
    }

    /// A step begins, at `t_ms` of the run's time.
    pub fn at(&mut self, t_ms: u64) {
        self.offset_ms = t_ms;
    }

    /// Something happened there.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let mut event = event.clone();
        match &mut event {
            Event::Sample(sample) => sample.t_ms += self.offset_ms,
            Event::Interval { t_ms, .. } => *t_ms += self.offset_ms,
            _ => {}
        }
        writer.append(&event)
    }

    /// A file of it, or a part of one.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn file(&self, path: &str, text: &str, more: bool) -> io::Result<()> {
        match plain(path) {
            Some(name) if !is_log(&name) => write_part(&self.dir.join(name), text, more),
            _ => Ok(()),
        }
    }

    /// It has ended.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn finish(&mut self, status: RunStatus) -> Result<(), RecordError> {
        match self.writer.take() {
            Some(writer) => writer.finish(status).map(drop),
            None => Ok(()),
        }
    }

    /// What the machine needs to go on with its record, if there is one: all but
    /// raw outputs, and without what came of the steps that are to be done `again`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn give_back(
        &self,
        again: &BTreeSet<String>,
        say: &mut dyn FnMut(Say),
    ) -> Result<(), RecordError> {
        if !self.dir.join(EVENTS).exists() {
            return Ok(());
        }
        let mut entries = Entries::open(&self.dir)?;
        let failed = |path: &Path, source: io::Error| RecordError::File {
            path: path.to_owned(),
            source,
        };
        let log = format!("{RUNS}/{BACK}/{EVENTS}");
        let line = |line: serde_json::Result<String>| {
            let text = line.map_err(|e| failed(&self.dir.join(EVENTS), e.into()))?;
            Ok::<_, RecordError>(text + "\n")
        };
        // A log of its own, whatever the files of this one are.
        let mut chain = Chain::default();
        let mut sealed = |text: String| {
            let mut lines = text.into_bytes();
            chain.seal(&mut lines);
            String::from_utf8_lossy(&lines).into_owned()
        };
        entries.header.version = VERSION;
        say(Say::File {
            path: log.clone(),
            text: sealed(line(serde_json::to_string(&entries.header))?),
            more: false,
        });
        let mut left_out = false;
        let mut text = String::new();
        for entry in &mut entries {
            let entry = entry?;
            // That it began stays: it is known there, and not done.
            let begins = matches!(entry.event, Event::Step { .. });
            match &entry.event {
                event @ Event::Step { .. } => {
                    left_out = key(event).is_some_and(|key| again.contains(&key));
                }
                Event::Stage { .. }
                | Event::Skipped { .. }
                | Event::Ended { .. }
                | Event::Resumed { .. } => left_out = false,
                _ => {}
            }
            if begins || !left_out {
                text += &line(serde_json::to_string(&entry))?;
            }
            if text.len() > PART_BYTES {
                let (path, text) = (log.clone(), sealed(std::mem::take(&mut text)));
                say(Say::File {
                    path,
                    text,
                    more: true,
                });
            }
        }
        let (path, text, more) = (log, sealed(text), true);
        say(Say::File { path, text, more });
        let wanted = |name: &Path| {
            let hidden = name.to_string_lossy().starts_with('.');
            !(hidden || is_log(name) || name.starts_with("raw"))
        };
        read_files(&self.dir, &wanted, &mut |path, text, more| {
            let path = format!("{RUNS}/{BACK}/{path}");
            say(Say::File { path, text, more });
        })
        .map_err(|source| failed(&self.dir, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::Point;

    fn step(id: &str) -> Event {
        Event::Step {
            step: 1,
            of: 2,
            name: id.into(),
            point: Some(Box::new(Point {
                id: id.into(),
                series: "s".into(),
                x: "iodepth".into(),
                settings: std::collections::BTreeMap::new(),
                repetition: 1,
            })),
        }
    }

    fn note(text: &str) -> Event {
        Event::Note { text: text.into() }
    }

    #[test]
    fn a_machine_gets_its_record_back_without_the_steps_to_be_done_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = HostRecord::new(dir.path(), "root@m1");
        kept.begin(&Header::new("a", "run")).unwrap();
        let interval = Event::Interval {
            t_ms: 5,
            remaining_ms: None,
        };
        kept.event(&step("s/1")).unwrap();
        kept.event(&note("of 1")).unwrap();
        kept.at(1000);
        kept.event(&step("s/2")).unwrap();
        kept.event(&interval).unwrap();
        kept.finish(RunStatus::Failed).unwrap();
        kept.file("plan.jsonl", "x\n", false).unwrap();
        kept.file("events.jsonl", "lost", false).unwrap();
        kept.file("../out", "lost", false).unwrap();
        let again = BTreeSet::from(["s/1".to_owned()]);
        let mut back = String::new();
        let mut paths = BTreeSet::new();
        kept.give_back(&again, &mut |say| {
            if let Say::File { path, text, .. } = say {
                back += &text;
                paths.insert(path);
            }
        })
        .unwrap();
        assert!(!back.contains("of 1") && back.contains("s/2"), "{back}");
        assert!(
            back.contains("1005") && back.contains("\"ended\""),
            "{back}"
        );
        let names = ["events.jsonl", "plan.jsonl"].map(|n| format!("fathom-runs/before/{n}"));
        assert_eq!(paths.into_iter().collect::<Vec<_>>(), names);
        assert!(!dir.path().join("hosts/out").exists());
    }

    #[test]
    fn names_of_machines_are_names_of_folders() {
        assert_eq!(folder_name("root@nas"), "root@nas");
        assert_eq!(folder_name("../x"), "_x");
        assert_eq!(folder_name("ssh://a:22"), "ssh___a_22");
    }
}
