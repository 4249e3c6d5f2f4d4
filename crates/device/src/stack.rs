//! What lies under a path: every file system, device and file, down to the disks, the memory
//! or the machine that keeps the data.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use fathom_model::environment::is_in_memory;
use fathom_model::{LayerKind, StackLayer};

use crate::cow;
use crate::identity;
use crate::mounts::{self, Mount};
use crate::sys::{Sys, SysBlock, names_in};

/// Layers under each other at the most: more than anybody builds. A cycle ends there.
const DEPTH_MOST: u32 = 16;

/// File systems whose data another machine, or the host of this one, keeps.
const NETWORK: [&str; 12] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "9p",
    "virtiofs",
    "ceph",
    "afs",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.s3fs",
    "fuse.rclone",
];
/// Devices whose data is in memory, or nowhere, by how their names begin.
const MEMORY_DEVICES: [&str; 4] = ["zram", "ram", "nullb", "pmem"];

/// What lies under a path; of one that does not exist yet, under the folder that would hold
/// it. `None`: nothing is known of it.
pub fn of(sys: &Sys, path: &Path) -> Option<StackLayer> {
    among(sys, &mounts::own(sys), path)
}

/// The same where the mounts have been read already.
pub(crate) fn among(sys: &Sys, mounts: &[Mount], path: &Path) -> Option<StackLayer> {
    Walk { sys, mounts }.of_path(path, 0)
}

/// The disks that a path's I/O meets first: those of its file system, or the device itself;
/// of partitions their disks.
pub fn disks(sys: &Sys, path: &Path) -> Vec<SysBlock> {
    let mut found = Vec::new();
    for layer in of(sys, path).iter().flat_map(StackLayer::first_devices) {
        let node = sys.by_name(&layer.name);
        found.extend(node.filter(|node| !found.contains(node)));
    }
    found
}

fn unknown() -> StackLayer {
    StackLayer::new(LayerKind::Unknown, "unknown")
}

struct Walk<'s> {
    sys: &'s Sys,
    mounts: &'s [Mount],
}

impl Walk<'_> {
    fn of_path(&self, path: &Path, depth: u32) -> Option<StackLayer> {
        if depth >= DEPTH_MOST {
            return Some(StackLayer::new(LayerKind::Unknown, "…"));
        }
        if let Some(node) = self.sys.by_path(path) {
            return Some(self.of_device(&node, depth));
        }
        let (path, mount) = mounts::of_path(self.mounts, path)?;
        Some(self.of_mount(mount, &path, depth))
    }

    fn of_device(&self, node: &SysBlock, depth: u32) -> StackLayer {
        if depth >= DEPTH_MOST {
            return StackLayer::new(LayerKind::Unknown, &node.name);
        }
        let each = |nodes: Vec<SysBlock>| -> Vec<StackLayer> {
            let nodes = nodes.iter();
            nodes.map(|node| self.of_device(node, depth + 1)).collect()
        };
        let layer = |kind, backing: Option<String>, under| StackLayer {
            backing,
            under,
            ..StackLayer::new(kind, &node.name)
        };
        if node.is_partition() {
            return layer(LayerKind::Partition, None, each(vec![node.whole()]));
        }
        if let Some(file) = node.text("loop/backing_file") {
            let under = self.of_path(Path::new(&file), depth + 1);
            let under = vec![under.unwrap_or_else(unknown)];
            return layer(LayerKind::Loop, Some(file), under);
        }
        let slaves = node.linked("slaves");
        if !slaves.is_empty() {
            return layer(LayerKind::Mapped, identity::made_by(node), each(slaves));
        }
        let begins = |it: &&str| node.name.strip_prefix(*it).is_some_and(is_number);
        let (kind, bus) = match MEMORY_DEVICES.iter().any(begins) {
            true => (LayerKind::MemoryDevice, None),
            false => (LayerKind::Disk, bus(node)),
        };
        let backing = node.text("backing_dev").filter(|it| it != "none");
        let backing = backing.and_then(|path| self.of_path(Path::new(&path), depth + 1));
        // The paths of an NVMe drive with several.
        let mut under = each(node.linked("multipath"));
        under.extend(backing);
        StackLayer {
            bus,
            size_bytes: Some(node.size_bytes()).filter(|&bytes| bytes > 0),
            ..layer(kind, None, under)
        }
    }

    fn of_mount(&self, mount: &Mount, path: &Path, depth: u32) -> StackLayer {
        let kind = mount.kind.as_str();
        let layer = |layer, under| StackLayer {
            under,
            ..StackLayer::new(layer, kind)
        };
        if is_in_memory(kind) {
            return layer(LayerKind::Memory, Vec::new());
        }
        if NETWORK.contains(&kind) {
            let remote = StackLayer {
                backing: Some(mount.source.display().to_string()),
                ..StackLayer::new(LayerKind::Network, "network")
            };
            return layer(LayerKind::FileSystem, vec![remote]);
        }
        if kind == "overlay" {
            return layer(LayerKind::Overlay, self.of_overlay(mount, path, depth));
        }
        let devices = devices(self.sys, mount);
        if !devices.is_empty() {
            let under = devices.iter();
            let under = under.map(|node| self.of_device(node, depth + 1)).collect();
            let layer_kind = match kind.starts_with("fuse") {
                true => LayerKind::Fuse,
                false => LayerKind::FileSystem,
            };
            let data = match kind {
                "btrfs" => cow::of_btrfs(self.sys, mount, &devices, path),
                _ => Vec::new(),
            };
            return StackLayer {
                data,
                ..layer(layer_kind, under)
            };
        }
        if kind.starts_with("fuse") {
            // What a server of this machine passes on is often its source.
            let is_elsewhere = |source: &&PathBuf| {
                source.is_absolute() && source.exists() && !source.starts_with(&mount.point)
            };
            let source = Some(&mount.source).filter(is_elsewhere);
            let under = source.and_then(|source| self.of_path(source, depth + 1));
            return layer(LayerKind::Fuse, vec![under.unwrap_or_else(unknown)]);
        }
        layer(LayerKind::FileSystem, vec![unknown()])
    }

    /// The layers of an overlay that keep what is at a path: the upper one where the file is
    /// there already, or will be; the lower one that has it, and the upper one beside it,
    /// where it would be copied to when it is written.
    fn of_overlay(&self, mount: &Mount, path: &Path, depth: u32) -> Vec<StackLayer> {
        let option = |name: &str| {
            let value = (mount.options.split(',')).find_map(|it| it.strip_prefix(name))?;
            // Commas and backslashes in it are octal (fs/seq_file.c, `seq_escape`).
            Some(PathBuf::from(OsString::from_vec(mounts::unescape(
                value.as_bytes(),
            ))))
        };
        let within = path.strip_prefix(&mount.point).unwrap_or(Path::new(""));
        let at = |folder: &PathBuf| folder.join(within);
        let upper = option("upperdir=");
        let lower = option("lowerdir=").unwrap_or_default();
        let lower = folders(lower.as_os_str().as_bytes());
        let is_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|it| it.is_file());
        let mut found: Vec<PathBuf> = upper.iter().map(at).collect();
        if !found.iter().any(&is_file) {
            found.extend(lower.iter().map(at).find(is_file));
        }
        if found.is_empty() {
            found.extend(lower.iter().map(at));
        }
        let mut layers: Vec<StackLayer> = Vec::new();
        for path in found {
            // In a container these folders are often those of another mount namespace.
            let root = path.ancestors().nth(within.components().count());
            let is_here = root.is_some_and(Path::exists);
            let layer = is_here.then(|| self.of_path(&path, depth + 1)).flatten();
            let layer = layer.unwrap_or_else(unknown);
            if !layers.contains(&layer) {
                layers.push(layer);
            }
        }
        layers
    }
}

