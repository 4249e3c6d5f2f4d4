//! verify: each written block gets what it is verified by; what a pass wrote is read
//! back when it is over, with a backlog now and then before that, and reads of a job that
//! does nothing else are checked too.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use fathom_model::{Failure, FailureKind};

use super::done::VERIFY;
use super::{InFlight, Worker};
use crate::native::backend::{Backend, Op};
use crate::native::dump;
use crate::native::files::MemberFiles;
use crate::native::job::{DirIndex, IoEngine, NativeJob};
use crate::native::rng::mix;
use crate::native::source::NextIo;
use crate::native::stats::bump;
use crate::native::verify::{BlockLayout, Seal, VerifyState, WriteHistory, WriteMarks};

/// What a worker needs to verify.
#[derive(Debug)]
pub(super) struct Verifier {
    layout: BlockLayout,
    /// What is to be read back; `None`: nothing is (do_verify=0, or no writes).
    history: Option<WriteHistory>,
    reading_back: bool,
    /// Writes after which some are read back within the pass, and how many.
    backlog: Option<(usize, usize)>,
    /// What is read back now is such a part.
    partial: bool,
    /// The job's own reads are checked: it does not write (backend.c, do_io).
    checks_reads: bool,
    /// Reading back, a block must hold the very write that came last. Where a
    /// block may have been written twice at the same time nobody knows which, nor where
    /// an earlier run wrote it.
    numbered: bool,
    writes: u64,
    /// Passes that were read back while the job was measured, and their bytes.
    passes: u64,
    bytes: u64,
    /// verify_state_save: the last writes that were over.
    marks: Option<WriteMarks>,
    /// verify_state_load: how far there is anything to verify, and blocks read so far.
    until: Option<VerifyState>,
    checked: u64,
}

impl Verifier {
    /// `None` when the job does not verify.
    pub(super) fn new(job: &Arc<NativeJob>, plan: &MemberFiles) -> io::Result<Option<Self>> {
        let Some(layout) = BlockLayout::of(job) else {
            return Ok(None);
        };
        let history = job.reads_back().then(|| WriteHistory::new(job, plan));
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let (backlog, batch) = (job.verify.backlog, job.verify.backlog_batch);
        let batch = if batch > 0 { batch } else { backlog };
        Ok(Some(Self {
            layout,
            history: history.transpose()?,
            reading_back: false,
            backlog: (backlog > 0).then(|| (count(backlog), count(batch))),
            partial: false,
            checks_reads: !job.writes(),
            numbered: !(job.verify.only || (plan.may_repeat(job) && job.depth() > 1)),
            writes: 0,
            passes: 0,
            bytes: 0,
            marks: WriteMarks::new(job, plan.files.len()),
            until: None,
            checked: 0,
        }))
    }

    /// Whether it makes the data of blocks itself.
    pub(super) fn makes_blocks(&self) -> bool {
        !self.layout.pretends()
    }

    /// Makes a block to be written and notes it; its number.
    pub(super) fn make(&mut self, block: &mut [u8], next: &NextIo, at_ns: u64) -> u32 {
        self.writes += 1;
        let number = self.note(next);
        let seal = Seal {
            offset: next.offset,
            number: number as u16,
            at_ns,
            seed: mix(at_ns, self.writes),
        };
        self.layout.make(block, &seal);
        number
    }

    /// Notes a write as done; its number.
    fn note(&mut self, next: &NextIo) -> u32 {
        match &mut self.history {
            Some(history) => history.push(next.file, next.offset, next.len),
            None => self.writes as u32,
        }
    }

    pub(super) fn forget(&mut self, number: u32) {
        if let Some(history) = &mut self.history {
            history.forget(number);
        }
    }

    pub(super) fn is_reading_back(&self) -> bool {
        self.reading_back
    }

    /// A write is over.
    pub(super) fn wrote(&mut self, under: &InFlight) {
        if let Some(marks) = &mut self.marks {
            marks.wrote(under.file, under.offset);
        }
    }

    /// Whether the blocks from this one on were never written.
    pub(super) fn ends_before(&self, next: &NextIo) -> bool {
        let ends = |state: &VerifyState| state.ends_before(self.checked, next.file, next.offset);
        next.dir == DirIndex::Read && self.until.as_ref().is_some_and(ends)
    }

    /// Whether so much was written that some of it is to be read back first.
    pub(super) fn has_backlog(&self) -> bool {
        let written = |history: &WriteHistory| history.len();
        let written = self.history.as_ref().map_or(0, written);
        self.backlog.is_some_and(|(most, _)| written >= most)
    }

    /// Whether all that is to be read back has been asked for.
    pub(super) fn is_through(&self) -> bool {
        self.history.as_ref().is_none_or(WriteHistory::is_through)
    }
}

impl Worker {
    /// verify_state_load: verifies no further than this.
    pub(in crate::native) fn verify_until(&mut self, state: Option<VerifyState>) {
        if let Some(verify) = &mut self.verify {
            verify.until = state;
        }
    }

    /// verify_state_save: how far it came.
    pub(in crate::native) fn verify_state(&self) -> Option<VerifyState> {
        let verify = self.verify.as_ref()?;
        Some(verify.marks.as_ref()?.state(verify.writes))
    }

    #[inline]
    pub(super) fn is_reading_back(&self) -> bool {
        self.verify.as_ref().is_some_and(Verifier::is_reading_back)
    }

