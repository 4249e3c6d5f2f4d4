//! CRC-32C (Castagnoli) as fio computes it: begun with all ones and, unlike
//! iSCSI's, not inverted at the end (fio: crc/crc32c.c).

#![allow(unsafe_code)] // each block says why it is sound

/// The polynomial 0x1edc6f41, bits reversed (RFC 3720, appendix B.4).
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[n][byte]` is what `byte` followed by `n` zero bytes adds.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ POLYNOMIAL
            } else {
                crc >> 1
            };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut n = 1;
    while n < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[n - 1][byte];
            tables[n][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        n += 1;
    }
    tables
}

/// The checksum of `data`.
#[inline]
pub(super) fn crc32c(data: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the CPU has the instruction, as just asked.
        return unsafe { by_instruction(data) };
    }
    by_table(data)
}

/// A word at a time by the CPU's own instruction, some 10 GB/s.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn by_instruction(data: &[u8]) -> u32 {
    use std::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};
    let (words, rest) = data.as_chunks::<8>();
    let crc = words.iter().fold(u64::from(u32::MAX), |crc, word| {
        _mm_crc32_u64(crc, u64::from_le_bytes(*word))
    });
    rest.iter()
        .fold(crc as u32, |crc, &byte| _mm_crc32_u8(crc, byte))
}

/// Eight bytes at a time by tables (Kounavis and Berry, "A Systematic Approach
/// to Building High Performance, Software-based, CRC Generators", 2005).
fn by_table(data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<8>();
    let mut crc = u32::MAX;
    for word in words {
        let mixed = u64::from_le_bytes(*word) ^ u64::from(crc);
        crc = mixed
            .to_le_bytes()
            .iter()
            .zip(TABLES.iter().rev())
            .fold(0, |sum, (&byte, table)| sum ^ table[usize::from(byte)]);
    }
    rest.iter().fold(crc, |crc, &byte| {
        crc >> 8 ^ TABLES[0][usize::from(crc as u8 ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert_eq, proptest};

    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard_without_its_last_inversion() {
        // RFC 3720, appendix B.4: 32 bytes of zeros, and the numbers 0 to 31.
        assert_eq!(!crc32c(&[0; 32]), 0x8a91_36aa);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(!crc32c(&ascending), 0x46dd_794e);
        assert_eq!(!crc32c(b"123456789"), 0xe306_9283);
    }

    proptest! {
        #[test]
        fn both_ways_give_the_same(data: Vec<u8>) {
            prop_assert_eq!(by_table(&data), crc32c(&data));
        }
    }
}
