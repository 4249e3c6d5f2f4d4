//! How much a run has written, from its events.

use std::path::Path;

use fathom_model::result::ALL_CLIENTS;
use fathom_model::{Direction, Event, Results, RunStatus, StageKind};
use fathom_record::{Entries, RecordError};

/// Counts the bytes that a run has written.
///
/// Of each step the greater counts of what the engine reports at its end and
/// what the samples add up to: a step that was killed has samples alone. Both
/// leave out ramp time and what other means wrote: that is added, or in what the
/// kernel has counted, which decides where it is more. Where an engine reports
/// reads and writes as one, all of it counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BytesWritten {
    /// In the starts before.
    earlier: u64,
    /// In this start's steps before, and beside them.
    before: u64,
    sampled: u64,
    reported: u64,
    /// In this start, by the kernel.
    counted: u64,
    /// Up to the last interval, and within it.
    interval: (u64, u64),
    /// In all steps before, by jobs alone.
    of_jobs: u64,
}

impl BytesWritten {
    /// Takes the next event of the run.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Step { .. } => {
                self.before = self.figures();
                self.of_jobs = self.of_jobs();
                (self.sampled, self.reported) = (0, 0);
                self.interval.0 = self.bytes();
            }
            Event::Interval { .. } => {
                let now = self.bytes();
                self.interval = (now, now.saturating_sub(self.interval.0));
            }
            Event::Resumed { .. } => self.begin_again(),
            Event::Sample(sample) if writes(sample.dir) => {
                self.sampled = self.sampled.saturating_add(sample.bytes);
            }
            Event::Finished { results } => self.reported = written(results),
            Event::WrittenBeside { bytes } => self.before = self.before.saturating_add(*bytes),
            Event::KernelCounted { written_bytes } => self.counted = *written_bytes,
            _ => {}
        }
    }

    /// Another start of the run begins.
    pub fn begin_again(&mut self) {
        let earlier = self.bytes();
        *self = Self {
            earlier,
            of_jobs: self.of_jobs(),
            interval: (earlier, self.interval.1),
            ..Self::default()
        };
    }

    /// Bytes of the last interval, that of a step or start before included: the next
    /// one may have as many.
    pub fn in_interval(&self) -> u64 {
        self.interval.1
    }

    /// Bytes that the jobs of all starts have written by their own figures: what the
    /// ledger has of a run is made of these.
    pub fn of_jobs(&self) -> u64 {
        self.of_jobs.saturating_add(self.sampled.max(self.reported))
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.earlier
            .saturating_add(self.figures().max(self.counted))
    }

    /// Bytes of this start by Fathom's own figures.
    pub fn figures(&self) -> u64 {
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
pub struct EndedWork {
    /// Bytes written.
    pub bytes: u64,
    /// When it last did anything, ms since 1970 UTC.
    pub at_ms: u64,
    /// It was in a purge then.
    pub in_purge: bool,
}

/// What the run in a record's folder has done; `None` while it goes on.
///
/// # Errors
/// When the record cannot be read.
pub fn read(dir: &Path) -> Result<Option<EndedWork>, RecordError> {
    let mut entries = Entries::open(dir)?;
    if matches!(entries.status, None | Some(RunStatus::Running)) {
        return Ok(None);
    }
    let mut bytes = BytesWritten::default();
    let mut at_ms = entries.header.started_ms;
    let mut in_purge = false;
    for entry in &mut entries {
        let entry = entry?;
        at_ms = entry.at_ms;
        bytes.take(&entry.event);
        match &entry.event {
            Event::Stage { stage } => in_purge = stage.kind == StageKind::Purge,
            Event::StageEnded { .. } => in_purge = false,
            _ => {}
        }
    }
    Ok(Some(EndedWork {
        bytes: bytes.of_jobs(),
        at_ms,
        in_purge,
    }))
}
