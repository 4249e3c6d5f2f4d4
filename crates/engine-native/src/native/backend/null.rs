//! Does nothing: what the engine itself costs.

use std::io;
use std::time::Duration;

use super::{Backend, CompletedIo, Io, Op};

/// Every I/O is over when it is looked for.
#[derive(Debug)]
pub(in crate::native) struct Null {
    done: Vec<CompletedIo>,
}

impl Null {
    pub(in crate::native) fn new(depth: usize) -> Self {
        Self {
            done: Vec::with_capacity(depth),
        }
    }
}

impl Backend for Null {
    const QUEUES_SYNCS: bool = true;

    #[inline]
    fn push(&mut self, io: Io) {
        let result = match io.op {
            Op::Read | Op::Write | Op::Trim => i64::from(io.len),
            Op::Fsync | Op::Fdatasync => 0,
        };
        self.done.push(CompletedIo {
            slot: io.slot,
            result,
        });
    }

    fn submit(&mut self, _waiting: bool) -> io::Result<()> {
        Ok(())
    }

    #[inline]
    fn reap(
        &mut self,
        _min: usize,
        max: usize,
        _wait: Option<Duration>,
        done: &mut Vec<CompletedIo>,
    ) -> io::Result<()> {
        let count = max.min(self.done.len());
        done.extend(self.done.drain(..count));
        Ok(())
    }
}
