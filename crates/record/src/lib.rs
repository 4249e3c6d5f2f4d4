//! The record of a run: a folder that is only ever appended to.
//!
//! `events.jsonl` begins with a [`Header`] and holds one
//! [`fathom_model::Entry`] a line, flushed at every interval; beside it lie the
//! job files as run (`jobs/`) and the engine's raw outputs (`raw/`). The folder
//! is the truth: everything else can be made from it again. Knows only `model`.

use std::path::{Path, PathBuf};

use fathom_model::{Entry, Environment, Event, RunStatus};
use serde::{Deserialize, Serialize};

/// Name of the format that [`Header::format`] carries.
pub const FORMAT: &str = "fathom-record";
/// Version of the format written by this Fathom.
pub const VERSION: u32 = 1;

/// First line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// What ran: a job file's name, `quick`, …
    pub name: String,
    /// The command that made the run: `job run`, `quick`, `import`.
    pub command: String,
    /// Start, ms since 1970 UTC.
    pub started_ms: u64,
    /// Where it ran; absent for imported results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// Facts of the command of its own kind (for the quick series its group,
    /// path, sizes; for an import the file it came from).
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub facts: serde_json::Map<String, serde_json::Value>,
}

/// Why a record cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// No run of this name, or none at all.
    #[error("{0}")]
    NotFound(String),
    /// The folder is not a record, or one of a newer Fathom.
    #[error("{path}: {reason}")]
    NotARecord {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Appends to one record.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
}

impl Writer {
    /// Makes the folder `<runs_dir>/<UTC time>-<name>/` (never an existing one)
    /// and writes the header.
    ///
    /// # Errors
    /// When the folder or the header cannot be written.
    pub fn create(_runs_dir: &Path, _header: &Header) -> Result<Self, RecordError> {
        todo!()
    }

    /// The record's folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Folder of the job files as run (made on first use).
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn jobs_dir(&self) -> Result<PathBuf, RecordError> {
        todo!()
    }

    /// Folder of the engine's raw outputs (made on first use).
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn raw_dir(&self) -> Result<PathBuf, RecordError> {
        todo!()
    }

    /// Appends one event; [`Event::Interval`] and everything that is not a
    /// sample is flushed to the kernel at once.
    ///
    /// # Errors
    /// When the line cannot be written; the record stays readable up to the
    /// line before.
    pub fn append(&mut self, _event: &Event) -> Result<(), RecordError> {
        todo!()
    }

    /// Writes [`Event::Ended`], syncs, and closes the record.
    ///
    /// # Errors
    /// When the last line cannot be written.
    pub fn finish(self, _status: RunStatus) -> Result<PathBuf, RecordError> {
        todo!()
    }
}

/// One record read back.
#[derive(Debug)]
pub struct Record {
    /// Its folder.
    pub dir: PathBuf,
    /// Its first line.
    pub header: Header,
    /// Every whole line after it; a last line cut by a kill is left out.
    pub entries: Vec<Entry>,
}

impl Record {
    /// Reads a record folder.
    ///
    /// # Errors
    /// When it is none, is of a newer version, or cannot be read.
    pub fn open(_dir: &Path) -> Result<Self, RecordError> {
        todo!()
    }

    /// Name of the folder.
    #[must_use]
    pub fn id(&self) -> String {
        todo!()
    }

    /// As the last line says; without one, [`RunStatus::Interrupted`], unless
    /// the writing process still lives (then `None`).
    #[must_use]
    pub fn status(&self) -> Option<RunStatus> {
        todo!()
    }
}

/// What a list of runs shows of one.
#[derive(Debug, Clone, Serialize)]
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

/// All records under a folder, oldest first. Folders that are no records are
/// left out.
///
/// # Errors
/// When the folder cannot be read; one that does not exist holds no runs.
pub fn list(_runs_dir: &Path) -> Result<Vec<Summary>, RecordError> {
    todo!()
}

/// Finds a run: a path to a record folder, a name (or unique beginning of one)
/// under `runs_dir`, or, without a name, the last one.
///
/// # Errors
/// When there is none, or the beginning fits several.
pub fn find(_runs_dir: &Path, _name: Option<&str>) -> Result<PathBuf, RecordError> {
    todo!()
}
