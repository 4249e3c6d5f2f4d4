//! The counters under a mount point.

use std::path::Path;

use super::{disk_line, sections};
use crate::mounts::{self, Mount};

/// The files that tell of the volumes of whoever reads them.
pub const VOLUME_FILES: [&str; 3] = [
    "/proc/diskstats",
    "/proc/self/mountinfo",
    "/proc/self/mountstats",
];

/// File systems that keep all data of a file on the one device that they are
/// mounted from, as it is: what is read from them and was not in memory, that
/// device has delivered. Others compress or use several devices.
const PLAIN: [&str; 4] = ["ext2", "ext3", "ext4", "xfs"];

/// What lies under a mount point, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeReading {
    /// Number of the file system: two mounts with the same one share it.
    pub number: (u32, u32),
    /// Kernel name of the device, or what is mounted.
    pub device: String,
    /// Bytes read and written since the machine or the mount began, or why
    /// nobody can tell.
    pub moved: Result<(u64, u64), String>,
}

impl VolumeReading {
    /// Reads the text of [`VOLUME_FILES`]; `None` when nothing is mounted there.
    pub fn parse(text: &str, point: &Path) -> Option<Self> {
        let file = |wanted: &str| {
            let mut found = sections(text).filter(|(name, _)| name.ends_with(wanted));
            found.next().map_or("", |(_, body)| body)
        };
        let mounts = mounts::parse(file("/mountinfo").as_bytes());
        // A later mount covers an earlier one.
        let mount = mounts.iter().rev().find(|mount| mount.point == point)?;
        let source = mount.source.display().to_string();
        let mut disks = file("/diskstats").lines().filter_map(disk_line);
        let disk = disks.find(|(number, _)| *number == mount.number);
        let device = disk.as_ref().map_or(source, |(_, disk)| disk.name.clone());
        let moved = match mount.kind.as_str() {
            "nfs" | "nfs4" => of_nfs(file("/mountstats"), point)
                .ok_or_else(|| "its NFS mount has no counters".to_owned()),
            _ => (plain(mount).map(|()| disk)).and_then(|disk| {
                let (_, disk) = disk.ok_or("its device has no counters")?;
                Ok((disk.read_bytes, disk.write_bytes))
            }),
        };
        Some(Self {
            number: mount.number,
            device,
            moved,
        })
    }
}

/// Whether the device's counters say what the files' data took.
fn plain(mount: &Mount) -> Result<(), String> {
    // A realtime section of XFS lies on a device of its own.
    let elsewhere = mount.options.split(',').any(|o| o.starts_with("rtdev="));
    match PLAIN.contains(&mount.kind.as_str()) && !elsewhere {
        true => Ok(()),
        false => Err(format!(
            "its file system, {}, is not counted by one block device",
            mount.kind
        )),
    }
}

/// Bytes of READ and WRITE calls of a mount: the fifth and sixth number behind
/// `bytes:` (nfs_show_stats in fs/nfs/super.c, NFSIOS_SERVERREADBYTES in
/// include/linux/nfs_iostat.h).
fn of_nfs(mountstats: &str, point: &Path) -> Option<(u64, u64)> {
    let wanted = format!(" mounted on {} with fstype nfs", point.display());
    let mut lines = mountstats.lines();
    lines.find(|line| line.starts_with("device ") && line.contains(&wanted))?;
    let mut own = lines.take_while(|line| !line.starts_with("device "));
    let bytes = own.find_map(|line| line.trim().strip_prefix("bytes:"))?;
    let counts: Vec<u64> = bytes
        .split_ascii_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    Some((*counts.get(4)?, *counts.get(5)?))
}
