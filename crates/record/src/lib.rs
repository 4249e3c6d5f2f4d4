//! The record of a run: a folder that is only ever appended to.
//!
//! `events.jsonl` begins with a [`Header`] and holds one
//! [`fathom_model::Entry`] a line, flushed at every interval; once it is long it is
//! closed, compressed and added up in `events/`. Beside it lie the
//! job files as run (`jobs/`) and the engine's raw outputs (`raw/`). The folder
//! is the truth: everything else can be made from it again. Knows only `model`.
//! Every file and field is described in docs/FORMAT.md.

#![forbid(unsafe_code)]

pub mod archive;
mod chain;
pub mod digest;
mod first_line;
mod folder;
mod ledger;
mod line;
mod lines;
mod list;
mod live;
mod pack;
mod quick;
mod reader;
mod redaction;
mod removal;
mod replace;
mod segment;
mod stamp;
mod stats;
mod tags;
mod undo;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fathom_model::Environment;
use fathom_model::environment::Target;
use serde::{Deserialize, Serialize};

pub use chain::Chain;
pub use digest::{DigestSums, SampleSum};
pub use folder::{check as check_folder, claim};
pub use ledger::{LEDGER_FORMAT, Ledger, LedgerMention, ledgers};
pub use list::{ListedRun, RunSummary, find, fitting, list, record_dirs};
pub use reader::{DamagedLines, Entries, Record, RecordPart};
pub use redaction::{RedactedRecord, Redaction};
pub use removal::{Removal, folder_bytes, remove_leftovers};
pub use replace::{destination, replace};
pub use segment::{is_log, log_bytes};
pub use stamp::stamp;
pub use stats::{NodeStats, STATS_FORMAT, StatsHeader, StatsLine, StatsWriter};
pub use tags::{RunRemark, RunRemarks, Tag, tag_records};
pub use undo::{
    COMMAND_UNDO_FORMAT, CommandUndo, SETTINGS_FORMAT, SWITCHES_FORMAT, SettingsFound,
    SwitchesFound, UndoFile, UndoNote, undo_files,
};
pub use writer::Writer;

/// Name of the format that [`Header::format`] carries.
pub const FORMAT: &str = "fathom-record";
/// Version of the format written by this Fathom.
pub const VERSION: u32 = 2;
/// The event log: the file that makes a folder a record.
pub const EVENTS: &str = "events.jsonl";

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
    /// What its user calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Start, ms since 1970 UTC.
    pub started_ms: u64,
    /// Where it ran; absent for imported results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// Variables that it was started with and depends on, for when it goes on; `null` is
    /// one that was not set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, Option<String>>,
    /// What its jobs used as it was started, for when it goes on: devices, links, and the
    /// folders of all files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// Facts of the command of its own kind (for the quick series its group,
    /// path, sizes; for an import the file it came from).
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub facts: serde_json::Map<String, serde_json::Value>,
}

impl Header {
    /// A header of this format's version for a run that starts now.
    pub fn new(name: &str, command: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            name: name.to_owned(),
            command: command.to_owned(),
            label: None,
            started_ms: now_ms(),
            environment: None,
            variables: BTreeMap::new(),
            targets: Vec::new(),
            facts: serde_json::Map::new(),
        }
    }
}

impl Header {
    /// Leaves out what only its own machine and user can go on with.
    pub(crate) fn forget_start(&mut self) {
        self.variables.clear();
        self.targets.clear();
    }
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
        source: io::Error,
    },
    /// No record can be made in a folder.
    #[error(
        "{dir}: no record can be made there: {source}\n  to do: choose another folder with --runs"
    )]
    NoFolder {
        /// The folder of records.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
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
    /// Another process writes to the record.
    #[error("{dir}: another Fathom writes to this record; it goes on there")]
    Busy {
        /// The record's folder.
        dir: PathBuf,
    },
    /// A run that is not to be removed or moved.
    #[error("{dir}: {reason}")]
    Kept {
        /// The run's folder.
        dir: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Lines amid the event log cannot be read, or are not as they were written. What
    /// stands before them can, and what stands behind them too: [`Entries`].
    #[error(
        "{path}:{line}: damaged: {reason}; 'fathom show --salvage' reads every line that is intact"
    )]
    Damaged {
        /// The event log, or a segment of it.
        path: PathBuf,
        /// The first line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
}

impl RecordError {
    fn kept(dir: &Path, reason: &str) -> Self {
        Self::Kept {
            dir: dir.to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }
}

/// Now, since 1970 UTC, as this process counts it: by the system's clock when it asks
/// first, and from there on by one that nobody sets. The difference of two such times
/// is how long something took.
pub fn now() -> Duration {
    static BEGAN: OnceLock<(Duration, Instant)> = OnceLock::new();
    let (at, since) = BEGAN.get_or_init(|| {
        let at = SystemTime::now().duration_since(UNIX_EPOCH);
        (at.unwrap_or_default(), Instant::now())
    });
    at.saturating_add(since.elapsed())
}

/// [`now`] in ms.
pub fn now_ms() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX)
}
