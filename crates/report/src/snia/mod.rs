//! A test after SNIA's specification, from its record: the findings as a
//! document, as text, and as pages to print.

use std::path::Path;

use fathom_analysis::snia::{Findings, NOTICE, RoundCollector, Setup, find};
use fathom_model::{Environment, Event, RunStatus};
use fathom_record::{Entries, Header, RecordError};
use serde::Serialize;
use serde_json::Value;

use fathom_document::rfc3339;

mod charts;
mod pages;
mod sheet;
mod text;
mod words;

pub use pages::{sheets, write};
pub use text::text;

/// `schema` of [`Document`].
pub const SCHEMA: &str = "fathom.snia/1";
/// Key in a record's facts of the list of its tests' set-ups.
pub const FACTS: &str = "snia";

/// All tests of one record.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// [`NOTICE`].
    pub notice: &'static str,
    /// Name of the record's folder.
    pub run: String,
    /// Name of the run.
    pub name: String,
    /// How it ended, or that it goes on.
    pub status: RunStatus,
    /// Start, RFC 3339 UTC with milliseconds.
    pub started: String,
    /// Last line of the record.
    pub last: String,
    /// The engines that measured, with their versions.
    pub engines: Vec<String>,
    /// Whether every test attained steady state.
    pub attained: bool,
    /// What was found.
    pub tests: Vec<Findings>,
    /// Where it ran.
    pub environment: Option<Environment>,
}

/// The set-ups of the tests that a record's header names; none when it holds no
/// such test.
pub fn setups(header: &Header) -> Vec<Setup> {
    let Some(Value::Array(all)) = header.facts.get(FACTS) else {
        return Vec::new();
    };
    // What a newer Fathom wrote of it may not be understood.
    let setups = all.iter().cloned().map(serde_json::from_value);
    setups.filter_map(Result::ok).collect()
}

/// Reads and judges a record; `None` when it holds no such test. Memory is taken
/// for its cells, not for its samples. Damaged lines are left out, and a
/// note says so.
///
/// # Errors
/// When the folder is no record, is of a newer Fathom, or cannot be read.
pub fn read(dir: &Path) -> Result<Option<Document>, RecordError> {
    let mut entries = Entries::open(dir)?;
    let setups = setups(&entries.header);
    if setups.is_empty() {
        return Ok(None);
    }
    let mut collectors: Vec<RoundCollector> = setups.into_iter().map(RoundCollector::new).collect();
    let mut engines: Vec<String> = Vec::new();
    let mut last_ms = entries.header.started_ms;
    let mut damage = None;
    for entry in &mut entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error @ RecordError::Damaged { .. }) => {
                damage.get_or_insert(error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        last_ms = last_ms.max(entry.at_ms);
        if let Event::EngineStarted {
            engine, version, ..
        } = &entry.event
        {
            let engine = version.clone().unwrap_or_else(|| engine.clone());
            if !engines.contains(&engine) {
                engines.push(engine);
            }
        }
        for collector in &mut collectors {
            collector.take(&entry.event);
        }
    }
    let mut tests: Vec<Findings> = collectors.iter().map(find).collect();
    for test in &mut tests {
        test.notes.extend(damage.clone());
    }
    Ok(Some(Document {
        schema: SCHEMA,
        notice: NOTICE,
        run: entries.id(),
        name: entries.header.name.clone(),
        status: entries.status.unwrap_or(RunStatus::Running),
        started: rfc3339(entries.header.started_ms),
        last: rfc3339(last_ms),
        engines,
        attained: tests.iter().all(|test| test.attained),
        tests,
        environment: entries.header.environment.clone(),
    }))
}
