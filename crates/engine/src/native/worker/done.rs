//! What is over: counted, gone on with, or the end of the job.

use std::sync::atomic::Ordering::Relaxed;

use fathom_model::{Failure, FailureKind};

use super::{Under, Worker, data_direction};
use crate::native::backend::{Backend, Done, Io, Op, calls};
use crate::native::job::IoEngine;
use crate::native::ring::Logged;
use crate::native::stats::{Dir, bump};

impl Worker {
    /// Counts what is over and frees its slots.
    #[inline]
    pub(super) fn take<B: Backend>(&mut self, backend: &mut B, now: u64) -> std::io::Result<()> {
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
    pub(super) fn sync_at_end(&mut self) {
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
}
