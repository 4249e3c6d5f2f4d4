//! What is written on a device: file systems, partition tables, members of
//! arrays and pools, told by their signatures.
//!
//! Only what its advice removes counts: a refusal must be one that can be resolved.

mod formats;
mod second_opinion;
mod tables;

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use formats::FORMATS;
use tables::TABLES;

/// Most distant signature from the start: the last place of a second LUKS2
/// header, 4 MiB, with its own block.
const HEAD_BYTES: u64 = (4 << 20) + 4096;
/// Most distant one from the end: 3087 sectors before it, of Promise's RAID.
const TAIL_BYTES: u64 = 2 << 20;
/// One that the boot sectors of some file systems look like.
const MBR: &str = "MBR";
const XFS_LOG: &str = "xfs (external log)";
/// One of the four labels of a ZFS pool (OpenZFS, vdev_impl.h).
const ZFS_LABEL_BYTES: u64 = 256 << 10;
/// What is not zero in the sector of a superblock, at the most, where nothing else of it is
/// known: of random bytes hardly two in 512 are zero.
const MOST_NOT_ZERO: usize = 512 - 64;

/// What a signature belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureClass {
    /// A file system.
    FileSystem,
    /// A table of partitions.
    PartitionTable,
    /// A part of an array, volume group or pool.
    Member,
    /// Swap space, or a suspended system in it.
    Swap,
    /// An encrypted volume.
    Encrypted,
}

/// A signature that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// What it says it is, for example `ext2/3/4`.
    pub kind: Cow<'static, str>,
    /// What that is.
    pub class: SignatureClass,
    /// Where it was found, in bytes from the start; `None`: by another program.
    pub offset: Option<u64>,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let class = match self.class {
            SignatureClass::FileSystem => " file system",
            SignatureClass::PartitionTable => " partition table",
            SignatureClass::Member => " member",
            SignatureClass::Encrypted => " encrypted volume",
            SignatureClass::Swap => "",
        };
        write!(f, "{}{class}", self.kind)?;
        match self.offset {
            Some(offset) => write!(f, " (byte {offset})"),
            None => f.write_str(" (by blkid)"),
        }
    }
}

impl Signature {
    /// What gives it up, of a device of `size` bytes.
    pub fn removal(&self, device: &Path, size: u64) -> String {
        let device = device.display();
        if self.kind != "ZFS" {
            return format!("wipefs -a {device}");
        }
        // Before 2.41 wipefs leaves the labels.
        let end = (size / ZFS_LABEL_BYTES).saturating_sub(2);
        format!(
            "dd if=/dev/zero of={device} bs=256K count=2 conv=fsync && dd if=/dev/zero of={device} bs=256K seek={end} count=2 conv=fsync"
        )
    }
}

/// A format that is looked for.
struct Format {
    kind: &'static str,
    class: SignatureClass,
    /// Where its superblock may be.
    places: &'static [Place],
    /// What stands in that, one of these, at so many bytes from its start.
    magics: &'static [(usize, &'static [u8])],
    /// Whether the rest of it makes sense.
    is_sane: fn(&Superblock<'_>) -> bool,
}

/// Where a superblock is.
#[derive(Clone, Copy)]
enum Place {
    /// At this byte.
    Start(u64),
    /// So many bytes before the end of the last whole unit of the first.
    End(u64, u64),
}

impl Place {
    /// As a byte of a device of `size` bytes.
    fn at(self, size: u64) -> Option<u64> {
        match self {
            Self::Start(byte) => Some(byte),
            Self::End(unit, back) => (size / unit * unit).checked_sub(back),
        }
    }
}

/// The last sector.
const LAST: Place = sector_from_end(1);

const fn sector_from_end(number: u64) -> Place {
    Place::End(512, number * 512)
}

/// Everything that is looked for.
fn formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().chain(TABLES)
}

/// The sectors of the first 256 KiB, in one of which a log begins.
const fn xfs_log_places() -> [Place; 512] {
    let mut all = [Place::Start(0); 512];
    let mut sector = 0;
    while sector < 512 {
        all[sector] = Place::Start(512 * sector as u64);
        sector += 1;
    }
    all
}

/// A superblock as it may be. Numbers that do not lie within the device are all ones.
struct Superblock<'e> {
    ends: &'e DeviceEnds<'e>,
    base: u64,
}

