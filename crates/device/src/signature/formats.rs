//! Every format but tables of partitions that is looked for: where its superblock is, what it begins with, and which
//! of its other fields must make sense.
//!
//! Places and values are those of the formats themselves, as libblkid (util-linux,
//! `libblkid/src/superblocks` and `.../partitions`) knows them; what is else tells its source.
//! A magic alone is never enough: data of a user may have it at that place, too.

use super::Place::{End, Start};
use super::SignatureClass::{Encrypted, FileSystem, Member, Swap};
use super::{Format, LAST, ZFS_LABEL_BYTES, sector_from_end};

/// bcache's and bcachefs's own identifier; early bcachefs carries bcache's.
const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BCACHEFS: &[u8] = b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef";
const MD: &[u8] = b"\xfc\x4e\x2b\xa9";
const STRATIS: &[u8] = b"!Stra0tis\x86\xff\x02^\x41rh";
/// Those of one place after the other are no two signatures: the first is told.
pub(super) const FORMATS: &[Format] = &[
    Format {
        kind: "xfs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(0, b"XFSB"), (0, b"EXFS")],
        is_sane: |s| {
            let is_log = |size: u64, log: usize| s.byte(log) < 17 && size == 1 << s.byte(log);
            is_log(s.be32(4), 120) && is_log(s.be16(102), 121) && is_log(s.be16(104), 122)
        },
    },
    Format {
        kind: "btrfs",
        class: FileSystem,
        places: &[Start(0x1_0000)],
        magics: &[(0x40, b"_BHRfS_M")],
        // Its own address.
        is_sane: |s| s.le64(0x30) == 0x1_0000,
    },
    Format {
        kind: "ext2/3/4",
        class: FileSystem,
        places: &[Start(1024)],
        magics: &[(0x38, b"\x53\xef")],
        // Blocks of 1 to 64 KiB, revision 0 or 1 (Documentation/filesystems/ext4/super.rst).
        is_sane: |s| s.le32(0x18) <= 6 && s.le32(0x4c) <= 1,
    },
    Format {
        kind: "f2fs",
        class: FileSystem,
        places: &[Start(1024)],
        magics: &[(0, b"\x10\x20\xf5\xf2")],
        is_sane: |s| (9..=16).contains(&s.le32(8)) && (12..=16).contains(&s.le32(16)),
    },
    Format {
        kind: "vfat",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[
            (0x52, b"FAT32   "),
            (0x36, b"FAT16   "),
            (0x36, b"FAT12   "),
        ],
        // Bytes of a sector, sectors of a cluster, number of tables, kind of medium.
        is_sane: |s| {
            is_power(s.le16(11), 512, 4096)
                && is_power(s.byte(13).into(), 1, 128)
                && (1..=4).contains(&s.byte(16))
                && (s.byte(21) == 0xf0 || s.byte(21) >= 0xf8)
                && s.le16(14) > 0
                && s.has(510, b"\x55\xaa")
        },
    },
    Format {
        kind: "exfat",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(3, b"EXFAT   ")],
        is_sane: |s| s.is_zero(11, 53),
    },
    Format {
        kind: "ntfs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(3, b"NTFS    ")],
        // What FAT has there is not used.
        is_sane: |s| s.is_zero(14, 7) && s.is_zero(22, 2) && is_power(s.le16(11), 256, 4096),
    },
    Format {
        kind: "refs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(0, b"\0\0\0ReFS\0")],
        is_sane: |s| s.has(16, b"FSRS"),
    },
    Format {
        kind: "iso9660",
        class: FileSystem,
        places: &[Start(0x8000)],
        magics: &[(1, b"CD001")],
        // There is a second descriptor, at least the one that ends the list.
        is_sane: |s| s.has(0x801, b"CD001"),
    },
    Format {
        kind: "udf",
        class: FileSystem,
        places: &[Start(0x8000)],
        magics: &[(1, b"BEA01")],
        is_sane: |s| {
            let mut blocks = (1..16).map(|number| 0x800 * number + 1);
            blocks.any(|at| s.has(at, b"NSR02") || s.has(at, b"NSR03"))
        },
    },
    Format {
        kind: "jfs",
        class: FileSystem,
        places: &[Start(0x8000)],
        magics: &[(0, b"JFS1")],
        is_sane: |s| {
            let is_log = |size: u64, log: u64| log < 17 && size == 1 << log;
            is_log(s.le32(16), s.le16(20)) && is_log(s.le32(24), s.le16(28))
        },
    },
    Format {
        kind: "reiserfs",
        class: FileSystem,
        places: &[Start(0x1_0000), Start(0x2000)],
        magics: &[(52, b"ReIsErFs"), (52, b"ReIsEr2Fs"), (52, b"ReIsEr3Fs")],
        // Bytes of a block, kind of hash.
        is_sane: |s| is_power(s.le16(44), 512, 8192) && s.le32(64) <= 3,
    },
    Format {
        kind: "reiser4",
        class: FileSystem,
        places: &[Start(0x1_0000)],
        magics: &[(0, b"ReIsEr4")],
        is_sane: |s| s.is_zero(7, 9),
    },
    Format {
        kind: "gfs2",
        class: FileSystem,
        places: &[Start(0x1_0000)],
        magics: &[(0, b"\x01\x16\x19\x70")],
        // A superblock, of gfs or gfs2.
        is_sane: |s| s.be32(4) == 1 && (1300..=1899).contains(&s.be32(24)),
    },
    Format {
        kind: "ocfs2",
        class: FileSystem,
        places: &[Start(1024), Start(2048), Start(4096), Start(8192)],
        magics: &[(0, b"OCFSV2")],
        is_sane: |s| s.is_mostly_zero(512),
    },
    Format {
        kind: "ocfs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(8, b"OracleCFS")],
        is_sane: |s| s.is_mostly_zero(512),
    },
    Format {
        kind: "nilfs2",
        class: FileSystem,
        // The copy is in the last whole 4 KiB (NILFS_SB2_OFFSET_BYTES).
        places: &[Start(1024), End(4096, 4096)],
        // Revision 2.0, then the magic.
        magics: &[(0, b"\x02\0\0\0\0\0\x34\x34")],
        is_sane: |s| s.le32(20) <= 6 && s.le16(8) <= 1024,
    },
    Format {
        kind: "erofs",
        class: FileSystem,
        places: &[Start(1024)],
        magics: &[(0, b"\xe2\xe1\xf5\xe0")],
        is_sane: |s| (9..=16).contains(&s.byte(12)) && s.le32(80) <= 0xffff,
    },
    Format {
        kind: "squashfs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(0, b"hsqs"), (0, b"sqsh")],
        is_sane: |s| {
            let is_4 = s.le16(28) == 4 && s.le16(30) == 0;
            // Before 4 in the byte order of the machine that made it.
            let is_3 = |major: u64, minor: u64| (1..=3).contains(&major) && minor <= 1;
            let is_old = is_3(s.le16(28), s.le16(30)) || is_3(s.be16(28), s.be16(30));
            (is_4 && s.le16(22) < 21 && s.le32(12) == 1 << s.le16(22)) || is_old
        },
    },
    Format {
        kind: "zonefs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(0, b"SFOZ")],
        is_sane: |s| s.le64(88) < 0x100,
    },
    Format {
        kind: "apfs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(32, b"NXSB")],
        // An object of the kind of a container.
        is_sane: |s| s.le32(24) == 0x8000_0001,
    },
    Format {
        kind: "bcachefs",
        class: FileSystem,
        places: &[Start(4096)],
        magics: &[(24, BCACHEFS)],
        is_sane: |s| s.le64(0x68) == 8,
    },
    Format {
        kind: "cramfs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(16, b"Compressed ROMFS")],
        is_sane: |s| s.has(0, b"\x45\x3d\xcd\x28") || s.has(0, b"\x28\xcd\x3d\x45"),
    },
    Format {
        kind: "romfs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(0, b"-rom1fs-")],
        is_sane: |s| s.be32_sum() == 0,
    },
    Format {
        kind: "minix",
        class: FileSystem,
        places: &[Start(1024)],
        magics: &[
            (16, b"\x7f\x13"),
            (16, b"\x8f\x13"),
            (16, b"\x13\x7f"),
            (16, b"\x13\x8f"),
            (16, b"\x68\x24"),
            (16, b"\x78\x24"),
            (16, b"\x24\x68"),
            (16, b"\x24\x78"),
        ],
        // Maps, zones as large as blocks, clean or with errors.
        is_sane: |s| {
            s.le16(4) != 0
                && s.le16(6) != 0
                && s.le16(10) == 0
                && (s.le16(18) <= 3 || s.be16(18) <= 3)
        },
    },
    Format {
        kind: "minix (version 3)",
        class: FileSystem,
        places: &[Start(1024)],
        magics: &[(24, b"\x5a\x4d"), (24, b"\x4d\x5a")],
        is_sane: |s| {
            let block = |size: u64| is_power(size, 1024, 0x8000);
            s.le16(12) == 0 && s.le16(4) == 0 && (block(s.le16(28)) || block(s.be16(28)))
        },
    },
    Format {
        kind: "hfs",
        class: FileSystem,
        places: &[Start(1024)],
        magics: &[(0, b"BD")],
        // Bytes of a block, of which what is written at once is a multiple; length of the name.
        is_sane: |s| {
            let (block, clump) = (s.be32(20), s.be32(24));
            block > 0
                && block < 1 << 24
                && block.is_multiple_of(512)
                && clump.is_multiple_of(block)
                && s.byte(36) <= 27
        },
    },
    Format {
        kind: "hfsplus",
        class: FileSystem,
        places: &[Start(1024)],
        magics: &[(0, b"H+"), (0, b"HX")],
        is_sane: |s| (4..=5).contains(&s.be16(2)) && is_power(s.be32(40), 512, 1 << 20),
    },
    Format {
        kind: "ufs",
        class: FileSystem,
        places: &[Start(0), Start(8 << 10), Start(64 << 10), Start(256 << 10)],
        magics: &[
            (0x55c, b"\x54\x19\x01\0"),
            (0x55c, b"\0\x01\x19\x54"),
            (0x55c, b"\x19\x01\x54\x19"),
            (0x55c, b"\x19\x54\x01\x19"),
            (0x55c, b"\x12\x56\x19\0"),
            (0x55c, b"\0\x19\x56\x12"),
            (0x55c, b"\x14\x50\x09\0"),
            (0x55c, b"\0\x09\x50\x14"),
            (0x55c, b"\x95\x21\x61\0"),
            (0x55c, b"\0\x61\x21\x95"),
            (0x55c, b"\x94\x19\x23\x05"),
            (0x55c, b"\x05\x23\x19\x94"),
        ],
        // Bytes of a block, of a fragment, fragments of a block.
        is_sane: |s| {
            let is_whole = |block: u64, part: u64, parts: u64| {
                is_power(block, 1024, 1 << 20) && part.checked_mul(parts) == Some(block)
            };
            is_whole(s.le32(48), s.le32(52), s.le32(56))
                || is_whole(s.be32(48), s.be32(52), s.be32(56))
        },
    },
    Format {
        kind: "vxfs",
        class: FileSystem,
        places: &[Start(1024), Start(8192)],
        magics: &[(0, b"\xf5\xfc\x01\xa5"), (0, b"\xa5\x01\xfc\xf5")],
        is_sane: |s| {
            let is_one = |version: u64, block: u64| version <= 32 && is_power(block, 512, 1 << 16);
            is_one(s.le32(4), s.le32(32)) || is_one(s.be32(4), s.be32(32))
        },
    },
    Format {
        kind: "hpfs",
        class: FileSystem,
        places: &[Start(0x2000)],
        magics: &[(0, b"\x49\xe8\x95\xf9")],
        // The spare block.
        is_sane: |s| s.has(0x200, b"\x49\x18\x91\xf9"),
    },
    Format {
        kind: "befs",
        class: FileSystem,
        places: &[Start(0), Start(0x200)],
        // BeOS's name of the format, then of its byte order.
        magics: &[(32, b"BFS1BIGE"), (32, b"1SFBEGIB")],
        is_sane: |s| s.has(68, b"\xdd\x12\x10\x31") || s.has(68, b"\x31\x10\x12\xdd"),
    },
    Format {
        kind: "bfs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(0, b"\xce\xfa\xad\x1b")],
        // Nothing is being moved.
        is_sane: |s| s.le64(12) == u64::MAX,
    },
    Format {
        kind: "netware",
        class: FileSystem,
        places: &[Start(4096)],
        magics: &[(0, b"SPB5")],
        is_sane: |s| s.is_mostly_zero(512),
    },
    Format {
        kind: "mpool",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(0, b"mpoolDev")],
        // The name of the pool.
        is_sane: |s| s.is_text(8, 32),
    },
    Format {
        kind: "ubifs",
        class: FileSystem,
        places: &[Start(0)],
        magics: &[(0, b"\x31\x18\x10\x06")],
        // A superblock, of 4 KiB.
        is_sane: |s| s.le32(16) == 4096 && s.byte(20) == 6,
    },
    Format {
        kind: "ubi",
        class: Member,
        places: &[Start(0)],
        magics: &[(0, b"UBI#")],
        is_sane: |s| s.byte(4) == 1 && s.is_zero(5, 3),
    },
    Format {
        kind: "VMFS",
        class: FileSystem,
        places: &[Start(2 << 20)],
        magics: &[(0, b"\x5e\xf1\xab\x2f")],
        is_sane: |s| s.le32(4) < 100 && s.byte(8) <= 10,
    },
    Format {
        kind: "VMFS",
        class: Member,
        places: &[Start(1 << 20)],
        magics: &[(0, b"\x0d\xd0\x01\xc0")],
        is_sane: |s| s.le32(4) < 100,
    },
    Format {
        kind: super::XFS_LOG,
        class: FileSystem,
        places: &super::xfs_log_places(),
        magics: &[(0, b"\xfe\xed\xba\xbe")],
        // Version, length, format (XLOG_FMT_…).
        is_sane: |s| {
            (1..=3).contains(&s.be32(8))
                && (1..=0x7fff_ffff).contains(&s.be32(12))
                && (1..=3).contains(&s.be32(300))
        },
    },
    Format {
        kind: "drbdmanage",
        class: Member,
        places: &[Start(0)],
        magics: &[(0, b"$DRBDmgr=q")],
        is_sane: |s| s.all(11, 32, u8::is_ascii_hexdigit) && s.byte(43) == b'\n',
    },
    Format {
        kind: "bcache",
        class: Member,
        places: &[Start(4096)],
        magics: &[(24, BCACHE)],
        is_sane: |s| s.le64(8) == 8 || s.le64(0x68) == 8,
    },
    Format {
        kind: "LVM2",
        class: Member,
        places: &[Start(0), Start(0x200), Start(0x400), Start(0x600)],
        magics: &[(24, b"LVM2 001")],
        is_sane: |s| s.has(0, b"LABELONE"),
    },
    Format {
        kind: "LVM1",
        class: Member,
        places: &[Start(0)],
        magics: &[(0, b"HM")],
        is_sane: |s| (1..=2).contains(&s.le16(2)) && s.le32(4) == 0,
    },
    Format {
        kind: "Linux RAID 1.1",
        class: Member,
        places: &[Start(0)],
        magics: &[(0, MD)],
        // Its own place, in sectors (linux/raid/md_p.h, mdp_superblock_1).
        is_sane: |s| s.le32(4) == 1 && s.le64(144) == 0,
    },
    Format {
        kind: "Linux RAID 1.2",
        class: Member,
        places: &[Start(4096)],
        magics: &[(0, MD)],
        is_sane: |s| s.le32(4) == 1 && s.le64(144) == 8,
    },
    Format {
        kind: "Linux RAID 1.0",
        class: Member,
        // At least 8 KiB before the end (drivers/md/md.c, super_1_load).
        places: &[End(4096, 0x2000)],
        magics: &[(0, MD)],
        is_sane: |s| s.le32(4) == 1 && s.le64(144) == s.base / 512,
    },
    Format {
        kind: "Linux RAID 0.90",
        class: Member,
        // In the last whole 64 KiB, in the byte order of the machine that made it.
        places: &[End(0x1_0000, 0x1_0000)],
        magics: &[(0, MD), (0, b"\xa9\x2b\x4e\xfc")],
        is_sane: |s| s.le32(4) == 0 && (s.le32(8) < 100 || s.be32(8) < 100),
    },
    Format {
        kind: "Stratis",
        class: Member,
        places: &[Start(0x200), Start(0x1200)],
        magics: &[(4, STRATIS)],
        is_sane: |s| s.all(32, 32, u8::is_ascii_hexdigit),
    },
    Format {
        kind: "Ceph BlueStore",
        class: Member,
        places: &[Start(0)],
        magics: &[(0, b"bluestore block device\n")],
        is_sane: |s| s.all(23, 36, u8::is_ascii),
    },
    Format {
        kind: "Oracle ASM",
        class: Member,
        places: &[Start(0)],
        magics: &[(32, b"ORCLDISK")],
        is_sane: |s| s.is_text(40, 24),
    },
    Format {
        kind: "VDO",
        class: Member,
        places: &[Start(0)],
        magics: &[(0, b"dmvdo001")],
        // The header of a block of geometry, with its version.
        is_sane: |s| s.le32(8) <= 16 && s.le32(12) <= 16,
    },
    Format {
        kind: "device-mapper snapshot",
        class: Member,
        places: &[Start(0)],
        magics: &[(0, b"SnAp")],
        is_sane: |s| s.le32(4) <= 1 && s.le32(8) <= 2,
    },
    Format {
        kind: "dm-verity",
        class: Member,
        places: &[Start(0)],
        magics: &[(0, b"verity\0\0")],
        is_sane: |s| s.le32(8) == 1 && s.le32(12) <= 1,
    },
    Format {
        kind: "dm-integrity",
        class: Member,
        places: &[Start(0)],
        magics: &[(0, b"integrt\0")],
        is_sane: |s| (1..=16).contains(&s.byte(8)) && s.le32(24) < 0x100,
    },
    Format {
        kind: "DRBD",
        class: Member,
        // 8.4 and 9, with metadata on the device itself (drbd-headers, drbd_meta_data.h).
        places: &[End(1, 4096)],
        magics: &[
            (60, b"\x83\x74\x02\x6b"),
            (60, b"\x83\x74\x02\x6c"),
            (60, b"\x83\x74\x02\x6d"),
        ],
        // Bytes for a bit of the bitmap.
        is_sane: |s| is_power(s.be32(80), 4096, 1 << 20),
    },
    Format {
        kind: "Intel RAID",
        class: Member,
        places: &[sector_from_end(2)],
        magics: &[(0, b"Intel Raid ISM Cfg Sig. ")],
        is_sane: |s| s.byte(24).is_ascii_digit() && s.byte(25) == b'.' && s.le32(36) < 1 << 20,
    },
    Format {
        kind: "DDF RAID",
        class: Member,
        // The anchor (SNIA Common RAID DDF 2.0, 4.2.1), with its revision.
        places: &[LAST, sector_from_end(257)],
        magics: &[(0, b"\xde\x11\xde\x11"), (0, b"\x11\xde\x11\xde")],
        is_sane: |s| s.byte(34) == b'.' && s.byte(37) == b'.' && s.byte(32).is_ascii_digit(),
    },
    Format {
        kind: "Adaptec RAID",
        class: Member,
        places: &[LAST],
        magics: &[(0, b"\x37\xfc\x4d\x1e")],
        is_sane: |s| s.has(256, b"DPTM"),
    },
    Format {
        kind: "HighPoint RAID",
        class: Member,
        places: &[sector_from_end(11)],
        magics: &[(0, b"\xf3\x16\x78\x5a"), (0, b"\xfd\x16\x78\x5a")],
        is_sane: |s| s.is_mostly_zero(512),
    },
    Format {
        kind: "HighPoint RAID",
        class: Member,
        places: &[Start(4608)],
        magics: &[(32, b"\xf0\x16\x78\x5a"), (32, b"\xfd\x16\x78\x5a")],
        is_sane: |s| s.is_mostly_zero(512),
    },
    Format {
        kind: "Silicon Image RAID",
        class: Member,
        places: &[LAST],
        magics: &[(0x60, b"\0\0\0\x2f")],
        is_sane: |s| {
            let words = s.bytes(0x13e).chunks_exact(2);
            let word = |bytes: &[u8]| bytes.try_into().map_or(0, u16::from_le_bytes);
            let sum = words.fold(0u16, |sum, bytes| sum.wrapping_add(word(bytes)));
            s.byte(0x116) < 8 && u64::from(sum.wrapping_neg()) == s.le16(0x13e)
        },
    },
    Format {
        kind: "VIA RAID",
        class: Member,
        places: &[LAST],
        magics: &[(0, b"\x55\xaa")],
        is_sane: |s| {
            let sum = s
                .bytes(50)
                .iter()
                .fold(0u8, |sum, byte| sum.wrapping_add(*byte));
            s.byte(2) <= 2 && sum == s.byte(50) && s.is_mostly_zero(512)
        },
    },
    Format {
        kind: "JMicron RAID",
        class: Member,
        places: &[LAST],
        magics: &[(0, b"JM")],
        is_sane: |s| s.is_mostly_zero(512),
    },
    Format {
        kind: "LSI RAID",
        class: Member,
        places: &[LAST],
        magics: &[(0, b"$XIDE$")],
        is_sane: |s| s.is_mostly_zero(512),
    },
    Format {
        kind: "NVIDIA RAID",
        class: Member,
        places: &[sector_from_end(2)],
        magics: &[(0, b"NVIDIA")],
        // Its length in words.
        is_sane: |s| s.le32(8) == 30,
    },
    Format {
        kind: "Promise RAID",
        class: Member,
        places: &[
            sector_from_end(63),
            sector_from_end(255),
            sector_from_end(256),
            sector_from_end(16),
            sector_from_end(399),
            sector_from_end(591),
            sector_from_end(675),
            sector_from_end(735),
            sector_from_end(911),
            sector_from_end(974),
            sector_from_end(991),
            sector_from_end(951),
            sector_from_end(3087),
        ],
        magics: &[(0, b"Promise Technology, Inc.")],
        is_sane: |s| s.is_mostly_zero(512),
    },
    Format {
        kind: "ZFS",
        class: Member,
        // Four labels of 256 KiB, two at either end. A pool is known by the list of names and
        // values in one (OpenZFS, vdev_impl.h and nvpair.c: XDR, its first name is `version`).
        // The uberblocks behind it say nothing without, and wipefs leaves them since 2.41.
        places: &[
            Start(0),
            Start(ZFS_LABEL_BYTES),
            End(ZFS_LABEL_BYTES, 2 * ZFS_LABEL_BYTES),
            End(ZFS_LABEL_BYTES, ZFS_LABEL_BYTES),
        ],
        magics: &[(0x4000, b"\x01\x01"), (0x4000, b"\x01\x00")],
        is_sane: |s| s.be32(0x4004) == 0 && s.be32(0x4014) == 7 && s.has(0x4018, b"version"),
    },
    Format {
        kind: "swap space",
        class: Swap,
        // The last bytes of the first page, whose size is the maker's (mkswap(8)).
        places: &[Start(0)],
        magics: &SWAP_PAGES,
        // Version 1, and a last page; in version 0 a map in which the first page is taken.
        is_sane: |s| {
            let is_1 = |version: u64, last: u64| version == 1 && last > 0;
            is_1(s.le32(1024), s.le32(1028))
                || is_1(s.be32(1024), s.be32(1028))
                || s.has(0, b"\xfe\xff\xff\xff")
        },
    },
    Format {
        kind: "LUKS",
        class: Encrypted,
        places: &[Start(0)],
        magics: &[(0, b"LUKS\xba\xbe")],
        is_sane: |s| match s.be16(6) {
            // Name of the cipher.
            1 => s.is_text(8, 32),
            2 => is_power(s.be64(8), 4096, 4 << 20),
            _ => false,
        },
    },
    Format {
        kind: "LUKS2 (second header)",
        class: Encrypted,
        // At one of nine places (LUKS2 On-Disk Format 2.2), which it names.
        places: &[
            Start(1 << 14),
            Start(1 << 15),
            Start(1 << 16),
            Start(1 << 17),
            Start(1 << 18),
            Start(1 << 19),
            Start(1 << 20),
            Start(2 << 20),
            Start(4 << 20),
        ],
        magics: &[(0, b"SKUL\xba\xbe")],
        is_sane: |s| s.be16(6) == 2 && s.be64(256) == s.base,
    },
    Format {
        kind: "BitLocker",
        class: Encrypted,
        places: &[Start(0)],
        magics: &[(3, b"-FVE-FS-")],
        is_sane: |s| s.byte(0) == 0xeb && s.byte(2) == 0x90 && s.has(510, b"\x55\xaa"),
    },
    Format {
        kind: "FileVault 2",
        class: Encrypted,
        places: &[Start(0)],
        magics: &[(88, b"CS")],
        // Version, kind of block, kind of checksum.
        is_sane: |s| s.le16(8) == 1 && s.le16(10) == 0x10 && s.le32(90) == 1,
    },
];

const SWAP_TEXTS: [&[u8]; 6] = [
    b"SWAPSPACE2",
    b"SWAP-SPACE",
    b"S1SUSPEND",
    b"S2SUSPEND",
    b"ULSUSPEND",
    b"LINHIB0001",
];

/// Pages of 4 to 64 KiB.
const SWAP_PAGES: [(usize, &[u8]); 30] = {
    let mut all: [(usize, &[u8]); 30] = [(0, b""); 30];
    let mut at = 0;
    while at < 30 {
        all[at] = ((4096 << (at / 6)) - 10, SWAP_TEXTS[at % 6]);
        at += 1;
    }
    all
};

/// Whether a number is a power of two in these bounds.
fn is_power(number: u64, least: u64, most: u64) -> bool {
    number.is_power_of_two() && (least..=most).contains(&number)
}
