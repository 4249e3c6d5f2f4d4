//! What the block devices under the jobs' files did: differences of the
//! kernel's own counters (Documentation/admin-guide/iostats.rst).

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use fathom_model::DiskUse;

/// Devices and their counters at the start.
pub(super) struct Disks {
    devices: BTreeMap<String, (PathBuf, Vec<u64>)>,
    started: Instant,
}

impl Disks {
    /// Reads the counters of the devices under these paths (or their folders).
    pub(super) fn under<'a>(paths: impl Iterator<Item = &'a Path>) -> Self {
        let mut devices = BTreeMap::new();
        for path in paths {
            let Some((name, stat)) = device_of(path) else {
                continue;
            };
            if let Some(counters) = read(&stat) {
                devices.insert(name, (stat, counters));
            }
        }
        Self {
            devices,
            started: Instant::now(),
        }
    }

    /// What they did since then.
    pub(super) fn since(&self) -> Vec<DiskUse> {
        let elapsed_ms = self.started.elapsed().as_secs_f64() * 1000.0;
        let mut disks = Vec::new();
        for (name, (stat, before)) in &self.devices {
            let Some(now) = read(stat) else { continue };
            let of = |field: usize| now[field].saturating_sub(before[field]);
            let busy = if elapsed_ms > 0.0 {
                of(9) as f64 * 100.0 / elapsed_ms
            } else {
                0.0
            };
            disks.push(DiskUse {
                name: name.clone(),
                read_ios: of(0),
                read_merges: of(1),
                read_ticks_ms: of(3),
                write_ios: of(4),
                write_merges: of(5),
                write_ticks_ms: of(7),
                in_queue_ms: of(10),
                util_percent: busy.min(100.0),
                ..DiskUse::default()
            });
        }
        disks
    }
}

/// The sysfs folder of the device that holds a path.
fn folder_of(path: &Path) -> Option<PathBuf> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(_) => std::fs::metadata(path.parent()?).ok()?,
    };
    if meta.file_type().is_char_device() {
        let generic = fathom_device::Sys::live().by_path(path)?;
        return Some(generic.dir);
    }
    let device = if meta.file_type().is_block_device() {
        meta.rdev()
    } else {
        meta.dev()
    };
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()
}

/// Kernel name and counters' file of the device that holds a path.
fn device_of(path: &Path) -> Option<(String, PathBuf)> {
    let folder = folder_of(path)?;
    let name = folder.file_name()?.to_str()?.to_owned();
    Some((name, folder.join("stat")))
}

/// The queue folder of the device that holds a path: a partition has its disk's.
pub(super) fn queue_of(path: &Path) -> Option<PathBuf> {
    let folder = folder_of(path)?;
    let disk = if folder.join("partition").exists() {
        folder.parent()?.to_owned()
    } else {
        folder
    };
    let queue = disk.join("queue");
    queue.is_dir().then_some(queue)
}

/// The first eleven counters.
fn read(stat: &Path) -> Option<Vec<u64>> {
    let text = std::fs::read_to_string(stat).ok()?;
    let counters: Vec<u64> = text
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    (counters.len() >= 11).then_some(counters)
}
