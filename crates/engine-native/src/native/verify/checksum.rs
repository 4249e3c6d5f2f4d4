//! The checksums of verify, byte for byte as fio 3.33 stores them (crc/ and verify.h),
//! quirks included: what one engine writes the other checks.

use std::fmt;

use crc::{Algorithm, CRC_7_MMC, CRC_16_ARC, CRC_64_REDIS, Crc};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use twox_hash::XxHash32;

use crate::native::crc32c::crc32c;

/// Bytes of a header before its checksum (verify.h, struct verify_header).
const HEADER: usize = 40;
/// Bytes of the longest checksum.
const MOST: usize = 64;

static CRC7: Crc<u8> = Crc::<u8>::new(&CRC_7_MMC);
static CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_ARC);
static CRC64: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);
/// That of POSIX cksum, without its length and its inversion (crc/crc32.c).
static CRC32: Crc<u32> = Crc::<u32>::new(&Algorithm {
    width: 32,
    poly: 0x04c1_1db7,
    init: 0,
    refin: false,
    refout: false,
    xorout: 0,
    check: 0x765e_7680 ^ u32::MAX,
    residue: 0,
});

/// What a block carries to be verified by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum Checksum {
    /// Nothing: verifying is only pretended.
    Null,
    /// A header alone.
    Meta,
    /// A header, and the pattern behind it: a `verify_pattern` without `verify`.
    PatternHeader,
    /// The pattern alone.
    Pattern,
    Crc7,
    Crc16,
    Crc32,
    Crc32c,
    Crc64,
    Md5,
    Sha1,
    Sha256,
    Sha3Of224,
    Sha3Of256,
    Sha3Of384,
    Sha3Of512,
    XxHash,
}

impl Checksum {
    /// Names in job files, and the number in a header (verify.h).
    pub(in crate::native) const NAMES: [(&'static str, Self, u16); 17] = [
        ("meta", Self::Meta, 1),
        ("md5", Self::Md5, 2),
        ("crc64", Self::Crc64, 3),
        ("crc32", Self::Crc32, 4),
        ("crc32c", Self::Crc32c, 5),
        ("crc32c-intel", Self::Crc32c, 6),
        ("crc16", Self::Crc16, 7),
        ("crc7", Self::Crc7, 8),
        ("sha256", Self::Sha256, 9),
        ("sha3-224", Self::Sha3Of224, 11),
        ("sha3-256", Self::Sha3Of256, 12),
        ("sha3-384", Self::Sha3Of384, 13),
        ("sha3-512", Self::Sha3Of512, 14),
        ("xxhash", Self::XxHash, 15),
        ("sha1", Self::Sha1, 16),
        ("pattern", Self::Pattern, 18),
        ("null", Self::Null, 19),
    ];

    /// The number in a header.
    pub(super) fn code(self) -> u16 {
        let row = Self::NAMES.iter().find(|(_, sum, _)| *sum == self);
        row.map_or(17, |(.., code)| *code)
    }

    pub(super) fn name(self) -> &'static str {
        let row = Self::NAMES.iter().find(|(_, sum, _)| *sum == self);
        row.map_or("pattern", |(name, ..)| name)
    }

    /// Whether a header of this number may stand before data of this kind: fio looks at
    /// the number only to explain a mismatch.
    pub(super) fn may_have(self, code: u16) -> bool {
        let same = |&(_, sum, known): &(_, Self, u16)| known == code && sum == self;
        matches!(self, Self::Meta | Self::PatternHeader) || Self::NAMES.iter().any(same)
    }

    /// Bytes of the checksum.
    fn len(self) -> usize {
        match self {
            Self::Null | Self::Meta | Self::PatternHeader | Self::Pattern => 0,
            Self::Crc7 => 1,
            Self::Crc16 => 2,
            Self::Crc32 | Self::Crc32c | Self::XxHash => 4,
            Self::Crc64 => 8,
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha3Of224 => 28,
            Self::Sha3Of256 => 32,
            Self::Sha3Of384 => 48,
            Self::Sha256 | Self::Sha3Of512 => 64,
        }
    }

    /// Bytes before the data: header and checksum.
    pub(in crate::native) fn header(self) -> usize {
        match self {
            Self::Null | Self::Pattern => 0,
            _ => HEADER + self.len(),
        }
    }

    /// Of data, as it is stored.
    pub(super) fn of(self, data: &[u8]) -> Sum {
        let mut sum = Sum {
            bytes: [0; MOST],
            len: self.len(),
        };
        let mut put = |bytes: &[u8]| sum.bytes[..bytes.len()].copy_from_slice(bytes);
        match self {
            Self::Null | Self::Meta | Self::PatternHeader | Self::Pattern => {}
            Self::Crc7 => put(&[CRC7.checksum(data)]),
            Self::Crc16 => put(&CRC16.checksum(data).to_le_bytes()),
            Self::Crc32 => put(&CRC32.checksum(data).to_le_bytes()),
            Self::Crc32c => put(&crc32c(data).to_le_bytes()),
            Self::Crc64 => put(&CRC64.checksum(data).to_le_bytes()),
            Self::XxHash => put(&XxHash32::oneshot(1, data).to_le_bytes()),
            Self::Md5 => put(&Md5::digest(data)),
            Self::Sha1 => put(&sha1(data)),
            Self::Sha256 => put(&sha256(data)),
            Self::Sha3Of224 => put(&Sha3_224::digest(data)),
            Self::Sha3Of256 => put(&Sha3_256::digest(data)),
            Self::Sha3Of384 => put(&Sha3_384::digest(data)),
            Self::Sha3Of512 => put(&Sha3_512::digest(data)),
        }
        sum
    }
}

/// SHA-1 as the words of its state in the machine's order (crc/sha1.c leaves them so).
fn sha1(data: &[u8]) -> [u8; 20] {
    let mut digest: [u8; 20] = Sha1::digest(data).into();
    digest.chunks_mut(4).for_each(<[u8]>::reverse);
    digest
}

/// What crc/sha256.c leaves: the last padded block, its length in the machine's order,
/// and over its first bytes the lowest byte of each word of the state.
fn sha256(data: &[u8]) -> [u8; 64] {
    let mut state = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let (blocks, rest) = data.as_chunks::<64>();
    sha2::block_api::compress256(&mut state, blocks);
    let mut last = [0u8; 64];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = 0x80;
    if rest.len() >= 56 {
        sha2::block_api::compress256(&mut state, &[last]);
        last = [0; 64];
    }
    last[56..].copy_from_slice(&(data.len() as u64 * 8).to_le_bytes());
    sha2::block_api::compress256(&mut state, &[last]);
    for (byte, word) in last.iter_mut().zip(state) {
        *byte = word as u8;
    }
    last
}

/// A checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sum {
    bytes: [u8; MOST],
    len: usize,
}

impl Sum {
    /// One that was stored.
    pub(super) fn stored(bytes: &[u8]) -> Self {
        let mut sum = Self {
            bytes: [0; MOST],
            len: bytes.len().min(MOST),
        };
        sum.bytes[..sum.len].copy_from_slice(&bytes[..sum.len]);
        sum
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Byte for byte, as fio prints it.
impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
