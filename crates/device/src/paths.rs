//! Several paths to one drive, where nothing above them (dm-multipath, NVMe's own
//! multipath) makes one device of them: two SCSI disks with one WWID.
//!
//! Disks that report one WWID and have one size are paths to one drive if 64 blocks at
//! random places are equal on both. Otherwise the WWID is a copy, and identifies neither.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::identity::wwid;
use crate::sys::{Sys, SysBlock};
use crate::threads;

/// How many places are compared. Drives that differ in 1 % of their blocks are told
/// apart by 64 of them in 47 % of all cases (1 − 0.99⁶⁴).
const PLACES: usize = 64;
/// The largest logical block that Linux knows of disks, and so a length that can be read
/// directly from each.
const BLOCK_BYTES: usize = 4096;
/// A path that is down may keep a read for ever.
const PATIENCE: Duration = Duration::from_secs(5);

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
#[must_use]
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
    let (told, answer) = mpsc::channel();
    let paths = [one, other].map(|disk| sys.path(disk.dev_path()));
    let bytes = one.size_bytes();
    let work = move || {
        // Nobody may wait for it any longer.
        let _ = told.send(are_equal(&paths, bytes));
    };
    if threads::spawn("paths", work).is_err() {
        return Twin::Unknown;
    }
    match answer.recv_timeout(PATIENCE) {
        Ok(Ok(true)) => Twin::Path,
        Ok(Ok(false)) => Twin::Other,
        Ok(Err(_)) | Err(_) => Twin::Unknown,
    }
}

fn are_equal(paths: &[PathBuf; 2], bytes: u64) -> io::Result<bool> {
    let [one, other] = [open(&paths[0])?, open(&paths[1])?];
    let blocks = bytes / BLOCK_BYTES as u64;
    if blocks == 0 {
        return Ok(false);
    }
    let mut random = [0; 8 * PLACES];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let (places, _) = random.as_chunks();
    for place in places {
        let at = u64::from_ne_bytes(*place) % blocks * BLOCK_BYTES as u64;
        // Somebody may write to the drive meanwhile.
        let mut equal = false;
        for _ in 0..3 {
            equal = equal || read(&one, at)? == read(&other, at)?;
        }
        if !equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Past the page cache, which each path has its own of; a file system without direct
/// I/O, as under a recorded tree, is read as it is.
fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::DIRECT.bits()).map_err(io::Error::other)?;
    let direct = OpenOptions::new().read(true).custom_flags(flags).open(path);
    direct.or_else(|_| File::open(path))
}

fn read(file: &File, at: u64) -> io::Result<Vec<u8>> {
    let mut space = vec![0; 2 * BLOCK_BYTES];
    // Direct I/O reads into memory that is aligned to blocks.
    let skip = space.as_ptr().align_offset(BLOCK_BYTES);
    let block = space
        .get_mut(skip..skip.saturating_add(BLOCK_BYTES))
        .ok_or_else(|| io::Error::other("no aligned memory"))?;
    file.read_exact_at(block, at)?;
    Ok(block.to_vec())
}
