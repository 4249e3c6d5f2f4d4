//! Tables of partitions that are looked for, as the other formats are.

use super::Place::{End, Start};
use super::SignatureClass::PartitionTable;
use super::{Format, LAST, Superblock};

pub(super) const TABLES: &[Format] = &[
    Format {
        kind: "GPT",
        class: PartitionTable,
        places: &[Start(512), Start(4096)],
        magics: &[(0, b"EFI PART")],
        is_sane: is_gpt,
    },
    Format {
        kind: "GPT (backup)",
        class: PartitionTable,
        // In the last block (UEFI 2.10, 5.3.2).
        places: &[LAST, End(1, 4096)],
        magics: &[(0, b"EFI PART")],
        is_sane: is_gpt,
    },
    Format {
        kind: "BSD",
        class: PartitionTable,
        places: &[Start(512)],
        magics: &[(0, b"\x57\x45\x56\x82")],
        is_sane: |s| s.has(132, b"\x57\x45\x56\x82"),
    },
    Format {
        kind: "SGI",
        class: PartitionTable,
        places: &[Start(0)],
        magics: &[(0, b"\x0b\xe5\xa9\x41")],
        is_sane: |s| s.be32_sum() == 0,
    },
    Format {
        kind: "Sun",
        class: PartitionTable,
        places: &[Start(0)],
        magics: &[(508, b"\xda\xbe")],
        // The exclusive or of all words is 0 (block/partitions/sun.c); a table that says that
        // it makes sense, or none.
        is_sane: |s| {
            let words = s.bytes(512).chunks_exact(2);
            let sum = words.fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
            sum == [0, 0] && (s.be32(188) == 0x600d_deee || s.be32(188) == 0)
        },
    },
    Format {
        kind: "Apple",
        class: PartitionTable,
        // Block 0 says `ER`; its map of partitions begins in the next block.
        places: &[Start(0)],
        magics: &[(512, b"PM\0\0")],
        is_sane: |s| s.has(0, b"ER") && (1..=1024).contains(&s.be32(516)),
    },
    Format {
        kind: "AIX",
        class: PartitionTable,
        places: &[Start(0)],
        magics: &[(0, b"\xc9\xc2\xd4\xc1")],
        is_sane: |s| s.is_mostly_zero(512),
    },
    Format {
        kind: "Atari",
        class: PartitionTable,
        places: &[Start(0)],
        magics: &[
            (0x1c6, b"\x01GEM"),
            (0x1c6, b"\x01BGM"),
            (0x1c6, b"\x01LNX"),
            (0x1c6, b"\x01SWP"),
            (0x1c6, b"\x01RAW"),
            (0x1c6, b"\x01XGM"),
            (0x1c6, b"\x81GEM"),
            (0x1c6, b"\x81BGM"),
        ],
        // It lies within the device, of which the size stands before it.
        is_sane: |s| {
            let sectors = s.size() / 512;
            let end = s.be32(0x1ca).saturating_add(s.be32(0x1ce));
            s.be32(0x1c2) <= sectors && end <= sectors && end > 0
        },
    },
    Format {
        kind: super::MBR,
        class: PartitionTable,
        places: &[Start(0)],
        magics: &[(510, b"\x55\xaa")],
        // Four entries whose first byte can only be 0 or 80h.
        is_sane: |s| (0..4).all(|entry| s.byte(446 + 16 * entry) & 0x7f == 0),
    },
];

/// Revision 1.0, and the length of a header.
fn is_gpt(s: &Superblock<'_>) -> bool {
    s.le32(8) == 0x1_0000 && (92..=4096).contains(&s.le32(12))
}
