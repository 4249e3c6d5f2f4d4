//! When each I/O should begin: rates and think times.

use super::clock::Clock;
use super::job::Pace;
use super::rng::Rng;
use super::stats::Dir;

/// Intended starts of one worker's I/Os, in ticks.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Ticks per byte or per I/O by direction; `None` has no limit.
    rates: [Option<Rate>; 3],
    due: [f64; 3],
    poisson: bool,
    rng: Rng,
}

#[derive(Debug, Clone, Copy)]
enum Rate {
    PerByte(f64),
    PerIo(f64),
}

impl Pacer {
    /// `None` when the job has no rate.
    pub(super) fn new(pace: &Pace, clock: &Clock, seed: u64) -> Option<Self> {
        if !pace.is_rated() {
            return None;
        }
        let second = clock.ticks(1_000_000_000) as f64;
        let rates = Dir::ALL.map(|dir| {
            let per_io = pace.ios_per_second[dir as usize].map(|n| Rate::PerIo(second / n as f64));
            let per_byte =
                pace.bytes_per_second[dir as usize].map(|n| Rate::PerByte(second / n as f64));
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
    pub(super) fn due(&self, dir: Dir) -> Option<u64> {
        self.rates[dir as usize].map(|_| self.due[dir as usize] as u64)
    }

    /// Counts an I/O: the next one of its direction is due later.
    pub(super) fn issued(&mut self, dir: Dir, len: u32) {
        let mean = match self.rates[dir as usize] {
            None => return,
            Some(Rate::PerByte(ticks)) => ticks * f64::from(len),
            Some(Rate::PerIo(ticks)) => ticks,
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
    use crate::native::clock::Anchor;

    #[test]
    fn a_rate_spreads_its_ios_over_the_second() {
        let clock = Anchor::now().clock();
        let ios = [Some(1000); 3];
        let bytes = [Some(1000 * 4096); 3];
        let none = [None; 3];
        let cases = [false, true].map(|poisson| [(ios, none, poisson), (none, bytes, poisson)]);
        for (ios_per_second, bytes_per_second, poisson) in cases.into_iter().flatten() {
            let pace = Pace {
                ios_per_second,
                bytes_per_second,
                poisson,
                ..Pace::default()
            };
            let mut pacer = Pacer::new(&pace, &clock, 1).unwrap();
            pacer.start(0);
            (0..100_000).for_each(|_| pacer.issued(Dir::Read, 4096));
            let seconds = clock.ns(pacer.due(Dir::Read).unwrap()) as f64 / 1e9;
            assert!(
                (seconds - 100.0).abs() < 2.0,
                "poisson {poisson}: {seconds}"
            );
            assert_eq!(pacer.due(Dir::Write), Some(0));
        }
    }
}
