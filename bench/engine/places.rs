//! What is read: a device in memory, a cached file, a file on the disk, nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fathom_testkit::Zram;

use crate::Lab;

/// A kind of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Zram,
    Cached,
    Disk,
    Null,
}

pub const ALL: [Place; 4] = [Place::Zram, Place::Cached, Place::Null, Place::Disk];

impl Place {
    pub fn name(self) -> &'static str {
        match self {
            Self::Zram => "zram",
            Self::Cached => "cached file",
            Self::Disk => "disk, O_DIRECT",
            Self::Null => "nothing",
        }
    }

    pub fn engines(self) -> &'static [&'static str] {
        match self {
            Self::Null => &["null"],
            _ => &["psync", "libaio", "io_uring"],
        }
    }

    pub fn direct(self) -> bool {
        matches!(self, Self::Zram | Self::Disk)
    }
}

/// A target that is filled with data; what must be undone is when it is dropped.
pub struct Ready {
    pub place: Place,
    pub path: Option<PathBuf>,
    pub bytes: u64,
    _zram: Option<Zram>,
}

impl Ready {
    /// So large that no run comes to its end and begins a second pass.
    pub fn nothing() -> Self {
        Self {
            place: Place::Null,
            path: None,
            bytes: 64 << 30,
            _zram: None,
        }
    }
}

/// Fills a target; the reason when this machine cannot have it.
pub fn prepare(lab: &Lab, place: Place) -> Result<Ready, String> {
    let mut ready = Ready {
        place,
        bytes: lab.size.bytes,
        ..Ready::nothing()
    };
    match place {
        Place::Null => return Ok(Ready::nothing()),
        Place::Zram => {
            let zram = Zram::new(lab.size.bytes)?;
            // The last close of a device drops its pages from the cache.
            fill(zram.path(), lab.size.bytes).map_err(|error| error.to_string())?;
            ready.path = Some(zram.path().to_owned());
            ready._zram = Some(zram);
        }
        Place::Cached | Place::Disk => {
            let path = lab.dir.path().join(format!("{place:?}").to_lowercase());
            let file = fill(&path, lab.size.bytes).map_err(|error| error.to_string())?;
            if place == Place::Cached {
                io::copy(&mut File::open(&path).unwrap(), &mut io::sink()).unwrap();
            } else {
                let dropped = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
                dropped.map_err(|error| error.to_string())?;
            }
            ready.path = Some(path);
        }
    }
    Ok(ready)
}

/// Writes data that do not compress, and syncs them.
fn fill(path: &Path, bytes: u64) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let mut state = 1u64;
    let mut block = vec![0u8; 1 << 20];
    for _ in 0..bytes / block.len() as u64 {
        for word in block.chunks_exact_mut(8) {
            // xorshift64 (Marsaglia, "Xorshift RNGs", 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        file.write_all(&block)?;
    }
    file.sync_all()?;
    Ok(file)
}
