//! The I/O loop of one worker.
//!
//! After its start it allocates nothing, takes no lock (but that of a zoned device's
//! table of zones) and writes no log: it
//! draws I/Os, hands them over in batches, takes completions in batches and
//! counts them in [`WorkerStats`]. Time is read once after completions and, where it
//! matters, once when a batch is handed over.

mod done;
mod draw;
mod flow;
mod limits;
mod ranges;
mod read_back;
mod search;
mod think;
mod zoned;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use fathom_model::{Failure, FailureKind};

use crate::native::backend::{Backend, CompletedIo, Op, OpenFile};
use crate::native::buffer::Buffers;
use crate::native::clock::TickClock;
use crate::native::data::Filler;
use crate::native::files::MemberFiles;
use crate::native::iolog_file::IssuedIo;
use crate::native::job::{DirIndex, IoEngine, Measures, NativeJob};
use crate::native::pace::Pacer;
use crate::native::prio::PriorityDraw;
use crate::native::replay::ReplaySource;
use crate::native::ring::{Logged, Ring};
use crate::native::rng::{Rng, mix};
use crate::native::slot::{InFlight, SlotCell};
use crate::native::source::{IoSource, NextIo};
use crate::native::stats::{DEPTH_CLASSES, WorkerPhase, WorkerStats, bump};
pub(super) use flow::{FlowGroup, FlowShare};
use limits::BatchLimits;
use ranges::SyncRanges;
use read_back::Verifier;
use search::{DepthSearch, SearchStep};
use think::Thinking;
use zoned::ZonedPart;

/// Longest sleep without a look at the stop flag.
const NAP: Duration = Duration::from_millis(20);
/// Below this a wait is spun: a sleeping thread wakes up some 60 µs late
/// (the kernel's default timer slack is 50 µs, kernel/sched/core.c).
const SPIN: Duration = Duration::from_micros(120);

/// Everything a worker needs; made before the start.
///
/// What the loop of a plain job touches stands first, as declared: between two I/Os the
/// kernel and the copies of their data push it out of the nearest cache, and each line
/// that comes back costs as much as what is done with it.
#[repr(C)]
pub(super) struct Worker {
    stats: Arc<WorkerStats>,
    clock: TickClock,
    stop: Arc<AtomicBool>,
    /// Slots without an I/O.
    free: Vec<u32>,
    /// Slots pushed since the last submission.
    batch: Vec<u32>,
    done: Vec<CompletedIo>,
    depth: usize,
    limits: BatchLimits,
    /// Nothing but its pattern says which I/O comes next, and nobody but its figures
    /// wants to know what is over.
    plain: bool,
    /// Reads the clock when a batch is handed over: preparing it took time.
    stamps: bool,
    /// The submission is what takes the time: it is slat, as fio counts it.
    submits_slowly: bool,
    measures: Measures,
    draining: bool,
    measuring: bool,
    /// Directions in which an I/O may begin: what replays a log follows the log.
    permitted: [bool; 3],
    issued_bytes: u64,
    issued_ios: u64,
    /// Bytes and I/Os that end it.
    most_bytes: u64,
    most_ios: u64,
    /// Bytes left of this pass.
    pass_left: u64,
    /// Bytes at its end that no block may fit in.
    slack: u64,
    ramp_end: u64,
    end: u64,
    /// Ticks after which an I/O fails the job, by direction.
    max_latency: [u64; 3],
    buffers: Buffers,
    classes: Arc<PriorityDraw>,
    source: IoSource,
    filler: Filler,
    /// Writes since the last fsync and fdatasync.
    writes_since: [u64; 2],
    rng: Rng,
    job: Arc<NativeJob>,
    plan: Arc<MemberFiles>,
    targets: Vec<OpenFile>,
    verify: Option<Verifier>,
    pacer: Option<Pacer>,
    /// fsync or fdatasync that are due, per file.
    sync_due: Option<(Op, u32)>,
    ranges: Option<SyncRanges>,
    thinking: Option<Thinking>,
    failure: Option<Failure>,
    ring: Option<Arc<Ring<Logged>>>,
    iolog: Option<Arc<Ring<IssuedIo>>>,
    /// read_iolog: where its I/Os come from instead of `source`.
    replay: Option<ReplaySource>,
    flow: Option<FlowShare>,
    /// zonemode=zbd: the zones of its files.
    zoned: Option<ZonedPart>,
    /// latency_target: how deep the queue may be.
    search: Option<DepthSearch>,
    /// Nothing begins until the queue is empty, then the figures may begin anew.
    quiesce: Option<SearchStep>,
    /// An I/O that waits for another in its range (serialize_overlap), or for a zone.
    held: Option<NextIo>,
    /// When the measurement began: the logs' times count from there.
    began: u64,
    /// When the worker began: the times of write_iolog do.
    started: u64,
}

