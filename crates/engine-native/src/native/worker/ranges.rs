//! sync_file_range: after every so many writes what was written since the last sync is
//! asked to be written back (io_u.c, do_sync_file_range).

use fathom_model::{Failure, FailureKind};

use super::Worker;
use crate::native::backend::{Backend, file_calls};
use crate::native::job::JobFiles;

/// What was written, and when it is due.
#[derive(Debug)]
pub(super) struct SyncRanges {
    every: u64,
    flags: u32,
    /// Writes since the last call.
    writes: u64,
    due: Option<u32>,
    /// Of each file from where to where it was written since it was synced.
    written: Vec<Option<(u64, u64)>>,
}

impl SyncRanges {
    /// `None`: the job does not ask for it.
    pub(super) fn new(options: &JobFiles, files: usize) -> Option<Self> {
        (options.sync_range_every > 0).then(|| Self {
            every: options.sync_range_every,
            flags: options.sync_range_flags,
            writes: 0,
            due: None,
            written: vec![None; files],
        })
    }

    /// A write of a file begins; another sync of it may be due behind it, which goes first.
    pub(super) fn issued(&mut self, file: u32, synced: bool) {
        self.writes += 1;
        if self.writes >= self.every {
            self.writes = 0;
            self.due = Some(file).filter(|_| !synced);
        }
    }

    /// A write is over.
    pub(super) fn wrote(&mut self, file: u32, start: u64, len: u32) {
        let (from, to) = (start, start + u64::from(len));
        let written = &mut self.written[file as usize];
        let (first, last) = written.unwrap_or((from, to));
        *written = Some((first.min(from), last.max(to)));
    }

    /// All that was written of a file has been synced.
    pub(super) fn synced(&mut self, file: u32) {
        self.written[file as usize] = None;
    }
}

impl Worker {
    /// Syncs the range that is due, here and now, behind what was pushed before.
    pub(super) fn sync_range<B: Backend>(&mut self, backend: &mut B) {
        let Some(ranges) = &mut self.ranges else {
            return;
        };
        let Some(file) = ranges.due.take() else {
            return;
        };
        let Some((from, to)) = ranges.written[file as usize].take() else {
            return;
        };
        let flags = ranges.flags;
        let Some(target) = self.targets.get(file as usize) else {
            return;
        };
        let begun = self.clock.now();
        let done = backend
            .submit(false)
            .and_then(|()| file_calls::sync_range(target.fd, from, to - from, flags));
        if self.measuring {
            let took = self.clock.now().saturating_sub(begun);
            self.stats.sync.add(self.clock.ns(took), 1);
        }
        if let Err(error) = done {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            if self.count_error(errno, 1, None) {
                let path = self.plan.files[file as usize].path.display().to_string();
                let failure =
                    Failure::new(FailureKind::Io, format!("sync_file_range failed: {error}"));
                self.give_up(failure.about(path).with_errno(errno));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_what_was_written_since_the_last_sync() {
        let options = JobFiles {
            sync_range_every: 2,
            ..JobFiles::default()
        };
        let mut ranges = SyncRanges::new(&options, 2).unwrap();
        ranges.issued(1, false);
        ranges.wrote(1, 8192, 4096);
        assert_eq!(ranges.due, None);
        ranges.issued(1, false);
        ranges.wrote(1, 0, 4096);
        assert_eq!(
            (ranges.due, ranges.written[1]),
            (Some(1), Some((0, 12_288)))
        );
        ranges.synced(1);
        assert_eq!(ranges.written, [None, None]);
        // An fsync at the same time is enough.
        (0..2).for_each(|_| ranges.issued(0, true));
        assert_eq!(ranges.due, None);
        assert!(SyncRanges::new(&JobFiles::default(), 1).is_none());
    }
}
