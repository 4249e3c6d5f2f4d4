//! Blocks of a device, past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use fathom_model::mix::{SplitMix, mix};

/// No device asks for more than a page (Documentation/ABI/stable/sysfs-block,
/// `dma_alignment`).
const ALIGN: usize = 4096;

/// A buffer that begins at a page.
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    from: usize,
    length: usize,
}

impl Buffer {
    pub(crate) fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGN];
        let from = bytes.as_ptr().align_offset(ALIGN);
        Self {
            bytes,
            from,
            length,
        }
    }

    pub(crate) fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..self.from + self.length]
    }
}

/// A device that is open past the page cache.
pub(crate) struct Direct(File);

impl Direct {
    pub(crate) fn open(path: &Path, write: bool) -> io::Result<Self> {
        let flags = i32::try_from(OFlags::DIRECT.bits()).map_err(io::Error::other)?;
        let file = OpenOptions::new()
            .read(true)
            .write(write)
            .custom_flags(flags)
            .open(path)?;
        Ok(Self(file))
    }

    /// To read only; a file system without direct I/O, as under a recorded tree, is read
    /// through the page cache.
    pub(crate) fn open_if_possible(path: &Path) -> io::Result<Self> {
        Self::open(path, false).or_else(|_| File::open(path).map(Self))
    }

    pub(crate) fn read(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_exact_at(bytes, at)
    }

    pub(crate) fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    /// Has the device write down what it holds in its own cache.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Bytes that no drive can compress or find twice, the same for the same seed
/// and place: each sector has its own start.
pub(crate) fn fill(seed: u64, at: u64, bytes: &mut [u8]) {
    for (sector, chunk) in (at / 512..).zip(bytes.chunks_mut(512)) {
        SplitMix(mix(seed, sector)).fill(chunk);
    }
}
