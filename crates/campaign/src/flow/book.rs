//! The ledger of the device that a flow works on.

use std::path::{Path, PathBuf};

use fathom_model::Deed;
use fathom_model::environment::BlockDevice;
use fathom_record::{Ledger, RecordError};

/// Where the deeds of a run are written down.
#[derive(Debug, Clone)]
pub struct Book {
    ledger: Ledger,
    device: BlockDevice,
    command: String,
    record: PathBuf,
}

impl Book {
    /// The ledger of `device` in the folder of ledgers, for a run of `command`
    /// with this record. `None` for a device that cannot be known again.
    #[must_use]
    pub fn of(folder: &Path, device: &BlockDevice, command: &str, record: &Path) -> Option<Self> {
        Some(Self {
            ledger: Ledger::of(folder, device)?,
            device: device.clone(),
            command: command.to_owned(),
            record: std::path::absolute(record).unwrap_or_else(|_| record.to_owned()),
        })
    }

    /// Writes down what was done now.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn append(&self, deed: Deed) -> Result<(), RecordError> {
        let record = Some(self.record.as_path());
        self.ledger
            .append(&self.device, &self.command, record, deed)
    }
}
