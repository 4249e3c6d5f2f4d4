//! What written blocks hold.

#![allow(unsafe_code)] // each block says why it is sound

use super::job::Content;
use super::rng::{Rng, mix};

/// Lanes of the generator: four vectors of AVX2, eight of SSE2, enough to hide
/// the latency of one step.
const LANES: usize = 16;

/// Makes the data of one worker.
#[derive(Debug)]
pub(super) struct Filler {
    lanes: [u64; LANES],
    content: Content,
    /// What makes one write's block differ from the last one's.
    counter: u64,
    /// The CPU has vectors of 256 bits.
    wide: bool,
    dedupe: Option<Dedupe>,
}

/// Which buffers hold what another one holds (io_u.c, get_buf_state): each is made of a
/// number, and some of a number that was there before.
#[derive(Debug)]
struct Dedupe {
    percent: u8,
    /// Numbers of the set to choose from; `None`: the last new one again.
    set: Option<u64>,
    new: u64,
    /// What data are made of, the worker's own first; an equal part of the set is of each.
    seeds: Vec<u64>,
    rng: Rng,
}

impl Dedupe {
    /// What the next buffer is made of.
    fn seed(&mut self) -> u64 {
        if self.percent == 100 {
            return self.of(0, 0);
        }
        if !self.rng.percent(self.percent) {
            self.new += 1;
            return self.of(0, self.new);
        }
        let Some(numbers) = self.set else {
            return self.of(0, self.new);
        };
        let part = (numbers / self.seeds.len() as u64).max(1);
        let drawn = self.rng.below(numbers);
        match self.seeds.len() {
            1 => self.of(0, drawn + 1),
            jobs => self.of((drawn / part) as usize % jobs, drawn % part + 1),
        }
    }

    fn of(&self, job: usize, number: u64) -> u64 {
        mix(self.seeds[job], number)
    }
}

impl Filler {
    pub(super) fn new(content: &Content, seed: u64) -> Self {
        Self {
            lanes: lanes(seed),
            content: content.clone(),
            counter: mix(seed, 99),
            wide: has_avx2(),
            dedupe: None,
        }
    }

    /// With the duplicates that a job asks for, in `bytes` of its blocks.
    pub(super) fn with_duplicates(mut self, bytes: u64, block: u32, seeds: Vec<u64>) -> Self {
        let of_set = u64::from(self.content.dedupe_set_percent);
        let numbers = bytes / u64::from(block.max(1)) * of_set / 100;
        self.dedupe = (self.content.dedupe_percent > 0).then(|| Dedupe {
            percent: self.content.dedupe_percent,
            set: self.content.dedupe_from_set.then_some(numbers.max(1)),
            new: 0,
            rng: Rng::new(mix(seeds[0], 98)),
            seeds,
        });
        self
    }

    /// Whether a write changes its buffer first.
    pub(super) fn works_per_write(&self) -> bool {
        self.content.refill
            || (self.content.scramble && !self.content.zero && self.content.pattern.is_empty())
    }

    /// Fills a buffer before the first I/O.
    pub(super) fn first(&mut self, buffer: &mut [u8]) {
        if self.content.zero {
            buffer.fill(0);
        } else if !self.content.pattern.is_empty() {
            self.pattern(buffer);
        } else {
            self.fresh(buffer);
        }
    }

    /// Prepares a buffer for a write at `offset`.
    #[inline]
    pub(super) fn write(&mut self, buffer: &mut [u8], offset: u64) {
        if self.content.zero
            || (!self.content.pattern.is_empty() && self.content.compress_percent == 0)
        {
            return;
        }
        if self.content.refill {
            self.fresh(buffer);
        } else if self.content.scramble {
            self.scramble(buffer, offset);
        }
    }

    fn pattern(&self, buffer: &mut [u8]) {
        for (byte, &pattern) in buffer.iter_mut().zip(self.content.pattern.iter().cycle()) {
            *byte = pattern;
        }
    }

    /// New data: random, each chunk's share of it compressible when asked for.
    fn fresh(&mut self, buffer: &mut [u8]) {
        if let Some(dedupe) = &mut self.dedupe {
            self.lanes = lanes(dedupe.seed());
        }
        let percent = usize::from(self.content.compress_percent);
        if percent == 0 {
            return self.random(buffer);
        }
        let chunk = (self.content.compress_chunk as usize).max(1);
        for chunk in buffer.chunks_mut(chunk) {
            let (random, flat) = chunk.split_at_mut(chunk.len() * (100 - percent) / 100);
            self.random(random);
            if self.content.pattern.is_empty() {
                flat.fill(0);
            } else {
                self.pattern(flat);
            }
        }
    }

    /// Random bytes: xorshift64 (Marsaglia, "Xorshift RNGs", 2003) in parallel
    /// lanes. Good enough that nothing compresses it or finds a block twice.
    #[inline]
    pub(super) fn random(&mut self, buffer: &mut [u8]) {
        if self.wide {
            generate_wide(&mut self.lanes, buffer);
        } else {
            generate(&mut self.lanes, buffer);
        }
    }

