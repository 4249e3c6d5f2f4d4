//! What verified blocks hold besides their headers, as fio makes it: of a seed that the
//! header names (lib/rand.c), or a pattern.

use std::borrow::Cow;

use crate::native::job::DataPattern;

/// hash.h, GOLDEN_RATIO_64.
const GOLDEN: u64 = 0x61c8_8646_80b5_83eb;
/// Words that are made side by side (configure, CONFIG_SEED_BUCKETS), and what the seed
/// of each is multiplied by.
const PRIMES: [u64; 4] = [1, 2, 3, 5];

/// Random bytes of a seed, the last `percent` of them `filler` or zeros
/// (`__fill_random_buf_percentage`).
pub(super) fn fill(block: &mut [u8], seed: u64, percent: usize, filler: &[u8]) {
    let random = block.len() * (100 - percent.min(100)) / 100;
    let (random, flat) = block.split_at_mut(random);
    fill_random(random, seed);
    if filler.is_empty() {
        flat.fill(0);
    } else {
        repeat(flat, filler);
    }
}

fn fill_random(bytes: &mut [u8], seed: u64) {
    let mut lanes = PRIMES.map(|prime| seed.wrapping_mul(prime));
    let mut groups = bytes.chunks_exact_mut(8 * PRIMES.len());
    for group in &mut groups {
        for (word, lane) in group.chunks_exact_mut(8).zip(&mut lanes) {
            word.copy_from_slice(&lane.to_le_bytes());
            *lane = lane.wrapping_mul(GOLDEN);
        }
    }
    let mut last = lanes[0];
    for word in groups.into_remainder().chunks_mut(8) {
        word.copy_from_slice(&last.to_le_bytes()[..word.len()]);
        last = last.wrapping_mul(GOLDEN);
    }
}

/// A pattern with the offset of its block in it.
pub(super) fn pasted(pattern: &DataPattern, offset: u64) -> Cow<'_, [u8]> {
    if pattern.offsets.is_empty() {
        return Cow::Borrowed(&pattern.bytes);
    }
    let mut bytes = pattern.bytes.clone();
    for &at in &pattern.offsets {
        bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
    }
    Cow::Owned(bytes)
}

/// Fills with a pattern, again and again.
pub(super) fn repeat(block: &mut [u8], pattern: &[u8]) {
    for part in block.chunks_mut(pattern.len()) {
        part.copy_from_slice(&pattern[..part.len()]);
    }
}
