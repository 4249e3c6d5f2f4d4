//! Which processes have a file or a block device open for writing: a virtual
//! machine its image, a database its device. Nothing else tells of them, as
//! neither mounts nor claims.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::str::FromStr;

use crate::sys::Sys;

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
        } else {
            kind.is_block_device().then(|| Self::Device(meta.rdev()))
        }
    }
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
        for pid in processes(sys).filter(|&pid| pid != own) {
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
    let Some(wanted) = fs::metadata(path).ok().and_then(|meta| Opened::of(&meta)) else {
        return false;
    };
    let has_it = |(pid, _): (u32, u64)| {
        let descriptors = fs::read_dir(sys.path(format!("/proc/{pid}/fd")));
        let descriptors = descriptors.into_iter().flatten().flatten();
        let mut opened = descriptors.filter_map(|it| Opened::of(&fs::metadata(it.path()).ok()?));
        opened.any(|opened| opened == wanted)
    };
    let children = own_processes(sys).into_iter();
    children
        .filter(|(pid, _)| *pid != std::process::id())
        .any(has_it)
}

fn number(name: &OsStr) -> Option<u32> {
    name.to_str()?.parse().ok()
}

/// Whether this process has started it, or one that did.
fn is_ours(sys: &Sys, mut pid: u32) -> bool {
    for _ in 0..MOST_PARENTS {
        if pid == std::process::id() {
            return true;
        }
        match parent(sys, pid) {
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// This process and those that it has started and that still run, each with its
/// start in the kernel's ticks since boot.
pub(crate) fn own_processes(sys: &Sys) -> Vec<(u32, u64)> {
    /// `starttime` is the 22nd field, the state the third (proc_pid_stat(5)).
    const START: usize = 22 - 3;
    let told: Vec<(u32, u32, u64)> = processes(sys)
        .filter_map(|pid| Some((pid, parent(sys, pid)?, stat_field(sys, pid, START)?)))
        .collect();
    let mut ours = vec![std::process::id()];
    let mut at = 0;
    while let Some(&parent) = ours.get(at) {
        let children = told.iter().filter(|(_, of, _)| *of == parent);
        ours.extend(children.map(|(pid, ..)| *pid));
        at += 1;
    }
    let is_ours = |(pid, ..): &&(u32, u32, u64)| ours.contains(pid);
    told.iter()
        .filter(is_ours)
        .map(|&(pid, _, started)| (pid, started))
        .collect()
}

fn processes(sys: &Sys) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(sys.path("/proc")).into_iter().flatten();
    entries
        .flatten()
        .filter_map(|entry| number(&entry.file_name()))
}

fn parent(sys: &Sys, pid: u32) -> Option<u32> {
    stat_field(sys, pid, 1)
}

/// A field behind the command, counted from the state (0).
/// proc_pid_stat(5): `PID (COMMAND) STATE PARENT …`; the command may hold anything.
fn stat_field<T: FromStr>(sys: &Sys, pid: u32, field: usize) -> Option<T> {
    let stat = fs::read(sys.path(Path::new(&format!("/proc/{pid}/stat")))).ok()?;
    let behind = stat.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(&stat[behind + 1..]).ok()?;
    rest.split_whitespace().nth(field)?.parse().ok()
}

fn command(sys: &Sys, pid: u32) -> String {
    let comm = fs::read(sys.path(Path::new(&format!("/proc/{pid}/comm")))).unwrap_or_default();
    let comm = String::from_utf8_lossy(&comm);
    comm.chars().filter(|c| !c.is_control()).collect()
}
