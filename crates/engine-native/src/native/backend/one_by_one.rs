//! I/Os that are done where they are handed over, one at a time.

use std::io;
use std::time::Duration;

use super::{Backend, CompletedIo, Io};

/// What does an I/O here and now.
pub(in crate::native) trait Immediate {
    /// Bytes moved, or a negative errno.
    fn run(&mut self, io: &Io) -> i64;
}

/// The queue of one I/O before it.
#[derive(Debug)]
pub(in crate::native) struct OneByOne<C> {
    calls: C,
    pending: Option<Io>,
    done: Option<CompletedIo>,
}

impl<C> OneByOne<C> {
    pub(in crate::native) fn new(calls: C) -> Self {
        Self {
            calls,
            pending: None,
            done: None,
        }
    }
}

impl<C: Immediate> Backend for OneByOne<C> {
    const QUEUES_SYNCS: bool = true;

    #[inline]
    fn push(&mut self, io: Io) {
        self.pending = Some(io);
    }

    #[inline]
    fn submit(&mut self, _waiting: bool) -> io::Result<()> {
        if let Some(io) = self.pending.take() {
            let result = self.calls.run(&io);
            self.done = Some(CompletedIo {
                slot: io.slot,
                result,
            });
        }
        Ok(())
    }

    #[inline]
    fn reap(
        &mut self,
        _min: usize,
        _max: usize,
        _wait: Option<Duration>,
        done: &mut Vec<CompletedIo>,
    ) -> io::Result<()> {
        done.extend(self.done.take());
        Ok(())
    }
}
