//! POSIX AIO as glibc does it: a thread for each file takes that file's
//! requests one after the other (sysdeps/pthread/aio_misc.c chains requests of
//! one descriptor). So a deeper queue on one file keeps a thread busy and no more.

use std::io;

use super::pool::{Execute, IoPool};
use super::{OpenFile, calls};

/// The threads of one worker's files.
pub(in crate::native) fn threads(files: &[OpenFile], depth: usize) -> io::Result<IoPool> {
    let mut pool = IoPool::new(depth);
    for &file in files {
        let line = pool.add_line();
        let make =
            move || -> io::Result<Execute> { Ok(Box::new(move |io| calls::execute(&file, io))) };
        pool.add_thread(line, "posixaio", make)?;
    }
    Ok(pool)
}
