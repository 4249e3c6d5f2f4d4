//! From the source to the backend: which I/Os begin now.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;

use super::Worker;
use super::read_back::Verifier;
use super::zoned::ZonePlace;
use crate::native::backend::{Backend, CompletedIo, Io, Op, calls, file_calls};
use crate::native::iolog_file::IssuedIo;
use crate::native::job::{DirIndex, IoEngine};
use crate::native::replay::{ReplayNext, ReplaySource};
use crate::native::slot::{InFlight, SlotCell};
use crate::native::source::NextIo;

/// What came of the next entry of a log.
enum Replayed {
    /// It is done, or goes its own way.
    Taken,
    /// An I/O, which is held.
    Held,
    /// Nothing is due, before then or any more.
    Later(Option<u64>),
}

impl Worker {
    /// Draws I/Os until the queue is full, the batch is, or nothing is due.
    /// Gives back when the next one is due.
    pub(super) fn fill<B: Backend>(&mut self, backend: &mut B, now: u64) -> Option<u64> {
        let busy = self.depth - self.free.len();
        if busy > self.limits.low {
            return None;
        }
        if !self.plain {
            if self.is_reading_back() {
                self.fill_back(backend, now);
                return None;
            }
            if self.quiesce.is_some() && busy == 0 {
                self.end_quiesce(now);
            }
        }
        while self.batch.len() < self.limits.submit && !self.free.is_empty() {
            if !self.plain {
                if self.is_deep_enough(self.depth - self.free.len()) {
                    return None;
                }
                if let Some((op, file)) = self.sync_due.take() {
                    self.push_sync(backend, op, file, now);
                    continue;
                }
                self.sync_range(backend);
            }
            if self.is_through() {
                // What is over is to be read back first.
                self.draining = self.verify.is_none();
                self.pass_left = 0;
            }
            if self.pass_left == 0 && !self.draining && self.goes_round() {
                self.go_on_without_end();
            }
            if self.pass_left == 0 {
                if self.draining || self.free.len() < self.depth {
                    return None;
                }
                self.end_pass(now);
                if self.draining || self.is_reading_back() {
                    return None;
                }
            }
            if self.plain {
                let dir = self.source.direction();
                self.push_next(backend, dir, now, now);
                continue;
            }
            if let ControlFlow::Break(due) = self.push_guided(backend, now) {
                return due;
            }
        }
        None
    }

    /// Draws the next I/O where others than its pattern have a say; ends with when to
    /// look again.
    fn push_guided<B: Backend>(&mut self, backend: &mut B, now: u64) -> ControlFlow<Option<u64>> {
        if self.verify.is_some() && (self.begin_backlog(now) || self.pretend()) {
            return ControlFlow::Break(None);
        }
        if let Some(thinking) = &mut self.thinking
            && thinking.is_due(now)
        {
            return ControlFlow::Break(self.think(now));
        }
        if self.replay.is_some() && self.held.is_none() {
            match self.replayed(now) {
                Replayed::Taken => return ControlFlow::Continue(()),
                Replayed::Held => {}
                Replayed::Later(due) => return ControlFlow::Break(due),
            }
        }
        let (dir, intended) = match self.due_direction(now) {
            Ok(found) => found,
            Err(due) => return ControlFlow::Break(Some(due)),
        };
        let busy = self.depth - self.free.len();
        if let Some(flow) = &mut self.flow
            && let Err(wait) = flow.begin(self.job.pace.flow_sleep, busy)
        {
            return ControlFlow::Break(wait.map(|wait| now.saturating_add(self.ticks(wait))));
        }
        if !self.push_next(backend, dir, intended, now) {
            return ControlFlow::Break(self.look_again(now));
        }
        ControlFlow::Continue(())
    }

    /// Takes the next entry of the log that is replayed.
    fn replayed(&mut self, now: u64) -> Replayed {
        let Some(replay) = &mut self.replay else {
            return Replayed::Held;
        };
        match replay.next(now, &self.clock) {
            // One at a time: somebody looks whether to stop.
            ReplayNext::Io(next) if self.pretend_replayed(&next) => Replayed::Later(Some(now)),
            ReplayNext::Io(next) => {
                self.held = Some(next);
                Replayed::Held
            }
            ReplayNext::Sync(op, file) => {
                if !self.job.verify.only {
                    self.sync_due = Some((op, file));
                }
                Replayed::Taken
            }
            ReplayNext::Later(due) => Replayed::Later(Some(due)),
            ReplayNext::Over => Replayed::Taken,
            ReplayNext::Changed(failure) => {
                self.give_up(failure);
                Replayed::Later(None)
            }
        }
    }

    /// Whether all that was asked for has been handed over.
    #[inline]
    pub(super) fn is_through(&self) -> bool {
        if !self.plain && self.replay.as_ref().is_some_and(ReplaySource::is_over) {
            return true;
        }
        let done = self.issued_bytes >= self.most_bytes || self.issued_ios >= self.most_ios;
        self.measuring && done
    }

