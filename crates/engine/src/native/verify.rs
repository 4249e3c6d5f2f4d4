//! verify=crc32c: blocks that carry their checksum, and what was written.
//!
//! The layout is that of fio 3.33 (verify.h, struct verify_header), so that
//! either engine checks what the other wrote: every `interval` bytes begin with
//! a header of 40 bytes that holds its own checksum, then the checksum of the
//! data behind it.

use std::{fmt, io};

use super::crc32c::crc32c;
use super::files::{FilePlan, MemberFiles};
use super::job::{DirIndex, IoPattern, NativeJob, Sizes};

/// First bytes of a header (FIO_HDR_MAGIC).
const MAGIC: u16 = 0xacca;
/// The kind of checksum (VERIFY_CRC32C).
const KIND: u16 = 5;
/// Bytes of the header up to its own checksum, and with both checksums.
const SEALED: usize = 36;
pub(super) const HEADER: usize = 44;

/// What a header says of its part of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seal {
    /// Of the block in its file.
    pub(super) offset: u64,
    /// Which write of the pass it was; fio keeps 16 bits of it.
    pub(super) number: u16,
    /// When, in ns.
    pub(super) at_ns: u64,
    /// Tells the writes of one block apart.
    pub(super) seed: u64,
}

/// Bytes between two headers: what all writes are made of (fio's default
/// `verify_interval`; init.c, fixup_options).
pub(super) fn interval(pattern: &IoPattern) -> u32 {
    let parts = |dir: DirIndex| match &pattern.sizes[dir as usize] {
        Sizes::Fixed(size) => u64::from(*size),
        Sizes::Range(low, high) => gcd((*low).into(), (*high).into()),
        Sizes::Split(parts) => parts.iter().fold(0, |all, part| gcd(all, part.0.into())),
    };
    let interval = parts(DirIndex::Write) as u32;
    let least = pattern.sizes[DirIndex::Read as usize].min();
    // A read shorter than that has headers of its own.
    if pattern.uses(DirIndex::Read) && least < interval && interval.is_multiple_of(least) {
        least
    } else {
        interval
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Writes the headers of a block over the beginnings of its parts.
pub(super) fn seal(block: &mut [u8], interval: u32, seal: &Seal) {
    let interval = (interval as usize).min(block.len());
    for (part, at) in block.chunks_exact_mut(interval).zip(0u64..) {
        let data = crc32c(&part[HEADER..]);
        let mut header = [0u8; HEADER];
        let mut place = 0;
        let mut put = |bytes: &[u8]| {
            header[place..place + bytes.len()].copy_from_slice(bytes);
            place += bytes.len();
        };
        put(&MAGIC.to_le_bytes());
        put(&KIND.to_le_bytes());
        put(&(interval as u32).to_le_bytes());
        put(&seal.seed.to_le_bytes());
        put(&(seal.offset + at * interval as u64).to_le_bytes());
        put(&((seal.at_ns / 1_000_000_000) as u32).to_le_bytes());
        put(&((seal.at_ns % 1_000_000_000) as u32).to_le_bytes());
        // The number of fio's thread, which nobody checks.
        put(&1u16.to_le_bytes());
        put(&seal.number.to_le_bytes());
        let own = crc32c(&header[..SEALED]);
        header[SEALED..SEALED + 4].copy_from_slice(&own.to_le_bytes());
        header[SEALED + 4..].copy_from_slice(&data.to_le_bytes());
        part[..HEADER].copy_from_slice(&header);
    }
}

/// What is wrong with a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockMismatch {
    /// Where the part begins in its file, and its length.
    pub(super) offset: u64,
    pub(super) len: u32,
    what: MismatchKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MismatchKind {
    NoHeader(u16),
    Kind(u16),
    Length(u32),
    Elsewhere(u64),
    HeaderSum { said: u32, found: u32 },
    Stale { said: u16, wanted: u16 },
    DataSum { said: u32, found: u32 },
}

impl fmt::Display for BlockMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            MismatchKind::NoHeader(found) => {
                write!(
                    f,
                    "it does not begin with a header ({found:#06x}, not {MAGIC:#06x})"
                )
            }
            MismatchKind::Kind(kind) => {
                write!(f, "its header is of another checksum (kind {kind})")
            }
            MismatchKind::Length(len) => write!(f, "its header is of a block of {len} bytes"),
            MismatchKind::Elsewhere(offset) => {
                write!(f, "it holds the block of offset {offset}")
            }
            MismatchKind::HeaderSum { said, found } => write!(
                f,
                "its header has changed (CRC-32C {found:08x}, written {said:08x})"
            ),
            MismatchKind::Stale { said, wanted } => write!(
                f,
                "it holds an older write (number {said}, the last was {wanted})"
            ),
            MismatchKind::DataSum { said, found } => write!(
                f,
                "its data has changed (CRC-32C {found:08x}, written {said:08x})"
            ),
        }
    }
}

/// Checks the block that was read at `offset`; with `number`, that it is the
/// one of that write.
pub(super) fn check(
    block: &[u8],
    interval: u32,
    offset: u64,
    number: Option<u16>,
) -> Result<(), BlockMismatch> {
    let interval = (interval as usize).min(block.len());
    for (part, at) in block.chunks_exact(interval).zip(0u64..) {
        let offset = offset + at * interval as u64;
        check_part(part, offset, number).map_err(|what| BlockMismatch {
            offset,
            len: interval as u32,
            what,
        })?;
    }
    Ok(())
}