    /// Whether the pass that is over wrote anything to read back; begins with it:
    /// from the disk, not from the cache (backend.c, do_verify).
    pub(super) fn begin_read_back(&mut self, now: u64) -> bool {
        let history = self.verify.as_mut().and_then(|v| v.history.as_mut());
        match history {
            Some(history) if history.len() > 0 => history.settle(usize::MAX),
            Some(_) => {
                self.count_pass();
                return false;
            }
            None => return false,
        }
        self.read_back_from(now, false);
        if matches!(self.job.engine, IoEngine::Null | IoEngine::IoUringCmd) {
            // There is no cache.
            return true;
        }
        for (place, target) in self.targets.iter().enumerate() {
            if let Err(failure) = self.sync(place as u32, target) {
                self.give_up(failure);
                return true;
            }
        }
        self.drop_caches();
        true
    }

    /// Whether part of what was written is to be read back before more is; begins with
    /// it, from wherever it is, when nothing is under way.
    pub(super) fn begin_backlog(&mut self, now: u64) -> bool {
        let Some(verify) = self.verify.as_mut().filter(|verify| verify.has_backlog()) else {
            return false;
        };
        if self.free.len() == self.depth {
            if let (Some(history), Some((_, batch))) = (&mut verify.history, verify.backlog) {
                history.settle(batch);
            }
            self.read_back_from(now, true);
        }
        true
    }

    /// All that a pass wrote has been read back.
    fn count_pass(&mut self) {
        if let Some(verify) = &mut self.verify {
            verify.passes += u64::from(self.measuring);
        }
    }

    fn read_back_from(&mut self, now: u64, partial: bool) {
        if let Some(verify) = &mut self.verify {
            (verify.reading_back, verify.partial) = (true, partial);
        }
        // What is read back within a pass takes the time of its writes (backend.c, do_io).
        if !partial {
            self.stats.read_back_since.store(now, Relaxed);
        }
    }

    /// verify_only: takes up an I/O of a log without doing it; whether it did.
    pub(super) fn pretend_replayed(&mut self, next: &NextIo) -> bool {
        let Some(verify) = self.verify.as_mut().filter(|_| self.job.verify.only) else {
            return false;
        };
        if next.dir == DirIndex::Write {
            verify.note(next);
        }
        self.issued_bytes += u64::from(next.len);
        self.issued_ios += 1;
        true
    }

    /// verify_only: takes up I/Os without doing them, some at a time; whether it did.
    pub(super) fn pretend(&mut self) -> bool {
        /// So many are drawn before somebody looks whether to stop.
        const AT_ONCE: usize = 4096;
        if !self.job.verify.only || self.replay.is_some() {
            return false;
        }
        let Some(verify) = &mut self.verify else {
            return false;
        };
        for _ in 0..AT_ONCE {
            if self.pass_left == 0 || verify.has_backlog() {
                break;
            }
            let dir = self.source.direction();
            let next = self.source.next(dir);
            if next.dir == DirIndex::Write {
                verify.note(&next);
            }
            self.issued_bytes += u64::from(next.len);
            self.issued_ios += 1;
            self.pass_left = self.pass_left.saturating_sub(u64::from(next.len));
        }
        true
    }

    /// Asks for what is to be read back; at its end the pass is over.
    pub(super) fn fill_back<B: Backend>(&mut self, backend: &mut B, now: u64) {
        while self.batch.len() < self.limits.submit
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
            let under = InFlight {
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
            self.begin(backend, slot, &under);
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
        if self.measuring && since > 0 {
            bump(&self.stats.read_back, now.saturating_sub(since));
        }
        if let Some(verify) = &mut self.verify {
            verify.reading_back = false;
            if let Some(history) = &mut verify.history {
                history.drop_read();
            }
        }
    }

    /// Checks a block that was read, where the job verifies what it reads.
    #[inline]
    pub(super) fn check(&mut self, slot: u32, under: &InFlight) {
        if let Some(verify) = &mut self.verify {
            verify.checked += 1;
        }
        let checked = |verify: &&Verifier| verify.reading_back || verify.checks_reads;
        if let Some(verify) = self.verify.as_ref().filter(checked) {
            let number = (verify.reading_back && verify.numbered).then_some(under.number as u16);
            self.check_block(slot, under, number);
        }
    }

    fn check_block(&mut self, slot: u32, under: &InFlight, number: Option<u16>) {
        // The null engine moves no data (verify.c, FIO_FAKEIO).
        if self.job.engine == IoEngine::Null {
            return;
        }
        let Some(verify) = &self.verify else { return };
        let block = self.buffers.slot_mut(slot, under.len as usize);
        let Err(mismatch) = verify.layout.check(block, under.offset, number) else {
            return;
        };
        let path = self.plan.files.get(under.file as usize);
        let path = path.map_or_else(PathBuf::new, |file| file.path.clone());
        let mut message = format!(
            "verify of {} bytes at offset {} failed: {mismatch}",
            mismatch.len, mismatch.offset
        );
        if self.job.verify.dump {
            let expected = verify.layout.expected(block, &mismatch, under.offset);
            let at = (mismatch.offset - under.offset) as usize;
            let received = &block[at..at + mismatch.len as usize];
            let dumped = dump::Mismatch {
                file: &path,
                offset: mismatch.offset,
                received,
                expected: expected.as_deref(),
                of_header: mismatch.is_of_header(),
            };
            message += &dumped.keep(&self.plan.place);
        }
        let ends = self.count_error(libc::EILSEQ, VERIFY, Some(DirIndex::Read));
        if ends || (self.job.verify.fatal && self.failure.is_none()) {
            let failure = Failure::new(FailureKind::Corrupt, message)
                .about(path.display().to_string())
                .with_errno(libc::EILSEQ);
            self.give_up(failure);
        }
    }
}
