//! How much a run has written, from its events.

use std::path::Path;

use fathom_model::result::ALL_CLIENTS;
use fathom_model::{Direction, Event, Results, RunStatus, StageKind};
use fathom_record::{Entries, RecordError};

/// Counts the bytes that the jobs of a run have written.
///
/// Of each step the greater counts of what the engine reports at its end and
/// what the samples add up to: a step that was killed has samples alone. Both
/// leave out ramp time, so it is the least that was written. Where an engine
/// reports reads and writes as one, all of it counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Of the steps before.
    before: u64,
    sampled: u64,
    reported: u64,
}

impl Moved {
    /// Takes the next event of the run.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Step { .. } | Event::Resumed { .. } => {
                *self = Self {
                    before: self.bytes(),
                    ..Self::default()
                };
            }
            Event::Sample(sample) if writes(sample.dir) => {
                self.sampled = self.sampled.saturating_add(sample.bytes);
            }
            Event::Finished { results } => self.reported = written(results),
            _ => {}
        }
    }

    /// Bytes so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.before.saturating_add(self.sampled.max(self.reported))
    }
}

fn writes(dir: Direction) -> bool {
    matches!(dir, Direction::Write | Direction::Mixed)
}

fn written(results: &Results) -> u64 {
    let jobs = results.jobs.iter().filter(|job| job.name != ALL_CLIENTS);
    let bytes = jobs.flat_map(|job| [&job.write, &job.mixed]).flatten();
    bytes.map(|direction| direction.io_bytes).sum()
}

/// What a run has done that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    /// Bytes written.
    pub(super) bytes: u64,
    /// When it last did anything, ms since 1970 UTC.
    pub(super) at_ms: u64,
    /// It was in a purge then.
    pub(super) in_purge: bool,
}

/// What the run in a record's folder has done; `None` while it goes on.
///
/// # Errors
/// When the record cannot be read.
pub(super) fn read(dir: &Path) -> Result<Option<Ended>, RecordError> {
    let mut entries = Entries::open(dir)?;
    if matches!(entries.status, None | Some(RunStatus::Running)) {
        return Ok(None);
    }
    let mut moved = Moved::default();
    let mut at_ms = entries.header.started_ms;
    let mut in_purge = false;
    for entry in &mut entries {
        let entry = entry?;
        at_ms = entry.at_ms;
        moved.take(&entry.event);
        match &entry.event {
            Event::Stage { stage } => in_purge = stage.kind == StageKind::Purge,
            Event::StageEnded { .. } => in_purge = false,
            _ => {}
        }
    }
    Ok(Some(Ended {
        bytes: moved.bytes(),
        at_ms,
        in_purge,
    }))
}
