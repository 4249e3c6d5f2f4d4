//! The room under a path, for checks before a run.

use std::io;
use std::path::Path;

use crate::paths::existing;
use crate::stack;
use crate::sys::Sys;

/// What a path's file system offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes free for an ordinary user.
    pub free_bytes: u64,
    /// Size of the file system in bytes.
    pub size_bytes: u64,
    /// Whether it is mounted read-only.
    pub read_only: bool,
    /// Whether it lives in memory (tmpfs, ramfs): a figure from it says nothing
    /// of any disk.
    pub in_memory: bool,
}

/// The room where `path` is, or where it would be made.
///
/// # Errors
/// When neither the path nor a folder above it can be looked at.
pub fn of(path: &Path) -> io::Result<Space> {
    let path = existing(path).ok_or(io::ErrorKind::NotFound)?;
    let room = rustix::fs::statvfs(&path)?;
    let stack = stack::of(&Sys::live(), &path);
    Ok(Space {
        free_bytes: room.f_bavail.saturating_mul(room.f_frsize),
        size_bytes: room.f_blocks.saturating_mul(room.f_frsize),
        read_only: room.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY),
        in_memory: stack.is_some_and(|it| it.is_in_memory()),
    })
}

/// Bytes free for an ordinary user where `path` is, or where it would be made.
///
/// # Errors
/// As [`of`].
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    of(path).map(|space| space.free_bytes)
}