fn check_part(part: &[u8], offset: u64, number: Option<u16>) -> Result<(), MismatchKind> {
    let half = |at: usize| u16::from_le_bytes([part[at], part[at + 1]]);
    let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    if part.len() <= HEADER || half(0) != MAGIC {
        return Err(MismatchKind::NoHeader(half(0)));
    }
    let (said, found) = (word(SEALED), crc32c(&part[..SEALED]));
    if said != found {
        return Err(MismatchKind::HeaderSum { said, found });
    }
    if half(2) != KIND {
        return Err(MismatchKind::Kind(half(2)));
    }
    if word(4) as usize != part.len() {
        return Err(MismatchKind::Length(word(4)));
    }
    if long(16) != offset {
        return Err(MismatchKind::Elsewhere(long(16)));
    }
    let said = half(34);
    if let Some(wanted) = number.filter(|&wanted| wanted != said) {
        return Err(MismatchKind::Stale { said, wanted });
    }
    let (said, found) = (word(SEALED + 4), crc32c(&part[HEADER..]));
    if said == found {
        Ok(())
    } else {
        Err(MismatchKind::DataSum { said, found })
    }
}

/// A write of the pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockWrite {
    pub(super) offset: u64,
    pub(super) file: u32,
    /// 0: it failed, or a later one wrote over it.
    pub(super) len: u32,
    /// Which write of the pass it was.
    pub(super) number: u32,
}

/// The writes of a pass in their order, until they are read back.
#[derive(Debug)]
pub(super) struct WriteHistory {
    writes: Vec<BlockWrite>,
    /// Where blocks may be written twice: a bit for every `granule` bytes of
    /// each file, set when a later write was seen.
    seen: Vec<Vec<u64>>,
    granule: u64,
    next: usize,
}

impl WriteHistory {
    /// Room for a pass of this plan.
    pub(super) fn new(job: &NativeJob, plan: &MemberFiles) -> io::Result<Self> {
        let no_memory = || io::Error::from_raw_os_error(libc::ENOMEM);
        let least = job.pattern.sizes[DirIndex::Write as usize].min().max(1);
        // More for a last block that goes beyond the pass and for failed writes
        // of the queue.
        let most = plan.pass_bytes / u64::from(least) + u64::from(job.depth()) + 1;
        let most = u32::try_from(most).map_err(|_| no_memory())?;
        let mut writes = Vec::new();
        writes
            .try_reserve_exact(most as usize)
            .map_err(|_| no_memory())?;
        let align = job.pattern.align[DirIndex::Write as usize].unwrap_or(0);
        let granule = plan
            .files
            .iter()
            .fold(
                gcd(interval(&job.pattern).into(), align.into()),
                |all, file| gcd(all, file.start),
            )
            .max(1);
        let words = |file: &FilePlan| ((file.start + file.len) / granule / 64 + 1) as usize;
        Ok(Self {
            writes,
            seen: if job.pattern.may_repeat() {
                plan.files.iter().map(|file| vec![0; words(file)]).collect()
            } else {
                Vec::new()
            },
            granule,
            next: 0,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Notes a write; its number.
    #[inline]
    pub(super) fn push(&mut self, file: u32, offset: u64, len: u32) -> u32 {
        let number = self.writes.len() as u32;
        self.writes.push(BlockWrite {
            offset,
            file,
            len,
            number,
        });
        number
    }

    /// A write that failed is not read back.
    pub(super) fn forget(&mut self, number: u32) {
        if let Some(written) = self.writes.get_mut(number as usize) {
            written.len = 0;
        }
    }

    /// The pass is over: in the order of the writes or, where blocks may be
    /// written twice, in that of the file without those that were written over
    /// (iolog.c, log_io_piece).
    pub(super) fn settle(&mut self) {
        self.next = 0;
        for words in &mut self.seen {
            words.fill(0);
        }
        if !self.seen.is_empty() {
            for written in self.writes.iter_mut().rev().filter(|w| w.len > 0) {
                if cover(&mut self.seen[written.file as usize], written, self.granule) {
                    written.len = 0;
                }
            }
        }
        self.writes.retain(|written| written.len > 0);
        if !self.seen.is_empty() {
            self.writes
                .sort_unstable_by_key(|written| (written.file, written.offset));
        }
    }

    /// The next write to read back.
    pub(super) fn next(&mut self) -> Option<BlockWrite> {
        let written = self.writes.get(self.next).copied();
        self.next += usize::from(written.is_some());
        written
    }

    /// Whether all have been read back.
    pub(super) fn is_through(&self) -> bool {
        self.next == self.writes.len()
    }

    pub(super) fn clear(&mut self) {
        self.writes.clear();
        self.next = 0;
    }
}

/// Marks a write's bytes; whether some of them were marked before.
fn cover(seen: &mut [u64], written: &BlockWrite, granule: u64) -> bool {
    let end = (written.offset + u64::from(written.len)).div_ceil(granule);
    let mut covered = false;
    for place in written.offset / granule..end {
        let Some(word) = seen.get_mut((place / 64) as usize) else {
            break;
        };
        let bit = 1 << (place % 64);
        covered |= *word & bit != 0;
        *word |= bit;
    }
    covered
}

#[cfg(test)]
mod tests;
