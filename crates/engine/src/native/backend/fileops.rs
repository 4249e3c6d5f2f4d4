//! What is done to files as a whole: filecreate, filestat, filedelete
//! (engines/fileoperations.c).

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use super::{Backend, CompletedIo, Io, result_of};
use crate::native::job::FileOp;

/// One operation at a time, done when it is submitted.
#[derive(Debug)]
pub(in crate::native) struct FileOps {
    paths: Vec<CString>,
    op: FileOp,
    pending: Option<Io>,
    done: Option<CompletedIo>,
}

impl FileOps {
    pub(in crate::native) fn new<'a>(
        paths: impl Iterator<Item = &'a Path>,
        op: FileOp,
    ) -> io::Result<Self> {
        let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(Into::into);
        Ok(Self {
            paths: paths.map(name).collect::<io::Result<_>>()?,
            op,
            pending: None,
            done: None,
        })
    }

    fn run(&self, path: &CString) -> i64 {
        match self.op {
            FileOp::Create => {
                let flags = libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC;
                // SAFETY: a C string; the mode goes with O_CREAT.
                let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
                if fd >= 0 {
                    // SAFETY: opened above, closed once.
                    unsafe { libc::close(fd) };
                }
                result_of(fd as isize)
            }
            FileOp::Stat => {
                // SAFETY: all fields of stat are numbers, for which zero is a value.
                let mut stat: libc::stat = unsafe { std::mem::zeroed() };
                // SAFETY: a C string; the kernel writes one stat at the pointer.
                result_of(unsafe { libc::stat(path.as_ptr(), &raw mut stat) } as isize)
            }
            // SAFETY: a C string.
            FileOp::Delete => result_of(unsafe { libc::unlink(path.as_ptr()) } as isize),
        }
    }
}

impl Backend for FileOps {
    const QUEUES_SYNCS: bool = true;

    fn push(&mut self, io: Io) {
        self.pending = Some(io);
    }

    fn submit(&mut self, _waiting: bool) -> io::Result<()> {
        if let Some(io) = self.pending.take() {
            let result = self
                .paths
                .get(io.file as usize)
                .map_or(0, |path| self.run(path));
            let result = if result < 0 { result } else { io.len.into() };
            let slot = io.slot;
            self.done = Some(CompletedIo { slot, result });
        }
        Ok(())
    }

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