    /// The queue is empty: reads back what the pass wrote, ends the job or
    /// begins the next pass.
    fn end_pass(&mut self, now: u64) {
        if self.begin_read_back(now) {
            return;
        }
        if self.is_through() || self.has_read_back_enough() {
            self.draining = true;
        } else {
            self.next_pass();
        }
    }

    /// Whether the I/Os go on at the end of a pass as if there was none (backend.c,
    /// do_io: a time-based job without verify leaves it when its time is up, one
    /// without a map whose I/Os are called when all loops are done).
    pub(super) fn goes_round(&self) -> bool {
        let by_loops = self.job.completes_at_once() && self.job.pattern.draws_anew();
        (self.job.times.time_based || by_loops) && self.verify.is_none()
    }

    /// Nothing is waited for, nothing synced. Whoever goes through the blocks in some
    /// order begins anew with a cold cache (io_u.c, loop_cache_invalidate).
    fn go_on_without_end(&mut self) {
        if self.job.files.invalidate && !self.job.files.direct && !self.job.pattern.draws_anew() {
            self.drop_caches();
        }
        self.pass_left = self.plan.pass_bytes;
    }

    pub(super) fn drop_caches(&self) {
        for (target, file) in self.targets.iter().zip(&self.plan.files) {
            file_calls::drop_cache(target, file.start, file.len);
        }
    }

    /// A new pass over the files, which fio closes and opens again in between.
    fn next_pass(&mut self) {
        self.sync_at_end();
        if self.failure.is_some() {
            self.draining = true;
            return;
        }
        if self.job.files.invalidate {
            self.drop_caches();
        }
        if self.job.pattern.repeatable {
            // libfio.c, clear_io_state: each pass goes where the first one went.
            self.source.rewind();
        }
        self.pass_left = self.plan.pass_bytes;
        self.begin_zones(false);
    }

    /// A direction that may begin now and when it should have begun, or when
    /// the first of them may.
    #[inline]
    pub(super) fn due_direction(&mut self, now: u64) -> Result<(DirIndex, u64), u64> {
        let dir = match &self.held {
            Some(held) => held.dir,
            None => {
                let dir = self.source.direction();
                self.zoned_direction(dir)
            }
        };
        let Some(pacer) = &self.pacer else {
            return Ok((dir, now));
        };
        let when = |dir: DirIndex| pacer.due(dir).unwrap_or(now);
        if when(dir) <= now {
            return Ok((dir, when(dir)));
        }
        // The other direction of a mix may have fallen behind.
        let other = match dir {
            DirIndex::Read => DirIndex::Write,
            DirIndex::Write => DirIndex::Read,
            DirIndex::Trim => dir,
        };
        if !self.job.pattern.has_share(other) {
            return Err(when(dir));
        }
        if pacer.due(other).is_some_and(|due| due <= now) {
            return Ok((other, when(other)));
        }
        Err(when(dir).min(when(other).max(now)))
    }

    /// Hands the next I/O to the backend, unless it has to wait for another.
    #[inline(always)]
    pub(super) fn push_next<B: Backend>(
        &mut self,
        backend: &mut B,
        dir: DirIndex,
        intended: u64,
        now: u64,
    ) -> bool {
        let (next, zone) = if self.plain {
            (self.source.next(dir), None)
        } else {
            match self.placed(dir) {
                Some(placed) => placed,
                None => return false,
            }
        };
        // It could write where the job only reads.
        assert!(
            self.permitted[next.dir as usize],
            "an I/O in a direction without a share"
        );
        let Some(slot) = self.free.pop() else {
            return false;
        };
        if !self.plain
            && let Some(pacer) = &mut self.pacer
        {
            pacer.issued(next.dir, next.len);
        }
        let class = self.classes.draw(next.dir, next.len, &mut self.rng);
        let op = match next.dir {
            DirIndex::Read => Op::Read,
            DirIndex::Write => Op::Write,
            DirIndex::Trim => Op::Trim,
        };
        let mut number = 0;
        if op == Op::Write {
            let data = self.buffers.slot_mut(slot, next.len as usize);
            if !self.verify.as_ref().is_some_and(Verifier::makes_blocks) {
                self.filler.write(data, next.offset);
            }
            if let Some(verify) = &mut self.verify {
                number = verify.make(data, &next, self.clock.ns(now));
            }
            self.count_write(next.file);
        }
        self.count_issued(next.len);
        let under = InFlight {
            op,
            file: next.file,
            offset: next.offset,
            len: next.len,
            moved: 0,
            class,
            zone,
            number,
            intended,
            drawn: now,
            issued: now,
        };
        self.begin(backend, slot, &under);
        true
    }

