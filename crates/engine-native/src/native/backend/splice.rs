//! splice: data through a pipe (engines/splice.c).

#![allow(unsafe_code)] // each block says why it is sound

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd as _, RawFd};

use super::{Io, Op, result_of};

/// The pipe of one worker.
#[derive(Debug)]
pub(in crate::native) struct Pipe {
    out: PipeReader,
    into: PipeWriter,
}

/// What a pipe holds by default, and most at once (pipe(7)).
const ROOM: usize = 64 << 10;

impl Pipe {
    pub(in crate::native) fn new() -> io::Result<Self> {
        let (out, into) = io::pipe()?;
        Ok(Self { out, into })
    }

    /// A whole read or write; bytes moved, or -errno when none were.
    pub(super) fn transfer(&self, fd: RawFd, io: &Io) -> i64 {
        let mut moved = 0usize;
        while moved < io.len as usize {
            let here = (io.len as usize - moved).min(ROOM);
            // SAFETY: below `len`, inside the slot.
            let data = unsafe { io.data.pointer().add(moved) };
            let offset = io.offset as i64 + moved as i64;
            let done = match io.op {
                Op::Read => self.read(fd, data, here, offset),
                _ => self.write(fd, data, here, offset),
            };
            match done {
                // The end, or an error: as a call that moved the rest would tell it.
                ..=0 if moved == 0 => return done,
                ..=0 => break,
                done => moved += done as usize,
            }
        }
        moved as i64
    }

    /// Into the pipe from the file, and out of it by vmsplice, which copies (vmsplice(2)).
    fn read(&self, fd: RawFd, data: *mut u8, len: usize, mut offset: i64) -> i64 {
        let into = self.into.as_raw_fd();
        let null = std::ptr::null_mut();
        // SAFETY: the kernel reads and writes one offset at the pointer.
        let got = result_of(unsafe {
            libc::splice(fd, &raw mut offset, into, null, len, libc::SPLICE_F_MOVE)
        });
        let mut taken = 0;
        while taken < got {
            let vector = libc::iovec {
                // SAFETY: below `len`, inside the slot.
                iov_base: unsafe { data.add(taken as usize) }.cast(),
                iov_len: (got - taken) as usize,
            };
            let out = self.out.as_raw_fd();
            // SAFETY: one vector of at most `len` bytes of a slot nobody else uses.
            let read = result_of(unsafe {
                libc::vmsplice(out, &raw const vector, 1, libc::SPLICE_F_MOVE)
            });
            if read <= 0 {
                return read;
            }
            taken += read;
        }
        got
    }

    /// The pages themselves into the pipe, from there to the file.
    fn write(&self, fd: RawFd, data: *mut u8, len: usize, mut offset: i64) -> i64 {
        let vector = libc::iovec {
            iov_base: data.cast(),
            iov_len: len,
        };
        // SAFETY: one vector of a slot that stays as it is until this returns.
        let given =
            result_of(unsafe { libc::vmsplice(self.into.as_raw_fd(), &raw const vector, 1, 0) });
        let mut written = 0;
        while written < given {
            let left = (given - written) as usize;
            let out = self.out.as_raw_fd();
            let null = std::ptr::null_mut();
            // SAFETY: the kernel reads and writes one offset at the pointer.
            let done = result_of(unsafe {
                libc::splice(out, null, fd, &raw mut offset, left, libc::SPLICE_F_MOVE)
            });
            if done <= 0 {
                self.empty(left);
                return if written > 0 { written } else { done };
            }
            written += done;
        }
        given
    }

    /// Takes out what a failed write has left, so that nobody finds it.
    fn empty(&self, mut left: usize) {
        let mut sink = [0u8; 4096];
        while left > 0 {
            let part = left.min(sink.len());
            // SAFETY: `sink` has room for `part` bytes.
            let read = unsafe { libc::read(self.out.as_raw_fd(), sink.as_mut_ptr().cast(), part) };
            match usize::try_from(read) {
                Ok(read) if read > 0 => left -= read,
                _ => return,
            }
        }
    }
}
