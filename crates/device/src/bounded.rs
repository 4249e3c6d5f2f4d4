//! Text of others, of which no more is taken than somebody would read, and their
//! files, which leave room on the disk.

use std::io;
use std::path::Path;

/// Most text that is taken from another side.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Text that grows to [`TEXT_BYTES_MAX`] and no further.
#[derive(Debug, Default)]
pub struct Bounded {
    taken: usize,
}

impl Bounded {
    /// The part of `bytes` that still has room, and whether the rest was the
    /// first that had none.
    pub fn fit<'b>(&mut self, bytes: &'b [u8]) -> (&'b [u8], bool) {
        let was_full = self.taken > TEXT_BYTES_MAX;
        let room = TEXT_BYTES_MAX.saturating_sub(self.taken);
        self.taken = self.taken.saturating_add(bytes.len());
        let is_full = self.taken > TEXT_BYTES_MAX;
        (&bytes[..bytes.len().min(room)], is_full && !was_full)
    }
}

/// What stands where text was left out.
pub const LEFT_OUT: &str = "(more than 1 MiB of text: the rest is left out)";

/// Files of others up to this are always taken; more only while so much stays free.
const FILES_BYTES: u64 = 64 << 20;
const FREE_BYTES_MIN: u64 = 1 << 30;

/// Files that grow as long as the disk they come to has room.
#[derive(Debug, Default)]
pub struct BoundedFiles {
    bytes: u64,
}

impl BoundedFiles {
    /// Whether so many more bytes may be kept at `path`.
    ///
    /// # Errors
    /// When the disk would be full by it.
    pub fn take(&mut self, path: &Path, bytes: usize) -> io::Result<()> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes <= FILES_BYTES {
            return Ok(());
        }
        let there = path.ancestors().find(|folder| folder.is_dir());
        // Where nothing can be told, the write will.
        let Some(found) = there.and_then(|there| rustix::fs::statvfs(there).ok()) else {
            return Ok(());
        };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if free.saturating_sub(bytes as u64) >= FREE_BYTES_MIN {
            return Ok(());
        }
        let what = format!(
            "it has sent {} MiB of files, and less than {} MiB would stay free here",
            self.bytes >> 20,
            FREE_BYTES_MIN >> 20
        );
        Err(io::Error::new(io::ErrorKind::StorageFull, what))
    }
}
