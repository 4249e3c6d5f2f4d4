//! What was written, until it is read back.

use std::io;

use super::{gcd, interval};
use crate::native::files::{FilePlan, MemberFiles};
use crate::native::job::{DirIndex, NativeJob};

/// A write of the pass.
#[derive(Debug, Clone, Copy)]
pub(in crate::native) struct BlockWrite {
    pub(in crate::native) offset: u64,
    pub(in crate::native) file: u32,
    /// 0: it failed.
    pub(in crate::native) len: u32,
    /// Which write it was.
    pub(in crate::native) number: u32,
    /// A later one wrote over it.
    covered: bool,
}

/// The writes of a pass in their order, until they are read back.
#[derive(Debug)]
pub(in crate::native) struct WriteHistory {
    writes: Vec<BlockWrite>,
    /// Writes so far, those that were read back included.
    count: u32,
    /// Where blocks may be written twice: a bit for every `granule` bytes of
    /// each file, set when a later write was seen.
    seen: Vec<Vec<u64>>,
    granule: u64,
    /// The next to be read back, and where this reading ends.
    next: usize,
    end: usize,
}

impl WriteHistory {
    /// Room for a pass of this plan.
    pub(in crate::native) fn new(job: &NativeJob, plan: &MemberFiles) -> io::Result<Self> {
        let no_memory = || io::Error::from_raw_os_error(libc::ENOMEM);
        let least = job.pattern.sizes[DirIndex::Write as usize].min().max(1);
        let logged = plan.replay.as_ref().map(|plan| plan.writes);
        let most = match logged {
            Some(logged) => logged.count,
            // More for a last block that goes beyond the pass and for failed writes
            // of the queue.
            None => plan.pass_bytes / u64::from(least) + u64::from(job.depth()) + 1,
        };
        let most = match job.verify.backlog {
            0 => most,
            backlog => most.min(backlog.saturating_add(1)),
        };
        let most = u32::try_from(most).map_err(|_| no_memory())?;
        let mut writes = Vec::new();
        writes
            .try_reserve_exact(most as usize)
            .map_err(|_| no_memory())?;
        let align = job.pattern.align[DirIndex::Write as usize].unwrap_or(0);
        let of_blocks = || {
            let of_job = gcd(interval(job).into(), align.into());
            let files = plan.files.iter();
            files.fold(of_job, |all, file| gcd(all, file.start))
        };
        let granule = logged
            .map_or_else(of_blocks, |logged| logged.granule)
            .max(1);
        let words = |file: &FilePlan| ((file.start + file.len) / granule / 64 + 1) as usize;
        Ok(Self {
            writes,
            count: 0,
            seen: if plan.may_repeat(job) {
                plan.files.iter().map(|file| vec![0; words(file)]).collect()
            } else {
                Vec::new()
            },
            granule,
            next: 0,
            end: 0,
        })
    }

    /// Writes that have not been read back.
    pub(in crate::native) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Notes a write; its number.
    #[inline]
    pub(in crate::native) fn push(&mut self, file: u32, offset: u64, len: u32) -> u32 {
        let number = self.count;
        self.count = self.count.wrapping_add(1);
        self.writes.push(BlockWrite {
            offset,
            file,
            len,
            number,
            covered: false,
        });
        number
    }

    /// A write that failed is not read back. It is one of the last: nothing is read back
    /// while writes are under way.
    pub(in crate::native) fn forget(&mut self, number: u32) {
        let behind = self.count.wrapping_sub(number) as usize;
        let place = self.writes.len().checked_sub(behind);
        if let Some(written) = place.and_then(|place| self.writes.get_mut(place)) {
            written.len = 0;
        }
    }

    /// Begins to read back, `most` writes: in their order or, where blocks may be
    /// written twice, in that of the file without those that were written over
    /// (iolog.c, log_io_piece).
    pub(in crate::native) fn settle(&mut self, most: usize) {
        self.writes.retain(|written| written.len > 0);
        if !self.seen.is_empty() {
            for written in self.writes.iter_mut().rev() {
                let seen = &mut self.seen[written.file as usize];
                written.covered = cover(seen, written, self.granule);
            }
            for written in &self.writes {
                uncover(&mut self.seen[written.file as usize], written, self.granule);
            }
            self.writes.retain(|written| !written.covered);
            self.writes
                .sort_unstable_by_key(|written| (written.file, written.offset));
        }
        (self.next, self.end) = (0, self.writes.len().min(most));
    }

    /// The next write to read back.
    pub(in crate::native) fn next(&mut self) -> Option<BlockWrite> {
        if self.is_through() {
            return None;
        }
        let written = self.writes.get(self.next).copied();
        self.next += 1;
        written
    }

    /// Whether all have been read back.
    pub(in crate::native) fn is_through(&self) -> bool {
        self.next == self.end
    }

    /// This reading is over.
    pub(in crate::native) fn drop_read(&mut self) {
        self.writes.drain(..self.next);
        (self.next, self.end) = (0, 0);
    }
}

/// The words and bits of a write's bytes.
fn bits(written: &BlockWrite, granule: u64) -> impl Iterator<Item = (usize, u64)> + use<> {
    let end = (written.offset + u64::from(written.len)).div_ceil(granule);
    (written.offset / granule..end).map(|place| ((place / 64) as usize, 1 << (place % 64)))
}

/// Marks a write's bytes; whether some of them were marked before.
fn cover(seen: &mut [u64], written: &BlockWrite, granule: u64) -> bool {
    let mut covered = false;
    for (word, bit) in bits(written, granule) {
        if let Some(word) = seen.get_mut(word) {
            covered |= *word & bit != 0;
            *word |= bit;
        }
    }
    covered
}

fn uncover(seen: &mut [u64], written: &BlockWrite, granule: u64) {
    for (word, bit) in bits(written, granule) {
        if let Some(word) = seen.get_mut(word) {
            *word &= !bit;
        }
    }
}
