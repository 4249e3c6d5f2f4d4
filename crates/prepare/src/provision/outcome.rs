//! What came of one drive, from its record alone.

use std::path::Path;

use fathom_analysis::steady_state::{Metric, SteadyVerdict, SteadyWatch};
use fathom_model::{Event, RunStatus};
use fathom_record::{Entries, RecordError};

use fathom_flow::{Case, Criterion, History, Script, Work, outlook};

/// What a record tells of its drive.
#[derive(Debug)]
pub struct DriveRecord {
    /// How the run ended; `None`: it goes on.
    pub status: Option<RunStatus>,
    /// Every stage.
    pub history: History,
    /// The verdicts of loads that were to become steady, by the ids of their
    /// stages: of the last attempt of each.
    pub verdicts: Vec<(String, Vec<(Metric, SteadyVerdict)>)>,
    /// How long stages took that have ended, in ms by the clock of the record, by
    /// their ids: the run's own time stands still in a purge.
    pub stages_ms: Vec<(String, u64)>,
    /// From its begin to its last line, in ms, pauses included.
    pub took_ms: u64,
}

/// Reads a record. `script` tells what the loads in it were judged by.
///
/// # Errors
/// When it cannot be read.
pub fn outcome(dir: &Path, script: &dyn Script) -> Result<DriveRecord, RecordError> {
    let tasks = outlook(script, &History::default(), Case::Best).0;
    let criteria = |id: &str| -> Option<Vec<Criterion>> {
        tasks.iter().find_map(|task| match &task.work {
            Work::Settle(settle) if task.stage.id == id => Some(settle.criteria.clone()),
            _ => None,
        })
    };
    let mut entries = Entries::open(dir)?;
    let mut history = History::default();
    let mut verdicts: Vec<(String, Vec<_>)> = Vec::new();
    let mut watched: Option<(String, Vec<SteadyWatch>)> = None;
    let mut last_ms = entries.header.started_ms;
    let mut began_ms = last_ms;
    let mut stages_ms: Vec<(String, u64)> = Vec::new();
    for entry in &mut entries {
        let entry = entry?;
        last_ms = entry.at_ms;
        history.take(&entry.event);
        match &entry.event {
            Event::Stage { stage } => {
                began_ms = last_ms;
                watched = criteria(&stage.id).map(|criteria| {
                    let watch = |c: &Criterion| SteadyWatch::new(c.rule, c.ask.clone());
                    (stage.id.clone(), criteria.iter().map(watch).collect())
                });
            }
            Event::StageEnded { id, .. } => {
                stages_ms.retain(|(known, _)| known != id);
                stages_ms.push((id.clone(), last_ms.saturating_sub(began_ms)));
                if let Some((id, watches)) = watched.take() {
                    verdicts.retain(|(known, _)| *known != id);
                    verdicts.push((id, watches.iter().flat_map(SteadyWatch::verdicts).collect()));
                }
            }
            event => {
                for watch in watched.iter_mut().flat_map(|(_, watches)| watches) {
                    watch.take(event);
                }
            }
        }
    }
    Ok(DriveRecord {
        status: entries.status,
        history,
        verdicts,
        stages_ms,
        took_ms: last_ms.saturating_sub(entries.header.started_ms),
    })
}
