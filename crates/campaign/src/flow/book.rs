//! The ledger of the device that a flow works on.

use std::path::{Path, PathBuf};

use fathom_model::Deed;

use crate::ledger::{Ledgers, Notes};

/// Where the deeds of a run are written down, while it runs.
#[derive(Clone)]
pub struct Book {
    ledgers: Ledgers,
    device: PathBuf,
    command: String,
    record: PathBuf,
}

impl Book {
    /// For a run of `command` on the device at this path, with this record: the
    /// run begins.
    #[must_use]
    pub fn open(ledgers: &Ledgers, device: &Path, command: &str, record: &Path) -> (Self, Notes) {
        let notes = ledgers.begin([device], command, Some(record));
        let book = Self {
            ledgers: ledgers.clone(),
            device: device.to_owned(),
            command: command.to_owned(),
            record: record.to_owned(),
        };
        (book, notes)
    }

    /// Writes down what was done now.
    #[must_use]
    pub fn append(&self, deed: Deed) -> Notes {
        self.ledgers
            .did(&self.device, &self.command, Some(&self.record), deed)
    }

    /// The run has ended, which wrote so many bytes in all its starts.
    #[must_use]
    pub fn close(self, bytes: u64) -> Notes {
        self.ledgers.end(&self.command, &self.record, bytes)
    }
}
