//! Which runs there are, and which one is meant.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fathom_model::RunStatus;
use serde::Serialize;

use crate::first_line::{id_of, remains};
use crate::live::no_log;
use crate::reader::Entries;
use crate::removal::REMOVED;
use crate::{EVENTS, RecordError};

/// Runs that are named when a name fits several.
const CANDIDATES_MAX: usize = 5;

/// What a list of runs shows of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunSummary {
    /// Name of the folder.
    pub id: String,
    /// The run's name.
    pub name: String,
    /// The command that made it.
    pub command: String,
    /// What its user calls it.
    pub label: Option<String>,
    /// Start, ms since 1970 UTC.
    pub started_ms: u64,
    /// End, ms since 1970 UTC; absent for a run that was killed or still goes on.
    pub ended_ms: Option<u64>,
    /// How it ended; `None` while it runs.
    pub status: Option<RunStatus>,
    /// Those it was begun with, and those of later.
    pub tags: BTreeMap<String, String>,
}

impl RunSummary {
    /// Reads what a list shows of one record: its first and its last line,
    /// however long the record is.
    ///
    /// # Errors
    /// As [`Entries::open`].
    pub fn read(dir: &Path) -> Result<Self, RecordError> {
        let entries = Entries::open(dir)?;
        Ok(Self {
            id: id_of(dir),
            tags: entries.tags(),
            name: entries.header.name,
            command: entries.header.command,
            label: entries.header.label,
            started_ms: entries.header.started_ms,
            ended_ms: entries.ended_ms,
            status: entries.status,
        })
    }
}

/// One run of a folder, whether it can be read or not: who looks for a run must
/// not take another one for it.
#[derive(Debug)]
pub struct ListedRun {
    /// Its folder.
    pub dir: PathBuf,
    /// Name of the folder.
    pub id: String,
    /// Start, ms since 1970 UTC; of one that cannot be read as near as can be known,
    /// and rather too late.
    pub started_ms: u64,
    /// The command that made it, where that can be read.
    pub command: Option<String>,
    /// What is in it, or why it cannot be read: damaged, or of a newer Fathom.
    pub summary: Result<RunSummary, RecordError>,
}

impl ListedRun {
    /// Reads what a list shows of one run.
    pub fn read(dir: &Path) -> Self {
        let summary = RunSummary::read(dir);
        let (started_ms, command) = match &summary {
            Ok(summary) => (summary.started_ms, Some(summary.command.clone())),
            Err(_) => remains(dir),
        };
        Self {
            dir: dir.to_owned(),
            id: id_of(dir),
            started_ms,
            command,
            summary,
        }
    }
}

/// All records under a folder, oldest first, also those that cannot be read.
/// Folders without an event log are left out.
///
/// # Errors
/// When the folder cannot be read; one that does not exist holds no runs.
pub fn list(runs_dir: &Path) -> Result<Vec<ListedRun>, RecordError> {
    let mut runs: Vec<ListedRun> = record_dirs(runs_dir)?
        .iter()
        .map(|dir| ListedRun::read(dir))
        .collect();
    // Runs of one millisecond: `x` before `x.2` before `x.10`.
    runs.sort_by(|a, b| (a.started_ms, a.id.len(), &a.id).cmp(&(b.started_ms, b.id.len(), &b.id)));
    Ok(runs)
}

/// Finds a run: a path to a record folder, a name (or a part of it that no other
/// has) under `runs_dir`, or, without a name, the last one, whether it can be read or
/// not.
///
/// # Errors
/// When there is none, the part fits several, or the folder of this very name has
/// lost its event log.
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
/// When there is none, or the folder of this very name has lost its event log.
pub fn fitting(runs_dir: &Path, name: &str) -> Result<Vec<PathBuf>, RecordError> {
    let exact = [PathBuf::from(name), runs_dir.join(name)];
    let found = exact
        .into_iter()
        .find(|dir| !name.is_empty() && is_record(dir));
    if let Some(dir) = found {
        return Ok(vec![dir]);
    }
    // Never another one whose name is alike.
    if !name.is_empty() && runs_dir.join(name).is_dir() {
        return Err(no_log(&runs_dir.join(name)));
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

/// The folders under `runs_dir` that have an event log, in no order.
///
/// # Errors
/// When it cannot be read; one that does not exist holds no runs.
pub fn record_dirs(runs_dir: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let failed = |e| RecordError::file(runs_dir, e);
    let entries = match fs::read_dir(runs_dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut dirs = Vec::new();
    for entry in entries {
        let dir = entry.map_err(failed)?.path();
        if is_record(&dir) && !id_of(&dir).starts_with(REMOVED) {
            dirs.push(dir);
        }
    }
    Ok(dirs)
}

/// Whether a folder has an event log; one that may not be looked into counts.
fn is_record(dir: &Path) -> bool {
    match fs::symlink_metadata(dir.join(EVENTS)) {
        Ok(_) => true,
        Err(e) => e.kind() == io::ErrorKind::PermissionDenied,
    }
}