/// What a worker is made of, apart from the job.
pub(super) struct WorkerParts {
    pub(super) job: Arc<NativeJob>,
    pub(super) plan: Arc<MemberFiles>,
    pub(super) stats: Arc<WorkerStats>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) clock: TickClock,
    pub(super) classes: Arc<PriorityDraw>,
    pub(super) targets: Vec<OpenFile>,
    pub(super) seed: u64,
    /// What the duplicates of its data are made of, the first is its own.
    pub(super) data_seeds: Vec<u64>,
    pub(super) ring: Option<Arc<Ring<Logged>>>,
    pub(super) iolog: Option<Arc<Ring<IssuedIo>>>,
    pub(super) flow: Option<FlowShare>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.leaves_ios_behind() {
            self.buffers.keep();
        }
    }
}

impl Worker {
    pub(super) fn new(parts: WorkerParts) -> std::io::Result<Self> {
        let WorkerParts {
            job,
            plan,
            stats,
            stop,
            clock,
            classes,
            targets,
            seed,
            data_seeds,
            ring,
            iolog,
            flow,
        } = parts;
        let depth = job.depth() as usize;
        let mut buffers = Buffers::new(depth, job.pattern.max_block() as usize, &job.memory)?;
        let filler = filler(&job, &plan, (seed, data_seeds), &mut buffers);
        let (most_bytes, most_ios) = ends(&job, &plan);
        let worker = Self {
            verify: Verifier::new(&job, &plan)?,
            source: IoSource::new(&job, &plan, mix(seed, 2)),
            pacer: Pacer::new(&job.pace, &job.pattern.paced_sizes(), &clock, mix(seed, 3)),
            rng: Rng::new(mix(seed, 4)),
            free: (0..depth as u32).rev().collect(),
            batch: Vec::with_capacity(depth),
            done: Vec::with_capacity(depth),
            stamps: depth > 1 || (job.writes() && filler.works_per_write()),
            sync_due: None,
            ranges: SyncRanges::new(&job.files, plan.files.len()),
            writes_since: [0; 2],
            issued_bytes: 0,
            issued_ios: 0,
            thinking: Thinking::new(&job.pace, &clock),
            pass_left: plan.pass_bytes,
            slack: job.pattern.slack(),
            ramp_end: 0,
            end: u64::MAX,
            draining: false,
            measuring: false,
            permitted: [false; 3],
            failure: None,
            ring,
            iolog,
            replay: ReplaySource::new(&job, &plan),
            flow,
            zoned: ZonedPart::new(&job, &plan),
            search: DepthSearch::new(&job.latency, depth, &clock),
            quiesce: None,
            held: None,
            max_latency: latency_limits(&job, &clock),
            began: 0,
            started: 0,
            limits: BatchLimits::of(&job, depth),
            submits_slowly: job.engine == IoEngine::Libaio,
            most_bytes,
            most_ios,
            plain: false,
            measures: job.measures(),
            depth,
            job,
            plan,
            stats,
            stop,
            clock,
            targets,
            buffers,
            filler,
            classes,
        };
        Ok(worker.settled())
    }

