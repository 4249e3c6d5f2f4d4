//! Who follows a run from its events: its history, its budget, what has become of its
//! device, and a log beside the record.

use std::cell::{Cell, RefCell};
use std::io;

use fathom_model::{Event, RunStatus};

use super::{Ending, History};
use crate::device_watch::DeviceWatch;
use crate::write_budget::WriteBudget;

/// A log beside the record, for scripts that follow a run.
pub trait RunLog {
    /// The run begins, or goes on.
    fn begin(&mut self) -> io::Result<()>;

    /// Takes the next event, which the history has taken.
    fn take(&mut self, event: &Event, history: &History) -> io::Result<()>;

    /// The run is over; `ending`: how its script ended, where it was not stopped.
    fn end(
        &mut self,
        history: &History,
        ending: Option<&Ending>,
        status: RunStatus,
    ) -> io::Result<()>;
}

/// Everybody who is told what happens once it is recorded, but for who looks on.
pub struct Followers<'l> {
    /// `None`: nothing but what a step itself uses is looked at.
    pub looks: Option<DeviceWatch>,
    pub history: RefCell<History>,
    /// Of its limits the time is that of this start of the run, the bytes are those of all
    /// its starts.
    pub budget: WriteBudget,
    log: RefCell<Option<&'l mut dyn RunLog>>,
    /// Why the log has ended, until that is told.
    lost_log: Cell<Option<io::Error>>,
}

impl<'l> Followers<'l> {
    /// Those of a run that begins, or goes on.
    pub fn new(
        looks: Option<DeviceWatch>,
        history: History,
        budget: WriteBudget,
        log: Option<&'l mut dyn RunLog>,
    ) -> Self {
        Self {
            looks,
            history: RefCell::new(history),
            budget,
            log: RefCell::new(log),
            lost_log: Cell::default(),
        }
    }

    /// They take the next event.
    pub fn take(&self, event: &Event) {
        if let Some(looks) = &self.looks {
            looks.see(event);
        }
        self.history.borrow_mut().take(event);
        self.budget.take(event);
        self.write_log(|log, history| log.take(event, history));
    }

    /// Writes the log. That it cannot be written ends it, not the run.
    pub fn write_log(&self, write: impl FnOnce(&mut dyn RunLog, &History) -> io::Result<()>) {
        let mut log = self.log.borrow_mut();
        let history = self.history.borrow();
        let written = log.as_mut().map_or(Ok(()), |log| write(*log, &history));
        if let Err(error) = written {
            *log = None;
            self.lost_log.set(Some(error));
        }
    }

    /// That the log has ended, once.
    pub fn log_loss(&self) -> Option<String> {
        let error = self.lost_log.take()?;
        Some(format!(
            "the progress logs end here, they cannot be written: {error}"
        ))
    }
}
