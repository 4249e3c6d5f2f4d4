//! The one mixing function behind everything that looks random and must be the
//! same each time.

/// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): spreads a seed,
/// and mixes two numbers into one.
pub fn mix(seed: u64, with: u64) -> u64 {
    let mut z = seed
        .wrapping_add(with.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Numbers that look random, the same ones for the same seed (SplitMix64, as [`mix`]).
#[derive(Debug, Clone)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        let number = mix(self.0, 0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        number
    }

    /// Fills bytes: no file system or drive packs them, or finds them twice.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_mut(8) {
            let next = self.number().to_le_bytes();
            word.copy_from_slice(&next[..word.len()]);
        }
    }
}
