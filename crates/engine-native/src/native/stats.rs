//! What a worker counts while it runs, readable at any time by another thread.
//!
//! Every cell has one writer, its worker, which loads, adds and stores with
//! relaxed ordering: plain instructions, no locked ones. A reader sees each
//! count a little late and never stops the I/O; differences of two readings
//! are the interval's figures.

use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering::Relaxed};

use fathom_model::Histogram;
use fathom_model::histogram::{BUCKETS, bucket_of, middle_of};

use super::job::NativeJob;
use super::slot::SlotCell;

/// Adds to a cell of which the caller is the only writer.
#[inline]
pub(super) fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

/// A latency histogram and the exact sum, minimum and maximum.
#[derive(Debug)]
pub(super) struct AtomicHistogram {
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

impl AtomicHistogram {
    pub(super) fn new() -> Self {
        Self {
            counts: std::iter::repeat_with(|| AtomicU64::new(0))
                .take(BUCKETS)
                .collect(),
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
        }
    }

    /// Adds `n` values of `ns`.
    #[inline]
    pub(super) fn add(&self, ns: u64, n: u64) {
        bump(&self.counts[bucket_of(ns)], n);
        bump(&self.sum, ns.wrapping_mul(n));
        if ns < self.min.load(Relaxed) {
            self.min.store(ns, Relaxed);
        }
        if ns > self.max.load(Relaxed) {
            self.max.store(ns, Relaxed);
        }
    }

    /// Counts `n` I/Os that are not measured.
    #[inline]
    pub(super) fn count(&self, n: u64) {
        bump(&self.counts[0], n);
    }

    fn reset(&self) {
        self.counts.iter().for_each(|count| count.store(0, Relaxed));
        self.sum.store(0, Relaxed);
        self.min.store(u64::MAX, Relaxed);
        self.max.store(0, Relaxed);
    }

