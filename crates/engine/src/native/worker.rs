//! The I/O loop of one worker.
//!
//! After its start it allocates nothing, takes no lock and writes no log: it
//! draws I/Os, hands them over in batches, takes completions in batches and
//! counts them in [`Stats`]. Time is read once after completions and, where it
//! matters, once when a batch is handed over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use fathom_model::{Failure, FailureKind};

use super::backend::{Backend, Done, Io, Op, Target, calls};
use super::buffer::Buffers;
use super::clock::Clock;
use super::data::Filler;
use super::files::Plan;
use super::job::{IoEngine, Job};
use super::pace::Pacer;
use super::prio::Classes;
use super::ring::{Logged, Ring};
use super::rng::{Rng, mix};
use super::source::Source;
use super::stats::{DEPTH_CLASSES, Dir, Phase, Stats, bump};

/// Longest sleep without a look at the stop flag.
const NAP: Duration = Duration::from_millis(20);
/// Below this a wait is spun: a sleeping thread wakes up some 60 µs late
/// (the kernel's default timer slack is 50 µs, kernel/sched/core.c).
const SPIN: Duration = Duration::from_micros(120);

/// What is known of the I/O in a slot besides [`super::stats::SlotCell`].
#[derive(Debug, Clone, Copy)]
struct Under {
    op: Op,
    file: u32,
    offset: u64,
    /// Bytes of the whole I/O, and of them those already moved.
    len: u32,
    moved: u32,
    class: u8,
    created: u64,
    issued: u64,
}

/// Everything a worker needs; made before the start.
pub(super) struct Worker {
    job: Arc<Job>,
    plan: Arc<Plan>,
    stats: Arc<Stats>,
    stop: Arc<AtomicBool>,
    clock: Clock,
    targets: Vec<Target>,
    buffers: Buffers,
    source: Source,
    filler: Filler,
    classes: Arc<Classes>,
    pacer: Option<Pacer>,
    rng: Rng,
    /// Slots without an I/O.
    free: Vec<u32>,
    under: Vec<Under>,
    /// Slots pushed since the last submission.
    batch: Vec<u32>,
    done: Vec<Done>,
    depth: usize,
    /// Reads the clock when a batch is handed over: preparing it took time.
    stamps: bool,
    /// fsync or fdatasync that are due, per file.
    sync_due: Option<(Op, u32)>,
    writes_since_fsync: u64,
    writes_since_fdatasync: u64,
    issued_bytes: u64,
    issued_ios: u64,
    until_think: u64,
    ramp_end: u64,
    end: u64,
    draining: bool,
    measuring: bool,
    failure: Option<Failure>,
    ring: Option<Arc<Ring>>,
    began: u64,
}

/// What a worker is made of, apart from the job.
pub(super) struct Parts {
    pub(super) job: Arc<Job>,
    pub(super) plan: Arc<Plan>,
    pub(super) stats: Arc<Stats>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) clock: Clock,
    pub(super) classes: Arc<Classes>,
    pub(super) targets: Vec<Target>,
    pub(super) seed: u64,
    pub(super) ring: Option<Arc<Ring>>,
}

impl Worker {
    pub(super) fn new(parts: Parts) -> std::io::Result<Self> {
        let Parts {
            job,
            plan,
            stats,
            stop,
            clock,
            classes,
            targets,
            seed,
            ring,
        } = parts;
        let depth = job.depth() as usize;
        let mut buffers = Buffers::new(depth, job.pattern.max_block() as usize)?;
        let mut filler = Filler::new(&job.content, mix(seed, 1));
        for slot in 0..depth as u32 {
            let len = buffers.slot_bytes();
            filler.first(buffers.slot_mut(slot, len));
        }
        let nothing = Under {
            op: Op::Read,
            file: 0,
            offset: 0,
            len: 0,
            moved: 0,
            class: 0,
            created: 0,
            issued: 0,
        };
        Ok(Self {
            source: Source::new(&job, &plan, mix(seed, 2)),
            pacer: Pacer::new(&job.pace, &clock, mix(seed, 3)),
            rng: Rng::new(mix(seed, 4)),
            free: (0..depth as u32).rev().collect(),
            under: vec![nothing; depth],
            batch: Vec::with_capacity(depth),
            done: Vec::with_capacity(depth),
            stamps: depth > 1 || (job.writes() && filler.works_per_write()),
            sync_due: None,
            writes_since_fsync: 0,
            writes_since_fdatasync: 0,
            issued_bytes: 0,
            issued_ios: 0,
            until_think: if job.pace.think.is_zero() {
                u64::MAX
            } else {
                job.pace.think_blocks
            },
            ramp_end: 0,
            end: u64::MAX,
            draining: false,
            measuring: false,
            failure: None,
            ring,
            began: 0,
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
        })
    }

