//! The rows that single samples give, read from the whole record.

use std::path::Path;

use fathom_model::{Entry, Event, Sample};
use fathom_record::{Entries, RecordError};

use super::definitions::sample;
use super::{SAMPLES, TakeRow};
use fathom_document::attempts::Counting;

/// Where the samples of a record belong, while its events are read in order.
#[derive(Debug)]
pub struct SamplePlace {
    counting: Counting,
    step: Option<String>,
    names: Vec<String>,
    hosts: Vec<String>,
}

impl SamplePlace {
    /// At the begin of a record, of which these attempts count.
    pub fn of(counting: Counting) -> Self {
        Self {
            counting,
            step: None,
            names: Vec::new(),
            hosts: Vec::new(),
        }
    }

    /// Takes the next entry; gives the sample that it is, if that counts.
    pub fn take(&mut self, entry: Entry) -> Option<Sample> {
        let counts = self.counting.take(&entry);
        match entry.event {
            Event::Step {
                of, name, point, ..
            } => self.step = (of > 1 || point.is_some()).then_some(name),
            Event::Jobs { names, hosts } => (self.names, self.hosts) = (names, hosts),
            Event::Sample(sample) if counts => return Some(sample),
            _ => {}
        }
        None
    }

    /// The step's name; `None` where the run has but one.
    pub fn step(&self) -> Option<&str> {
        self.step.as_deref()
    }

    /// The name of a sample's job; empty where it is not told.
    pub fn name(&self, sample: &Sample) -> &str {
        let name = self.names.get(sample.job as usize);
        name.map_or("", String::as_str)
    }

    /// The host that it ran on; `None` where all ran on this machine.
    pub fn host(&self, sample: &Sample) -> Option<&str> {
        self.hosts.get(sample.job as usize).map(String::as_str)
    }
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
    let mut place = SamplePlace::of(Counting::of(Entries::summed(dir)?));
    let entries = Entries::open(dir)?;
    let run = entries.id();
    for entry in entries {
        match entry {
            Ok(entry) => {
                if let Some(it) = place.take(entry) {
                    take(&SAMPLES, &sample((&run, &place, &it)))?;
                }
            }
            Err(damage @ RecordError::Damaged { .. }) => tell(&damage),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