    /// Marks every 512 bytes with the offset and a number of their own, so that
    /// no two blocks are alike and deduplication finds nothing. Where they stand is as
    /// in fio (io_u.c, small_content_scramble), so that compression finds as much.
    #[inline]
    fn scramble(&mut self, buffer: &mut [u8], offset: u64) {
        self.counter = self.counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let line = ((self.counter >> 32 ^ offset >> 9) & 7) as usize * 64;
        for (sector, at) in buffer.chunks_exact_mut(512).zip((offset..).step_by(512)) {
            sector[line..line + 8].copy_from_slice(&at.to_ne_bytes());
            sector[48..56].copy_from_slice(&self.counter.to_ne_bytes());
            sector[56..64].copy_from_slice(&self.counter.rotate_left(32).to_ne_bytes());
        }
    }
}

fn lanes(seed: u64) -> [u64; LANES] {
    // xorshift must not start at 0.
    std::array::from_fn(|lane| mix(seed, lane as u64 + 100) | 1)
}

/// The same with vectors of 256 bits: the whole reason why `refill_buffers` is
/// not the limit on a fast device. Only for CPUs that have AVX2.
#[cfg(target_arch = "x86_64")]
fn generate_wide(lanes: &mut [u64; LANES], buffer: &mut [u8]) {
    #[target_feature(enable = "avx2")]
    fn with_avx2(lanes: &mut [u64; LANES], buffer: &mut [u8]) {
        generate(lanes, buffer);
    }
    // SAFETY: called only where `has_avx2` said so.
    unsafe { with_avx2(lanes, buffer) }
}

#[cfg(not(target_arch = "x86_64"))]
fn generate_wide(lanes: &mut [u64; LANES], buffer: &mut [u8]) {
    generate(lanes, buffer);
}

#[inline(always)]
fn generate(state: &mut [u64; LANES], buffer: &mut [u8]) {
    let mut lanes = *state;
    let mut chunks = buffer.chunks_exact_mut(LANES * 8);
    for chunk in &mut chunks {
        step(&mut lanes);
        for (word, lane) in chunk.chunks_exact_mut(8).zip(&lanes) {
            word.copy_from_slice(&lane.to_ne_bytes());
        }
    }
    step(&mut lanes);
    for (word, lane) in chunks.into_remainder().chunks_mut(8).zip(&lanes) {
        word.copy_from_slice(&lane.to_ne_bytes()[..word.len()]);
    }
    *state = lanes;
}

#[inline(always)]
fn step(lanes: &mut [u64; LANES]) {
    for lane in lanes.iter_mut() {
        *lane ^= *lane << 13;
    }
    for lane in lanes.iter_mut() {
        *lane ^= *lane >> 7;
    }
    for lane in lanes.iter_mut() {
        *lane ^= *lane << 17;
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::job::NativeJob;

    fn content() -> Content {
        NativeJob::new("t").content
    }

    #[test]
    fn random_data_has_no_pattern_of_bytes_and_no_block_twice() {
        let mut filler = Filler::new(&content(), 3);
        let mut data = vec![0u8; 1 << 20];
        filler.random(&mut data);
        let mut counts = [0u32; 256];
        data.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
        // 4096 expected; six standard deviations are 384.
        assert!(counts.iter().all(|n| n.abs_diff(4096) < 384), "{counts:?}");
        let blocks: std::collections::HashSet<_> = data.chunks(512).collect();
        assert_eq!(blocks.len(), 2048);
        let mut odd = [0u8; 77];
        filler.random(&mut odd);
        assert!(odd.iter().filter(|&&byte| byte == 0).count() < 5);
    }

    #[test]
    fn scrambled_blocks_differ_and_patterns_stay() {
        let mut filler = Filler::new(&content(), 3);
        let (mut a, mut b) = (vec![7u8; 4096], vec![7u8; 4096]);
        filler.write(&mut a, 0);
        filler.write(&mut b, 0);
        assert!(a.chunks(512).zip(b.chunks(512)).all(|(a, b)| a != b));
        let mut filler = Filler::new(
            &Content {
                pattern: vec![1, 2, 3],
                ..content()
            },
            3,
        );
        let mut data = vec![0u8; 7];
        filler.first(&mut data);
        filler.write(&mut data, 0);
        assert_eq!(data, [1, 2, 3, 1, 2, 3, 1]);
    }

    #[test]
    fn the_compressible_share_of_each_chunk_is_zero() {
        let content = Content {
            refill: true,
            compress_percent: 75,
            ..content()
        };
        let mut filler = Filler::new(&content, 3);
        let mut data = vec![9u8; 4096];
        filler.write(&mut data, 0);
        for chunk in data.chunks(512) {
            assert!(chunk[128..].iter().all(|&byte| byte == 0));
            assert!(chunk[..128].iter().any(|&byte| byte != 0));
        }
    }
}
