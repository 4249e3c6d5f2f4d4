//! How I/O reaches the kernel: one small trait, a file for each way.
//!
//! `unsafe` is at home here. Its one invariant: an [`Io`] points to a slot of
//! the worker's [`Buffers`](super::buffer::Buffers), which outlive the backend, and nobody touches that
//! slot between [`Backend::push`] and the slot's [`CompletedIo`].

pub(super) mod burner;
pub(super) mod calls;
pub(super) mod file_calls;
pub(super) mod fileops;
pub(super) mod mmap;
pub(super) mod null;
pub(super) mod nvme;
pub(super) mod offload;
pub(super) mod one_by_one;
mod pool;
pub(super) mod posixaio;
pub(super) mod scsi;
pub(super) mod splice;

pub(super) mod libaio;
pub(super) mod uring;

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use super::usage::Usage;

/// What an I/O does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Read,
    Write,
    Trim,
    Fsync,
    Fdatasync,
}

impl Op {
    /// From 1 on, so that 0 can mean "none".
    pub(super) fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The kind with this code.
    #[inline]
    pub(super) fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Read),
            2 => Some(Self::Write),
            3 => Some(Self::Trim),
            4 => Some(Self::Fsync),
            5 => Some(Self::Fdatasync),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
        }
    }
}

/// One I/O to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Io {
    pub(super) slot: u32,
    pub(super) op: Op,
    /// Place of the file in the worker's list.
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) len: u32,
    /// Start of the data, inside the slot.
    pub(super) data: *mut u8,
    /// Kernel priority; 0 is not one of its own.
    pub(super) priority: u16,
}

/// One I/O that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompletedIo {
    pub(super) slot: u32,
    /// Bytes moved, or a negative errno.
    pub(super) result: i64,
}

/// A way to the kernel. The worker never has more I/Os under way than its depth.
pub(super) trait Backend {
    /// Whether fsync and fdatasync queue like I/Os; else the worker calls them itself.
    const QUEUES_SYNCS: bool;

    /// What it does otherwise than one may expect.
    fn note(&self) -> Option<&'static str> {
        None
    }

    /// Takes an I/O; nothing need reach the kernel yet.
    fn push(&mut self, io: Io);

    /// Hands over what was pushed. With `waiting` a call of [`Backend::reap`]
    /// that waits follows at once, so that one system call can do both.
    fn submit(&mut self, waiting: bool) -> io::Result<()>;

    /// Waits until `min` I/Os are over, no longer than `wait`, and appends up to
    /// `max` to `done`, which has room for the depth.
    fn reap(
        &mut self,
        min: usize,
        max: usize,
        wait: Option<Duration>,
        done: &mut Vec<CompletedIo>,
    ) -> io::Result<()>;
}

/// An open file as backends see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenFile {
    pub(super) fd: RawFd,
    pub(super) is_device: bool,
    /// Bytes from the start to the end of the job's extent.
    pub(super) bytes: u64,
}

/// The result of a call as the kernel's own interfaces give it: bytes or -errno.
fn result_of(value: isize) -> i64 {
    if value >= 0 {
        value as i64
    } else {
        -i64::from(
            io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO),
        )
    }
}

/// Drops the clean pages of a file's range, or all of a device's (which needs
/// root), from the cache. What cannot be dropped stays, as with fio.
pub(super) fn drop_cache(target: &OpenFile, start: u64, len: u64) {
    /// include/uapi/linux/fs.h: _IO(0x12, 97).
    const BLKFLSBUF: libc::c_ulong = 0x1261;
    if target.is_device {
        // SAFETY: the request takes no argument.
        unsafe { libc::ioctl(target.fd, BLKFLSBUF as _, 0) };
    } else {
        let (start, len) = (start as libc::off_t, len as libc::off_t);
        // SAFETY: no memory is passed.
        unsafe { libc::posix_fadvise(target.fd, start, len, libc::POSIX_FADV_DONTNEED) };
    }
}

/// Sets the calling thread's I/O priority (ioprio_set(2)).
pub(super) fn set_thread_priority(priority: u16) -> io::Result<()> {
    /// include/uapi/linux/ioprio.h.
    const IOPRIO_WHO_PROCESS: libc::c_int = 1;
    // SAFETY: no memory is passed; 0 is the calling thread.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ioprio_set,
            IOPRIO_WHO_PROCESS,
            0,
            libc::c_int::from(priority),
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Sets the calling thread's nice value (setpriority(2): on Linux of one thread).
pub(super) fn set_thread_nice(nice: i32) -> io::Result<()> {
    // SAFETY: no memory is passed; 0 is the calling thread.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where the pages of the calling thread's memory come from (set_mempolicy(2)).
pub(super) fn set_memory_policy(mode: libc::c_int, nodes: &[u64]) -> io::Result<()> {
    // The kernel takes one bit less than it is told (mm/mempolicy.c, get_nodes).
    let bits = nodes.len() * 64 + 1;
    // SAFETY: the kernel reads `bits` - 1 bits at the pointer.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, nodes.as_ptr(), bits) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// CPU times, faults and switches of the calling thread.
pub(super) fn thread_usage() -> Usage {
    // SAFETY: all fields of rusage are numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one rusage at the pointer.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } != 0 {
        return Usage::default();
    }
    let us = |time: libc::timeval| (time.tv_sec as u64) * 1_000_000 + time.tv_usec as u64;
    Usage {
        user_us: us(usage.ru_utime),
        system_us: us(usage.ru_stime),
        switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
        major_faults: usage.ru_majflt as u64,
        minor_faults: usage.ru_minflt as u64,
    }
}
