//! Drives that were started together, as their records know it: each has the
//! whole list, so that a start that was killed before every record was there
//! can go on with all of them.

use std::path::{Path, PathBuf};

use fathom_flow::error::RunError;
use fathom_flow::past::not_another;
use fathom_model::RunStatus;
use fathom_record::{Entries, Header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::ProvisionMethod;

/// The command, as the records name it.
pub const COMMAND: &str = "provision";
/// Key of the [`BatchFacts`] in a record's header.
const FACTS: &str = "provision";

/// What a record's header says of its drive and of the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchFacts {
    /// The same for all drives of one start: when that was, in ms since 1970 UTC,
    /// and its process.
    pub batch: String,
    /// All drives of it, in order.
    pub drives: Vec<PathBuf>,
    /// The place of this one among them, from 0.
    pub place: usize,
    /// How they are provisioned.
    pub how: ProvisionMethod,
}

impl BatchFacts {
    /// As a header's facts.
    pub(super) fn to_map(&self) -> Map<String, Value> {
        Map::from_iter([(FACTS.to_owned(), json!(self))])
    }

    /// Those of a record; `None`: it is of another command.
    pub fn read(header: &Header) -> Option<Self> {
        serde_json::from_value(header.facts.get(FACTS)?.clone()).ok()
    }
}

/// A batch that was found.
#[derive(Debug)]
pub struct Batch {
    /// What all of its records say.
    pub facts: BatchFacts,
    /// The record of each drive with how it ended; `None` where it was killed
    /// before there was one.
    pub records: Vec<Option<(PathBuf, RunStatus)>>,
}

/// The last batch under a folder of records.
///
/// # Errors
/// When the records cannot be read, or one that may be of it, or there is none.
pub fn last(runs_dir: &Path) -> Result<Batch, RunError> {
    let mut found: Option<Batch> = None;
    // The newest record first: all others of its batch are near it.
    for run in fathom_record::list(runs_dir)?.iter().rev() {
        if run
            .command
            .as_ref()
            .is_some_and(|command| command != COMMAND)
        {
            continue;
        }
        let dir = runs_dir.join(&run.id);
        let summary = match &run.summary {
            Ok(summary) => summary,
            Err(error) if may_be_of(found.as_ref(), run.started_ms) => {
                return Err(not_another(&dir, error));
            }
            Err(_) => continue,
        };
        let Some(facts) = BatchFacts::read(&Entries::open(&dir)?.header) else {
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

/// Whether a record that cannot be read, of a run that began at `started_ms`, may be
/// of the batch that is looked for.
fn may_be_of(batch: Option<&Batch>, started_ms: u64) -> bool {
    let begun = batch.and_then(|batch| batch.facts.batch.split('-').next()?.parse::<u64>().ok());
    // Names of folders say whole seconds.
    begun.is_none_or(|begun| started_ms.saturating_add(1000) > begun)
}

#[cfg(test)]
mod tests {
    use fathom_record::{EVENTS, Writer};

    use super::*;

    #[test]
    fn a_batch_of_which_a_record_cannot_be_read_is_not_taken_for_one_that_was_killed_early() {
        let runs = tempfile::tempdir().unwrap();
        let begin = |name: &str, command: &str, facts: Value, started_ms| {
            let mut header = Header::new(name, command);
            header.started_ms = started_ms;
            header.facts.insert(FACTS.to_owned(), facts);
            let writer = Writer::create(runs.path(), &header).unwrap();
            writer.finish(RunStatus::Interrupted).unwrap()
        };
        let how = json!({"workload": "sequential", "method": "sc", "engine": "sim"});
        let of = |place: usize| json!({"batch": "5000-1", "drives": ["/dev/a", "/dev/b"], "place": place, "how": how});
        let spoil = |dir: &std::path::Path, reason: &str| {
            std::fs::write(dir.join(EVENTS), format!("{reason}\n")).unwrap();
        };
        let before = begin("c", COMMAND, of(0), 1_000);
        spoil(&before, "damaged before the batch began");
        let others = begin("d", "job run", json!({}), 9_000);
        spoil(
            &others,
            r#"{"format":"fathom-record","version":99,"command":"job run"}"#,
        );
        begin("a", COMMAND, of(0), 6_000);
        let second = begin("b", COMMAND, of(1), 7_000);
        assert!(
            last(runs.path())
                .unwrap()
                .records
                .iter()
                .all(Option::is_some)
        );
        spoil(&second, "damaged");
        let refused = last(runs.path()).unwrap_err();
        assert!(matches!(refused, RunError::Refused(_)), "{refused}");
        assert!(
            refused.to_string().contains(&*second.to_string_lossy()),
            "{refused}"
        );
    }
}