/// All devices of a mounted file system.
pub(crate) fn devices(sys: &Sys, mount: &Mount) -> Vec<SysBlock> {
    let first = mount.device(sys);
    let mut all: Vec<SysBlock> = match mount.kind.as_str() {
        "btrfs" => first.as_ref().map(|it| btrfs(sys, it)).unwrap_or_default(),
        // bcachefs names all its devices as one source.
        "bcachefs" => {
            let source = mount.source.to_string_lossy().into_owned();
            let paths = source.split(':').map(Path::new);
            paths.filter_map(|path| sys.by_path(path)).collect()
        }
        _ => Vec::new(),
    };
    if all.is_empty() {
        all.extend(first);
    }
    for other in other_devices(mount).filter_map(|path| sys.by_path(path)) {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// Whether a mount may have more devices than the one that its number is of: those of btrfs
/// have numbers of their own, and several devices.
pub(crate) fn has_others(mount: &Mount) -> bool {
    let is_of_several = mount.number.0 == 0 && mount.source.starts_with("/dev");
    is_of_several || other_devices(mount).next().is_some()
}

/// Where xfs keeps its log and its realtime data, and ext4 its journal.
fn other_devices(mount: &Mount) -> impl Iterator<Item = &Path> {
    let options = mount.options.split(',');
    options.filter_map(|option| {
        let (name, path) = option.split_once('=')?;
        let is_device = ["logdev", "rtdev", "journal_path"].contains(&name);
        is_device.then_some(Path::new(path))
    })
}

/// The devices of the btrfs that one of them belongs to.
fn btrfs(sys: &Sys, one: &SysBlock) -> Vec<SysBlock> {
    let of = |dir: PathBuf| -> Vec<SysBlock> {
        let names = names_in(&dir.join("devices")).into_iter();
        names
            .filter_map(|name| sys.by_name(&name.replace('!', "/")))
            .collect()
    };
    cow::btrfs_folder(sys, one).map(of).unwrap_or_default()
}

/// The folders that an option of an overlay lists, the upper first. A backslash escapes a
/// colon in a name (Documentation/filesystems/overlayfs.rst).
fn folders(text: &[u8]) -> Vec<PathBuf> {
    let mut all = vec![Vec::new()];
    let mut is_escaped = false;
    for &byte in text {
        match (byte, is_escaped) {
            (b':', false) => all.push(Vec::new()),
            (b'\\', false) => is_escaped = true,
            _ => {
                all.last_mut().into_iter().for_each(|it| it.push(byte));
                is_escaped = false;
            }
        }
    }
    let all = all.into_iter().filter(|folder| !folder.is_empty());
    all.map(|folder| PathBuf::from(OsString::from_vec(folder)))
        .collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// How a disk is attached: the nearest bus above it in sysfs that has a name of its own.
fn bus(disk: &SysBlock) -> Option<String> {
    let device = fs::canonicalize(disk.dir.join("device")).ok()?;
    let of = |dir: &Path| {
        let bus = fs::canonicalize(dir.join("subsystem")).ok()?;
        let bus = bus.file_name()?.to_str()?.to_owned();
        ["nvme", "virtio", "scsi", "mmc", "usb"]
            .contains(&bus.as_str())
            .then_some(bus)
    };
    // A USB disk speaks SCSI, and is one of USB.
    let all: Vec<String> = device.ancestors().filter_map(of).collect();
    let usb = all.iter().find(|bus| *bus == "usb");
    usb.or(all.first()).cloned()
}
