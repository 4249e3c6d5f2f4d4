//! What is done to files as a whole: filecreate, filestat, filedelete
//! (engines/fileoperations.c).

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::one_by_one::Immediate;
use super::{Io, result_of};
use crate::native::job::{FileOp, StatCall};

/// One operation on each file.
#[derive(Debug)]
pub(in crate::native) struct FileOps {
    paths: Vec<CString>,
    op: FileOp,
    stat: StatCall,
}

impl FileOps {
    pub(in crate::native) fn new<'a>(
        paths: impl Iterator<Item = &'a Path>,
        op: FileOp,
        stat: StatCall,
    ) -> io::Result<Self> {
        let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(Into::into);
        Ok(Self {
            paths: paths.map(name).collect::<io::Result<_>>()?,
            op,
            stat,
        })
    }

    fn operate(&self, path: &CString) -> i64 {
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
            FileOp::Stat => look_at(path, self.stat),
            // SAFETY: a C string.
            FileOp::Delete => result_of(unsafe { libc::unlink(path.as_ptr()) } as isize),
        }
    }
}

/// One of the calls that say what a file is.
fn look_at(path: &CString, call: StatCall) -> i64 {
    let path = path.as_ptr();
    // SAFETY: all fields of stat are numbers, for which zero is a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut statx: libc::statx = unsafe { std::mem::zeroed() };
    let result = match call {
        // SAFETY: a C string; the kernel writes one stat at the pointer.
        StatCall::Stat => unsafe { libc::stat(path, &raw mut stat) },
        // SAFETY: as above.
        StatCall::Lstat => unsafe { libc::lstat(path, &raw mut stat) },
        // SAFETY: a C string; the kernel writes one statx at the pointer.
        StatCall::Statx => unsafe {
            libc::statx(libc::AT_FDCWD, path, 0, libc::STATX_ALL, &raw mut statx)
        },
    };
    result_of(result as isize)
}

impl Immediate for FileOps {
    fn run(&mut self, io: &Io) -> i64 {
        let path = self.paths.get(io.file as usize);
        let result = path.map_or(0, |path| self.operate(path));
        if result < 0 { result } else { io.len.into() }
    }
}
