//! What is done to files as a whole: filecreate, filestat, filedelete
//! (engines/fileoperations.c).

#![allow(unsafe_code)] // each block says why it is sound

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::one_by_one::Immediate;
use super::{Io, result_of};
use crate::native::files::FilePlan;
use crate::native::job::{FileOp, StatCall};

/// A file by its name in its folder, which is held: no link that moves leads elsewhere.
#[derive(Debug)]
struct HeldName {
    folder: Arc<OwnedFd>,
    name: CString,
}

/// One operation on each file.
#[derive(Debug)]
pub(in crate::native) struct FileOps {
    files: Vec<HeldName>,
    op: FileOp,
    stat: StatCall,
}

impl FileOps {
    pub(in crate::native) fn new(
        plans: &[FilePlan],
        op: FileOp,
        stat: StatCall,
    ) -> io::Result<Self> {
        let mut folders: BTreeMap<PathBuf, Arc<OwnedFd>> = BTreeMap::new();
        let mut files = Vec::new();
        for plan in plans {
            let held = plan.checked.hold_folder(&plan.path)?;
            // Each operation goes by the name: what stands there must be known now.
            match plan.checked.hold(&plan.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let name = CString::new(held.name.as_bytes())?;
            let folder = folders.entry(held.real).or_insert(held.folder.into());
            let folder = Arc::clone(folder);
            files.push(HeldName { folder, name });
        }
        Ok(Self { files, op, stat })
    }

    fn operate(&self, file: &HeldName) -> i64 {
        let (folder, name) = (file.folder.as_raw_fd(), file.name.as_ptr());
        match self.op {
            FileOp::Create => {
                let flags = libc::O_CREAT | libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
                // SAFETY: an open folder and a C string; the mode goes with O_CREAT.
                let fd = unsafe { libc::openat(folder, name, flags, 0o600) };
                if fd >= 0 {
                    // SAFETY: opened above, closed once.
                    unsafe { libc::close(fd) };
                }
                result_of(fd as isize)
            }
            FileOp::Stat => look_at(file, self.stat),
            // SAFETY: an open folder and a C string.
            FileOp::Delete => result_of(unsafe { libc::unlinkat(folder, name, 0) } as isize),
        }
    }
}

/// One of the calls that say what a file is.
fn look_at(file: &HeldName, call: StatCall) -> i64 {
    let (folder, name) = (file.folder.as_raw_fd(), file.name.as_ptr());
    // SAFETY: all fields of stat are numbers, for which zero is a value.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut statx: libc::statx = unsafe { std::mem::zeroed() };
    let result = match call {
        // SAFETY: an open folder and a C string; the kernel writes one stat at the pointer.
        StatCall::Stat => unsafe { libc::fstatat(folder, name, &raw mut stat, 0) },
        // SAFETY: as above.
        StatCall::Lstat => unsafe {
            libc::fstatat(folder, name, &raw mut stat, libc::AT_SYMLINK_NOFOLLOW)
        },
        // SAFETY: as above, of a statx.
        StatCall::Statx => unsafe { libc::statx(folder, name, 0, libc::STATX_ALL, &raw mut statx) },
    };
    result_of(result as isize)
}

impl Immediate for FileOps {
    fn run(&mut self, io: &Io) -> i64 {
        let file = self.files.get(io.file as usize);
        let result = file.map_or(0, |file| self.operate(file));
        if result < 0 { result } else { io.len.into() }
    }
}
