//! Where a run took place: the machine and its targets. Everything that cannot
//! be read on a machine is absent, never invented.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::stack::StackLayer;

/// The machine and the targets of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Environment {
    /// Fathom's own version.
    pub fathom_version: String,
    /// Host name.
    pub hostname: String,
    /// Operating system, for example `Linux`.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine architecture, for example `x86_64`.
    pub arch: String,
    /// CPU model as the kernel names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// CPUs this process may use.
    pub cpus: u32,
    /// Frequency governor, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_governor: Option<String>,
    /// Memory of the machine in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Files and devices the jobs name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
}

/// One boot of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Boot {
    /// Kernel release, as `uname -r` has it.
    pub kernel: String,
    /// What the kernel calls it: no two boots are called the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

/// A file or block device that a run uses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Target {
    /// Path as the job names it.
    pub path: PathBuf,
    /// The block device, when the target is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<BlockDevice>,
    /// The file system, when the target is a file or folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystem>,
    /// What lies under it. Records of earlier versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackLayer>,
    /// Where it leads, when a link lies on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<PathBuf>,
}

impl Environment {
    /// What lies under the targets, a line for each stack; under a disk that was named there
    /// is nothing.
    pub fn stacks(&self) -> Vec<String> {
        let stacks = self.targets.iter().filter_map(|it| it.stack.as_ref());
        let mut told: Vec<String> = Vec::new();
        for stack in stacks.filter(|stack| !stack.under.is_empty()) {
            let text = stack.to_string();
            if !told.contains(&text) {
                told.push(text);
            }
        }
        told
    }
}

impl Target {
    /// Whether its files lie in memory, also under file systems on others. A device that is
    /// named itself is what it is, whatever keeps its data.
    pub fn is_in_memory(&self) -> bool {
        match &self.stack {
            Some(stack) => !stack.is_device() && stack.is_in_memory(),
            None => (self.file_system.as_ref()).is_some_and(|it| is_in_memory(&it.kind)),
        }
    }
}

/// Identity and settings of a block device (the whole disk under a partition).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BlockDevice {
    /// Kernel name, for example `nvme0n1`.
    pub name: String,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// The identifier that the kernel makes of what it reports (`wwid` in sysfs): EUI-64,
    /// NGUID, UUID or WWN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_id: Option<String>,
    /// Whether another drive reports the same identifier: it is known by its place then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_duplicate: bool,
    /// Names under /dev/disk/by-path, of a duplicate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_path: Vec<String>,
    /// NVMe namespace id, which the number in the name need not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nsid: Option<u32>,
    /// Firmware revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Names under /dev/disk/by-id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_id: Vec<String>,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Logical block size in bytes.
    pub logical_block_bytes: u32,
    /// Physical block size in bytes.
    pub physical_block_bytes: u32,
    /// I/O scheduler in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// Requests the scheduler may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// Write cache as the kernel sees it: `write back` or `write through`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_cache: Option<String>,
    /// Whether it rotates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// PCIe link in force, for example `16.0 GT/s x4 of 16.0 GT/s x4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_link: Option<String>,
    /// What stands behind a loop device, or the kind of a virtual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing: Option<String>,
    /// The partition of it that is used, when it is not the whole device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<Partition>,
}

impl BlockDevice {
    /// Whether it reports anything by which it can be known again.
    pub fn has_identifier(&self) -> bool {
        self.unique_id.is_some() || self.serial.is_some()
    }

    /// Whether both are one device (or namespace, or logical unit), seen at two times or
    /// by two paths: by the identifier it reports, else by model, serial number and
    /// namespace. An identifier that two drives here share identifies neither; such a
    /// device is known by its place as well. One without an identifier is never known
    /// again.
    pub fn is_same_drive(&self, other: &Self) -> bool {
        let named = |device: &Self| (device.model.clone(), device.serial.clone(), device.nsid);
        let same = match (&self.unique_id, &other.unique_id) {
            (Some(one), Some(other)) => one == other,
            // Records of older versions have none.
            _ => self.serial.is_some() && named(self) == named(other),
        };
        let place = |device: &Self| match device.by_path.is_empty() {
            true => vec![device.name.clone()],
            false => device.by_path.clone(),
        };
        let known = !self.is_duplicate && !other.is_duplicate;
        same && (known || place(self) == place(other))
    }

    /// What its PCIe link carries at the most, in bytes per second: 8 of 10 bits up to
    /// 5 GT/s, 128 of 130 above (PCI Express Base Specification 6.0, 4.2).
    pub fn link_bytes_per_second(&self) -> Option<u64> {
        let mut words = self.pcie_link.as_deref()?.split_whitespace();
        let transfers: f64 = words.next()?.parse().ok()?;
        let lanes: f64 = words.nth(1)?.strip_prefix('x')?.parse().ok()?;
        let coding = if transfers > 5.0 { 128.0 / 130.0 } else { 0.8 };
        Some((transfers * 1e9 * lanes * coding / 8.0) as u64)
    }
}

/// The place of a partition on its device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Partition {
    /// Kernel name, for example `nvme0n1p2`.
    pub name: String,
    /// Where it begins, in bytes.
    pub start_bytes: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// Whether a file system of this kind keeps its files in memory: no disk is measured there.
pub fn is_in_memory(kind: &str) -> bool {
    // The last two are of BSD and illumos.
    matches!(kind, "tmpfs" | "ramfs" | "mfs" | "swap")
}

/// The file system a file or folder lies on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileSystem {
    /// Type, for example `ext4`.
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// What is mounted.
    pub source: String,
    /// Mount options.
    pub options: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes free for an ordinary user.
    pub free_bytes: u64,
    /// The disk under it, when it is one the kernel can name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<BlockDevice>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_bounds_what_a_device_can_do() {
        for (link, carries) in [
            ("8.0 GT/s x4 of 8.0 GT/s x4", Some(3_938_461_538)),
            ("5.0 GT/s x1", Some(500_000_000)),
            ("Unknown", None),
        ] {
            let device = BlockDevice {
                pcie_link: Some(link.into()),
                ..BlockDevice::default()
            };
            assert_eq!(device.link_bytes_per_second(), carries, "{link}");
        }
    }
}