    pub(super) fn read(&self) -> LatencyReading {
        let mut histogram = Histogram::new();
        for (bucket, cell) in self.counts.iter().enumerate() {
            let count = cell.load(Relaxed);
            if count > 0 {
                histogram.add(middle_of(bucket), count);
            }
        }
        LatencyReading {
            histogram,
            sum_ns: u128::from(self.sum.load(Relaxed)),
            min_ns: self.min.load(Relaxed),
            max_ns: self.max.load(Relaxed),
        }
    }
}

/// A state of [`AtomicHistogram`], or of several merged.
#[derive(Debug, Clone)]
pub(super) struct LatencyReading {
    pub(super) histogram: Histogram,
    pub(super) sum_ns: u128,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
}

impl Default for LatencyReading {
    fn default() -> Self {
        Self {
            histogram: Histogram::new(),
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl LatencyReading {
    pub(super) fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// One direction of one worker.
#[derive(Debug)]
#[repr(C)]
pub(super) struct DirStats {
    pub(super) bytes: AtomicU64,
    /// Completion latencies, one histogram for each priority the job uses.
    pub(super) clat: Vec<AtomicHistogram>,
    pub(super) lat: AtomicHistogram,
    /// The same by priority, where the percentiles are to be of it; else empty.
    pub(super) lat_of: Vec<AtomicHistogram>,
    pub(super) slat: AtomicHistogram,
    /// Under a rate: how far each I/O began behind its intended start.
    pub(super) lag: Option<AtomicHistogram>,
    pub(super) short: AtomicU64,
    /// I/Os that failed and were gone past.
    pub(super) errors: AtomicU64,
}

impl DirStats {
    /// All completion latencies, whatever their priority.
    pub(super) fn clat(&self) -> LatencyReading {
        let mut all = LatencyReading::default();
        for cells in &self.clat {
            all.merge(&cells.read());
        }
        all
    }
}

/// Where a worker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub(super) enum WorkerPhase {
    /// Opening files, allocating.
    Setup = 0,
    /// Before the start, and in its ramp: nothing counts yet.
    Ramp = 1,
    /// Measured.
    Running = 2,
    /// At its end.
    Done = 3,
}

/// fio's classes of the queue depth: 1, 2, 4 … 32, 64 and more.
pub(super) const DEPTH_CLASSES: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];

/// How many batches held none, up to 4, 8, 16, 32, 64 and more I/Os: fio's
/// classes of submissions and completions (io_u.c, io_u_mark_submit).
#[derive(Debug, Default)]
pub(super) struct Batches([AtomicU64; 7]);

impl Batches {
    #[inline]
    pub(super) fn add(&self, ios: usize) {
        let class = match ios {
            0 => 0,
            1..=4 => 1,
            5..=64 => (usize::BITS - (ios - 1).leading_zeros()) as usize - 1,
            _ => 6,
        };
        bump(&self.0[class], 1);
    }

    pub(super) fn read(&self) -> [u64; 7] {
        std::array::from_fn(|class| self.0[class].load(Relaxed))
    }
}

/// Everything one worker counts.
#[derive(Debug)]
#[repr(C)] // what each I/O counts stands together, as in `Worker`
pub(super) struct WorkerStats {
    /// The I/Os under way, for whoever looks for stuck ones.
    pub(super) slots: Box<[SlotCell]>,
    /// Bytes asked for so far, of which the progress is told.
    pub(super) issued_bytes: AtomicU64,
    pub(super) depths: [AtomicU64; DEPTH_CLASSES.len()],
    /// Batches by their size: handed over, and taken back.
    pub(super) submits: Batches,
    pub(super) completes: Batches,
    pub(super) dirs: [Option<DirStats>; 3],
    phase: AtomicU8,
    pub(super) sync: AtomicHistogram,
    /// I/Os that failed and were gone past.
    pub(super) errors: AtomicU64,
    /// The first of them, or the one that ended the job.
    pub(super) first_error: AtomicI32,
    /// Ticks at which measuring began and ended (0: not yet).
    pub(super) began: AtomicU64,
    pub(super) ended: AtomicU64,
    /// Ticks spent reading back what was written, and since when it goes on
    /// (0: it does not).
    pub(super) read_back: AtomicU64,
    pub(super) read_back_since: AtomicU64,
    /// Zones that were emptied.
    pub(super) zone_resets: AtomicU64,
    /// The depth that a search for one has come to.
    pub(super) found_depth: AtomicU64,
}

impl WorkerStats {
    /// Cells for the directions a job uses, `classes` priorities and `depth` slots.
    pub(super) fn new(job: &NativeJob, classes: usize, depth: usize) -> Self {
        Self {
            phase: AtomicU8::new(WorkerPhase::Setup as u8),
            dirs: job.counted().map(|used| {
                used.then(|| DirStats {
                    bytes: AtomicU64::new(0),
                    short: AtomicU64::new(0),
                    errors: AtomicU64::new(0),
                    clat: std::iter::repeat_with(AtomicHistogram::new)
                        .take(classes)
                        .collect(),
                    lat: AtomicHistogram::new(),
                    lat_of: match classes > 1 && job.show.lat_percentiles {
                        true => std::iter::repeat_with(AtomicHistogram::new)
                            .take(classes)
                            .collect(),
                        false => Vec::new(),
                    },
                    slat: AtomicHistogram::new(),
                    lag: job.pace.is_rated().then(AtomicHistogram::new),
                })
            }),
            sync: AtomicHistogram::new(),
            depths: Default::default(),
            submits: Batches::default(),
            completes: Batches::default(),
            errors: AtomicU64::new(0),
            first_error: AtomicI32::new(0),
            issued_bytes: AtomicU64::new(0),
            began: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            read_back: AtomicU64::new(0),
            read_back_since: AtomicU64::new(0),
            zone_resets: AtomicU64::new(0),
            found_depth: AtomicU64::new(1),
            slots: std::iter::repeat_with(SlotCell::default)
                .take(depth)
                .collect(),
        }
    }

    /// Forgets what was measured so far; only its worker may. A reader in between sees
    /// some of it gone.
    pub(super) fn reset(&self) {
        for dir in self.dirs.iter().flatten() {
            dir.bytes.store(0, Relaxed);
            dir.short.store(0, Relaxed);
            let lag = dir.lag.iter();
            dir.clat
                .iter()
                .chain(&dir.lat_of)
                .chain([&dir.lat, &dir.slat])
                .chain(lag)
                .for_each(AtomicHistogram::reset);
        }
        self.sync.reset();
        let batches = self.submits.0.iter().chain(&self.completes.0);
        self.depths
            .iter()
            .chain(batches)
            .for_each(|cell| cell.store(0, Relaxed));
    }

    pub(super) fn phase(&self) -> WorkerPhase {
        match self.phase.load(Relaxed) {
            0 => WorkerPhase::Setup,
            1 => WorkerPhase::Ramp,
            2 => WorkerPhase::Running,
            _ => WorkerPhase::Done,
        }
    }

    pub(super) fn set_phase(&self, phase: WorkerPhase) {
        self.phase.store(phase as u8, Relaxed);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking
mod tests {
    use super::*;

    #[test]
    fn cells_count_as_the_model_does() {
        let cells = AtomicHistogram::new();
        let mut exact = Histogram::new();
        for ns in (0..200u64).chain([999, 1 << 20, 1 << 34, 1 << 40, u64::MAX]) {
            cells.add(ns, 2);
            exact.add(ns, 2);
        }
        let reading = cells.read();
        assert_eq!(reading.histogram, exact);
        assert_eq!((reading.min_ns, reading.max_ns), (0, u64::MAX));
    }

    #[test]
    fn batches_fall_into_fios_classes() {
        let batches = Batches::default();
        for ios in [0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 1000] {
            batches.add(ios);
        }
        assert_eq!(batches.read(), [1, 2, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn a_reader_gets_deltas_while_the_writer_goes_on() {
        let cells = AtomicHistogram::new();
        let before = cells.read();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100_000u64).for_each(|i| cells.add(i % 5000, 1)));
            let mut last = before.histogram.clone();
            let mut sum = 0;
            loop {
                let now = cells.read().histogram;
                sum += now.since(&last).total();
                last = now;
                if sum >= 100_000 {
                    break;
                }
            }
            assert_eq!(sum, 100_000);
        });
    }
}
