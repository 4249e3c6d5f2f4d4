//! Which parts of a file hold data (FIEMAP, Documentation/filesystems/fiemap.rst).
//!
//! A hole and an extent that is allocated but was never written look alike to a reader:
//! the file system returns zeros and reads no storage.

#![allow(unsafe_code)] // each block says why it is sound

use std::fs::File;
use std::path::Path;

/// Parts of equal length in which a file is described.
const PARTS: usize = 64;
/// A file in more extents is not looked at: each batch is a system call.
const EXTENTS_MOST: usize = 1 << 16;

/// What of a file holds data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrittenParts {
    /// Length of the file, in bytes.
    pub(crate) size: u64,
    /// Bytes in extents that were written.
    pub(crate) written: u64,
    /// Bytes of these that the file system keeps in another form: compressed or encrypted.
    pub(crate) encoded: u64,
    /// Bytes of these that another file or a snapshot has, too.
    pub(crate) shared: u64,
    parts: [u64; PARTS],
}

impl WrittenParts {
    /// Of a regular file; `None` where the file system does not tell, or the file is in too
    /// many extents.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let (file, size) = crate::sys::open_regular(path)?;
        let mut found = Self {
            size,
            written: 0,
            encoded: 0,
            shared: 0,
            parts: [0; PARTS],
        };
        sys::each_extent(&file, EXTENTS_MOST, &mut |extent| found.add(extent))?;
        Some(found)
    }

    fn add(&mut self, extent: Extent) {
        let end = extent.start.saturating_add(extent.length).min(self.size);
        let start = extent.start.min(end);
        if extent.is_unwritten || start == end {
            return;
        }
        self.written += end - start;
        self.encoded += if extent.is_encoded { end - start } else { 0 };
        self.shared += if extent.is_shared { end - start } else { 0 };
        for part in 0..PARTS {
            let (from, to) = (self.bound(part), self.bound(part + 1));
            self.parts[part] += end.min(to).saturating_sub(start.max(from));
        }
    }

    /// Where a part begins.
    fn bound(&self, part: usize) -> u64 {
        let at = u128::from(self.size) * part as u128 / PARTS as u128;
        u64::try_from(at).unwrap_or(u64::MAX)
    }

    /// How much of each part was written: two hexadecimal digits each, `ff` for all of it.
    pub(crate) fn map(&self) -> String {
        let share = |part: usize| {
            let length = self.bound(part + 1) - self.bound(part);
            let share = self.parts[part] as f64 / length.max(1) as f64;
            format!("{:02x}", (share * 255.0).round() as u8)
        };
        (0..PARTS).map(share).collect()
    }
}

/// A stretch of a file.
struct Extent {
    start: u64,
    length: u64,
    is_unwritten: bool,
    is_encoded: bool,
    is_shared: bool,
}

#[cfg(target_os = "linux")]
mod sys {
    use std::os::fd::AsRawFd as _;

    use super::{Extent, File};

    /// Extents asked for at a time.
    const BATCH: usize = 256;

    // linux/fs.h and linux/fiemap.h.
    const FS_IOC_FIEMAP: u64 = 0xc020_660b;
    const LAST: u32 = 0x1;
    const ENCODED: u32 = 0x8;
    const UNWRITTEN: u32 = 0x800;
    const SHARED: u32 = 0x2000;

    /// `struct fiemap_extent`.
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct RawExtent {
        logical: u64,
        physical: u64,
        length: u64,
        reserved: [u64; 2],
        flags: u32,
        reserved_too: [u32; 3],
    }

    /// `struct fiemap` with room for a batch.
    #[repr(C)]
    struct RawMap {
        start: u64,
        length: u64,
        flags: u32,
        mapped: u32,
        room: u32,
        reserved: u32,
        extents: [RawExtent; BATCH],
    }

    /// Shows every extent of a file; `None` where they cannot be told, or are more than `most`.
    pub(super) fn each_extent(file: &File, most: usize, see: &mut dyn FnMut(Extent)) -> Option<()> {
        let mut start = 0;
        for _ in 0..most.div_ceil(BATCH) {
            let mut map = RawMap {
                start,
                length: u64::MAX - start,
                flags: 0,
                mapped: 0,
                room: BATCH as u32,
                reserved: 0,
                extents: [RawExtent::default(); BATCH],
            };
            // SAFETY: the descriptor is open, and the kernel writes no more than `room`
            // extents behind the head, for which there is room. The type of the request
            // differs between C libraries.
            let code = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
            if code != 0 {
                return None;
            }
            let mapped = map.extents.get(..map.mapped as usize)?;
            for raw in mapped {
                see(Extent {
                    start: raw.logical,
                    length: raw.length,
                    is_unwritten: raw.flags & UNWRITTEN != 0,
                    is_encoded: raw.flags & ENCODED != 0,
                    is_shared: raw.flags & SHARED != 0,
                });
            }
            match mapped.last() {
                None => return Some(()),
                Some(last) if last.flags & LAST != 0 => return Some(()),
                Some(last) => start = last.logical.saturating_add(last.length.max(1)),
            }
        }
        None
    }
}

#[cfg(not(target_os = "linux"))]
mod sys {
    use super::{Extent, File};

    /// FIEMAP exists only on Linux.
    pub(super) fn each_extent(_: &File, _: usize, _: &mut dyn FnMut(Extent)) -> Option<()> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_as_full_as_its_extents() {
        let mut file = WrittenParts {
            size: 6400,
            written: 0,
            encoded: 0,
            shared: 0,
            parts: [0; PARTS],
        };
        let extent = |start, length, is_unwritten| Extent {
            start,
            length,
            is_unwritten,
            is_encoded: false,
            is_shared: false,
        };
        file.add(extent(0, 150, false));
        file.add(extent(200, 100, true));
        // Beyond its end: allocated in larger blocks than it is long.
        file.add(extent(6300, 4096, false));
        assert_eq!(file.written, 250);
        let map = file.map();
        assert_eq!(map.len(), 2 * PARTS);
        assert!(map.starts_with("ff8000"), "{map}");
        assert!(map.ends_with("00ff"), "{map}");
    }
}
