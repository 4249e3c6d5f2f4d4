//! The one mixing function behind everything that looks random and must be the
//! same each time.

/// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): spreads a seed,
/// and mixes two numbers into one.
#[must_use]
pub fn mix(seed: u64, with: u64) -> u64 {
    let mut z = seed
        .wrapping_add(with.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