    #[inline]
    fn count_issued(&mut self, len: u32) {
        self.issued_bytes += u64::from(len);
        self.issued_ios += 1;
        if !self.plain
            && let Some(thinking) = &mut self.thinking
        {
            thinking.issued();
        }
        let left = self.pass_left.saturating_sub(u64::from(len));
        self.pass_left = if left <= self.slack { 0 } else { left };
    }

    /// The next I/O and the zone that it holds, unless it has to wait for another or
    /// none comes any more.
    fn placed(&mut self, dir: DirIndex) -> Option<(NextIo, Option<u32>)> {
        let mut next = match self.held.take() {
            Some(held) => held,
            None if !self.go_in_order(dir) => return None,
            None => self.source.next(dir),
        };
        let zone = match self.place(&mut next) {
            ZonePlace::Here(zone) => zone,
            ZonePlace::Nowhere => return None,
            ZonePlace::NotYet => {
                self.held = Some(next);
                if let Some(flow) = &mut self.flow {
                    flow.put_off();
                }
                return None;
            }
        };
        // What a zone holds is in order already.
        let ordered = self.zoned.is_some();
        if self.job.queue.no_overlap && !ordered && self.is_under_way(&next) {
            self.held = Some(next);
            return None;
        }
        if self.verify.as_ref().is_some_and(|v| v.ends_before(&next)) {
            self.draining = true;
            return None;
        }
        Some((next, zone))
    }

    /// Whether an I/O is under way in the range of this one.
    fn is_under_way(&self, next: &NextIo) -> bool {
        let end = next.offset + u64::from(next.len);
        let meets = |cell: &SlotCell| {
            let under = cell.get();
            let under_end = under.offset + u64::from(under.len);
            under.file == next.file && next.offset < under_end && under.offset < end
        };
        let slots = self.stats.slots.iter();
        slots.filter(|cell| cell.op().is_some()).any(meets)
    }

    /// After every so many writes a sync of their file is due.
    #[inline]
    fn count_write(&mut self, file: u32) {
        let files = &self.job.files;
        self.writes_since.iter_mut().for_each(|writes| *writes += 1);
        let [fsync, fdatasync] = &mut self.writes_since;
        if files.fsync_every > 0 && *fsync >= files.fsync_every {
            *fsync = 0;
            self.sync_due = Some((Op::Fsync, file));
        } else if files.fdatasync_every > 0 && *fdatasync >= files.fdatasync_every {
            *fdatasync = 0;
            self.sync_due = Some((Op::Fdatasync, file));
        }
        if let Some(ranges) = &mut self.ranges {
            ranges.issued(file, self.sync_due.is_some());
        }
    }

    pub(super) fn push_sync<B: Backend>(&mut self, backend: &mut B, op: Op, file: u32, now: u64) {
        let Some(slot) = self.free.pop() else { return };
        let under = InFlight {
            op,
            file,
            intended: now,
            drawn: now,
            issued: now,
            ..InFlight::NOTHING
        };
        self.begin(backend, slot, &under);
    }

    /// An I/O takes its slot and goes to the backend.
    #[inline(always)]
    pub(super) fn begin<B: Backend>(&mut self, backend: &mut B, slot: u32, under: &InFlight) {
        self.cell(slot).set(under);
        self.push(backend, slot, under);
    }

    /// Gives a slot's I/O, or what is left of it, to the backend.
    #[inline(always)]
    pub(super) fn push<B: Backend>(&mut self, backend: &mut B, slot: u32, under: &InFlight) {
        if !self.plain
            && let (Some(ring), 0) = (&self.iolog, under.moved)
        {
            let issued = IssuedIo {
                at_ns: self.clock.ns(under.drawn.saturating_sub(self.started)),
                op: under.op.code(),
                file: under.file,
                offset: under.offset,
                len: under.len,
            };
            ring.put(&issued, || self.stop.load(Relaxed));
        }
        let io = Io {
            slot,
            op: under.op,
            file: under.file,
            offset: under.offset + u64::from(under.moved),
            len: under.len - under.moved,
            data: self.buffers.place(slot, under.moved),
            priority: self.classes.on_io(under.class),
        };
        let inline = match under.op {
            Op::Trim if under.zone.is_some() => true,
            Op::Trim => self.job.engine != IoEngine::Null && !self.job.queue.offload,
            Op::Fsync | Op::Fdatasync => !B::QUEUES_SYNCS,
            Op::Read | Op::Write => false,
        };
        if inline {
            // As fio: called here and now, behind what was pushed before.
            self.cell(slot).issue(self.clock.now());
            let result = match backend.submit(false) {
                Ok(()) => match under.zone {
                    Some(zone) if under.op == Op::Trim => self.reset_zone(under.file, zone, io.len),
                    _ => calls::execute(&self.targets[under.file as usize], &io),
                },
                Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
            };
            self.done.push(CompletedIo { slot, result });
        } else {
            backend.push(io);
            self.batch.push(slot);
        }
    }
}
