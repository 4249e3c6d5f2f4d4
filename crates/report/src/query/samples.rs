//! The rows that single samples give, read from the whole record.

use std::collections::BTreeSet;
use std::path::Path;

use fathom_model::{Event, Sample};
use fathom_record::{Entries, RecordError, RecordPart};

use super::definitions::sample;
use super::{SAMPLES, TakeRow};
use crate::attempts::{AttemptKey, Attempts};

/// Where the samples of a record belong, while its events are read in order.
#[derive(Debug, Default)]
pub struct SamplePlace {
    step: Option<String>,
    names: Vec<String>,
    hosts: Vec<String>,
}

impl SamplePlace {
    /// Takes the next event; gives the sample that it is.
    pub fn take(&mut self, event: Event) -> Option<Sample> {
        match event {
            Event::Step {
                of, name, point, ..
            } => self.step = (of > 1 || point.is_some()).then_some(name),
            Event::Jobs { names, hosts } => (self.names, self.hosts) = (names, hosts),
            Event::Sample(sample) => return Some(sample),
            _ => {}
        }
        None
    }

    /// The step's name; `None` where the run has but one.
    #[must_use]
    pub fn step(&self) -> Option<&str> {
        self.step.as_deref()
    }

    /// The name of a sample's job; empty where it is not told.
    #[must_use]
    pub fn name(&self, sample: &Sample) -> &str {
        let name = self.names.get(sample.job as usize);
        name.map_or("", String::as_str)
    }

    /// The host that it ran on; `None` where all ran on this machine.
    #[must_use]
    pub fn host(&self, sample: &Sample) -> Option<&str> {
        self.hosts.get(sample.job as usize).map(String::as_str)
    }
}

/// The attempts of steps that count.
fn counting(dir: &Path) -> Result<BTreeSet<AttemptKey>, RecordError> {
    let mut entries = Entries::summed(dir)?;
    let mut attempts = Attempts::default();
    while let Some(part) = entries.next_part() {
        // What is damaged is told of where the samples are read.
        if let Ok(RecordPart::Entry(entry)) = part {
            attempts.take(entry.at_ms, &entry.event);
        }
    }
    Ok(attempts.counting())
}

/// Gives a row for every sample of the attempts that count, and tells of each part of the
/// record that is damaged.
///
/// # Errors
/// When it cannot be read; else those of `take`.
pub fn put_samples<E: From<RecordError>>(
    dir: &Path,
    tell: &mut dyn FnMut(&RecordError),
    take: &mut TakeRow<'_, E>,
) -> Result<(), E> {
    let counting = counting(dir)?;
    let entries = Entries::open(dir)?;
    let run = entries.id();
    let mut place = SamplePlace::default();
    let mut counts = true;
    for entry in entries {
        match entry {
            Ok(entry) => {
                if let Event::Step { step, .. } = &entry.event {
                    counts = counting.contains(&(entry.at_ms, *step));
                }
                if let Some(it) = place.take(entry.event).filter(|_| counts) {
                    take(&SAMPLES, &sample((&run, &place, &it)))?;
                }
            }
            Err(damage @ RecordError::Damaged { .. }) => tell(&damage),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