    /// With what follows from the rest of it.
    fn settled(mut self) -> Self {
        let pattern = &self.job.pattern;
        let may = |dir| self.replay.is_some() || pattern.has_share(dir);
        self.permitted = DirIndex::ALL.map(may);
        self.plain = self.is_plain();
        self
    }

    fn is_plain(&self) -> bool {
        let files = &self.job.files;
        self.verify.is_none()
            && self.replay.is_none()
            && self.zoned.is_none()
            && self.ranges.is_none()
            && self.thinking.is_none()
            && self.search.is_none()
            && self.flow.is_none()
            && self.pacer.is_none()
            && self.ring.is_none()
            && self.iolog.is_none()
            && !self.job.queue.no_overlap
            && files.fsync_every == 0
            && files.fdatasync_every == 0
    }

    /// Whether it gave up with I/Os that outlive its backend. libaio and posixaio wait
    /// for theirs when they are dropped (io_destroy(2), joined threads), calls are over
    /// when they return, and mmap's data is copied by the worker itself.
    fn leaves_ios_behind(&self) -> bool {
        self.free.len() < self.depth && self.job.engine.is_ring()
    }

    /// Where the I/O of a slot is noted.
    #[inline]
    fn cell(&self, slot: u32) -> &SlotCell {
        &self.stats.slots[slot as usize]
    }

    pub(super) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Runs the job to its end; the failure that ended it, if one did.
    pub(super) fn run<B: Backend>(&mut self, backend: &mut B) -> Option<Failure> {
        let now = self.clock.now();
        self.started = now;
        self.ramp_end = now.saturating_add(self.ticks(self.job.times.ramp));
        if let Some(pacer) = &mut self.pacer {
            pacer.start(now);
        }
        if let Some(thinking) = &mut self.thinking {
            thinking.start(now);
        }
        self.stats.set_phase(WorkerPhase::Ramp);
        if self.job.times.ramp.is_zero() {
            self.measure_from(now);
        }
        self.begin_zones(true);
        if let Err(error) = self.go_round(backend, now) {
            let failure = Failure::new(
                FailureKind::Io,
                format!("{} gave up: {error}", engine_name(self.job.engine)),
            );
            self.failure.get_or_insert(failure);
        }
        if self.failure.is_none() {
            self.sync_at_end();
        }
        self.stats.ended.store(self.clock.now(), Relaxed);
        self.stats.set_phase(WorkerPhase::Done);
        self.failure.take()
    }

