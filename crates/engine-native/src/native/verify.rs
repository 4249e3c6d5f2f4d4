//! verify: blocks that carry what they are verified by, and what was written.
//!
//! The layout is that of fio 3.33 (verify.h, struct verify_header), so that
//! either engine checks what the other wrote: every `interval` bytes begin with
//! a header of 40 bytes that holds its own checksum, then the checksum of the
//! data behind it.

mod checksum;
mod data;
mod history;
mod state;

use std::fmt;

use super::crc32c::crc32c;
use super::job::{DataPattern, DirIndex, NativeJob, Sizes};
pub(super) use checksum::Checksum;
use checksum::Sum;
pub(super) use history::WriteHistory;
pub(super) use state::{VerifyState, WriteMarks};

/// First bytes of a header (FIO_HDR_MAGIC).
const MAGIC: u16 = 0xacca;
/// Bytes of the header up to its own checksum, and with it.
const SEALED: usize = 36;
const HEADER: usize = SEALED + 4;

/// What a header says of its part of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seal {
    /// Of the block in its file.
    pub(super) offset: u64,
    /// Which write of the pass it was; fio keeps 16 bits of it.
    pub(super) number: u16,
    /// When, in ns.
    pub(super) at_ns: u64,
    /// What the data are made of; tells the writes of one block apart.
    pub(super) seed: u64,
}

