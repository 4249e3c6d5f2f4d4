//! Samples: known content all over a device before a purge, looked for after it.
//!
//! The device is cut into as many strips as there are samples, and each has one
//! at a place that follows from a seed; the first and the last block are
//! samples besides. So a connected left-over of two strips' length cannot be
//! missed, and one that is scattered over a share f of the device is missed
//! with a probability of at most (1 - f)^n: the product of the shares that
//! strips have without it is largest where all are alike.

use std::io;
use std::path::Path;

use fathom_model::mix::mix;
use fathom_model::{ExpectedContent, Verification};

use crate::direct::{self, Buffer, Direct};

/// Size of a sample where the blocks of the device are no larger: what most
/// drives map (a page of the kernel, too).
const SAMPLE: u32 = 4096;
const SECTOR: usize = 512;
/// What every sector of a sample begins with, before the nonce and its place.
const MAGIC: &[u8; 8] = b"FTHMPURG";
const HEAD: usize = 32;
/// Places of broken promises that are told.
const TOLD_MAX: usize = 16;

/// The samples of one purge.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    seed: u64,
    nonce: [u8; 16],
    /// Size of the device in bytes.
    size: u64,
    bytes: u32,
    places: Vec<u64>,
    strips: u64,
}

/// What a sample was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SampleState {
    Zeros,
    Ones,
    Written,
    Other,
    Kept,
}

impl Samples {
    /// Chooses places on a device of `size` bytes with blocks of `block` bytes.
    pub(super) fn choose(size: u64, block: u32, wanted: u64) -> io::Result<Self> {
        let mut random = [0; 24];
        let source = std::fs::File::open("/dev/urandom")?;
        io::Read::read_exact(&mut &source, &mut random)?;
        let mut nonce = [0; 16];
        nonce.copy_from_slice(&random[..16]);
        let seed = random[16..]
            .iter()
            .fold(0, |all, &byte| all << 8 | u64::from(byte));
        let bytes = SAMPLE.max(block);
        let (places, strips) = places(seed, size, bytes, block, wanted);
        Ok(Self {
            seed,
            nonce,
            size,
            bytes,
            places,
            strips,
        })
    }

    /// How many.
    pub(super) fn count(&self) -> u64 {
        self.places.len() as u64
    }

    /// Bytes that all of them have.
    pub(super) fn total_bytes(&self) -> u64 {
        self.count() * u64::from(self.bytes)
    }

    /// A seed for other bytes than those of the samples.
    pub(super) fn other_seed(&self) -> u64 {
        mix(!self.seed, 0)
    }

    /// Size of one in bytes.
    pub(super) fn sample_bytes(&self) -> u32 {
        self.bytes
    }

    /// What stands at a place.
    fn content(&self, at: u64, bytes: &mut [u8]) {
        direct::fill(self.seed, at, bytes);
        for (sector, place) in bytes.chunks_mut(SECTOR).zip((at..).step_by(SECTOR)) {
            sector[..8].copy_from_slice(MAGIC);
            sector[8..24].copy_from_slice(&self.nonce);
            sector[24..HEAD].copy_from_slice(&place.to_le_bytes());
        }
    }

    /// Writes all of them, through the device's cache, and reads them back: what
    /// is not there before a purge proves nothing after it.
    ///
    /// # Errors
    /// Those of the device, and a sample that reads back as something else; with
    /// its place.
    pub(super) fn write(
        &self,
        path: &Path,
        part: &mut dyn FnMut(f64),
    ) -> Result<(), (u64, io::Error)> {
        let device = Direct::open(path, true).map_err(|error| (0, error))?;
        let mut buffer = Buffer::new(self.bytes as usize);
        for (number, &at) in self.places.iter().enumerate() {
            self.content(at, buffer.get());
            device
                .write(buffer.get(), at)
                .map_err(|error| (at, error))?;
            part(0.5 * number as f64 / self.places.len() as f64);
        }
        device.flush().map_err(|error| (0, error))?;
        let mut expected = vec![0; self.bytes as usize];
        for (number, &at) in self.places.iter().enumerate() {
            device.read(buffer.get(), at).map_err(|error| (at, error))?;
            self.content(at, &mut expected);
            if buffer.get() != &expected[..] {
                let what = "it does not read back what was just written";
                return Err((at, io::Error::other(what)));
            }
            part(0.5 + 0.5 * number as f64 / self.places.len() as f64);
        }
        Ok(())
    }

    /// Looks for all of them on the device as it is now: of `size` bytes in
    /// blocks of `block`. `over`: the seed of what Fathom wrote over everything.
    ///
    /// # Errors
    /// When the device cannot be opened; one that cannot be read is a finding.
    pub(super) fn look(
        &self,
        path: &Path,
        (size, block): (u64, u32),
        promise: ExpectedContent,
        over: Option<u64>,
        part: &mut dyn FnMut(f64),
    ) -> io::Result<Verification> {
        let device = Direct::open(path, false)?;
        let mut seen = self.nothing_seen(promise);
        // A block may have become larger than where a sample begins and ends.
        let block = u64::from(block.max(1));
        let mut buffer = Buffer::new((u64::from(self.bytes) + 2 * block) as usize);
        for (number, &at) in self.places.iter().enumerate() {
            part(number as f64 / self.places.len() as f64);
            if at + u64::from(self.bytes) > size {
                seen.beyond += 1;
                continue;
            }
            let from = at / block * block;
            let to = (at + u64::from(self.bytes)).next_multiple_of(block);
            let whole = &mut buffer.get()[..(to - from) as usize];
            let found = match device.read(whole, from) {
                Ok(()) => {
                    let own = &whole[(at - from) as usize..][..self.bytes as usize];
                    Some(self.judge(own, at, over))
                }
                Err(_) => None,
            };
            let count = match found {
                Some(SampleState::Zeros) => &mut seen.zeros,
                Some(SampleState::Ones) => &mut seen.ones,
                Some(SampleState::Written) => &mut seen.written,
                Some(SampleState::Other) => &mut seen.other,
                Some(SampleState::Kept) => &mut seen.kept,
                None => &mut seen.unreadable,
            };
            *count += 1;
            let as_promised = match (promise, found) {
                (_, None | Some(SampleState::Kept)) => false,
                (ExpectedContent::Gone, _) => true,
                (ExpectedContent::Zeros, found) => found == Some(SampleState::Zeros),
                (ExpectedContent::Written, found) => found == Some(SampleState::Written),
            };
            if !as_promised && seen.broken_at.len() < TOLD_MAX {
                seen.broken_at.push(at);
            }
        }
        Ok(seen)
    }