    fn ticks(&self, time: Duration) -> u64 {
        self.clock
            .ticks(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    fn measure_from(&mut self, now: u64) {
        self.measuring = true;
        self.began = now;
        self.issued_bytes = 0;
        self.issued_ios = 0;
        if let Some(search) = &mut self.search {
            search.start(now);
        }
        self.stats.began.store(now, Relaxed);
        self.stats.set_phase(WorkerPhase::Running);
        if let Some(runtime) = self.job.times.runtime {
            self.end = now.saturating_add(self.ticks(runtime));
        }
    }

    fn go_round<B: Backend>(&mut self, backend: &mut B, mut now: u64) -> std::io::Result<()> {
        loop {
            if !self.measuring && now >= self.ramp_end {
                self.measure_from(now);
            }
            if now >= self.end || self.stop.load(Relaxed) {
                self.draining = true;
            }
            let due = if self.draining {
                None
            } else {
                self.fill(backend, now)
            };
            let busy = self.depth - self.free.len();
            if busy == 0 {
                match due {
                    None if self.draining => return Ok(()),
                    None => {}
                    Some(due) => self.sleep_until(due),
                }
                now = self.clock.now();
                continue;
            }
            self.hand_over(backend, now, busy, due)?;
            now = self.clock.now();
            self.take(backend, now)?;
            if !self.plain {
                self.look_at_window(now);
            }
        }
    }

    /// Submits the batch and waits for completions, as the queue options say.
    fn hand_over<B: Backend>(
        &mut self,
        backend: &mut B,
        now: u64,
        busy: usize,
        due: Option<u64>,
    ) -> std::io::Result<()> {
        let (min, wait) = self.wanted(now, busy, due);
        // libaio does its work in the submission itself. The others begin when they
        // are called.
        let issued = if self.stamps && !self.submits_slowly && !self.batch.is_empty() {
            self.clock.now()
        } else {
            now
        };
        backend.submit(min > 0)?;
        let issued = if self.submits_slowly && !self.batch.is_empty() {
            self.clock.now()
        } else {
            issued
        };
        self.stamp(issued);
        if min == 0 && due.is_none() {
            // There is room for more: nothing to look for yet.
            return Ok(());
        }
        // Taken where they are to be replaced at once: what waits in the kernel's queue
        // is under way, what has been taken and not replaced is missing from the depth.
        let ready = self.done.len();
        backend.reap(
            min.saturating_sub(ready),
            self.limits.complete_max.max(min),
            wait,
            &mut self.done,
        )?;
        if self.measuring {
            self.stats.completes.add(self.done.len() - ready);
        }
        Ok(())
    }

    /// How many completions to wait for, and how long at most.
    fn wanted(&self, now: u64, busy: usize, due: Option<u64>) -> (usize, Option<Duration>) {
        if let Some(due) = due {
            let wait = Duration::from_nanos(self.clock.ns(due.saturating_sub(now)));
            return if wait < SPIN {
                (0, None)
            } else {
                (1, Some(wait.min(NAP) - SPIN / 2))
            };
        }
        let over = match self.plain {
            true => self.pass_left == 0,
            false => self.is_held_back(busy),
        };
        if self.free.is_empty() || self.draining || over || busy > self.limits.low {
            (self.limits.complete_min.min(busy), None)
        } else {
            (0, None)
        }
    }

    /// Whether nothing may begin before something that is under way is over.
    fn is_held_back(&self, busy: usize) -> bool {
        match &self.verify {
            Some(verify) if verify.is_reading_back() => verify.is_through(),
            Some(verify) if verify.has_backlog() => true,
            _ => {
                self.is_to_think()
                    || self.flow.as_ref().is_some_and(FlowShare::is_to_sleep)
                    || self.pass_left == 0
                    || self.held.is_some()
                    || self.is_deep_enough(busy)
            }
        }
    }

    /// Whether no more I/Os may be under way: those there are keep the latency just so.
    fn is_deep_enough(&self, busy: usize) -> bool {
        self.quiesce.is_some() || self.search.as_ref().is_some_and(|s| busy >= s.depth())
    }

    /// Fits the depth to the latency at the end of a window.
    fn look_at_window(&mut self, now: u64) {
        if let (true, None, Some(search)) = (self.measuring, self.quiesce, &mut self.search) {
            let step = search.look(now);
            self.fit_depth(step);
        }
    }

    fn fit_depth(&mut self, step: SearchStep) {
        let Some(search) = &self.search else { return };
        self.stats.found_depth.store(search.depth() as u64, Relaxed);
        match step {
            SearchStep::GoOn => {}
            SearchStep::Shallower | SearchStep::Found => self.quiesce = Some(step),
            SearchStep::Over | SearchStep::Missed => {
                self.draining = true;
                self.end = 0;
            }
        }
    }

    /// The queue is empty: the next window begins, and after the search the figures.
    fn end_quiesce(&mut self, now: u64) {
        match self.quiesce.take() {
            Some(SearchStep::Found) => {
                self.stats.reset();
                self.measure_from(now);
            }
            _ => {
                if let Some(search) = &mut self.search {
                    search.start(now);
                }
            }
        }
    }

    /// Notes when the batch was handed over, and what that took.
    #[inline]
    fn stamp(&mut self, issued: u64) {
        if self.batch.is_empty() {
            return;
        }
        let busy = self.depth - self.free.len();
        let class = (usize::BITS - busy.leading_zeros()).saturating_sub(1) as usize;
        bump(
            &self.stats.depths[class.min(DEPTH_CLASSES.len() - 1)],
            self.batch.len() as u64,
        );
        if self.measuring {
            self.stats.submits.add(self.batch.len());
        }
        // I/Os taken up at the same time count in one step.
        let mut alike: Option<(DirIndex, u64, u64)> = None;
        for &slot in &self.batch {
            let cell = self.cell(slot);
            cell.issue(issued);
            let Some(dir) = cell.op().and_then(data_direction) else {
                continue;
            };
            let taken_up = cell.drawn();
            match &mut alike {
                Some((same, drawn, count)) if (*same, *drawn) == (dir, taken_up) => {
                    *count += 1;
                }
                other => {
                    let before = other.replace((dir, taken_up, 1));
                    self.count_slat(before, issued);
                }
            }
        }
        self.count_slat(alike, issued);
        self.batch.clear();
        self.stats.issued_bytes.store(self.issued_bytes, Relaxed);
    }

    /// Counts so many I/Os of a direction that were taken up at one time.
    #[inline]
    fn count_slat(&self, alike: Option<(DirIndex, u64, u64)>, issued: u64) {
        let counts = self.measuring && self.measures.slat;
        if let (true, Some((dir, drawn, count))) = (counts, alike)
            && let Some(stats) = &self.stats.dirs[dir as usize]
        {
            let slat = self.clock.ns(issued.saturating_sub(drawn));
            stats.slat.add(slat, count);
        }
    }

    /// Waits until `due` or a stop, the last part without sleeping.
    fn sleep_until(&self, due: u64) {
        loop {
            let now = self.clock.now();
            if now >= due.min(self.end) || self.stop.load(Relaxed) {
                return;
            }
            let left = Duration::from_nanos(self.clock.ns(due.min(self.end) - now));
            if left > SPIN {
                std::thread::sleep((left - SPIN).min(NAP));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// What writes are made of; the buffers begin with it.
fn filler(
    job: &NativeJob,
    plan: &MemberFiles,
    (seed, of_duplicates): (u64, Vec<u64>),
    buffers: &mut Buffers,
) -> Filler {
    let lengths = plan.files.iter().map(|file| file.len);
    let bytes = lengths.fold(0, u64::saturating_add);
    let block = job.pattern.sizes[DirIndex::Write as usize].min();
    let mut filler = Filler::new(&job.content, mix(seed, 1));
    filler = filler.with_duplicates(bytes, block, of_duplicates);
    for slot in 0..job.depth() {
        let len = buffers.slot_bytes();
        filler.first(buffers.slot_mut(slot, len));
    }
    filler
}

/// Bytes and I/Os that end a job.
fn ends(job: &NativeJob, plan: &MemberFiles) -> (u64, u64) {
    let bytes = match job.times.time_based || plan.replay.is_some() {
        true => u64::MAX,
        false => plan.total_bytes.saturating_sub(job.pattern.slack()),
    };
    let ios = match job.extent.number_ios {
        Some(ios) => ios.saturating_mul(job.pattern.touches()),
        None => u64::MAX,
    };
    (bytes, ios)
}

/// max_latency in ticks.
fn latency_limits(job: &NativeJob, clock: &TickClock) -> [u64; 3] {
    job.pace.max_latency.map(|limit| {
        let ns = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        limit.map_or(u64::MAX, |limit| clock.ticks(ns(limit)))
    })
}

#[inline]
fn data_direction(op: Op) -> Option<DirIndex> {
    match op {
        Op::Read => Some(DirIndex::Read),
        Op::Write => Some(DirIndex::Write),
        Op::Trim => Some(DirIndex::Trim),
        Op::Fsync | Op::Fdatasync => None,
    }
}

pub(super) fn engine_name(engine: IoEngine) -> &'static str {
    IoEngine::NAMES
        .iter()
        .find(|(_, known)| *known == engine)
        .map_or("the engine", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::native::backend::Io;
    use crate::native::clock::ClockAnchor;
    use crate::native::files::{FileLayout, FilePlan};

    /// Takes I/Os and fails at the first look for those that are over, or ends all.
    struct Played {
        fails: bool,
        /// Slots and offsets.
        taken: Vec<(u32, u64)>,
        /// I/Os that came while another was under way at their place.
        overlaps: u32,
    }

    impl Backend for Played {
        const QUEUES_SYNCS: bool = false;

        fn push(&mut self, io: Io) {
            let overlaps = self.taken.iter().any(|&(_, offset)| offset == io.offset);
            self.overlaps += u32::from(overlaps);
            self.taken.push((io.slot, io.offset));
        }

        fn submit(&mut self, _: bool) -> io::Result<()> {
            Ok(())
        }

        fn reap(
            &mut self,
            _: usize,
            _: usize,
            _: Option<Duration>,
            done: &mut Vec<CompletedIo>,
        ) -> io::Result<()> {
            if self.fails {
                return Err(io::ErrorKind::Other.into());
            }
            let result = 4096;
            done.extend(
                self.taken
                    .drain(..)
                    .map(|(slot, _)| CompletedIo { slot, result }),
            );
            Ok(())
        }
    }

    /// A worker of this engine that has run over such a backend.
    fn run(engine: IoEngine, fails: bool) -> (Worker, Option<Failure>) {
        let mut job = NativeJob::new("j");
        job.engine = engine;
        job.queue.depth = 4;
        let mut backend = played(fails);
        let mut worker = worker(job);
        let failure = worker.run(&mut backend);
        (worker, failure)
    }

    fn played(fails: bool) -> Played {
        Played {
            fails,
            taken: Vec::new(),
            overlaps: 0,
        }
    }

    /// The worker of a job with a depth of 4 and 16 blocks.
    fn worker(job: NativeJob) -> Worker {
        let job = Arc::new(job);
        let bytes = 16 * 4096;
        let file = FilePlan {
            path: "f".into(),
            is_device: false,
            start: 0,
            len: bytes,
            end: bytes,
            layout: FileLayout::Nothing,
            zones: None,
            read_only: false,
            checked: Arc::default(),
        };
        let classes = PriorityDraw::new(&job);
        let stats = WorkerStats::new(&job, classes.values().len(), 4);
        Worker::new(WorkerParts {
            plan: Arc::new(MemberFiles {
                files: vec![file],
                pass_bytes: bytes,
                total_bytes: bytes,
                place: crate::native::files::FilePlace::default(),
                replay: None,
            }),
            stats: Arc::new(stats),
            stop: Arc::default(),
            clock: ClockAnchor::now().clock(),
            classes: Arc::new(classes),
            targets: Vec::new(),
            seed: 1,
            data_seeds: vec![1],
            ring: None,
            iolog: None,
            flow: None,
            job,
        })
        .unwrap()
    }

    #[test]
    fn ios_of_one_place_follow_each_other_when_asked_to() {
        for no_overlap in [true, false] {
            let mut job = NativeJob::new("j");
            job.engine = IoEngine::Libaio;
            job.files.direct = true;
            (job.queue.depth, job.queue.submit) = (4, Some(4));
            job.queue.no_overlap = no_overlap;
            (job.pattern.random, job.pattern.repetition) = (true, true);
            let mut backend = played(false);
            assert!(worker(job).run(&mut backend).is_none());
            assert_eq!(backend.overlaps == 0, no_overlap, "{}", backend.overlaps);
        }
    }

    #[test]
    fn a_worker_that_gives_up_on_an_io_uring_leaves_its_buffers_to_the_kernel() {
        let (worker, failure) = run(IoEngine::IoUring, true);
        assert!(failure.unwrap().message.contains("gave up"));
        assert!(worker.leaves_ios_behind());
        let address = worker.buffers().place(0, 0);
        drop(worker);
        assert!(Buffers::is_mapped(address));
        assert!(!run(IoEngine::IoUring, false).0.leaves_ios_behind());
        assert!(!run(IoEngine::Libaio, true).0.leaves_ios_behind());
    }
}