/// Bytes between two headers: what all writes are made of (init.c, fixup_options).
pub(super) fn interval(job: &NativeJob) -> u32 {
    if let Some(settled) = job.verify.settled_interval {
        return settled;
    }
    let pattern = &job.pattern;
    let written = &pattern.sizes[DirIndex::Write as usize];
    let (least, most) = (written.min(), written.max());
    let several = most != least;
    let mut interval = match job.verify.interval {
        0 if several => least,
        wanted => wanted,
    };
    let read = pattern.sizes[DirIndex::Read as usize].min();
    if interval > least {
        interval = least;
    } else if pattern.uses(DirIndex::Read) && interval > read {
        interval = read;
    }
    let divides = |size: u32| interval > 0 && size.is_multiple_of(interval);
    match written {
        Sizes::Split(parts) if !parts.iter().all(|part| divides(part.0)) => {
            parts.iter().fold(0, |all, part| gcd(all, part.0.into())) as u32
        }
        _ if divides(least) && divides(most) => interval,
        _ => gcd(least.into(), most.into()) as u32,
    }
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How the blocks of a job are laid out.
#[derive(Debug, Clone)]
pub(super) struct BlockLayout {
    sum: Checksum,
    interval: usize,
    /// Where in a part its header stands; it has changed places with what was there.
    header_at: usize,
    pattern: Option<DataPattern>,
    /// Without a pattern: how much of a block compresses away, in percent, and to what.
    compress_percent: usize,
    filler: Vec<u8>,
}

impl BlockLayout {
    /// `None` when the job does not verify.
    pub(super) fn of(job: &NativeJob) -> Option<Self> {
        Some(Self {
            sum: job.verify.sum?,
            interval: interval(job) as usize,
            header_at: job.verify.offset as usize,
            pattern: job.verify.pattern.clone(),
            compress_percent: usize::from(job.content.compress_percent),
            filler: job.content.pattern.clone(),
        })
    }

    /// Whether verifying is only pretended.
    pub(super) fn pretends(&self) -> bool {
        self.sum == Checksum::Null
    }

    /// Why blocks of this layout cannot be, if they cannot.
    pub(super) fn fault(&self) -> Option<String> {
        self.fault_of_parts(self.interval)
    }

    fn fault_of_parts(&self, interval: usize) -> Option<String> {
        let header = self.sum.header();
        if interval <= header {
            return Some(format!(
                "blocks need more than the {header} bytes of their header"
            ));
        }
        let room = interval - header;
        let at = self.header_at;
        (at > 0 && !(header..=room).contains(&at)).then(|| {
            format!(
                "a header of {header} bytes in parts of {interval} has room from {header} to {room}"
            )
        })
    }

    /// Why a block of so many bytes cannot be laid out like this, if it cannot: it has
    /// whole parts, or is a smaller one by itself.
    pub(super) fn misfit(&self, bytes: u32) -> Option<String> {
        let len = bytes as usize;
        if self.pretends() {
            None
        } else if len < self.interval {
            self.fault_of_parts(len)
        } else if len.is_multiple_of(self.interval) {
            None
        } else {
            Some(format!(
                "its headers stand every {} bytes: set verify_interval or bs to what divides \
                 all of its blocks",
                self.interval
            ))
        }
    }

    /// The data of a block: the pattern, or what the seed gives.
    fn fill(&self, block: &mut [u8], offset: u64, seed: u64) {
        match &self.pattern {
            Some(pattern) => data::repeat(block, &data::pasted(pattern, offset)),
            None => data::fill(block, seed, self.compress_percent, &self.filler),
        }
    }

    /// Makes a whole block: data, and a header over the beginning of each part.
    pub(super) fn make(&self, block: &mut [u8], seal: &Seal) {
        if self.pretends() {
            return;
        }
        self.fill(block, seal.offset, seal.seed);
        let header = self.sum.header();
        if header == 0 {
            return;
        }
        let interval = self.interval.min(block.len());
        for (part, at) in block.chunks_exact_mut(interval).zip(0u64..) {
            let sum = self.sum.of(&part[header..]);
            let offset = seal.offset + at * interval as u64;
            part[..HEADER].copy_from_slice(&sealed(self.sum.code(), interval, offset, seal));
            part[HEADER..header].copy_from_slice(sum.bytes());
            self.swap_header(part);
        }
    }

    fn swap_header(&self, part: &mut [u8]) {
        if self.header_at > 0 {
            let header = self.sum.header();
            let (first, second) = part.split_at_mut(self.header_at);
            first[..header].swap_with_slice(&mut second[..header]);
        }
    }

    /// Checks the block that was read at `offset`; with `number`, that it is the
    /// one of that write. The first part that is wrong.
    pub(super) fn check(
        &self,
        block: &mut [u8],
        offset: u64,
        number: Option<u16>,
    ) -> Result<(), BlockMismatch> {
        let interval = self.interval.min(block.len());
        let pattern = self.pattern.as_ref().map(|it| data::pasted(it, offset));
        for (part, at) in block.chunks_exact_mut(interval).zip(0u64..) {
            self.swap_header(part);
            let before = at * interval as u64;
            self.check_part(part, before, offset, number, pattern.as_deref())
                .map_err(|what| BlockMismatch {
                    offset: offset + before,
                    len: interval as u32,
                    what,
                })?;
        }
        Ok(())
    }

    /// Of a part that begins `before` bytes into its block, its header in front.
    fn check_part(
        &self,
        part: &[u8],
        before: u64,
        block_offset: u64,
        number: Option<u16>,
        pattern: Option<&[u8]>,
    ) -> Result<(), MismatchKind> {
        let header = self.sum.header();
        if header > 0 {
            self.check_header(part, block_offset + before, number)?;
        }
        match (self.sum, pattern) {
            (Checksum::Null, _) => Ok(()),
            (Checksum::Meta | Checksum::PatternHeader | Checksum::Pattern, Some(pattern)) => {
                check_pattern(part, header, before, pattern)
            }
            (sum, _) => {
                let said = Sum::stored(&part[HEADER.min(header)..header]);
                let found = sum.of(&part[header..]);
                if said == found {
                    Ok(())
                } else {
                    Err(MismatchKind::DataSum(sum, Box::new([said, found])))
                }
            }
        }
    }

    fn check_header(
        &self,
        part: &[u8],
        offset: u64,
        number: Option<u16>,
    ) -> Result<(), MismatchKind> {
        if part.len() <= self.sum.header() || half(part, 0) != MAGIC {
            return Err(MismatchKind::NoHeader(half(part, 0)));
        }
        let (said, found) = (word(part, SEALED), crc32c(&part[..SEALED]));
        if said != found {
            return Err(MismatchKind::HeaderSum { said, found });
        }
        if !self.sum.may_have(half(part, 2)) {
            return Err(MismatchKind::Kind(half(part, 2)));
        }
        if word(part, 4) as usize != part.len() {
            return Err(MismatchKind::Length(word(part, 4)));
        }
        if long(part, 16) != offset {
            return Err(MismatchKind::Elsewhere(long(part, 16)));
        }
        let said = half(part, 34);
        match number.filter(|&wanted| wanted != said) {
            Some(wanted) => Err(MismatchKind::Stale { said, wanted }),
            None => Ok(()),
        }
    }

    /// What a block should hold of which a part was found wrong: made of the seed that
    /// the part's own header names. `None` when there is none to be believed.
    pub(super) fn expected(
        &self,
        found: &[u8],
        mismatch: &BlockMismatch,
        offset: u64,
    ) -> Option<Vec<u8>> {
        let at = (mismatch.offset - offset) as usize;
        let part = &found[at..at + mismatch.len as usize];
        let seal = match self.sum.header() {
            0 => Seal {
                offset,
                number: 0,
                at_ns: 0,
                seed: 0,
            },
            _ if mismatch.is_of_header() => return None,
            _ => Seal {
                offset,
                number: half(part, 34),
                at_ns: u64::from(word(part, 24)) * 1_000_000_000 + u64::from(word(part, 28)),
                seed: long(part, 8),
            },
        };
        let mut block = vec![0; found.len()];
        self.make(&mut block, &seal);
        Some(block[at..at + mismatch.len as usize].to_vec())
    }
}

fn check_pattern(
    part: &[u8],
    header: usize,
    before: u64,
    pattern: &[u8],
) -> Result<(), MismatchKind> {
    let skip = ((before + header as u64) % pattern.len() as u64) as usize;
    let wanted = pattern.iter().cycle().skip(skip);
    let wrong = part[header..].iter().zip(wanted).position(|(a, b)| a != b);
    match wrong {
        Some(at) => Err(MismatchKind::Pattern {
            at: header + at,
            found: part[header + at],
            wanted: pattern[(skip + at) % pattern.len()],
        }),
        None => Ok(()),
    }
}

fn half(part: &[u8], at: usize) -> u16 {
    let byte = |at: usize| part.get(at).copied().unwrap_or(0);
    u16::from_le_bytes([byte(at), byte(at + 1)])
}

fn word(part: &[u8], at: usize) -> u32 {
    u32::from(half(part, at)) | u32::from(half(part, at + 2)) << 16
}

fn long(part: &[u8], at: usize) -> u64 {
    u64::from(word(part, at)) | u64::from(word(part, at + 4)) << 32
}

fn sealed(code: u16, interval: usize, offset: u64, seal: &Seal) -> [u8; HEADER] {
    let mut header = [0u8; HEADER];
    let mut place = 0;
    let mut put = |bytes: &[u8]| {
        header[place..place + bytes.len()].copy_from_slice(bytes);
        place += bytes.len();
    };
    put(&MAGIC.to_le_bytes());
    put(&code.to_le_bytes());
    put(&(interval as u32).to_le_bytes());
    put(&seal.seed.to_le_bytes());
    put(&offset.to_le_bytes());
    put(&((seal.at_ns / 1_000_000_000) as u32).to_le_bytes());
    put(&((seal.at_ns % 1_000_000_000) as u32).to_le_bytes());
    // The number of fio's thread, which nobody checks.
    put(&1u16.to_le_bytes());
    put(&seal.number.to_le_bytes());
    let own = crc32c(&header[..SEALED]);
    header[SEALED..].copy_from_slice(&own.to_le_bytes());
    header
}

/// What is wrong with a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BlockMismatch {
    /// Where the part begins in its file, and its length.
    pub(super) offset: u64,
    pub(super) len: u32,
    what: MismatchKind,
}

impl BlockMismatch {
    /// Whether its header is not to be believed.
    pub(super) fn is_of_header(&self) -> bool {
        !matches!(
            self.what,
            MismatchKind::DataSum(..) | MismatchKind::Pattern { .. }
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MismatchKind {
    NoHeader(u16),
    Kind(u16),
    Length(u32),
    Elsewhere(u64),
    HeaderSum {
        said: u32,
        found: u32,
    },
    Stale {
        said: u16,
        wanted: u16,
    },
    /// What was stored, what is there.
    DataSum(Checksum, Box<[Sum; 2]>),
    Pattern {
        at: usize,
        found: u8,
        wanted: u8,
    },
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
            MismatchKind::DataSum(sum, sums) => {
                let ([said, found], name) = (&**sums, sum.name());
                write!(f, "its data has changed ({name} {found}, written {said})")
            }
            MismatchKind::Pattern { at, found, wanted } => write!(
                f,
                "its data has changed (byte {at} is {found:#04x}, the pattern has {wanted:#04x})"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
