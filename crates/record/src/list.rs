//! Which runs there are, and which one is meant.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_model::RunStatus;
use serde::Serialize;

use crate::reader::{Entries, id_of};
use crate::{EVENTS, RecordError};

/// Runs that are named when a name fits several.
const CANDIDATES_MAX: usize = 5;

/// What a list of runs shows of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Name of the folder.
    pub id: String,
    /// The run's name.
    pub name: String,
    /// The command that made it.
    pub command: String,
    /// Start, ms since 1970 UTC.
    pub started_ms: u64,
    /// End, ms since 1970 UTC; absent for a run that was killed or still goes on.
    pub ended_ms: Option<u64>,
    /// How it ended; `None` while it runs.
    pub status: Option<RunStatus>,
}

impl Summary {
    /// Reads what a list shows of one record: its first and its last line,
    /// however long the record is.
    ///
    /// # Errors
    /// As [`Entries::open`].
    pub fn read(dir: &Path) -> Result<Self, RecordError> {
        let entries = Entries::open(dir)?;
        Ok(Self {
            id: id_of(dir),
            name: entries.header.name,
            command: entries.header.command,
            started_ms: entries.header.started_ms,
            ended_ms: entries.ended_ms,
            status: entries.status,
        })
    }
}

/// The runs under a folder.
#[derive(Debug, Default)]
pub struct Listing {
    /// All that can be read, oldest first.
    pub runs: Vec<Summary>,
    /// Why others that have an event log cannot: damaged, or of a newer Fathom.
    pub unreadable: Vec<RecordError>,
}

/// All records under a folder. Folders without an event log are left out.
///
/// # Errors
/// When the folder cannot be read; one that does not exist holds no runs.
pub fn scan(runs_dir: &Path) -> Result<Listing, RecordError> {
    let mut listing = Listing::default();
    for dir in record_dirs(runs_dir)? {
        match Summary::read(&dir) {
            Ok(summary) => listing.runs.push(summary),
            Err(error) => listing.unreadable.push(error),
        }
    }
    // Runs of one millisecond: `x` before `x.2` before `x.10`.
    listing
        .runs
        .sort_by(|a, b| (a.started_ms, a.id.len(), &a.id).cmp(&(b.started_ms, b.id.len(), &b.id)));
    Ok(listing)
}

/// All records under a folder, oldest first. Folders that are no records are
/// left out; [`scan`] tells why.
///
/// # Errors
/// When the folder cannot be read; one that does not exist holds no runs.
pub fn list(runs_dir: &Path) -> Result<Vec<Summary>, RecordError> {
    scan(runs_dir).map(|listing| listing.runs)
}

/// Finds a run: a path to a record folder, a name (or a part of it that no other
/// has) under `runs_dir`, or, without a name, the last one.
///
/// # Errors
/// When there is none, or the part fits several.
pub fn find(runs_dir: &Path, name: Option<&str>) -> Result<PathBuf, RecordError> {
    let Some(name) = name else {
        let runs = list(runs_dir)?;
        let last = runs.last().ok_or_else(|| {
            RecordError::NotFound(format!("there are no runs under {}", runs_dir.display()))
        })?;
        return Ok(runs_dir.join(&last.id));
    };
    match &fitting(runs_dir, name)?[..] {
        [one] => Ok(one.clone()),
        several => {
            let mut ids: Vec<String> = several.iter().map(|dir| id_of(dir)).collect();
            if ids.len() > CANDIDATES_MAX {
                ids.truncate(CANDIDATES_MAX);
                ids.push("…".to_owned());
            }
            Err(RecordError::NotFound(format!(
                "'{name}' fits {} runs: {}",
                several.len(),
                ids.join(", ")
            )))
        }
    }
}

/// The runs that a word can mean, the last one first: the record folder of that
/// path or name; else all whose names begin with it; else all that contain it.
///
/// # Errors
/// When there is none.
pub fn fitting(runs_dir: &Path, name: &str) -> Result<Vec<PathBuf>, RecordError> {
    let is_record = |dir: &PathBuf| !name.is_empty() && dir.join(EVENTS).is_file();
    let exact = [PathBuf::from(name), runs_dir.join(name)];
    if let Some(dir) = exact.into_iter().find(is_record) {
        return Ok(vec![dir]);
    }
    let mut dirs = record_dirs(runs_dir)?;
    dirs.retain(|dir| !name.is_empty() && id_of(dir).contains(name));
    let begins = |dir: &PathBuf| id_of(dir).starts_with(name);
    if dirs.iter().any(begins) {
        dirs.retain(begins);
    }
    if dirs.is_empty() {
        return Err(RecordError::NotFound(format!(
            "no run '{name}' under {}, and no record folder of that path",
            runs_dir.display()
        )));
    }
    // Runs of one second: `x` before `x.2` before `x.10`.
    let order = |dir: &PathBuf| {
        let id = id_of(dir);
        let second = id.split('-').next().unwrap_or_default().to_owned();
        (second, id.len(), id)
    };
    dirs.sort_by_key(|dir| std::cmp::Reverse(order(dir)));
    Ok(dirs)
}

/// The folders under `runs_dir` that have an event log.
fn record_dirs(runs_dir: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let failed = |e| RecordError::file(runs_dir, e);
    let entries = match fs::read_dir(runs_dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut dirs = Vec::new();
    for entry in entries {
        let dir = entry.map_err(failed)?.path();
        if dir.join(EVENTS).is_file() {
            dirs.push(dir);
        }
    }
    Ok(dirs)
}