    pub(super) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Runs the job to its end; the failure that ended it, if one did.
    pub(super) fn run<B: Backend>(&mut self, backend: &mut B) -> Option<Failure> {
        let now = self.clock.now();
        self.ramp_end = now.saturating_add(self.ticks(self.job.times.ramp));
        if let Some(pacer) = &mut self.pacer {
            pacer.start(now);
        }
        self.began = now;
        self.stats.set_phase(Phase::Ramp);
        if self.job.times.ramp.is_zero() {
            self.measure_from(now);
        }
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
        self.stats.set_phase(Phase::Done);
        self.failure.take()
    }

    fn ticks(&self, time: Duration) -> u64 {
        self.clock
            .ticks(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    fn measure_from(&mut self, now: u64) {
        self.measuring = true;
        self.issued_bytes = 0;
        self.issued_ios = 0;
        self.stats.began.store(now, Relaxed);
        self.stats.set_phase(Phase::Running);
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
        }
    }

    /// Draws I/Os until the queue is full, the batch is, or nothing is due.
    /// Gives back when the next one is due.
    fn fill<B: Backend>(&mut self, backend: &mut B, now: u64) -> Option<u64> {
        let busy = self.depth - self.free.len();
        let low = self.job.queue.low.map_or(self.depth, |low| low as usize);
        if busy > low.min(self.depth.saturating_sub(1)) && low < self.depth {
            return None;
        }
        let most = self
            .job
            .queue
            .submit
            .map_or(self.depth, |submit| submit as usize);
        while self.batch.len() < most && !self.free.is_empty() {
            if let Some((op, file)) = self.sync_due.take() {
                self.push_sync(backend, op, file, now);
                continue;
            }
            if self.is_through() {
                self.draining = true;
                return None;
            }
            if self.until_think == 0 {
                return self.think(now);
            }
            let (dir, created) = match self.due_direction(now) {
                Ok(found) => found,
                Err(due) => return Some(due),
            };
            self.push_next(backend, dir, created);
        }
        None
    }

    /// Whether all that was asked for has been handed over.
    fn is_through(&self) -> bool {
        let bytes_done = !self.job.times.time_based && self.issued_bytes >= self.plan.total_bytes;
        let ios_done = self
            .job
            .extent
            .number_ios
            .is_some_and(|n| self.issued_ios >= n);
        self.measuring && (bytes_done || ios_done)
    }

    /// thinktime: the queue runs empty, then the worker waits.
    fn think(&mut self, now: u64) -> Option<u64> {
        if self.free.len() < self.depth {
            return None;
        }
        self.until_think = self.job.pace.think_blocks;
        Some(now.saturating_add(self.ticks(self.job.pace.think)))
    }

    /// A direction that may begin now and when it should have begun, or when
    /// the first of them may.
    #[inline]
    fn due_direction(&mut self, now: u64) -> Result<(Dir, u64), u64> {
        let dir = self.source.direction();
        let Some(pacer) = &self.pacer else {
            return Ok((dir, now));
        };
        let when = |dir: Dir| pacer.due(dir).unwrap_or(now);
        if when(dir) <= now {
            return Ok((dir, when(dir)));
        }
        // The other direction of a mix may have fallen behind.
        let other = match dir {
            Dir::Read if self.job.pattern.uses(Dir::Write) => Dir::Write,
            Dir::Write if self.job.pattern.uses(Dir::Read) => Dir::Read,
            _ => dir,
        };
        if pacer.due(other).is_some_and(|due| due <= now) {
            return Ok((other, when(other)));
        }
        Err(when(dir).min(when(other).max(now)))
    }

    #[inline]
    fn push_next<B: Backend>(&mut self, backend: &mut B, dir: Dir, created: u64) {
        let Some(slot) = self.free.pop() else { return };
        let next = self.source.next(dir);
        if let Some(pacer) = &mut self.pacer {
            pacer.issued(dir, next.len);
        }
        let class = self.classes.draw(next.dir, next.len, &mut self.rng);
        let op = match next.dir {
            Dir::Read => Op::Read,
            Dir::Write => Op::Write,
            Dir::Trim => Op::Trim,
        };
        if op == Op::Write {
            let data = self.buffers.slot_mut(slot, next.len as usize);
            self.filler.write(data, next.offset);
            self.count_write(next.file);
        }
        self.issued_bytes += u64::from(next.len);
        self.issued_ios += 1;
        self.until_think = self.until_think.saturating_sub(1);
        self.under[slot as usize] = Under {
            op,
            file: next.file,
            offset: next.offset,
            len: next.len,
            moved: 0,
            class,
            created,
            issued: created,
        };
        self.push(backend, slot);
    }

    /// After every so many writes a sync of their file is due.
    #[inline]
    fn count_write(&mut self, file: u32) {
        let files = &self.job.files;
        self.writes_since_fsync += 1;
        self.writes_since_fdatasync += 1;
        if files.fsync_every > 0 && self.writes_since_fsync >= files.fsync_every {
            self.writes_since_fsync = 0;
            self.sync_due = Some((Op::Fsync, file));
        } else if files.fdatasync_every > 0 && self.writes_since_fdatasync >= files.fdatasync_every
        {
            self.writes_since_fdatasync = 0;
            self.sync_due = Some((Op::Fdatasync, file));
        }
    }

    fn push_sync<B: Backend>(&mut self, backend: &mut B, op: Op, file: u32, now: u64) {
        let Some(slot) = self.free.pop() else { return };
        self.under[slot as usize] = Under {
            op,
            file,
            offset: 0,
            len: 0,
            moved: 0,
            class: 0,
            created: now,
            issued: now,
        };
        self.push(backend, slot);
    }

    /// Gives a slot's I/O, or what is left of it, to the backend.
    #[inline]
    fn push<B: Backend>(&mut self, backend: &mut B, slot: u32) {
        let under = self.under[slot as usize];
        self.publish(slot, &under);
        let io = Io {
            slot,
            op: under.op,
            file: under.file,
            offset: under.offset + u64::from(under.moved),
            len: under.len - under.moved,
            data: self
                .buffers
                .address(slot)
                .wrapping_add(under.moved as usize),
            priority: self.classes.on_io(under.class),
        };
        let inline = match under.op {
            Op::Trim => self.job.engine != IoEngine::Null,
            Op::Fsync | Op::Fdatasync => !B::QUEUES_SYNCS,
            Op::Read | Op::Write => false,
        };
        if inline {
            // As fio: called here and now, behind what was pushed before.
            let result = match backend.submit(false) {
                Ok(()) => calls::execute(&self.targets[under.file as usize], &io),
                Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
            };
            self.done.push(Done { slot, result });
        } else {
            backend.push(io);
        }
        self.batch.push(slot);
    }

    /// Lets the watchdog see the I/O.
    #[inline]
    fn publish(&self, slot: u32, under: &Under) {
        let cell = &self.stats.slots[slot as usize];
        cell.kind.store(under.op.code(), Relaxed);
        cell.file.store(u64::from(under.file), Relaxed);
        cell.offset.store(under.offset, Relaxed);
        cell.len.store(u64::from(under.len), Relaxed);
        cell.created.store(under.created, Relaxed);
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
        // libaio does its work in the submission itself: its time is slat, as
        // fio counts it. The others begin when they are called.
        let submits_slowly = self.job.engine == IoEngine::Libaio;
        let issued = if self.stamps && !submits_slowly && !self.batch.is_empty() {
            self.clock.now()
        } else {
            now
        };
        backend.submit(min > 0)?;
        let issued = if submits_slowly && !self.batch.is_empty() {
            self.clock.now()
        } else {
            issued
        };
        self.stamp(issued);
        let max = self
            .job
            .queue
            .complete_max
            .map_or(self.depth, |max| max as usize);
        let ready = self.done.len();
        backend.reap(
            min.saturating_sub(ready),
            max.max(min),
            wait,
            &mut self.done,
        )
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
        let full = self.free.is_empty()
            || self.draining
            || self.until_think == 0
            || self.job.queue.low.is_some_and(|low| busy > low as usize);
        if !full {
            return (0, None);
        }
        let min = self.job.queue.complete_min.max(1) as usize;
        (min.min(busy), None)
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
        for &slot in &self.batch {
            let under = &mut self.under[slot as usize];
            under.issued = issued;
            self.stats.slots[slot as usize]
                .issued
                .store(issued, Relaxed);
            if let (true, Some(dir)) = (self.measuring, data_direction(under.op))
                && let Some(stats) = &self.stats.dirs[dir as usize]
            {
                stats
                    .slat
                    .add(self.clock.ns(issued.saturating_sub(under.created)), 1);
            }
        }
        self.batch.clear();
        self.stats.issued_bytes.store(self.issued_bytes, Relaxed);
    }

    /// Counts what is over and frees its slots.
    #[inline]
    fn take<B: Backend>(&mut self, backend: &mut B, now: u64) -> std::io::Result<()> {
        let mut done = std::mem::take(&mut self.done);
        for completion in done.drain(..) {
            self.complete(backend, completion, now);
        }
        // A short I/O may have been called inline again and be over already.
        let again = std::mem::replace(&mut self.done, done);
        self.done.extend(again);
        Ok(())
    }

    #[inline]
    fn complete<B: Backend>(&mut self, backend: &mut B, completion: Done, now: u64) {
        let slot = completion.slot;
        let under = self.under[slot as usize];
        let left = i64::from(under.len - under.moved);
        if completion.result < left {
            return self.complete_oddly(backend, completion, under);
        }
        match data_direction(under.op) {
            Some(dir) => self.count(dir, &under, now),
            None if self.measuring => {
                self.stats
                    .sync
                    .add(self.clock.ns(now.saturating_sub(under.issued)), 1);
            }
            None => {}
        }
        self.release(slot);
    }

    #[inline]
    fn count(&mut self, dir: Dir, under: &Under, now: u64) {
        if !self.measuring {
            return;
        }
        if let Some(stats) = &self.stats.dirs[dir as usize] {
            let clat = self.clock.ns(now.saturating_sub(under.issued));
            let lat = self.clock.ns(now.saturating_sub(under.created));
            stats.clat[usize::from(under.class)].add(clat, 1);
            stats.lat.add(lat, 1);
            bump(&stats.bytes, u64::from(under.len));
            if let Some(ring) = &self.ring {
                let entry = Logged {
                    at_ns: self.clock.ns(now.saturating_sub(self.began)),
                    slat_ns: lat - clat.min(lat),
                    clat_ns: clat,
                    lat_ns: lat,
                    offset: under.offset,
                    len: under.len,
                    dir,
                    priority: self.classes.values()[usize::from(under.class)],
                };
                ring.put(&entry, || self.stop.load(Relaxed));
            }
        }
    }

    #[inline]
    fn release(&mut self, slot: u32) {
        self.stats.slots[slot as usize].kind.store(0, Relaxed);
        self.free.push(slot);
    }

    /// A failed or a short I/O.
    #[cold]
    fn complete_oddly<B: Backend>(&mut self, backend: &mut B, completion: Done, under: Under) {
        let slot = completion.slot;
        if completion.result > 0 {
            if let Some(dir) = data_direction(under.op)
                && let Some(stats) = &self.stats.dirs[dir as usize]
            {
                bump(&stats.short, 1);
            }
            let (issued, moved) = (under.issued, under.moved + completion.result as u32);
            self.under[slot as usize].moved = moved;
            self.push(backend, slot);
            // The clock of this I/O has been running since it was first issued.
            self.batch.pop();
            self.under[slot as usize].issued = issued;
            return;
        }
        // Nothing came: for a read the file ends here, for a write nothing was taken.
        let errno = if completion.result == 0 {
            libc::EIO
        } else {
            (-completion.result) as i32
        };
        let place = data_direction(under.op).unwrap_or(Dir::Write) as usize;
        bump(&self.stats.errors, 1);
        let _ = self
            .stats
            .first_error
            .compare_exchange(0, errno, Relaxed, Relaxed);
        let ignored = self.job.errors.ignore[place].contains(&errno);
        if !ignored && !self.job.errors.go_on[place] && self.failure.is_none() {
            self.failure = Some(self.io_failure(errno, &under, completion.result == 0));
            self.draining = true;
            self.end = 0;
        }
        self.release(slot);
    }

    fn io_failure(&self, errno: i32, under: &Under, at_end: bool) -> Failure {
        let path = self
            .plan
            .files
            .get(under.file as usize)
            .map(|file| file.path.display().to_string());
        let kind = match errno {
            libc::ENOSPC | libc::EDQUOT => FailureKind::NoSpace,
            libc::EPERM | libc::EACCES => FailureKind::Permission,
            _ => FailureKind::Io,
        };
        let what = Op::name_of(under.op.code());
        let why = if at_end && under.op == Op::Read {
            "the file ends there".to_owned()
        } else {
            std::io::Error::from_raw_os_error(errno).to_string()
        };
        let message = match under.op {
            Op::Fsync | Op::Fdatasync => format!("{what} failed: {why}"),
            _ => format!(
                "{what} of {} bytes at offset {} failed: {why}",
                under.len, under.offset
            ),
        };
        Failure::new(kind, message)
            .about(path.unwrap_or_default())
            .with_errno(errno)
    }

    /// end_fsync and fsync_on_close; their time belongs to the job's.
    fn sync_at_end(&mut self) {
        let files = &self.job.files;
        if !(files.end_fsync || files.fsync_on_close)
            || !self.job.writes()
            || self.job.engine == IoEngine::Null
        {
            return;
        }
        for (place, target) in self.targets.iter().enumerate() {
            let under = Under {
                op: Op::Fsync,
                file: place as u32,
                offset: 0,
                len: 0,
                moved: 0,
                class: 0,
                created: 0,
                issued: 0,
            };
            let io = Io {
                slot: 0,
                op: Op::Fsync,
                file: place as u32,
                offset: 0,
                len: 0,
                data: self.buffers.address(0),
                priority: 0,
            };
            let result = calls::execute(target, &io);
            if result < 0 {
                let errno = (-result) as i32;
                let _ = self
                    .stats
                    .first_error
                    .compare_exchange(0, errno, Relaxed, Relaxed);
                self.failure = Some(self.io_failure(errno, &under, false));
                return;
            }
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

#[inline]
fn data_direction(op: Op) -> Option<Dir> {
    match op {
        Op::Read => Some(Dir::Read),
        Op::Write => Some(Dir::Write),
        Op::Trim => Some(Dir::Trim),
        Op::Fsync | Op::Fdatasync => None,
    }
}

pub(super) fn engine_name(engine: IoEngine) -> &'static str {
    IoEngine::NAMES
        .iter()
        .find(|(_, known)| *known == engine)
        .map_or("the engine", |(name, _)| name)
}
