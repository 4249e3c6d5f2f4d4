//! Looks at the device between two steps: is it there, is it free, is it the one
//! that was named?

use std::cell::Cell;
use std::path::PathBuf;

use fathom_device::Sys;
use fathom_engine::Control;
use fathom_fleet::local::Session;
use fathom_model::{Event, Failure, FailureKind};

/// What is looked at.
#[derive(Debug)]
pub struct DeviceWatch {
    /// The device (or file) under test.
    pub dut: PathBuf,
    /// Paths that are written to.
    pub written: Vec<PathBuf>,
    /// Whether there is no device at all.
    pub simulated: bool,
    /// Whether the target was a device when the run began.
    pub was_device: bool,
    /// Whether an engine has said that the device is gone.
    pub gone: Cell<bool>,
}

impl DeviceWatch {
    /// Looks at an event of the run.
    pub fn see(&self, event: &Event) {
        if let Event::Failure(failure) = event {
            let gone = self.gone.get() || failure.kind == FailureKind::NoDevice;
            self.gone.set(gone);
        }
    }

    /// Whether the device is still free and the one that was named. Signatures
    /// are not looked for again: what was written before may look like one.
    ///
    /// # Errors
    /// What stands against it.
    pub fn look(&self, session: &Session<'_>, control: &Control) -> Result<(), Failure> {
        session.look(&self.written, control)?;
        match self.is_gone() {
            true => Err(self.gone()),
            false => Ok(()),
        }
    }

    /// Whether the device was there and is not any more.
    pub fn is_gone(&self) -> bool {
        if self.gone.get() || self.simulated {
            return self.gone.get();
        }
        let node = Sys::live().by_path(&self.dut);
        self.was_device && node.is_none_or(|node| node.size_bytes() == 0)
    }

    /// The failure that says so.
    pub fn gone(&self) -> Failure {
        let what = format!("{} is gone", self.dut.display());
        Failure::new(FailureKind::NoDevice, what)
    }
}
