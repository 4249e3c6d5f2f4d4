//! What is over: counted, gone on with, or the end of the job.

use std::sync::atomic::Ordering::Relaxed;

use fathom_model::{Failure, FailureKind};

use super::{InFlight, SearchStep, Worker, data_direction};
use crate::native::backend::{Backend, CompletedIo, Io, Op, OpenFile, calls, scsi};
use crate::native::job::{DirIndex, IoEngine};
use crate::native::kernel;
use crate::native::ring::Logged;
use crate::native::stats::bump;

/// I/Os that were over at once with the same times: batches that were handed over
/// together often end together, and are counted in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CompletionKey {
    dir: DirIndex,
    class: u8,
    intended: u64,
    drawn: u64,
    issued: u64,
}

/// Place of blocks read back among the errors that may be ignored.
pub(super) const VERIFY: usize = 3;

impl Worker {
    /// Counts what is over and frees its slots.
    #[inline]
    pub(super) fn take<B: Backend>(&mut self, backend: &mut B, now: u64) -> std::io::Result<()> {
        let mut done = std::mem::take(&mut self.done);
        let mut alike: Option<(CompletionKey, u64, u64)> = None;
        for completion in done.drain(..) {
            let Some((kind, len)) = self.complete(backend, completion, now) else {
                continue;
            };
            match &mut alike {
                Some((same, count, bytes)) if *same == kind => {
                    *count += 1;
                    *bytes += len;
                }
                other => {
                    if let Some((kind, count, bytes)) = other.replace((kind, 1, len)) {
                        self.count(&kind, count, bytes, now);
                    }
                }
            }
        }
        if let Some((kind, count, bytes)) = alike {
            self.count(&kind, count, bytes, now);
        }
        // A short I/O may have been called inline again and be over already.
        let again = std::mem::replace(&mut self.done, done);
        self.done.extend(again);
        Ok(())
    }

    /// Frees the slot of an I/O that is over; what is to be counted of it.
    #[inline(always)]
    fn complete<B: Backend>(
        &mut self,
        backend: &mut B,
        completion: CompletedIo,
        now: u64,
    ) -> Option<(CompletionKey, u64)> {
        let slot = completion.slot;
        let under = self.cell(slot).get();
        let left = i64::from(under.len - under.moved);
        if completion.result < left {
            self.complete_oddly(backend, completion, under);
            return None;
        }
        if !self.plain {
            match (under.op, &mut self.verify) {
                (Op::Read, Some(_)) => self.check(slot, &under),
                (Op::Write, Some(verify)) => verify.wrote(&under),
                _ => {}
            }
            if let Some(ranges) = &mut self.ranges {
                match under.op {
                    Op::Write => ranges.wrote(under.file, under.offset, under.len),
                    Op::Fsync | Op::Fdatasync => ranges.synced(under.file),
                    Op::Read | Op::Trim => {}
                }
            }
        }
        self.release(slot, &under);
        if !self.measuring {
            return None;
        }
        let Some(dir) = data_direction(under.op) else {
            let ns = self.clock.ns(now.saturating_sub(under.issued));
            self.stats.sync.add(ns, 1);
            return None;
        };
        if let (false, Some(search)) = (self.plain, &mut self.search) {
            let step = search.completed(now.saturating_sub(under.drawn), now);
            if step == SearchStep::Missed {
                self.max_latency = [search.target(); 3];
            }
            if step != SearchStep::GoOn && self.quiesce.is_none() {
                self.fit_depth(step);
            }
        }
        if now.saturating_sub(under.drawn) > self.max_latency[dir as usize] {
            self.end_late(dir, &under, now);
        }
        if !self.plain && self.ring.is_some() {
            self.log(dir, &under, now);
        }
        let alike = CompletionKey {
            dir,
            class: under.class,
            intended: under.intended,
            drawn: under.drawn,
            issued: under.issued,
        };
        Some((alike, u64::from(under.len)))
    }

    /// max_latency was exceeded (io_u.c, lat_fatal).
    #[cold]
    fn end_late(&mut self, dir: DirIndex, under: &InFlight, now: u64) {
        if self.failure.is_some() {
            return;
        }
        let [took, most] = [now - under.drawn, self.max_latency[dir as usize]]
            .map(|ticks| fathom_model::units::latency(self.clock.ns(ticks) as f64));
        let message = format!(
            "{} of {} bytes at offset {} took {took}: more than {most}, the most it may",
            under.op.name(),
            under.len,
            under.offset
        );
        let first = &self.stats.first_error;
        let _ = first.compare_exchange(0, libc::ETIMEDOUT, Relaxed, Relaxed);
        let path = self.plan.files.get(under.file as usize);
        let path = path.map_or_else(String::new, |file| file.path.display().to_string());
        let failure = Failure::new(FailureKind::Io, message).about(path);
        self.give_up(failure.with_errno(libc::ETIMEDOUT));
    }

    /// Counts `count` I/Os of the same times, of `bytes` together.
    #[inline]
    fn count(&self, alike: &CompletionKey, count: u64, bytes: u64, now: u64) {
        if let Some(stats) = &self.stats.dirs[alike.dir as usize] {
            let cells = &stats.clat[usize::from(alike.class)];
            if self.measures.clat {
                cells.add(self.clock.ns(now.saturating_sub(alike.issued)), count);
            } else {
                cells.count(count);
            }
            if self.measures.lat {
                let lat = self.clock.ns(now.saturating_sub(alike.intended));
                stats.lat.add(lat, count);
                if let Some(cells) = stats.lat_of.get(usize::from(alike.class)) {
                    cells.add(lat, count);
                }
            }
            if let Some(lag) = &stats.lag {
                let ns = self.clock.ns(alike.drawn.saturating_sub(alike.intended));
                lag.add(ns, count);
            }
            bump(&stats.bytes, bytes);
        }
    }