    fn nothing_seen(&self, promise: ExpectedContent) -> Verification {
        let strip = self.size.div_ceil(self.strips.max(1));
        Verification {
            promise,
            seed: self.seed,
            sample_bytes: self.bytes,
            samples: self.count(),
            zeros: 0,
            ones: 0,
            written: 0,
            other: 0,
            kept: 0,
            unreadable: 0,
            beyond: 0,
            broken_at: Vec::new(),
            seen_percent: 100.0 * (self.total_bytes() as f64 / self.size as f64).min(1.0),
            stretch_bytes: (2 * strip).min(self.size),
            // (1 - f)^n = 1 %.
            scattered_percent: 100.0 * (1.0 - 0.01f64.powf(1.0 / self.strips.max(1) as f64)),
        }
    }

    fn judge(&self, bytes: &[u8], at: u64, over: Option<u64>) -> SampleState {
        let mut expected = vec![0; bytes.len()];
        self.content(at, &mut expected);
        // One sector is enough, from whatever place it comes.
        let kept = |(sector, own): (&[u8], &[u8])| {
            (&sector[..8] == MAGIC && sector[8..24] == self.nonce) || sector[HEAD..] == own[HEAD..]
        };
        if bytes.chunks(SECTOR).zip(expected.chunks(SECTOR)).any(kept) {
            return SampleState::Kept;
        }
        let all = |value: u8| bytes.iter().all(|&byte| byte == value);
        if all(0) {
            return SampleState::Zeros;
        }
        if all(0xff) {
            return SampleState::Ones;
        }
        if let Some(seed) = over {
            direct::fill(seed, at, &mut expected);
            if bytes == expected {
                return SampleState::Written;
            }
        }
        SampleState::Other
    }
}

/// Where samples stand, in order, and into how many strips the device was cut.
fn places(seed: u64, size: u64, bytes: u32, block: u32, wanted: u64) -> (Vec<u64>, u64) {
    let bytes = u64::from(bytes);
    let slots = size / bytes;
    let strips = wanted.clamp(1, slots.max(1));
    let mut places = vec![0];
    for strip in 0..strips {
        let from = (u128::from(strip) * u128::from(slots) / u128::from(strips)) as u64;
        let to = (u128::from(strip + 1) * u128::from(slots) / u128::from(strips)) as u64;
        let room = to.saturating_sub(from).max(1);
        places.push((from + mix(seed, strip) % room) * bytes);
    }
    let block = u64::from(block.max(512));
    places.push(size.saturating_sub(bytes) / block * block);
    places.sort_unstable();
    // The last block may lie across the one before it.
    let mut end = 0;
    let mut apart = Vec::with_capacity(places.len());
    for at in places {
        if (apart.is_empty() || at >= end) && at + bytes <= size {
            apart.push(at);
            end = at + bytes;
        }
    }
    (apart, strips)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_cover_begin_end_and_every_strip_and_never_overlap() {
        for (size, wanted) in [
            (64 << 20, 1024),
            (12_288, 1024),
            (4096, 8),
            (1u64 << 43, 1024),
            (1_000_448, 7),
        ] {
            let (places, strips) = places(7, size, 4096, 512, wanted);
            assert_eq!(places[0], 0, "{size}");
            assert!(
                places.windows(2).all(|two| two[0] + 4096 <= two[1]),
                "{size}"
            );
            let last = places[places.len() - 1] + 4096;
            assert!(last <= size && size - last < 4096, "{size}: {last}");
            assert!(places.len() as u64 >= strips.min(wanted), "{size}");
            assert!(places.len() as u64 <= wanted + 2, "{size}");
        }
    }

    #[test]
    fn one_sector_left_is_a_sample_left() {
        let samples = Samples::choose(1 << 20, 512, 16).unwrap();
        let mut block = vec![0; 4096];
        let judge = |block: &[u8]| samples.judge(block, 8192, Some(99));
        assert_eq!(judge(&block), SampleState::Zeros);
        let mut content = vec![0; 4096];
        samples.content(8192, &mut content);
        assert_eq!(judge(&content), SampleState::Kept);
        block[512..1024].copy_from_slice(&content[512..1024]);
        assert_eq!(judge(&block), SampleState::Kept);
        // One whose head was overwritten; one that has wandered here.
        block[512..544].fill(0);
        assert_eq!(judge(&block), SampleState::Kept);
        samples.content(0, &mut block);
        assert_eq!(judge(&block), SampleState::Kept);
        direct::fill(99, 8192, &mut block);
        assert_eq!(judge(&block), SampleState::Written);
        block.fill(0xff);
        assert_eq!(judge(&block), SampleState::Ones);
        block[77] = 1;
        assert_eq!(judge(&block), SampleState::Other);
    }
}