impl Superblock<'_> {
    fn get(&self, at: usize, length: usize) -> Option<&[u8]> {
        self.ends.at(self.base.checked_add(at as u64)?, length)
    }

    fn number<const N: usize>(&self, at: usize, is_big: bool) -> u64 {
        let Some(bytes) = self.get(at, N) else {
            return u64::MAX;
        };
        let join = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        match is_big {
            true => bytes.iter().fold(0, join),
            false => bytes.iter().rev().fold(0, join),
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.get(at, 1).map_or(u8::MAX, |bytes| bytes[0])
    }

    fn le16(&self, at: usize) -> u64 {
        self.number::<2>(at, false)
    }

    fn le32(&self, at: usize) -> u64 {
        self.number::<4>(at, false)
    }

    fn le64(&self, at: usize) -> u64 {
        self.number::<8>(at, false)
    }

    fn be16(&self, at: usize) -> u64 {
        self.number::<2>(at, true)
    }

    fn be32(&self, at: usize) -> u64 {
        self.number::<4>(at, true)
    }

    fn be64(&self, at: usize) -> u64 {
        self.number::<8>(at, true)
    }

    /// Its first bytes; none where they do not lie within the device.
    fn bytes(&self, length: usize) -> &[u8] {
        self.get(0, length).unwrap_or_default()
    }

    fn has(&self, at: usize, bytes: &[u8]) -> bool {
        self.get(at, bytes.len()) == Some(bytes)
    }

    /// Whether these bytes lie within the device, and each of them is as wanted.
    fn all(&self, at: usize, length: usize, is_wanted: impl Fn(&u8) -> bool) -> bool {
        self.get(at, length)
            .is_some_and(|bytes| bytes.iter().all(is_wanted))
    }

    fn is_zero(&self, at: usize, length: usize) -> bool {
        self.all(at, length, |byte| *byte == 0)
    }

    /// The sum of the 32-bit words of its first 512 bytes, the high byte of each first.
    fn be32_sum(&self) -> u32 {
        let words = self.bytes(512).chunks_exact(4);
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_be_bytes);
        words.fold(0, |sum, bytes| sum.wrapping_add(word(bytes)))
    }

    /// Whether there is a text with zeros behind it.
    fn is_text(&self, at: usize, length: usize) -> bool {
        let bytes = self.get(at, length).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0);
        let (text, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        let is_printable = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        !text.is_empty() && text.iter().all(is_printable) && rest.iter().all(|byte| *byte == 0)
    }

    fn is_mostly_zero(&self, length: usize) -> bool {
        let bytes = self.bytes(length);
        let others = bytes.iter().filter(|byte| **byte != 0).count();
        !bytes.is_empty() && others <= MOST_NOT_ZERO
    }

    fn size(&self) -> u64 {
        self.ends.size
    }
}

impl Format {
    /// Where it is on a device.
    fn find(&self, ends: &DeviceEnds<'_>) -> Option<Signature> {
        let found = self.places.iter().find_map(|place| {
            let base = place.at(ends.size)?;
            let superblock = Superblock { ends, base };
            let mut magics = self.magics.iter();
            let (at, _) = magics.find(|(at, bytes)| superblock.has(*at, bytes))?;
            (self.is_sane)(&superblock).then_some(base + *at as u64)
        })?;
        Some(Signature {
            kind: Cow::Borrowed(self.kind),
            class: self.class,
            offset: Some(found),
        })
    }
}

/// The first and the last part of a device.
struct DeviceEnds<'d> {
    size: u64,
    head: &'d [u8],
    tail: &'d [u8],
}

impl DeviceEnds<'_> {
    /// `length` bytes at `offset`, when both ends hold them.
    fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let within = |part: &'_ [u8], start: u64| -> Option<usize> {
            let from = usize::try_from(offset.checked_sub(start)?).ok()?;
            (from.checked_add(length)? <= part.len()).then_some(from)
        };
        if let Some(from) = within(self.head, 0) {
            return self.head.get(from..from + length);
        }
        let from = within(self.tail, self.size - self.tail.len() as u64)?;
        self.tail.get(from..from + length)
    }
}

/// Finds every signature on a device or image of `size` bytes: those that are known here, and
/// what blkid says, where it is installed.
///
/// # Errors
/// When it cannot be read.
pub fn read(file: &File, size: u64) -> io::Result<Vec<Signature>> {
    let part = |offset: u64, length: u64| {
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, offset)?;
        Ok::<_, io::Error>(bytes)
    };
    let tail_bytes = TAIL_BYTES.min(size);
    let head = part(0, HEAD_BYTES.min(size))?;
    let tail = part(size - tail_bytes, tail_bytes)?;
    let mut found = find(&DeviceEnds {
        size,
        head: &head,
        tail: &tail,
    });
    if found.is_empty() {
        found.extend(second_opinion::of(file));
    }
    Ok(found)
}

fn find(ends: &DeviceEnds<'_>) -> Vec<Signature> {
    let mut found: Vec<Signature> = formats().filter_map(|format| format.find(ends)).collect();
    // A FAT or NTFS boot sector ends like an MBR and has code where a table would be; the log
    // of an XFS is its own.
    let has = |kinds: &[&str]| found.iter().any(|it| kinds.contains(&&*it.kind));
    let (is_boot_sector, is_xfs) = (has(&["vfat", "ntfs", "exfat", "BitLocker"]), has(&["xfs"]));
    found.retain(|it| !(is_boot_sector && it.kind == MBR));
    found.retain(|it| !(is_xfs && it.kind == XFS_LOG));
    found
}

#[cfg(test)]
mod tests;