    /// A line of the job's logs.
    fn log(&self, dir: DirIndex, under: &InFlight, now: u64) {
        let Some(ring) = &self.ring else { return };
        let clat_ns = self.clock.ns(now.saturating_sub(under.issued));
        let lat_ns = self.clock.ns(now.saturating_sub(under.intended));
        let entry = Logged {
            at_ns: self.clock.ns(now.saturating_sub(self.began)),
            slat_ns: self.clock.ns(under.issued.saturating_sub(under.drawn)),
            clat_ns,
            lat_ns,
            offset: under.offset,
            len: under.len,
            dir,
            priority: self.classes.values()[usize::from(under.class)],
        };
        ring.put(&entry, || self.stop.load(Relaxed));
    }

    #[inline(always)]
    fn release(&mut self, slot: u32, under: &InFlight) {
        if !self.plain {
            self.leave_zone(under);
            if let Some(thinking) = &mut self.thinking {
                thinking.completed(under.op);
            }
        }
        self.cell(slot).clear();
        self.free.push(slot);
    }

    /// A failed or a short I/O.
    #[cold]
    fn complete_oddly<B: Backend>(
        &mut self,
        backend: &mut B,
        completion: CompletedIo,
        under: InFlight,
    ) {
        let slot = completion.slot;
        if completion.result > 0 {
            if let Some(dir) = data_direction(under.op)
                && let Some(stats) = &self.stats.dirs[dir as usize]
            {
                bump(&stats.short, 1);
            }
            let (issued, moved) = (under.issued, under.moved + completion.result as u32);
            self.cell(slot).moved(moved);
            self.push(backend, slot, &InFlight { moved, ..under });
            // The clock of this I/O has been running since it was first issued.
            self.batch.pop();
            self.cell(slot).issue(issued);
            return;
        }
        // Nothing came: for a read the file ends here, for a write nothing was taken.
        let errno = if completion.result == 0 {
            libc::EIO
        } else {
            (-completion.result) as i32
        };
        if let (Op::Write, Some(verify)) = (under.op, &mut self.verify) {
            verify.forget(under.number);
        }
        if self.job.files.fill && matches!(errno, libc::ENOSPC | libc::EDQUOT) {
            // That is what the job is for (backend.c, break_on_this_error).
            (self.draining, self.end) = (true, 0);
            self.release(slot, &under);
            return;
        }
        let dir = data_direction(under.op);
        let place = dir.unwrap_or(DirIndex::Write) as usize;
        if self.count_error(errno, place, dir) {
            let failure = self.io_failure(errno, &under, completion.result == 0);
            self.give_up(failure);
        }
        self.release(slot, &under);
    }

    /// Counts an error; whether it ends the job, as the first of those that do.
    /// `kind` is its place among the errors that may be ignored, `dir` where its data went.
    pub(super) fn count_error(&self, errno: i32, kind: usize, dir: Option<DirIndex>) -> bool {
        let ends = !self.job.errors.tolerates(kind, errno) && self.failure.is_none();
        // I/Os of the ramp are in no figure; nor are failed ones.
        if self.measuring || ends || kind == VERIFY {
            bump(&self.stats.errors, 1);
            let stats = dir.and_then(|dir| self.stats.dirs[dir as usize].as_ref());
            if let Some(stats) = stats {
                bump(&stats.errors, 1);
            }
        }
        let _ = self
            .stats
            .first_error
            .compare_exchange(0, errno, Relaxed, Relaxed);
        ends
    }

    /// Ends the job when what is under way is over.
    pub(super) fn give_up(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.draining = true;
        self.end = 0;
    }

    fn io_failure(&self, errno: i32, under: &InFlight, at_end: bool) -> Failure {
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
        let what = under.op.name();
        let why = if at_end && under.op == Op::Read {
            "the file ends there".to_owned()
        } else {
            let error = std::io::Error::from_raw_os_error(errno);
            match kernel::explains(&self.job, errno) {
                Some(reason) => format!("{error}; {reason}"),
                None => error.to_string(),
            }
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
    pub(super) fn sync_at_end(&mut self) {
        let files = &self.job.files;
        if !(files.end_fsync || files.fsync_on_close)
            || !self.job.writes()
            || self.job.engine == IoEngine::Null
        {
            return;
        }
        for (place, target) in self.targets.iter().enumerate() {
            if let Err(failure) = self.sync(place as u32, target) {
                self.failure = Some(failure);
                return;
            }
        }
    }

    /// fsync of a file, here and now.
    pub(super) fn sync(&self, file: u32, target: &OpenFile) -> Result<(), Failure> {
        let io = Io {
            slot: 0,
            op: Op::Fsync,
            file,
            offset: 0,
            len: 0,
            data: self.buffers.place(0, 0),
            priority: 0,
        };
        let result = match self.job.engine {
            IoEngine::Sg => scsi::sync(target.fd),
            _ => calls::execute(target, &io),
        };
        if result >= 0 {
            return Ok(());
        }
        let errno = (-result) as i32;
        let _ = self
            .stats
            .first_error
            .compare_exchange(0, errno, Relaxed, Relaxed);
        let under = InFlight {
            op: Op::Fsync,
            file,
            ..InFlight::NOTHING
        };
        Err(self.io_failure(errno, &under, false))
    }
}
