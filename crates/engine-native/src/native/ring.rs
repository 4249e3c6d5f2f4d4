//! From a worker to the writers of its logs: a ring with one writer and one
//! reader, so that the I/O loop writes no file and takes no lock.

use std::marker::PhantomData;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::job::DirIndex;
use super::stats::bump;

/// I/Os the ring holds: at 20 ms between two readings enough for 3 M IOPS.
const ENTRIES: usize = 1 << 16;

/// One I/O as the logs see it; times in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Logged {
    /// Since the worker's start.
    pub(super) at_ns: u64,
    pub(super) slat_ns: u64,
    pub(super) clat_ns: u64,
    pub(super) lat_ns: u64,
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) dir: DirIndex,
    /// Kernel value.
    pub(super) priority: u16,
}

/// What a ring holds, as the numbers it is kept in.
pub(super) trait RingEntry {
    fn cells(&self) -> [u64; 6];
    fn of(cells: [u64; 6]) -> Self;
}

impl RingEntry for Logged {
    fn cells(&self) -> [u64; 6] {
        [
            self.at_ns,
            self.slat_ns,
            self.clat_ns,
            self.lat_ns,
            self.offset,
            u64::from(self.len) | (self.dir as u64) << 32 | u64::from(self.priority) << 40,
        ]
    }

    fn of([at_ns, slat_ns, clat_ns, lat_ns, offset, rest]: [u64; 6]) -> Self {
        Self {
            at_ns,
            slat_ns,
            clat_ns,
            lat_ns,
            offset,
            len: rest as u32,
            dir: DirIndex::ALL[(rest >> 32 & 3) as usize % 3],
            priority: (rest >> 40) as u16,
        }
    }
}

#[derive(Debug, Default)]
struct RingCell([AtomicU64; 6]);

/// The ring.
#[derive(Debug)]
pub(super) struct Ring<T> {
    holds: PhantomData<fn() -> T>,
    cells: Box<[RingCell]>,
    written: AtomicU64,
    read: AtomicU64,
    /// How often the worker had to wait for room.
    pub(super) waits: AtomicU64,
}

impl<T: RingEntry> Ring<T> {
    pub(super) fn new() -> Self {
        Self {
            holds: PhantomData,
            cells: std::iter::repeat_with(RingCell::default)
                .take(ENTRIES)
                .collect(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            waits: AtomicU64::new(0),
        }
    }

    /// Puts an I/O in. Waits for room rather than lose it, unless nobody reads
    /// any more (`gone`).
    pub(super) fn put(&self, entry: &T, gone: impl Fn() -> bool) {
        let written = self.written.load(Relaxed);
        if written - self.read.load(Acquire) >= ENTRIES as u64 {
            bump(&self.waits, 1);
            while written - self.read.load(Acquire) >= ENTRIES as u64 {
                if gone() {
                    return;
                }
                std::thread::yield_now();
            }
        }
        let RingCell(cells) = &self.cells[written as usize % ENTRIES];
        for (cell, value) in cells.iter().zip(entry.cells()) {
            cell.store(value, Relaxed);
        }
        self.written.store(written + 1, Release);
    }

    /// Takes everything out, oldest first.
    pub(super) fn drain(&self, mut take: impl FnMut(T)) {
        let written = self.written.load(Acquire);
        let mut read = self.read.load(Relaxed);
        while read < written {
            let RingCell(cells) = &self.cells[read as usize % ENTRIES];
            take(T::of(std::array::from_fn(|field| {
                cells[field].load(Relaxed)
            })));
            read += 1;
        }
        self.read.store(read, Release);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking
mod tests {
    use super::*;

    #[test]
    fn everything_comes_out_once_and_in_order() {
        let ring = Ring::new();
        let total = 3 * ENTRIES as u64;
        let entry = |n: u64| Logged {
            at_ns: n,
            slat_ns: 1,
            clat_ns: 2,
            lat_ns: 3,
            offset: n * 4096,
            len: 4096,
            dir: DirIndex::ALL[(n % 3) as usize],
            priority: 0x2003,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| (0..total).for_each(|n| ring.put(&entry(n), || false)));
            let mut next = 0;
            while next < total {
                ring.drain(|logged| {
                    assert_eq!(logged, entry(next));
                    next += 1;
                });
            }
        });
    }
}
