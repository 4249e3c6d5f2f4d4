//! The cache of a drive itself: whether it keeps writes in memory that a power
//! cut empties, and how that is changed.
//!
//! `queue/write_cache` in sysfs is what the kernel takes a drive for; writing to
//! it changes nothing in the drive (Documentation/ABI/stable/sysfs-block). NVMe
//! drives are asked by Get Features, feature 06h "Volatile Write Cache" (NVMe
//! Base Specification 2.0, 5.27.1.4); those without such a cache refuse. For SCSI
//! drives, and ATA ones behind the kernel's translation, `cache_type` of the
//! SCSI disk is what MODE SENSE told, and writing it issues MODE SELECT
//! (drivers/scsi/sd.c, `cache_type_store`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::{Command, CommandData, Issue};
use crate::sys::{Sys, SysBlock, text};

/// Set Features and Get Features (figure 138).
const SET_FEATURES: u8 = 0x09;
const GET_FEATURES: u8 = 0x0a;
/// Volatile Write Cache (figure 317).
const FEATURE: u32 = 0x06;
/// Answered from memory; emptying a full cache takes longer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The write cache of one device, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceWriteCache {
    /// Whether it is on; `None`: the device does not tell.
    pub on: Option<bool>,
    /// What the kernel takes it for: `write back`, `write through`.
    pub kernel: Option<String>,
    path: PathBuf,
    way: Way,
}

/// How it is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    Nvme,
    Attribute(PathBuf),
    None,
}

impl DeviceWriteCache {
    /// Asks the device behind a path; of a partition the disk it is on. Changes
    /// nothing.
    pub fn find(sys: &Sys, issue: &dyn Issue, path: &Path) -> Self {
        let Some(node) = sys.by_path(path).map(|node| node.whole()) else {
            return Self {
                on: None,
                kernel: None,
                path: path.to_owned(),
                way: Way::None,
            };
        };
        let kernel = node.text("queue/write_cache");
        let path = node.dev_path();
        let (way, on) = if node.name.starts_with("nvme") {
            let on = feature(issue, &path);
            (if on.is_some() { Way::Nvme } else { Way::None }, on)
        } else {
            match attribute(&node) {
                Some(attribute) => {
                    let on = text(&attribute).map(|kind| kind.starts_with("write back"));
                    (Way::Attribute(attribute), on)
                }
                None => (Way::None, None),
            }
        };
        Self {
            on,
            kernel,
            path,
            way,
        }
    }

    /// The command that turns it on or off; `None` where the device has none.
    pub fn command(&self, on: bool) -> Option<Command> {
        match &self.way {
            Way::Nvme => Some(Command::Nvme {
                opcode: SET_FEATURES,
                nsid: 0,
                dwords: [FEATURE, u32::from(on), 0, 0, 0, 0],
                data: CommandData::None,
                timeout: TIMEOUT,
            }),
            Way::Attribute(path) => Some(Command::Attribute {
                path: path.clone(),
                value: if on { "write back" } else { "write through" }.to_owned(),
            }),
            Way::None => None,
        }
    }

    /// Turns it on or off, and asks again. `Ok(None)`: the device cannot be told.
    ///
    /// # Errors
    /// When the command could not be given.
    pub fn turn(&self, sys: &Sys, issue: &dyn Issue, on: bool) -> io::Result<Option<Self>> {
        let Some(command) = self.command(on) else {
            return Ok(None);
        };
        // A refusal is seen by asking again: no answer is believed.
        issue.issue(&self.path, &command)?;
        Ok(Some(Self::find(sys, issue, &self.path)))
    }
}

fn feature(issue: &dyn Issue, path: &Path) -> Option<bool> {
    let command = Command::Nvme {
        opcode: GET_FEATURES,
        nsid: 0,
        dwords: [FEATURE, 0, 0, 0, 0, 0],
        data: CommandData::None,
        timeout: TIMEOUT,
    };
    let reply = issue.issue(path, &command).ok()?;
    reply.is_good().then_some(reply.result & 1 == 1)
}

/// `cache_type` of the SCSI disk that a block device is.
fn attribute(node: &SysBlock) -> Option<PathBuf> {
    let disks = fs::read_dir(node.dir.join("device/scsi_disk")).ok()?;
    let first = disks.flatten().next()?;
    let attribute = first.path().join("cache_type");
    attribute.exists().then_some(attribute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Played, Reply};

    fn cache(way: Way) -> DeviceWriteCache {
        DeviceWriteCache {
            on: Some(true),
            kernel: None,
            path: "/dev/nvme0n1".into(),
            way,
        }
    }

    #[test]
    fn the_commands_are_those_of_the_specifications() {
        let nvme = cache(Way::Nvme).command(false).unwrap().to_string();
        assert!(
            nvme.contains("--opcode=0x09") && nvme.contains("--cdw10=0x6"),
            "{nvme}"
        );
        assert!(!nvme.contains("cdw11"), "0 is off: {nvme}");
        let scsi = cache(Way::Attribute("/sys/x/cache_type".into()));
        let told = scsi.command(false).unwrap().to_string();
        assert_eq!(told, "echo write through > /sys/x/cache_type");
        assert_eq!(cache(Way::None).command(true), None);
    }

    #[test]
    fn a_drive_says_whether_it_is_on_and_one_without_a_cache_refuses() {
        let ask = |status, result| {
            let reply = Reply {
                status,
                result,
                ..Reply::default()
            };
            feature(&Played::new([reply]), Path::new("/dev/nvme0n1"))
        };
        assert_eq!(
            (ask(0, 1), ask(0, 0), ask(2, 1)),
            (Some(true), Some(false), None)
        );
    }
}
