//! Which processes have a file or a block device open for writing: a virtual
//! machine its image, a database its device. Nothing else tells of them, as
//! neither mounts nor claims.

#![allow(unsafe_code)] // each block says why it is sound

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::process::{self, Process};
use crate::sys::{Sys, numbers};

/// Most parents of a process that are asked for: more are a circle.
const MOST_PARENTS: usize = 1000;
/// Write permission of the owner: what the mode of `/proc/PID/fd/N` has where
/// the descriptor was opened for writing (proc_pid_fd(5)).
const WRITES: u32 = 0o200;

/// A file or a block device, whatever its name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Opened {
    /// A regular file: its file system's number, and its own.
    File(u64, u64),
    /// A block device: its number as stat(2) gives it.
    Device(u64),
}

impl Opened {
    pub(crate) fn of(meta: &Metadata) -> Option<Self> {
        let kind = meta.file_type();
        if kind.is_file() {
            Some(Self::File(meta.dev(), meta.ino()))
        } else if kind.is_char_device() {
            generic(meta.rdev()).map(Self::Device)
        } else {
            kind.is_block_device().then(|| Self::Device(meta.rdev()))
        }
    }
}

/// The number of the block device that a generic device is the other way to.
fn generic(device: u64) -> Option<u64> {
    /// Majors that are given as they are asked for begin here (include/linux/fs.h,
    /// CHRDEV_MAJOR_DYN_END); /dev/null and terminals lie below.
    const LEAST_DYNAMIC: u32 = 234;
    /// /dev/sg0 and the like (include/uapi/linux/major.h, SCSI_GENERIC_MAJOR).
    const SCSI_GENERIC: u32 = 21;
    let (major, minor) = numbers(device);
    let may_be = major >= LEAST_DYNAMIC || major == SCSI_GENERIC;
    let disk = may_be.then(|| Sys::live().by_generic(major, minor));
    let (major, minor) = disk??.number()?;
    Some(rustix::fs::makedev(major, minor))
}

/// A process with something open for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opener {
    pub(crate) pid: u32,
    /// Its name, as it gave it to itself.
    pub(crate) command: String,
}

/// What all processes that may be looked at have open for writing.
#[derive(Debug, Default)]
pub(crate) struct Openers {
    pids: HashMap<Opened, Vec<u32>>,
    /// Processes that this one may not look at.
    pub(crate) unseen: usize,
}

impl Openers {
    /// Looks at every process but this one.
    pub(crate) fn now(sys: &Sys) -> Self {
        let mut openers = Self::default();
        let own = std::process::id();
        for pid in process::pids(sys).filter(|&pid| pid != own) {
            openers.look_at(pid, &sys.path(format!("/proc/{pid}")));
        }
        openers
    }

    fn look_at(&mut self, pid: u32, process: &Path) {
        let descriptors = match fs::read_dir(process.join("fd")) {
            Ok(descriptors) => descriptors,
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                self.unseen += 1;
                return;
            }
            // It has ended.
            Err(_) => return,
        };
        for descriptor in descriptors.flatten() {
            let path = descriptor.path();
            let writes = fs::symlink_metadata(&path)
                .is_ok_and(|link| link.permissions().mode() & WRITES != 0);
            let opened = writes.then(|| fs::metadata(&path).ok()).flatten();
            let Some(opened) = opened.and_then(|meta| Opened::of(&meta)) else {
                continue;
            };
            let pids = self.pids.entry(opened).or_default();
            if pids.last() != Some(&pid) {
                pids.push(pid);
            }
        }
    }

    /// Who has it open for writing; this process and what it has started are
    /// left out.
    pub(crate) fn of(&self, sys: &Sys, opened: Opened) -> Vec<Opener> {
        let pids = self.pids.get(&opened).into_iter().flatten();
        let strangers = pids.filter(|&&pid| !is_ours(sys, pid));
        strangers
            .map(|&pid| Opener {
                pid,
                command: command(sys, pid),
            })
            .collect()
    }
}

/// Whether a process that this one has started, and not this one, has a file or device
/// open, for whatever.
pub(crate) fn ours_have_open(sys: &Sys, path: &Path) -> bool {
    let children = own_processes(sys).into_iter();
    children
        .filter(|(pid, _)| *pid != std::process::id())
        .any(|(pid, _)| has_open(sys, path, pid))
}

/// Whether a process has a file or device open, for whatever.
fn has_open(sys: &Sys, path: &Path, pid: u32) -> bool {
    let Some(wanted) = fs::metadata(path).ok().and_then(|meta| Opened::of(&meta)) else {
        return false;
    };
    let descriptors = fs::read_dir(sys.path(format!("/proc/{pid}/fd")));
    let descriptors = descriptors.into_iter().flatten().flatten();
    let mut opened = descriptors.filter_map(|it| Opened::of(&fs::metadata(it.path()).ok()?));
    opened.any(|opened| opened == wanted)
}

/// Whether somebody has a regular file open for writing whom no /proc here shows: a
/// process of another PID namespace, one that has it mapped only, the kernel itself.
pub(crate) fn is_written_elsewhere(sys: &Sys, path: &Path) -> bool {
    let is_ours = || has_open(sys, path, std::process::id()) || ours_have_open(sys, path);
    lease_is_refused(path) && !is_ours()
}

/// A lease for reading is given only where nobody has the file open for writing,
/// however (fcntl(2), `F_SETLEASE`). Where it cannot be asked for (another's file, a
/// network file system) nothing is known.
#[cfg(target_os = "linux")]
fn lease_is_refused(path: &Path) -> bool {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    /// asm-generic/fcntl.h.
    const F_SETSIG: i32 = 10;

    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    let Ok(file) = file else { return false };
    let call = |command, argument: i32| {
        // SAFETY: the descriptor is open; neither command takes a pointer.
        unsafe { libc::fcntl(file.as_raw_fd(), command, argument) }
    };
    // Whoever opens the file while the lease stands waits for it, and the holder is told
    // by a signal: one that is ignored unless somebody handles it.
    if call(F_SETSIG, libc::SIGURG) != 0 {
        return false;
    }
    if call(libc::F_SETLEASE, libc::F_RDLCK) == 0 {
        call(libc::F_SETLEASE, libc::F_UNLCK);
        return false;
    }
    std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
fn lease_is_refused(_: &Path) -> bool {
    false
}

/// Whether this process has started it, or one that did.
fn is_ours(sys: &Sys, mut pid: u32) -> bool {
    for _ in 0..MOST_PARENTS {
        if pid == std::process::id() {
            return true;
        }
        match Process::of(sys, &pid.to_string()) {
            Some(it) if it.parent > 1 => pid = it.parent,
            _ => return false,
        }
    }
    false
}

/// This process and those that it has started and that still run, each with its
/// start in the kernel's ticks since boot.
pub(crate) fn own_processes(sys: &Sys) -> Vec<(u32, u64)> {
    let processes = process::all(sys);
    let own = std::process::id();
    let ours = process::below(&processes, &[own]);
    let is_ours = |it: &&Process| it.pid == own || ours.contains(&it.pid);
    let ours = processes.iter().filter(is_ours);
    ours.map(|it| (it.pid, it.started)).collect()
}

fn command(sys: &Sys, pid: u32) -> String {
    let comm = fs::read(sys.path(Path::new(&format!("/proc/{pid}/comm")))).unwrap_or_default();
    let comm = String::from_utf8_lossy(&comm);
    comm.chars().filter(|c| !c.is_control()).collect()
}
