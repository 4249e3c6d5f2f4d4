//! What a device does by itself after it has taken the command: how far it is.

use std::path::Path;
use std::time::{Duration, Instant};

use super::PurgeError;
use super::{ata, nvme, scsi};
use crate::command::{Command, Issue};

/// How far a device is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PurgeState {
    /// This share of it is done.
    Going(f64),
    Done,
    /// The device says that it did not do it.
    Failed(String),
    /// It does not tell; told why.
    Unknown(String),
}

/// Where it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    Nvme,
    Scsi,
    Ata,
}

/// Pauses between questions: a small device is done at once, a large one works
/// for hours.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A device that does not answer (it may be busy, or reset itself) is asked
/// again for so long.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// A device that works and gets nowhere is given up after so long, or after
/// twice what it said it would take.
const STILL_MAX: Duration = Duration::from_secs(3600);

impl Follow {
    /// The question.
    pub(super) fn command(self) -> Command {
        match self {
            Self::Nvme => nvme::sanitize_status(),
            Self::Scsi => scsi::request_sense(),
            Self::Ata => ata::Ata::sanitize_status(),
        }
    }

    /// What a person would type for it.
    pub(super) fn like(self) -> &'static str {
        match self {
            Self::Nvme => "nvme sanitize-log",
            Self::Scsi => "sg_requests --progress",
            Self::Ata => "hdparm --sanitize-status",
        }
    }

    fn state(self, device: &Path, issue: &dyn Issue) -> PurgeState {
        let reply = match issue.issue(device, &self.command()) {
            Ok(reply) => reply,
            Err(error) => return PurgeState::Unknown(error.to_string()),
        };
        match self {
            Self::Nvme if !reply.is_good() => {
                PurgeState::Unknown(format!("NVMe status {:#06x}", reply.status))
            }
            Self::Nvme => nvme::sanitize_progress(&reply.data),
            Self::Scsi => scsi::progress(&reply),
            Self::Ata => ata::sanitize_progress(&reply),
        }
    }

    /// Asks until the device is done; tells the share that is.
    ///
    /// # Errors
    /// When the device says that it failed, tells nothing for long, gets
    /// nowhere, or `stop` says so: the device goes on by itself then.
    pub(super) fn to_end(
        self,
        device: &Path,
        issue: &dyn Issue,
        expected: Option<Duration>,
        stop: &dyn Fn() -> bool,
        part: &mut dyn FnMut(f64),
    ) -> Result<(), PurgeError> {
        let still_max = expected.map_or(STILL_MAX, |expected| STILL_MAX.max(2 * expected));
        let mut pause = PAUSE_MIN;
        let (mut heard, mut moved, mut done) = (Instant::now(), Instant::now(), -1.0);
        loop {
            match self.state(device, issue) {
                PurgeState::Done => return Ok(()),
                PurgeState::Failed(what) => return Err(PurgeError::device(device, what)),
                PurgeState::Going(share) => {
                    heard = Instant::now();
                    if share > done {
                        (moved, done) = (heard, share);
                    }
                    part(share);
                }
                PurgeState::Unknown(what) if heard.elapsed() > SILENCE_MAX => {
                    let what = format!("does not tell how far it is: {what}");
                    return Err(PurgeError::device(device, what));
                }
                PurgeState::Unknown(_) => {}
            }
            if moved.elapsed() > still_max {
                let what = format!(
                    "got no further for {} minutes; it may still be at work ({})",
                    still_max.as_secs() / 60,
                    self.like()
                );
                return Err(PurgeError::device(device, what));
            }
            if stop() {
                let what = format!(
                    "; the drive continues by itself and takes nothing else until it is done ({} {})",
                    self.like(),
                    device.display()
                );
                return Err(PurgeError::Stopped { what });
            }
            std::thread::sleep(pause);
            pause = PAUSE_MAX.min(2 * pause);
        }
    }
}
