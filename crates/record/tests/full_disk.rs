//! A full disk under the records: the run is told, and what is there stays readable.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use fathom_model::{Event, FailureKind, Results, RunStatus};
use fathom_record::{Header, Record, RecordError, Writer};
use fathom_testkit::{SmallFs, require, root, skip};

/// A small tmpfs, unmounted at the end.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    fn new(kib: u32) -> Result<Self, String> {
        root()?;
        let dir = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "fathom-test"]);
        match mount.arg(dir.path()).output() {
            Ok(output) if output.status.success() => Ok(Self(dir)),
            other => Err(format!("a tmpfs cannot be mounted: {other:?}")),
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes every free byte.
    fn fill(&self) {
        let mut file = fs::File::create(self.path().join("filler")).unwrap();
        for size in [4096, 1] {
            while file.write(&vec![1; size]).is_ok_and(|n| n == size) {}
        }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

/// Writes notes and intervals until the disk is full.
fn write_until_full(writer: &mut Writer) -> (u64, RecordError) {
    for t_ms in 0u64.. {
        // Of a length that does not divide a page: the last write is cut.
        let text = "x".repeat(1_000 + usize::try_from(t_ms % 97).unwrap());
        let remaining_ms = None;
        let appended = writer
            .append(&Event::Note { text })
            .and_then(|()| writer.append(&Event::Interval { t_ms, remaining_ms }));
        if let Err(error) = appended {
            return (t_ms, error);
        }
    }
    unreachable!("the numbers do not end")
}

fn intervals(record: &Record) -> Vec<u64> {
    let of = |event: &Event| match event {
        Event::Interval { t_ms, .. } => Some(*t_ms),
        _ => None,
    };
    record.entries.iter().filter_map(|e| of(&e.event)).collect()
}

#[test]
fn a_full_disk_ends_the_record_readably() {
    let test = "a_full_disk_ends_the_record_readably";
    match Tmpfs::new(512) {
        Ok(small) => end_on_a_full_disk(small.path()),
        Err(reason) => skip(test, &reason),
    }
    // ext4 accepts a write before it chooses its blocks.
    match SmallFs::new(3 << 20, "") {
        Ok(small) => end_on_a_full_disk(small.path()),
        Err(reason) => skip(test, &reason),
    }
}

fn end_on_a_full_disk(runs: &Path) {
    let mut writer = Writer::create(runs, &Header::new("full", "test")).unwrap();
    let (written, error) = write_until_full(&mut writer);
    assert!(error.to_string().contains("No space left"), "{error}");
    assert!(written > 100);
    // No more samples, but what the engine reports at its end still fits.
    let remaining_ms = None;
    writer
        .append(&Event::Interval {
            t_ms: 0,
            remaining_ms,
        })
        .unwrap_err();
    let results = Box::new(Results::default());
    writer.append(&Event::Finished { results }).unwrap();
    let dir = writer.finish(RunStatus::Failed).unwrap();

    let record = Record::open(&dir).unwrap();
    assert_eq!(record.status(), Some(RunStatus::Failed));
    assert_eq!(record.torn_bytes, 0);
    assert_eq!(intervals(&record), (0..written).collect::<Vec<_>>());
    let failure = record
        .entries
        .iter()
        .find_map(|entry| match &entry.event {
            Event::Failure(failure) => Some(failure),
            _ => None,
        })
        .unwrap();
    assert_eq!(failure.kind, FailureKind::Record);
    assert_eq!(failure.errno, Some(28));
    assert_eq!(left_in(&dir), ["events.jsonl"]);
}

#[test]
fn a_last_line_that_does_not_fit_is_reported_and_the_rest_stays() {
    let small = require!(Tmpfs::new(512));
    let mut writer = Writer::create(small.path(), &Header::new("full", "test")).unwrap();
    let (written, _) = write_until_full(&mut writer);
    let dir = writer.dir().to_owned();
    // Something else takes what the record had kept aside, the last block too.
    let own = fs::read_dir("/proc/self/fd").unwrap();
    let reserve = own
        .map(|entry| entry.unwrap().path())
        .find(|held| {
            let led = fs::read_link(held).unwrap_or_default();
            led.starts_with(&dir) && led.ends_with(".reserve (deleted)")
        })
        .unwrap();
    let reserve = fs::OpenOptions::new().write(true).open(reserve).unwrap();
    reserve.set_len(0).unwrap();
    small.fill();
    while writer
        .append(&Event::Note {
            text: String::new(),
        })
        .is_ok()
    {}
    let error = writer.finish(RunStatus::Failed).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");

    let record = Record::open(&dir).unwrap();
    assert_eq!(record.status(), Some(RunStatus::Interrupted));
    assert_eq!(intervals(&record), (0..written).collect::<Vec<_>>());
}

#[test]
fn results_too_large_for_the_reserve_leave_room_for_the_last_line() {
    let small = require!(Tmpfs::new(512));
    let mut writer = Writer::create(small.path(), &Header::new("full", "test")).unwrap();
    write_until_full(&mut writer);
    let mut note = |bytes| {
        let text = "x".repeat(bytes);
        writer.append(&Event::Note { text })
    };
    note(100_000).unwrap_err();
    while note(500).is_ok() {}
    while note(0).is_ok() {}
    let dir = writer.finish(RunStatus::Failed).unwrap();
    assert_eq!(
        Record::open(&dir).unwrap().status(),
        Some(RunStatus::Failed)
    );
}

#[test]
fn a_run_does_not_begin_on_a_full_disk() {
    let small = require!(Tmpfs::new(64));
    small.fill();
    let error = Writer::create(small.path(), &Header::new("full", "test")).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
    assert_eq!(left_in(small.path()), ["filler"]);
}

fn left_in(dir: &Path) -> Vec<String> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}
