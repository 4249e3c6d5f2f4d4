//! What a test begins with: the device is purged, and its cache is set as the
//! kind of drive wants it.

use std::path::Path;

use fathom_device::command::Issue;
use fathom_device::{DeviceWriteCache, Sys};
use fathom_flow::{Act, ActionContext, ActionResult};
use fathom_model::{Event, StageEnd};
use fathom_prepare::acts::Purging;

/// Purges a device and sets its cache: after the purge, which may reset it.
#[derive(Debug, Clone)]
pub struct PurgeAndCache {
    /// The purge, and with it the way to the device.
    pub purging: Purging,
    /// Why it is not purged.
    pub no_purge: Option<String>,
    /// Whether the cache is to be on; `None`: it is left as it is.
    pub cache: Option<bool>,
}

impl PurgeAndCache {
    fn found(&self) -> DeviceWriteCache {
        let Purging {
            sys, issue, dut, ..
        } = &self.purging;
        DeviceWriteCache::find(sys, issue.as_ref(), dut)
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
        let now = match found.turn(&self.purging.sys, self.purging.issue.as_ref(), on) {
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
}

impl Act for PurgeAndCache {
    fn commands(&self) -> Vec<String> {
        let mut commands = match &self.no_purge {
            Some(reason) => vec![format!("# no purge: {reason}")],
            None => self.purging.commands(),
        };
        if let Some(on) = self.cache {
            let found = self.found();
            let command = found.command(on).filter(|_| found.on != Some(on));
            commands.extend(command.map(|command| command.to_string()));
        }
        commands
    }

    fn bytes(&self) -> u64 {
        match self.no_purge {
            Some(_) => 0,
            None => self.purging.bytes(),
        }
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        let acted = match &self.no_purge {
            None => self.purging.run(doing),
            Some(reason) => ActionResult::Ended {
                end: StageEnd::Skipped {
                    reason: reason.clone(),
                },
                deed: None,
            },
        };
        let good = match &acted {
            ActionResult::Ended { end, .. } => !matches!(end, StageEnd::Failed { .. }),
            ActionResult::Interrupted { .. } => false,
        };
        if good
            && !doing.selected.is_simulated()
            && let Some(text) = self.set_cache()
        {
            (doing.tell)(Event::Note { text });
        }
        acted
    }
}

/// The cache of a device as the set-up tells of it.
pub fn write_cache(
    sys: &Sys,
    issue: &dyn Issue,
    dut: &Path,
    wanted: Option<bool>,
) -> fathom_analysis::snia::CacheSetting {
    let found = DeviceWriteCache::find(sys, issue, dut);
    fathom_analysis::snia::CacheSetting {
        wanted,
        device: found.on,
        kernel: found.kernel.clone(),
        settable: wanted.is_some_and(|on| found.command(on).is_some()),
    }
}
