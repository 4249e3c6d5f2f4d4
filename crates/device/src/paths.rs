//! Several paths to one drive, where nothing above them (dm-multipath, NVMe's own
//! multipath) makes one device of them: two SCSI disks with one WWID.
//!
//! Disks that report one WWID and have one size are paths to one drive if 64 blocks at
//! random places are equal on both. Otherwise the WWID is a copy, and identifies neither.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::content::{self, Blocks};
use crate::ids::wwid;
use crate::sys::{Sys, SysBlock, numbers};

/// What a disk with the same WWID is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Twin {
    /// Another path to the same drive.
    Path,
    /// Another drive.
    Other,
    /// One of the two cannot be read.
    Unknown,
}

/// The other disks with the WWID of a whole disk, and what each is.
pub(crate) fn twins(sys: &Sys, disk: &SysBlock) -> Vec<(SysBlock, Twin)> {
    let Some(own) = wwid(disk) else {
        return Vec::new();
    };
    let is_twin = |other: &SysBlock| {
        // The kernel hides the paths below an NVMe namespace that has several.
        other != disk
            && other.value::<u8>("hidden") != Some(1)
            && wwid(other).as_ref() == Some(&own)
    };
    let twins = sys.disks().into_iter().filter(is_twin);
    twins
        .map(|other| {
            let what = compare(sys, disk, &other);
            (other, what)
        })
        .collect()
}

/// The other devices by which the data of `node` may be reached: of a partition, the same
/// part of each path. A path that cannot be read counts.
pub(crate) fn of(sys: &Sys, node: &SysBlock) -> Vec<SysBlock> {
    reached(sys, node, |what| what != Twin::Other)
}

/// As [`of`], without those of which that is not certain.
pub(crate) fn certain(sys: &Sys, node: &SysBlock) -> Vec<SysBlock> {
    reached(sys, node, |what| what == Twin::Path)
}

/// Whether two devices reach the same data by different paths to one drive.
pub fn lead_to_one_drive(sys: &Sys, one: &SysBlock, other: &SysBlock) -> bool {
    match one.is_partition() && other.is_partition() {
        true => of(sys, one).contains(other),
        false => of(sys, &one.whole()).contains(&other.whole()),
    }
}

fn reached(sys: &Sys, node: &SysBlock, counts: impl Fn(Twin) -> bool) -> Vec<SysBlock> {
    let disks = twins(sys, &node.whole()).into_iter();
    let disks = disks
        .filter(|(_, what)| counts(*what))
        .map(|(disk, _)| disk);
    match node.is_partition() {
        false => disks.collect(),
        true => disks
            .flat_map(|disk| disk.partitions())
            .filter(|part| place(part) == place(node))
            .collect(),
    }
}

fn place(partition: &SysBlock) -> (Option<u64>, u64) {
    (partition.value("start"), partition.size_bytes())
}

fn compare(sys: &Sys, one: &SysBlock, other: &SysBlock) -> Twin {
    if one.size_bytes() != other.size_bytes() {
        return Twin::Other;
    }
    let paths = [one, other].map(|disk| sys.path(disk.dev_path()));
    let bytes = one.size_bytes();
    match content::in_time(move || are_equal(&paths, bytes)) {
        Ok(true) => Twin::Path,
        Ok(false) => Twin::Other,
        Err(_) => Twin::Unknown,
    }
}

fn are_equal(paths: &[PathBuf; 2], bytes: u64) -> io::Result<bool> {
    let mut one = Blocks::open(&paths[0])?;
    let mut other = Blocks::open(&paths[1])?;
    let places = content::places(bytes)?;
    for &at in &places {
        // Somebody may write to the drive meanwhile.
        let mut equal = false;
        for _ in 0..3 {
            equal = equal || one.read(at)? == other.read(at)?;
        }
        if !equal {
            return Ok(false);
        }
    }
    Ok(!places.is_empty())
}

/// The path itself, or the nearest folder above it that exists, without links.
pub(crate) fn existing(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute
        .ancestors()
        .find_map(|above| fs::canonicalize(above).ok())
}

/// Whether the file at `path` is a block device, and its number.
pub(crate) fn block_number(meta: &fs::Metadata) -> Option<(u32, u32)> {
    meta.file_type()
        .is_block_device()
        .then(|| numbers(meta.rdev()))
}
