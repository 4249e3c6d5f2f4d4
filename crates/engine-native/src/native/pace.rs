//! When each I/O should begin: rates and think times.

use super::clock::TickClock;
use super::job::{DirIndex, RateOptions, Sizes};
use super::rng::Rng;

/// Intended starts of one worker's I/Os, in ticks.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Ticks per byte or per I/O by direction; `None` has no limit.
    rates: [Option<PacedRate>; 3],
    due: [f64; 3],
    poisson: bool,
    rng: Rng,
}

#[derive(Debug, Clone, Copy)]
enum PacedRate {
    PerByte(f64),
    PerIo(f64),
}

impl Pacer {
    /// `None` when the job has no rate. With blocks of several sizes a rate of I/Os
    /// is one of bytes, and the smallest block is what counts (fio's HOWTO,
    /// `rate_iops`).
    pub(super) fn new(
        pace: &RateOptions,
        sizes: &[Sizes; 3],
        clock: &TickClock,
        seed: u64,
    ) -> Option<Self> {
        if !pace.is_rated() {
            return None;
        }
        let second = clock.ticks(1_000_000_000) as f64;
        let rates = DirIndex::ALL.map(|dir| {
            let per_io = pace.ios_per_second[dir as usize].map(|n| {
                let ticks = second / n as f64;
                match &sizes[dir as usize] {
                    Sizes::Fixed(_) => PacedRate::PerIo(ticks),
                    several => PacedRate::PerByte(ticks / f64::from(several.min().max(1))),
                }
            });
            let per_byte =
                pace.bytes_per_second[dir as usize].map(|n| PacedRate::PerByte(second / n as f64));
            per_io.or(per_byte)
        });
        Some(Self {
            rates,
            due: [0.0; 3],
            poisson: pace.poisson,
            rng: Rng::new(seed),
        })
    }

    /// The first I/Os are due at `now`.
    pub(super) fn start(&mut self, now: u64) {
        self.due = [now as f64; 3];
    }

    /// When this direction's next I/O is due; `None` is at once.
    pub(super) fn due(&self, dir: DirIndex) -> Option<u64> {
        self.rates[dir as usize].map(|_| self.due[dir as usize] as u64)
    }

    /// All that is to come is due so much later.
    pub(super) fn put_off(&mut self, ticks: u64) {
        self.due.iter_mut().for_each(|due| *due += ticks as f64);
    }

    /// Counts an I/O: the next one of its direction is due later.
    pub(super) fn issued(&mut self, dir: DirIndex, len: u32) {
        let mean = match self.rates[dir as usize] {
            None => return,
            Some(PacedRate::PerByte(ticks)) => ticks * f64::from(len),
            Some(PacedRate::PerIo(ticks)) => ticks,
        };
        // Exponential gaps make a Poisson process.
        self.due[dir as usize] += match self.poisson {
            true => -mean * (1.0 - self.rng.unit()).ln(),
            false => mean,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::clock::ClockAnchor;

    const FIXED: [Sizes; 3] = [const { Sizes::Fixed(4096) }; 3];

    #[test]
    fn under_a_range_of_sizes_a_rate_of_ios_is_one_of_smallest_blocks() {
        let clock = ClockAnchor::now().clock();
        let pace = RateOptions {
            ios_per_second: [Some(60); 3],
            ..RateOptions::default()
        };
        let sizes = [const { Sizes::Range(4096, 65536) }; 3];
        let mut pacer = Pacer::new(&pace, &sizes, &clock, 1).unwrap();
        pacer.start(0);
        // 60 × 4 KiB a second: 240 KiB/s, whatever the blocks.
        for _ in 0..(60 / 16) * 4 {
            pacer.issued(DirIndex::Read, 65536);
        }
        let seconds = clock.ns(pacer.due(DirIndex::Read).unwrap()) as f64 / 1e9;
        let bytes = f64::from((60 / 16) * 4) * 65536.0;
        assert!((bytes / seconds - 240.0 * 1024.0).abs() < 1.0, "{seconds}");
    }

    #[test]
    fn a_rate_spreads_its_ios_over_the_second() {
        let clock = ClockAnchor::now().clock();
        let ios = [Some(1000); 3];
        let bytes = [Some(1000 * 4096); 3];
        let none = [None; 3];
        let cases = [false, true].map(|poisson| [(ios, none, poisson), (none, bytes, poisson)]);
        for (ios_per_second, bytes_per_second, poisson) in cases.into_iter().flatten() {
            let pace = RateOptions {
                ios_per_second,
                bytes_per_second,
                poisson,
                ..RateOptions::default()
            };
            let mut pacer = Pacer::new(&pace, &FIXED, &clock, 1).unwrap();
            pacer.start(0);
            (0..100_000).for_each(|_| pacer.issued(DirIndex::Read, 4096));
            let seconds = clock.ns(pacer.due(DirIndex::Read).unwrap()) as f64 / 1e9;
            assert!(
                (seconds - 100.0).abs() < 2.0,
                "poisson {poisson}: {seconds}"
            );
            assert_eq!(pacer.due(DirIndex::Write), Some(0));
        }
    }
}
