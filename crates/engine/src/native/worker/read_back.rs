//! verify: each written block gets its checksum; what a pass wrote is read back
//! when it is over, and reads of a job that does nothing else are checked too.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use fathom_model::{Failure, FailureKind};

use super::done::VERIFY;
use super::{InFlight, Worker};
use crate::native::backend::{Backend, Op, drop_cache};
use crate::native::files::MemberFiles;
use crate::native::job::{DirIndex, IoEngine, NativeJob};
use crate::native::rng::mix;
use crate::native::stats::bump;
use crate::native::verify::{self, Seal, WriteHistory};

/// What a worker needs to verify.
#[derive(Debug)]
pub(super) struct Verifier {
    interval: u32,
    /// What is to be read back; `None`: nothing is (do_verify=0, or no writes).
    history: Option<WriteHistory>,
    reading_back: bool,
    /// The job's own reads are checked: it does not write (backend.c, do_io).
    checks_reads: bool,
    /// Reading back, a block must hold the very write that came last. Where a
    /// block may have been written twice at the same time nobody knows which.
    numbered: bool,
    writes: u64,
    /// Passes that were read back while the job was measured, and their bytes.
    passes: u64,
    bytes: u64,
}

impl Verifier {
    /// `None` when the job does not verify.
    pub(super) fn new(job: &Arc<NativeJob>, plan: &MemberFiles) -> io::Result<Option<Self>> {
        if !job.verify.on {
            return Ok(None);
        }
        let history = job.reads_back().then(|| WriteHistory::new(job, plan));
        Ok(Some(Self {
            interval: verify::interval(&job.pattern),
            history: history.transpose()?,
            reading_back: false,
            checks_reads: !job.writes(),
            numbered: !(job.pattern.may_repeat() && job.depth() > 1),
            writes: 0,
            passes: 0,
            bytes: 0,
        }))
    }

    /// Gives a block its headers and notes it; its number.
    pub(super) fn seal(&mut self, block: &mut [u8], file: u32, offset: u64, at_ns: u64) -> u32 {
        self.writes += 1;
        let number = match &mut self.history {
            Some(history) => history.push(file, offset, block.len() as u32),
            None => self.writes as u32,
        };
        let seal = Seal {
            offset,
            number: number as u16,
            at_ns,
            seed: mix(at_ns, self.writes),
        };
        verify::seal(block, self.interval, &seal);
        number
    }

    pub(super) fn forget(&mut self, number: u32) {
        if let Some(history) = &mut self.history {
            history.forget(number);
        }
    }

    pub(super) fn is_reading_back(&self) -> bool {
        self.reading_back
    }

    /// Whether all that is to be read back has been asked for.
    pub(super) fn is_through(&self) -> bool {
        self.history.as_ref().is_none_or(WriteHistory::is_through)
    }
}

impl Worker {
    #[inline]
    pub(super) fn is_reading_back(&self) -> bool {
        self.verify.as_ref().is_some_and(Verifier::is_reading_back)
    }

    /// Whether the pass that is over wrote anything to read back; begins with it:
    /// from the disk, not from the cache (backend.c, do_verify).
    pub(super) fn begin_read_back(&mut self, now: u64) -> bool {
        let Some(verify) = &mut self.verify else {
            return false;
        };
        match &mut verify.history {
            Some(history) if !history.is_empty() => history.settle(),
            _ => return false,
        }
        verify.reading_back = true;
        self.stats.read_back_since.store(now, Relaxed);
        if self.job.engine == IoEngine::Null {
            return true;
        }
        for (place, (target, file)) in self.targets.iter().zip(&self.plan.files).enumerate() {
            if let Err(failure) = self.sync(place as u32, target) {
                self.give_up(failure);
                return true;
            }
            drop_cache(target, file.start, file.len);
        }
        true
    }

    /// Asks for what is to be read back; at its end the pass is over.
    pub(super) fn fill_back<B: Backend>(&mut self, backend: &mut B, now: u64) {
        while self.batch.len() < self.most
            && let Some(slot) = self.free.pop()
        {
            let history = self.verify.as_mut().and_then(|v| v.history.as_mut());
            let Some(written) = history.and_then(WriteHistory::next) else {
                self.free.push(slot);
                break;
            };
            if let (true, Some(verify)) = (self.measuring, &mut self.verify) {
                verify.bytes += u64::from(written.len);
            }
            self.in_flight[slot as usize] = InFlight {
                op: Op::Read,
                file: written.file,
                offset: written.offset,
                len: written.len,
                class: self
                    .classes
                    .draw(DirIndex::Read, written.len, &mut self.rng),
                number: written.number,
                intended: now,
                drawn: now,
                issued: now,
                ..InFlight::NOTHING
            };
            self.push(backend, slot);
        }
        if self.free.len() == self.depth {
            self.end_read_back(now);
        }
    }

    /// What was read back counts towards io_size too (backend.c, keep_running).
    pub(super) fn has_read_back_enough(&self) -> bool {
        let loops = self.job.extent.loops.max(1);
        let limit = self.plan.total_bytes / loops;
        let enough = |verify: &Verifier| {
            let bytes = self.issued_bytes + verify.bytes;
            verify.passes >= loops && bytes + u64::from(self.job.pattern.max_block()) > limit
        };
        self.measuring && !self.job.times.time_based && self.verify.as_ref().is_some_and(enough)
    }

    fn end_read_back(&mut self, now: u64) {
        let since = self.stats.read_back_since.swap(0, Relaxed);
        if self.measuring {
            bump(&self.stats.read_back, now.saturating_sub(since));
        }
        if let Some(verify) = &mut self.verify {
            verify.passes += u64::from(self.measuring);
            verify.reading_back = false;
            if let Some(history) = &mut verify.history {
                history.clear();
            }
        }
    }

    /// Checks a block that was read, where the job verifies what it reads.
    #[inline]
    pub(super) fn check(&mut self, slot: u32, under: &InFlight) {
        let checked = |verify: &&Verifier| verify.reading_back || verify.checks_reads;
        if let Some(verify) = self.verify.as_ref().filter(checked) {
            let number = (verify.reading_back && verify.numbered).then_some(under.number as u16);
            let interval = verify.interval;
            self.check_block(slot, under, interval, number);
        }
    }

    fn check_block(&mut self, slot: u32, under: &InFlight, interval: u32, number: Option<u16>) {
        // The null engine moves no data (verify.c, FIO_FAKEIO).
        if self.job.engine == IoEngine::Null {
            return;
        }
        let block = self.buffers.slot_mut(slot, under.len as usize);
        let Err(mismatch) = verify::check(block, interval, under.offset, number) else {
            return;
        };
        if self.count_error(libc::EILSEQ, VERIFY) {
            let file = self.plan.files.get(under.file as usize);
            let message = format!(
                "verify of {} bytes at offset {} failed: {mismatch}",
                mismatch.len, mismatch.offset
            );
            let failure = Failure::new(FailureKind::Corrupt, message)
                .about(file.map_or_else(String::new, |file| file.path.display().to_string()))
                .with_errno(libc::EILSEQ);
            self.give_up(failure);
        }
    }
}
