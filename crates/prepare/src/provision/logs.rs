//! The log of one drive, `logs/provisioning/<method>/<drive>`, in fio-tests' form, for scripts that follow it. The record has it all and
//! more.

use fathom_flow::error::RunError;
use fathom_flow::{Ending, Finish};
use fathom_model::ledger::Pattern;
use fathom_model::{Event, StageEnd};

use super::{DriveJob, ProvisionMethod};
use crate::logs::{Logs, provisioning};

/// Writes it. A log that cannot be written ends; the drive goes on.
#[derive(Debug)]
pub(super) struct DriveLog {
    logs: Option<Logs>,
    /// `provisioning/santa-clara`.
    log: &'static str,
    method: &'static str,
    load: Pattern,
    resumes: bool,
    begun: bool,
}

impl DriveLog {
    pub(super) fn new(how: &ProvisionMethod, one: &DriveJob) -> Self {
        let (log, method) = provisioning(how.method);
        Self {
            logs: how
                .logs
                .as_deref()
                .map(|dir| Logs::new(dir, &one.drive.path)),
            log,
            method,
            load: one.load,
            resumes: one.record.is_some(),
            begun: false,
        }
    }

    /// Takes the next event of the drive.
    pub(super) fn take(&mut self, event: &Event) {
        match event {
            Event::Stage { stage } => {
                self.begin();
                self.line("Start stage", &[&stage.id, &stage.title]);
            }
            Event::StageEnded { id, end } => {
                let came = match end {
                    StageEnd::Done => "OK".to_owned(),
                    StageEnd::Skipped { reason } => format!("skipped: {reason}"),
                    StageEnd::NotAttained { reason } => format!("not steady: {reason}"),
                    StageEnd::Failed { reason } => format!("failed: {reason}"),
                    StageEnd::Waits { reason } => format!("waits: {reason}"),
                    StageEnd::Interrupted { reason } => format!("stopped: {reason}"),
                };
                self.line("Finished stage", &[id, &came]);
            }
            _ => {}
        }
    }

    /// The drive's run is over.
    pub(super) fn end(&mut self, came: &Result<Finish, RunError>) {
        let text = match came {
            Ok(Finish {
                ending: Some(Ending::NotAttained(_)),
                ..
            }) => "not steady".to_owned(),
            Ok(finish) => finish.status.to_string(),
            Err(error) => error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        self.begin();
        self.line("Finished provisioning", &[self.method, &text]);
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            let action = match self.resumes {
                true => "Resume provisioning",
                false => "Start provisioning",
            };
            let load = self.load.to_string();
            self.line(action, &[self.method, &load]);
        }
    }

    fn line(&mut self, action: &str, details: &[&str]) {
        if let Some(logs) = &self.logs
            && logs.line(self.log, action, details).is_err()
        {
            self.logs = None;
        }
    }
}
