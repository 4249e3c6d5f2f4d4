//! What a test begins with: the device is purged, and its cache is set as the
//! kind of drive wants it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_device::command::Issue;
use fathom_device::purge::{Purge, PurgeError, Want};
use fathom_device::safety::Confirmations;
use fathom_device::{Sys, WriteCache};
use fathom_model::{Event, StageEnd};

use crate::flow::{Act, Acted, Doing};
use crate::purge;

/// Purges a device and sets its cache: after the purge, which may reset it.
#[derive(Clone)]
pub struct Start {
    /// The device.
    pub dut: PathBuf,
    /// How it is purged; or why it is not.
    pub want: Result<Want, String>,
    /// The words that name the devices.
    pub confirmed: Confirmations,
    /// Whether the cache is to be on; `None`: it is left as it is.
    pub cache: Option<bool>,
    /// Why it is purged, for the log and the ledger.
    pub reason: String,
    /// The campaign's folder, for `logs/purge`.
    pub folder: Option<PathBuf>,
    /// The devices of the machine.
    pub sys: Sys,
    /// The way to them.
    pub issue: Arc<dyn Issue>,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Start")
            .field("dut", &self.dut)
            .field("want", &self.want)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

impl Start {
    fn found(&self) -> WriteCache {
        WriteCache::find(&self.sys, self.issue.as_ref(), &self.dut)
    }

    /// Sets the cache; a sentence about what came of it.
    fn set_cache(&self) -> Option<String> {
        let on = self.cache?;
        let word = |on: bool| if on { "on" } else { "off" };
        let wanted = word(on);
        let found = self.found();
        if found.on == Some(on) {
            return Some(format!("write cache: it is {wanted}, as wanted"));
        }
        let now = match found.turn(&self.sys, self.issue.as_ref(), on) {
            Err(error) => {
                return Some(format!(
                    "write cache: it could not be turned {wanted}: {error}"
                ));
            }
            Ok(None) => {
                return Some(format!(
                    "write cache: wanted {wanted}; this device has no way to say or to set it"
                ));
            }
            Ok(Some(now)) => now,
        };
        Some(match now.on {
            Some(is) if is == on => {
                format!("write cache: turned {wanted}, and the device says that it is; it stays so")
            }
            Some(is) => format!("write cache: wanted {wanted}, but it is {} still", word(is)),
            None => {
                format!("write cache: told to be {wanted}; the device does not say whether it is")
            }
        })
    }

    fn purge(
        &self,
        want: &Want,
        doing: &mut Doing<'_>,
    ) -> (Option<StageEnd>, Option<fathom_model::Deed>) {
        let failed = |error: &PurgeError| {
            let reason = error.to_string();
            Some(StageEnd::Failed { reason })
        };
        let made = Purge::new(&self.sys, self.issue.as_ref(), want, &self.dut);
        let purge = match made {
            Ok(purge) => purge,
            Err(error) => return (failed(&error), None),
        };
        let run = purge::Run {
            purge: &purge,
            confirmed: &self.confirmed,
            reason: &self.reason,
            folder: self.folder.as_deref(),
        };
        let done = run.go(self.issue.as_ref(), doing.control, &mut |progress| {
            if let Some(event) = purge::event(&progress) {
                (doing.tell)(event);
            }
        });
        if let Ok(purged) = &done {
            let found = &purged.verification;
            let text = format!(
                "purged by {} in {}: {} samples were looked for afterwards and none was left",
                purged.method,
                fathom_model::units::duration(purged.took_ms),
                found.samples
            );
            (doing.tell)(Event::Note { text });
        }
        (purge::end(&done), run.deed(&done))
    }
}

impl Act for Start {
    fn commands(&self) -> Vec<String> {
        let mut commands = match &self.want {
            Err(reason) => vec![format!("# no purge: {reason}")],
            Ok(want) => match Purge::new(&self.sys, self.issue.as_ref(), want, &self.dut) {
                Ok(purge) => purge
                    .commands()
                    .iter()
                    .map(|step| step.like.clone())
                    .collect(),
                Err(error) => vec![format!("# {}", first_line(&error.to_string()))],
            },
        };
        if let Some(on) = self.cache {
            let found = self.found();
            let command = found.command(on).filter(|_| found.on != Some(on));
            commands.extend(command.map(|command| command.to_string()));
        }
        commands
    }

    fn run(&self, doing: &mut Doing<'_>) -> Acted {
        if doing.selected.is_simulated() {
            let reason = "a simulated device has nothing to purge".to_owned();
            return Acted::Ended {
                end: StageEnd::Skipped { reason },
                deed: None,
            };
        }
        let (end, deed) = match &self.want {
            Ok(want) => self.purge(want, doing),
            Err(reason) => {
                let reason = reason.clone();
                (Some(StageEnd::Skipped { reason }), None)
            }
        };
        let Some(end) = end else {
            return Acted::Interrupted;
        };
        if !matches!(end, StageEnd::Failed { .. })
            && let Some(text) = self.set_cache()
        {
            (doing.tell)(Event::Note { text });
        }
        Acted::Ended { end, deed }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The cache of a device as the set-up tells of it.
#[must_use]
pub fn write_cache(
    sys: &Sys,
    issue: &dyn Issue,
    dut: &Path,
    wanted: Option<bool>,
) -> fathom_analysis::snia::WriteCache {
    let found = WriteCache::find(sys, issue, dut);
    fathom_analysis::snia::WriteCache {
        wanted,
        device: found.on,
        kernel: found.kernel.clone(),
        settable: wanted.is_some_and(|on| found.command(on).is_some()),
    }
}
