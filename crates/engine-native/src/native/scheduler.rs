//! `ioscheduler`: the devices under a job's files get this I/O scheduler for
//! the run, and theirs back afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_model::{Failure, FailureKind};

use super::disks;
use super::job::IoEngine;
use super::members::Member;

/// Schedulers that were changed, to be put back when dropped.
#[derive(Debug, Default)]
pub(super) struct Schedulers {
    before: BTreeMap<PathBuf, String>,
}

impl Schedulers {
    /// Sets what the members ask for.
    pub(super) fn set(&mut self, members: &[Member]) -> Result<(), Failure> {
        for member in members
            .iter()
            .filter(|member| member.job.engine != IoEngine::Null)
        {
            let (Some(wanted), Ok(plan)) = (&member.job.scheduler, &member.plan) else {
                continue;
            };
            for file in &plan.files {
                self.set_one(&file.path, wanted).map_err(|message| {
                    Failure::new(
                        FailureKind::Permission,
                        format!("ioscheduler={wanted}: {message}"),
                    )
                    .about(format!("job {}", member.job.name))
                })?;
            }
        }
        Ok(())
    }

    fn set_one(&mut self, path: &Path, wanted: &str) -> Result<(), String> {
        let switch = disks::queue_of(path)
            .ok_or_else(|| format!("{} is on no block device with a queue", path.display()))?
            .join("scheduler");
        let now = read(&switch)?;
        if now == wanted {
            return Ok(());
        }
        std::fs::write(&switch, wanted)
            .map_err(|error| format!("{}: {error}", switch.display()))?;
        self.before.entry(switch.clone()).or_insert(now);
        match read(&switch)? {
            now if now == wanted => Ok(()),
            now => Err(format!("the device keeps {now}")),
        }
    }
}

/// The scheduler in brackets: `mq-deadline [none]`.
fn read(switch: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(switch)
        .map_err(|error| format!("{}: {error}", switch.display()))?;
    let active = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    Ok(active.map_or_else(|| text.trim().to_owned(), |(name, _)| name.to_owned()))
}

impl Drop for Schedulers {
    fn drop(&mut self) {
        for (switch, scheduler) in &self.before {
            // The device may be gone by now; there is nobody left to tell.
            let _ = std::fs::write(switch, scheduler);
        }
    }
}
