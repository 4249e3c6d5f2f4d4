//! What is written on a device: file systems, partition tables, members of
//! arrays and pools, told by their signatures.
//!
//! Places and values are those of the formats themselves, as libblkid
//! (util-linux, `libblkid/src/superblocks` and `.../partitions`) knows them.
//! Only what `wipefs -a` removes as well counts: a refusal must be one that its
//! advice resolves.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Most distant signature from the start: the last place of a second LUKS2
/// header, 4 MiB, with its own block.
const HEAD_BYTES: u64 = (4 << 20) + 4096;
/// Most distant one from the end: ZFS's third label begins up to 768 KiB before it.
const TAIL_BYTES: u64 = 1 << 20;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signature {
    /// What it says it is, for example `ext2/3/4`.
    pub kind: &'static str,
    /// What that is.
    pub class: SignatureClass,
    /// Where it was found, in bytes from the start.
    pub offset: u64,
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
        write!(f, "{}{class} (byte {})", self.kind, self.offset)
    }
}

/// A signature that is always at the same place.
struct Magic {
    kind: &'static str,
    class: SignatureClass,
    offset: u64,
    bytes: &'static [u8],
}

const fn fs(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Magic {
    magic(kind, SignatureClass::FileSystem, offset, bytes)
}

const fn member(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Magic {
    magic(kind, SignatureClass::Member, offset, bytes)
}

const fn table(kind: &'static str, offset: u64, bytes: &'static [u8]) -> Magic {
    magic(kind, SignatureClass::PartitionTable, offset, bytes)
}

const fn magic(
    kind: &'static str,
    class: SignatureClass,
    offset: u64,
    bytes: &'static [u8],
) -> Magic {
    Magic {
        kind,
        class,
        offset,
        bytes,
    }
}

/// bcache's and bcachefs's own identifier; early bcachefs carries bcache's.
const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BCACHEFS: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";

const MAGICS: &[Magic] = &[
    fs("xfs", 0, b"XFSB"),
    fs("btrfs", 0x1_0040, b"_BHRfS_M"),
    fs("f2fs", 1024, b"\x10\x20\xf5\xf2"),
    fs("vfat", 0x52, b"FAT32   "),
    fs("vfat", 0x36, b"FAT16   "),
    fs("vfat", 0x36, b"FAT12   "),
    fs("exfat", 3, b"EXFAT   "),
    fs("ntfs", 3, b"NTFS    "),
    fs("refs", 0, b"\0\0\0ReFS\0"),
    fs("iso9660", 0x8001, b"CD001"),
    fs("udf", 0x8001, b"BEA01"),
    fs("jfs", 0x8000, b"JFS1"),
    fs("reiserfs", 0x1_0034, b"ReIsErFs"),
    fs("reiserfs", 0x1_0034, b"ReIsEr2Fs"),
    fs("reiserfs", 0x1_0034, b"ReIsEr3Fs"),
    fs("reiserfs", 0x2034, b"ReIsErFs"),
    fs("gfs2", 0x1_0000, b"\x01\x16\x19\x70"),
    fs("ocfs2", 1024, b"OCFSV2"),
    fs("ocfs2", 2048, b"OCFSV2"),
    fs("ocfs2", 4096, b"OCFSV2"),
    fs("ocfs2", 8192, b"OCFSV2"),
    // Revision 2.0 stands before nilfs2's magic of two bytes.
    fs("nilfs2", 1024, b"\x02\0\0\0\0\0\x34\x34"),
    fs("erofs", 1024, b"\xe2\xe1\xf5\xe0"),
    fs("squashfs", 0, b"hsqs"),
    fs("zonefs", 0, b"SFOZ"),
    fs("apfs", 32, b"NXSB"),
    fs("bcachefs", 0x1018, BCACHEFS),
    fs("cramfs", 16, b"Compressed ROMFS"),
    fs("reiser4", 0x1_0000, b"ReIsEr4"),
    // BeOS's name of the format, then of its byte order.
    fs("befs", 0x20, b"BFS1BIGE"),
    fs("befs", 0x220, b"1SFBEGIB"),
    fs("bfs", 0, b"\xce\xfa\xad\x1b"),
    fs("netware", 4096, b"SPB5"),
    member("drbdmanage", 0, b"$DRBDmgr=q"),
    fs("VMFS", 2 << 20, b"\x5e\xf1\xab\x2f"),
    member("bcache", 0x1018, BCACHE),
    member("LVM2", 0x018, b"LVM2 001"),
    member("LVM2", 0x218, b"LVM2 001"),
    member("LVM2", 0x418, b"LVM2 001"),
    member("LVM2", 0x618, b"LVM2 001"),
    // Major version 1 follows MD's magic.
    member("Linux RAID 1.1", 0, b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
    member("Linux RAID 1.2", 4096, b"\xfc\x4e\x2b\xa9\x01\0\0\0"),
    member("Stratis", 0x204, b"!Stra0tis\x86\xff\x02^\x41rh"),
    member("Stratis", 0x1204, b"!Stra0tis\x86\xff\x02^\x41rh"),
    member("Ceph BlueStore", 0, b"bluestore block device"),
    member("Oracle ASM", 32, b"ORCLDISK"),
    member("VDO", 0, b"dmvdo001"),
    member("VMFS", 1 << 20, b"\x0d\xd0\x01\xc0"),
    member("device-mapper snapshot", 0, b"SnAp"),
    member("dm-verity", 0, b"verity\0\0"),
    member("dm-integrity", 0, b"integrt\0"),
    magic("LUKS", SignatureClass::Encrypted, 0, b"LUKS\xba\xbe"),
    magic("BitLocker", SignatureClass::Encrypted, 3, b"-FVE-FS-"),
    table("GPT", 512, b"EFI PART"),
    table("GPT", 4096, b"EFI PART"),
    table("BSD", 512, b"\x57\x45\x56\x82"),
    table("SGI", 0, b"\x0b\xe5\xa9\x41"),
    // Block 0 says `ER`; its map of partitions begins in the next block.
    table("Apple", 512, b"PM\0\0"),
];

/// The first and the last part of a device.
struct DeviceEnds {
    size: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl DeviceEnds {
    fn read(file: &File, size: u64) -> io::Result<Self> {
        let part = |offset: u64, length: u64| {
            let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
            file.read_exact_at(&mut bytes, offset)?;
            Ok::<_, io::Error>(bytes)
        };
        let tail_bytes = TAIL_BYTES.min(size);
        Ok(Self {
            size,
            head: part(0, HEAD_BYTES.min(size))?,
            tail: part(size - tail_bytes, tail_bytes)?,
        })
    }

    /// `length` bytes at `offset`, when both ends hold them.
    fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let within = |part: &'_ [u8], start: u64| -> Option<usize> {
            let from = usize::try_from(offset.checked_sub(start)?).ok()?;
            (from.checked_add(length)? <= part.len()).then_some(from)
        };
        if let Some(from) = within(&self.head, 0) {
            return self.head.get(from..from + length);
        }
        let from = within(&self.tail, self.size - self.tail.len() as u64)?;
        self.tail.get(from..from + length)
    }

    fn has(&self, offset: u64, bytes: &[u8]) -> bool {
        self.at(offset, bytes.len()) == Some(bytes)
    }

    fn le32(&self, offset: u64) -> Option<u32> {
        Some(u32::from_le_bytes(self.at(offset, 4)?.try_into().ok()?))
    }
}

/// Finds every signature on a device or image of `size` bytes.
///
/// # Errors
/// When it cannot be read.
pub fn read(file: &File, size: u64) -> io::Result<Vec<Signature>> {
    DeviceEnds::read(file, size).map(|ends| find(&ends))
}

fn find(ends: &DeviceEnds) -> Vec<Signature> {
    let mut found: Vec<Signature> = MAGICS
        .iter()
        .filter(|magic| ends.has(magic.offset, magic.bytes))
        .map(|magic| Signature {
            kind: magic.kind,
            class: magic.class,
            offset: magic.offset,
        })
        .collect();
    let mut add = |kind, class, offset: Option<u64>| {
        found.extend(offset.map(|offset| Signature {
            kind,
            class,
            offset,
        }));
    };
    add("ext2/3/4", SignatureClass::FileSystem, ext(ends));
    add(
        "nilfs2 (second superblock)",
        SignatureClass::FileSystem,
        nilfs_second(ends),
    );
    add("swap space", SignatureClass::Swap, swap(ends));
    add(
        "LUKS2 (second header)",
        SignatureClass::Encrypted,
        luks_second(ends),
    );
    add(
        "GPT (backup)",
        SignatureClass::PartitionTable,
        gpt_backup(ends),
    );
    add("Sun", SignatureClass::PartitionTable, sun(ends));
    add("Linux RAID 0.90", SignatureClass::Member, md_0_90(ends));
    add("Linux RAID 1.0", SignatureClass::Member, md_1_0(ends));
    add("Intel RAID", SignatureClass::Member, intel_raid(ends));
    add("DDF RAID", SignatureClass::Member, ddf_raid(ends));
    add("DRBD", SignatureClass::Member, drbd(ends));
    add("ZFS", SignatureClass::Member, zfs(ends));
    // A FAT or NTFS boot sector ends like an MBR and has code where a table would be.
    if !found
        .iter()
        .any(|s| matches!(s.kind, "vfat" | "ntfs" | "exfat"))
    {
        found.extend(mbr(ends).map(|offset| Signature {
            kind: "MBR",
            class: SignatureClass::PartitionTable,
            offset,
        }));
    }
    found
}

/// ext2/3/4: the magic 0xEF53 is only two bytes long, so the superblock at 1024
/// must make sense too: revision 0 or 1, blocks of 1 to 64 KiB
/// (kernel, Documentation/filesystems/ext4/super.rst).
fn ext(ends: &DeviceEnds) -> Option<u64> {
    let sane = ends.le32(1024 + 0x18)? <= 6 && ends.le32(1024 + 0x4c)? <= 1;
    (sane && ends.has(1024 + 0x38, b"\x53\xef")).then_some(1024 + 0x38)
}

/// The copy of nilfs2's superblock in the last whole 4 KiB
/// (kernel, include/uapi/linux/nilfs2_ondisk.h, `NILFS_SB2_OFFSET_BYTES`).
fn nilfs_second(ends: &DeviceEnds) -> Option<u64> {
    let offset = (ends.size & !0xfff).checked_sub(4096)?;
    ends.has(offset, b"\x02\0\0\0\0\0\x34\x34")
        .then_some(offset)
}

/// Swap space, and a system suspended into it: the last 10 bytes of the first
/// page, whose size is the maker's (mkswap(8)).
fn swap(ends: &DeviceEnds) -> Option<u64> {
    const TEXTS: [&[u8]; 6] = [
        b"SWAPSPACE2",
        b"SWAP-SPACE",
        b"S1SUSPEND",
        b"S2SUSPEND",
        b"ULSUSPEND",
        b"LINHIB0001",
    ];
    [4096, 8192, 16_384, 32_768, 65_536]
        .into_iter()
        .map(|page: u64| page - 10)
        .find(|&offset| TEXTS.iter().any(|text| ends.has(offset, text)))
}

/// The second header of LUKS2, at one of nine places (LUKS2 On-Disk Format 2.2).
fn luks_second(ends: &DeviceEnds) -> Option<u64> {
    (14..=22)
        .map(|power| 1u64 << power)
        .find(|&offset| ends.has(offset, b"SKUL\xba\xbe"))
}

/// The copy of the GPT header in the last block (UEFI 2.10, 5.3.2).
fn gpt_backup(ends: &DeviceEnds) -> Option<u64> {
    [512, 4096]
        .into_iter()
        .filter_map(|block| ends.size.checked_sub(block))
        .find(|&offset| ends.has(offset, b"EFI PART"))
}

/// MBR: 55 AA at 510, and four entries whose first byte can only be 0 or 80h.
fn mbr(ends: &DeviceEnds) -> Option<u64> {
    let entries = ends.at(446, 64)?;
    let plausible = entries.chunks(16).all(|entry| entry[0] & 0x7f == 0);
    (plausible && ends.has(510, b"\x55\xaa")).then_some(510)
}

/// Sun's disk label: DA BE at 508, and the exclusive or of all its 16-bit words
/// is 0 (kernel, block/partitions/sun.c).
fn sun(ends: &DeviceEnds) -> Option<u64> {
    let words = ends.at(0, 512)?.chunks_exact(2);
    let sum = words.fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
    (ends.has(508, b"\xda\xbe") && sum == [0, 0]).then_some(508)
}

/// MD 0.90: in the last whole 64 KiB, in the byte order of the machine that
/// made it (kernel, include/uapi/linux/raid/md_p.h).
fn md_0_90(ends: &DeviceEnds) -> Option<u64> {
    let offset = (ends.size & !0xffff).checked_sub(0x1_0000)?;
    let magics: [&[u8]; 2] = [b"\xfc\x4e\x2b\xa9\0\0\0\0", b"\xa9\x2b\x4e\xfc\0\0\0\0"];
    magics
        .iter()
        .any(|magic| ends.has(offset, magic))
        .then_some(offset)
}

/// MD 1.0: at least 8 KiB before the end, at a multiple of 4 KiB
/// (kernel, drivers/md/md.c, `super_1_load`).
fn md_1_0(ends: &DeviceEnds) -> Option<u64> {
    let offset = (ends.size & !0xfff).checked_sub(0x2000)?;
    ends.has(offset, b"\xfc\x4e\x2b\xa9\x01\0\0\0")
        .then_some(offset)
}

/// Intel Matrix RAID: in the last but one block (libblkid, isw_raid.c).
fn intel_raid(ends: &DeviceEnds) -> Option<u64> {
    let offset = (ends.size & !0x1ff).checked_sub(1024)?;
    ends.has(offset, b"Intel Raid ISM Cfg Sig. ")
        .then_some(offset)
}

/// DDF: the anchor header in the last block (SNIA Common RAID DDF 2.0, 4.2.1).
fn ddf_raid(ends: &DeviceEnds) -> Option<u64> {
    let offset = (ends.size & !0x1ff).checked_sub(512)?;
    ends.has(offset, b"\xde\x11\xde\x11").then_some(offset)
}

/// DRBD 8.4 and 9 with metadata on the device itself: the last 4 KiB, magic at
/// byte 60 (drbd-headers, drbd_meta_data.h).
fn drbd(ends: &DeviceEnds) -> Option<u64> {
    let offset = ends.size.checked_sub(4096)?.checked_add(60)?;
    let last = ends.at(offset, 4)?;
    let known = last[..3] == [0x83, 0x74, 0x02] && (0x6b..=0x6d).contains(&last[3]);
    known.then_some(offset)
}

/// ZFS: four labels of 256 KiB, two at either end, each with a ring of 128
/// uberblocks from its middle on; libblkid wants four of them to be sure
/// (OpenZFS, vdev_impl.h and uberblock_impl.h).
fn zfs(ends: &DeviceEnds) -> Option<u64> {
    const LABEL: u64 = 256 << 10;
    const MAGIC: u64 = 0x00ba_b10c;
    let aligned = ends.size & !(LABEL - 1);
    let blocks: Vec<u64> = [0, LABEL, aligned.checked_sub(2 * LABEL)?, aligned - LABEL]
        .into_iter()
        .flat_map(|label| (0..128).map(move |i| label + LABEL / 2 + i * 1024))
        .filter(|&at| {
            let bytes = ends.at(at, 8);
            bytes == Some(&MAGIC.to_le_bytes()[..]) || bytes == Some(&MAGIC.to_be_bytes()[..])
        })
        .collect();
    (blocks.len() >= 4).then(|| blocks[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const SIZE: u64 = 16 << 20;

    /// An image of zeros with `bytes` at `offset`.
    fn image(parts: &[(u64, &[u8])]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        for (offset, bytes) in parts {
            file.write_all_at(bytes, *offset).unwrap();
        }
        file
    }

    fn kinds(parts: &[(u64, &[u8])]) -> Vec<&'static str> {
        let found = read(&image(parts), SIZE).unwrap();
        found.into_iter().map(|signature| signature.kind).collect()
    }

    #[test]
    fn an_empty_device_has_no_signature() {
        assert_eq!(kinds(&[]), [""; 0]);
        for size in [0, 1, 511, 512, 4095, 4096, 65_536, (1 << 20) + 1] {
            let file = tempfile::tempfile().unwrap();
            file.set_len(size).unwrap();
            assert_eq!(read(&file, size).unwrap(), []);
        }
        assert!(read(&tempfile::tempfile().unwrap(), 512).is_err());
    }

    #[test]
    fn every_signature_in_the_table_is_found_at_its_place() {
        for magic in MAGICS {
            let found = read(&image(&[(magic.offset, magic.bytes)]), SIZE).unwrap();
            let wanted = Signature {
                kind: magic.kind,
                class: magic.class,
                offset: magic.offset,
            };
            assert!(found.contains(&wanted), "{wanted}: {found:?}");
        }
    }

    #[test]
    fn cramfs_and_bfs_as_mkfs_makes_them_are_not_taken_for_empty() {
        let cramfs: &[u8] = b"\x45\x3d\xcd\x28\0\x10\0\0\x03\0\0\0\0\0\0\0Compressed ROMFS";
        assert_eq!(kinds(&[(0, cramfs)]), ["cramfs"]);
        let bfs: &[u8] = b"\xce\xfa\xad\x1b\0\x08\0\0";
        assert_eq!(kinds(&[(0, bfs)]), ["bfs"]);
    }

    #[test]
    fn signatures_at_the_end_and_of_many_places_are_found() {
        let md0: &[u8] = b"\xfc\x4e\x2b\xa9\0\0\0\0\x5a\0\0\0";
        assert_eq!(kinds(&[(SIZE - 0x1_0000, md0)]), ["Linux RAID 0.90"]);
        let md1: &[u8] = b"\xfc\x4e\x2b\xa9\x01\0\0\0";
        assert_eq!(kinds(&[(SIZE - 0x2000, md1)]), ["Linux RAID 1.0"]);
        assert_eq!(kinds(&[(SIZE - 512, b"EFI PART")]), ["GPT (backup)"]);
        assert_eq!(kinds(&[(SIZE - 4096, b"EFI PART")]), ["GPT (backup)"]);
        let drbd: &[u8] = b"\x83\x74\x02\x6d";
        assert_eq!(kinds(&[(SIZE - 4096 + 60, drbd)]), ["DRBD"]);
        assert_eq!(
            kinds(&[(SIZE - 1024, b"Intel Raid ISM Cfg Sig. ")]),
            ["Intel RAID"]
        );
        assert_eq!(kinds(&[(SIZE - 512, b"\xde\x11\xde\x11")]), ["DDF RAID"]);
        assert_eq!(
            kinds(&[(4 << 20, b"SKUL\xba\xbe")]),
            ["LUKS2 (second header)"]
        );
        let nilfs: &[u8] = b"\x02\0\0\0\0\0\x34\x34";
        let second = ["nilfs2 (second superblock)"];
        assert_eq!(kinds(&[(SIZE - 4096, nilfs)]), second);
        assert_eq!(kinds(&[(508, b"\xda\xbe\xda\xbe")]), ["Sun"]);
        assert_eq!(kinds(&[(508, b"\xda\xbe\xda\xbf")]), [""; 0]);
        for page in [4096u64, 65_536] {
            assert_eq!(kinds(&[(page - 10, b"SWAPSPACE2")]), ["swap space"]);
            assert_eq!(kinds(&[(page - 10, b"S1SUSPEND")]), ["swap space"]);
        }
    }

    #[test]
    fn zfs_needs_four_uberblocks_wherever_they_are() {
        let magic = 0x00ba_b10c_u64.to_be_bytes();
        let last = SIZE - (128 << 10);
        let mut parts: Vec<(u64, &[u8])> = vec![(128 << 10, &magic), (384 << 10, &magic)];
        parts.push((last, &magic));
        assert_eq!(kinds(&parts), [""; 0]);
        parts.push((last + 1024, &magic));
        assert_eq!(kinds(&parts), ["ZFS"]);
    }

    #[test]
    fn two_bytes_alone_are_no_ext_and_no_table() {
        assert_eq!(kinds(&[(1080, b"\x53\xef")]), ["ext2/3/4"]);
        let nonsense = [0xff; 64];
        assert_eq!(kinds(&[(1024, &nonsense), (1080, b"\x53\xef")]), [""; 0]);
        assert_eq!(kinds(&[(510, b"\x55\xaa")]), ["MBR"]);
        assert_eq!(kinds(&[(446, &nonsense), (510, b"\x55\xaa")]), [""; 0]);
        let fat: [(u64, &[u8]); 2] = [(0x52, b"FAT32   "), (510, b"\x55\xaa")];
        assert_eq!(kinds(&fat), ["vfat"]);
    }

    #[test]
    fn what_is_told_names_kind_and_place() {
        let classes: BTreeSet<String> = MAGICS
            .iter()
            .map(|m| {
                Signature {
                    kind: "x",
                    class: m.class,
                    offset: 7,
                }
                .to_string()
            })
            .collect();
        assert!(classes.contains("x partition table (byte 7)"));
    }
}
