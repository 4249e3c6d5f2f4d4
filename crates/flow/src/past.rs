//! Whether a run may go on in a record.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_engines::select::EngineHandle;
use fathom_model::Environment;
use fathom_record::{Entries, Header, RecordError};

use crate::error::RunError;
use crate::identity::{self, UsedPaths};

/// Name of the command in the header of a campaign's record.
pub const COMMAND: &str = "run";

/// Has a simulated device take up its life where a record to go on with has left it.
pub fn restore(selected: &EngineHandle, record: Option<&Path>) -> Result<(), RecordError> {
    let (EngineHandle::Sim(sim), Some(dir)) = (selected, record) else {
        return Ok(());
    };
    sim.restore(Entries::open(dir)?.map(|entry| entry.map(|entry| entry.event)))
}

/// A folder without links and dots, as far as it exists.
pub fn real(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    fs::canonicalize(&absolute).unwrap_or(absolute)
}

/// Who asks for the last run of a kind is not given an older one when it may be
/// one that cannot be read.
pub fn not_another(dir: &Path, unreadable: &RecordError) -> RunError {
    RunError::Refused(format!(
        "the run you mean may be one that cannot be read: {unreadable}\n  to do: name the run, or move {} out of the folder of runs",
        dir.display()
    ).into())
}

/// Whether a run may go on in the record with this header, which the engine
/// `before` made: the same devices, by the same engine.
///
/// # Errors
/// The difference, and what to do.
pub fn must_fit(
    targets: &[PathBuf],
    before: Option<&str>,
    header: &Header,
    selected: &EngineHandle,
    environment: &Environment,
) -> Result<(), RunError> {
    let refused = |difference: String| cannot_continue(header, &difference);
    let engine = selected.engine().name();
    if let Some(before) = before.filter(|&before| before != engine) {
        return Err(refused(format!(
            "its figures are of the engine {before}, now {engine} would measure, and both in one record cannot be compared"
        )));
    }
    let targets = targets.iter().filter(|_| !selected.is_simulated());
    for target in targets {
        let before = identity::dut(header.environment.as_ref(), target);
        let now = identity::dut(Some(environment), target);
        let difference = match (before, now) {
            (Some(before), Some(now)) => identity::difference(before, now),
            (None, _) => Some(format!(
                "it is not of {}, which is to be measured now",
                target.display()
            )),
            (_, None) => None,
        };
        difference.map_or(Ok(()), |difference| Err(refused(difference)))?;
    }
    Ok(())
}

/// Whether what is left to do uses what the record's start used.
///
/// # Errors
/// The difference, and what to do.
pub fn must_lead(header: &Header, uses: &UsedPaths) -> Result<(), RunError> {
    match uses.difference(&header.targets) {
        Some(difference) => Err(cannot_continue(header, &difference)),
        None => Ok(()),
    }
}

fn cannot_continue(header: &Header, difference: &str) -> RunError {
    let to_do = match header.command == COMMAND {
        true => "--again starts a new record",
        false => "start it again",
    };
    RunError::Refused(
        format!("this record cannot be continued: {difference}\n  to do: {to_do}").into(),
    )
}
