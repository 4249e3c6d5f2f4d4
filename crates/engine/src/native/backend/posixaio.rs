//! POSIX AIO as glibc does it: a thread for each file takes that file's
//! requests one after the other (sysdeps/pthread/aio_misc.c chains requests of
//! one descriptor). So a deeper queue on one file keeps a thread busy and no more.

use std::io;
use std::time::Duration;

use super::pool::IoPool;
use super::{Backend, CompletedIo, Io, OpenFile, calls};

/// The threads of one worker's files.
pub(in crate::native) struct PosixAio(IoPool);

impl PosixAio {
    pub(in crate::native) fn new(files: &[OpenFile], depth: usize) -> io::Result<Self> {
        let mut pool = IoPool::new(depth);
        for &file in files {
            let line = pool.add_line();
            let make = move || -> io::Result<super::pool::Execute> {
                Ok(Box::new(move |io| calls::execute(&file, io)))
            };
            pool.add_thread(line, "posixaio", make)?;
        }
        Ok(Self(pool))
    }
}

impl Backend for PosixAio {
    const QUEUES_SYNCS: bool = true;

    fn push(&mut self, io: Io) {
        self.0.push(io.file as usize, io);
    }

    fn submit(&mut self, _waiting: bool) -> io::Result<()> {
        Ok(())
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        wait: Option<Duration>,
        done: &mut Vec<CompletedIo>,
    ) -> io::Result<()> {
        self.0.reap(min, max, wait, done);
        Ok(())
    }
}
