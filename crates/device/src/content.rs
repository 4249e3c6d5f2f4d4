//! What a device holds at places by chance: whether two paths lead to one drive, and whether
//! a drive still holds what was left on it.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::direct::{Buffer, Direct};
use crate::threads;

/// How many places are looked at. A change of 1 % of the blocks is seen by 64 of them in 47 %
/// of all cases (1 − 0.99⁶⁴).
const PLACES: usize = 64;
/// The largest logical block that Linux knows of disks, and so a length that can be read
/// directly from each.
const BLOCK_BYTES: usize = 4096;
/// A drive that does not answer, or a path that is down, may keep a read for ever.
const PATIENCE: Duration = Duration::from_secs(5);

/// Blocks, each by its offset in bytes and the CRC-32 of what it holds.
pub type ContentSample = Vec<(u64, u32)>;

/// What the first `bytes` of a device hold, at places by chance.
///
/// # Errors
/// When it cannot be read, or not in time.
pub fn sample(path: &Path, bytes: u64) -> io::Result<ContentSample> {
    let path = path.to_owned();
    in_time(move || {
        let mut blocks = Blocks::open(&path)?;
        let each = places(bytes)?.into_iter();
        each.map(|at| Ok((at, crc32fast::hash(blocks.read(at)?))))
            .collect()
    })
}

/// Whether a device still holds what a sample says.
///
/// # Errors
/// When it cannot be read, or not in time.
pub fn holds(path: &Path, sample: &[(u64, u32)]) -> io::Result<bool> {
    let (path, sample) = (path.to_owned(), sample.to_owned());
    in_time(move || {
        let mut blocks = Blocks::open(&path)?;
        for (at, crc) in sample {
            if crc32fast::hash(blocks.read(at)?) != crc {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Waits for an answer, but not for ever.
pub(crate) fn in_time<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (told, answer) = mpsc::channel();
    let work = move || {
        // Nobody may wait for it any longer.
        let _ = told.send(work());
    };
    threads::spawn("content", work)?;
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    answer.recv_timeout(PATIENCE).map_err(late)?
}

/// Blocks by chance of the first `bytes`; none where there is no whole one.
pub(crate) fn places(bytes: u64) -> io::Result<Vec<u64>> {
    let blocks = bytes / BLOCK_BYTES as u64;
    let mut random = [0; 8 * PLACES];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let (random, _) = random.as_chunks();
    let place = |number: &[u8; 8]| {
        let block = u64::from_ne_bytes(*number).checked_rem(blocks)?;
        Some(block * BLOCK_BYTES as u64)
    };
    Ok(random.iter().filter_map(place).collect())
}

/// Blocks of a device, past the page cache, of which each path has its own.
pub(crate) struct Blocks {
    device: Direct,
    buffer: Buffer,
}

impl Blocks {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            device: Direct::open_if_possible(path)?,
            buffer: Buffer::new(BLOCK_BYTES),
        })
    }

    pub(crate) fn read(&mut self, at: u64) -> io::Result<&[u8]> {
        let block = self.buffer.get();
        self.device.read(block, at)?;
        Ok(block)
    }
}
