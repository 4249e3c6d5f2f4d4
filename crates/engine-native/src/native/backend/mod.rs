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

use super::buffer::DataPlace;

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
    pub(super) data: DataPlace,
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
