//! Drives that were started together, as their records know it: each has the
//! whole list, so that a start that was killed before every record was there
//! can go on with all of them.

use std::path::{Path, PathBuf};

use fathom_model::RunStatus;
use fathom_record::{Entries, Header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::How;
use crate::run::RunError;

/// The command, as the records name it.
pub const COMMAND: &str = "provision";
/// Key of the [`Facts`] in a record's header.
const FACTS: &str = "provision";

/// What a record's header says of its drive and of the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The same for all drives of one start: when that was, in ms since 1970 UTC,
    /// and its process.
    pub batch: String,
    /// All drives of it, in order.
    pub drives: Vec<PathBuf>,
    /// The place of this one among them, from 0.
    pub place: usize,
    /// How they are provisioned.
    pub how: How,
}

impl Facts {
    /// As a header's facts.
    pub(super) fn to_map(&self) -> Map<String, Value> {
        Map::from_iter([(FACTS.to_owned(), json!(self))])
    }

    /// Those of a record; `None`: it is of another command.
    #[must_use]
    pub fn read(header: &Header) -> Option<Self> {
        serde_json::from_value(header.facts.get(FACTS)?.clone()).ok()
    }
}

/// A batch that was found.
#[derive(Debug)]
pub struct Batch {
    /// What all of its records say.
    pub facts: Facts,
    /// The record of each drive with how it ended; `None` where it was killed
    /// before there was one.
    pub records: Vec<Option<(PathBuf, RunStatus)>>,
}

/// The last batch under a folder of records.
///
/// # Errors
/// When the records cannot be read, or there is none.
pub fn last(runs_dir: &Path) -> Result<Batch, RunError> {
    let mut found: Option<Batch> = None;
    // The newest record first: all others of its batch are near it.
    for summary in fathom_record::list(runs_dir)?.into_iter().rev() {
        if summary.command != COMMAND {
            continue;
        }
        let dir = runs_dir.join(&summary.id);
        let Some(facts) = Facts::read(&Entries::open(&dir)?.header) else {
            continue;
        };
        let batch = found.get_or_insert_with(|| Batch {
            records: vec![None; facts.drives.len()],
            facts: facts.clone(),
        });
        if batch.facts.batch != facts.batch {
            continue;
        }
        if let Some(place) = batch.records.get_mut(facts.place) {
            *place = Some((dir, summary.status.unwrap_or(RunStatus::Interrupted)));
        }
    }
    found.ok_or_else(|| {
        RunError::Missing(format!(
            "there is nothing to resume: no drive was provisioned with records under {}\n  to do: fathom provision DEV",
            runs_dir.display()
        ))
    })
}
