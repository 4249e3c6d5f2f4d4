//! Folders of records: where they are made, and what they are called.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

use crate::RecordError;

/// Longest part of a run's name that goes into the folder's name, in bytes.
const NAME_BYTES_MAX: usize = 80;

/// Makes a new folder `<runs_dir>/<UTC time>-<name>/` for a run that started at
/// `started_ms` (since 1970 UTC). When the name is taken a number is added:
/// mkdir(2) succeeds for one process only, so two runs never share a folder.
///
/// # Errors
/// When the folder cannot be made.
pub fn claim(runs_dir: &Path, started_ms: u64, name: &str) -> Result<PathBuf, RecordError> {
    make(runs_dir)?;
    let base = format!("{}-{}", utc_stamp(started_ms), folder_name(name));
    let mut number = 1u32;
    loop {
        let dir = runs_dir.join(match number {
            1 => base.clone(),
            n => format!("{base}.{n}"),
        });
        match DirBuilder::new().create(&dir) {
            Ok(()) => return Ok(dir),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => number += 1,
            Err(e) => return Err(no_folder(runs_dir, e)),
        }
    }
}

/// `20261121T130245Z`: sorts by time and needs no quoting in a shell.
const STAMP: &str = "%Y%m%dT%H%M%SZ";

fn utc_stamp(ms: u64) -> String {
    i64::try_from(ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .strftime(STAMP)
        .to_string()
}

/// The time that a [`utc_stamp`] says.
pub(crate) fn stamp_ms(stamp: &str) -> Option<u64> {
    let time = jiff::civil::DateTime::strptime(STAMP, stamp).ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    u64::try_from(time.timestamp().as_millisecond()).ok()
}

/// A name that is safe as part of a file name and needs no quoting.
fn folder_name(name: &str) -> String {
    let mut safe = String::new();
    for c in name.chars() {
        if safe.len() == NAME_BYTES_MAX {
            break;
        }
        if c.is_ascii_alphanumeric() || "._+".contains(c) {
            safe.push(c);
        } else if !safe.ends_with('-') {
            safe.push('-');
        }
    }
    match safe.trim_matches(['-', '.']) {
        "" => "run".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// Makes sure that records can be made in a folder, which is made where it is missing: before
/// anything else is changed for a run.
///
/// # Errors
/// When it cannot be made or written to.
pub fn check(runs_dir: &Path) -> Result<(), RecordError> {
    make(runs_dir)?;
    let may = rustix::fs::access(runs_dir, rustix::fs::Access::WRITE_OK);
    may.map_err(|errno| no_folder(runs_dir, errno.into()))
}

fn no_folder(dir: &Path, source: io::Error) -> RecordError {
    RecordError::NoFolder {
        dir: dir.to_owned(),
        source,
    }
}

fn make(runs_dir: &Path) -> Result<(), RecordError> {
    let leads_nowhere = !runs_dir.exists() && fs::read_link(runs_dir).is_ok();
    let made = match leads_nowhere {
        true => Err(io::Error::new(
            io::ErrorKind::NotFound,
            "it is a link that leads nowhere",
        )),
        false => fs::create_dir_all(runs_dir),
    };
    made.map_err(|error| no_folder(runs_dir, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_need_no_quoting() {
        assert_eq!(folder_name("randread"), "randread");
        assert_eq!(folder_name("../my job's file.fio"), "my-job-s-file.fio");
        assert_eq!(folder_name("…"), "run");
        assert_eq!(folder_name(""), "run");
        assert_eq!(folder_name(&"x".repeat(999)).len(), NAME_BYTES_MAX);
        assert_eq!(utc_stamp(1_795_266_165_000), "20261121T130245Z");
    }

    #[test]
    fn a_folder_that_is_a_link_to_nothing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("runs");
        std::os::unix::fs::symlink("gone", &link).unwrap();
        let told = check(&link).unwrap_err().to_string();
        assert!(
            told.contains("--runs") && told.contains("leads nowhere"),
            "{told}"
        );
        fs::create_dir(dir.path().join("gone")).unwrap();
        check(&link).unwrap();
    }
}
