//! The ledger of the device that a flow works on.

use std::path::{Path, PathBuf};

use fathom_model::LedgerEvent;

use crate::ledger::{Ledgers, Notes};

/// Where the deeds of a run are written down, while it runs.
#[derive(Clone)]
pub struct LedgerScope {
    ledgers: Ledgers,
    device: PathBuf,
    command: String,
    record: PathBuf,
}

impl LedgerScope {
    /// For a run of `command` on devices of which it is to be told at these paths, with
    /// this record: the run begins. What is done besides I/O is done to `device`.
    pub fn open(
        ledgers: &Ledgers,
        entered: &[PathBuf],
        device: &Path,
        command: &str,
        record: &Path,
    ) -> (Self, Notes) {
        let paths = entered.iter().map(PathBuf::as_path);
        let notes = ledgers.begin(paths, command, Some(record));
        let scope = Self {
            ledgers: ledgers.clone(),
            device: device.to_owned(),
            command: command.to_owned(),
            record: record.to_owned(),
        };
        (scope, notes)
    }

    /// Writes down what was done now.
    pub fn append(&self, deed: LedgerEvent) -> Notes {
        self.append_to(&self.device, deed)
    }

    /// As [`LedgerScope::append`], of another device.
    pub fn append_to(&self, device: &Path, deed: LedgerEvent) -> Notes {
        self.ledgers
            .did(device, &self.command, Some(&self.record), deed)
    }

    /// Something is about to be done to other devices, too.
    pub fn begin<'p>(&self, devices: impl IntoIterator<Item = &'p Path>) -> Notes {
        self.ledgers
            .begin(devices, &self.command, Some(&self.record))
    }

    /// The run has ended, which wrote so many bytes in all its starts.
    pub fn close(self, bytes: u64) -> Notes {
        self.ledgers.end(&self.command, &self.record, bytes)
    }
}
