//! cpuio: no I/O, a processor is kept busy (engines/cpu.c).

use std::time::{Duration, Instant};

use super::Io;
use super::one_by_one::Immediate;
use crate::native::job::BurnOptions;
use crate::native::rng::Rng;

/// Numbers that are sorted (engines/cpu.c, qsort_size).
const NUMBERS: usize = 256 << 10;

/// What one worker does in place of an I/O.
#[derive(Debug)]
pub(in crate::native) struct Burner {
    chunk: Duration,
    /// Of cpumode=qsort, and the same in bytes.
    numbers: Vec<i32>,
    bytes: Vec<u8>,
}

impl Burner {
    pub(in crate::native) fn new(options: &BurnOptions) -> Self {
        let count = if options.sorts { NUMBERS } else { 0 };
        let mut rng = Rng::new(1);
        Self {
            chunk: options.chunk,
            numbers: (0..count)
                .map(|_| rng.below(1 << 32) as u32 as i32)
                .collect(),
            bytes: vec![0; count * size_of::<i32>()],
        }
    }

    /// Up, down, by bytes and down again, which leaves work for the next time.
    fn sort(&mut self) {
        self.numbers.sort_unstable();
        self.numbers.sort_unstable_by(|a, b| b.cmp(a));
        let places = self.bytes.chunks_exact_mut(size_of::<i32>());
        for (place, number) in places.zip(&self.numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        self.bytes.sort_unstable();
        self.numbers
            .sort_unstable_by_key(|number| number.rotate_left(16));
    }
}

impl Immediate for Burner {
    fn run(&mut self, _: &Io) -> i64 {
        if self.numbers.is_empty() {
            let until = Instant::now() + self.chunk;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        } else {
            self.sort();
        }
        0
    }
}
