//! Synchronous calls: sync (lseek and read), psync (pread), pvsync2 (preadv2), splice,
//! falloc, ftruncate.

#![allow(unsafe_code)] // each block says why it is sound

use std::io;
use std::os::fd::RawFd;

use super::one_by_one::Immediate;
use super::splice::Pipe;
use super::{Io, Op, OpenFile, result_of};
use crate::native::rng::Rng;

/// Which calls are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::native) enum CallStyle {
    Seek,
    Positioned,
    /// preadv2 with these flags; a share of them, in percent, polls for its completion
    /// (RWF_HIPRI).
    Vectored {
        flags: i32,
        poll_percent: u8,
    },
    /// Through a pipe.
    Spliced,
    /// fallocate of the range: a read keeps the file's size.
    Allocate,
    /// ftruncate to the offset.
    Truncate,
}

/// The calls of one worker.
#[derive(Debug)]
pub(in crate::native) struct Calls {
    files: Vec<OpenFile>,
    style: CallStyle,
    /// Of [`CallStyle::Spliced`].
    pipe: Option<Pipe>,
    /// Where each file's offset stands, so that lseek is left out as fio leaves it out.
    positions: Vec<u64>,
    /// Which I/Os poll, when some do.
    shares: Rng,
}

impl Calls {
    pub(in crate::native) fn new(files: Vec<OpenFile>, style: CallStyle) -> io::Result<Self> {
        let spliced = style == CallStyle::Spliced;
        Ok(Self {
            pipe: spliced.then(Pipe::new).transpose()?,
            positions: vec![u64::MAX; files.len()],
            shares: Rng::new(1),
            files,
            style,
        })
    }
}

impl Immediate for Calls {
    #[inline]
    fn run(&mut self, io: &Io) -> i64 {
        let file = &self.files[io.file as usize];
        let is_data = matches!(io.op, Op::Read | Op::Write);
        match self.style {
            CallStyle::Vectored {
                flags,
                poll_percent,
            } if is_data => {
                let polls = poll_percent > 0 && self.shares.percent(poll_percent);
                vectored(file.fd, io, flags | if polls { libc::RWF_HIPRI } else { 0 })
            }
            CallStyle::Seek if is_data => {
                let position = &mut self.positions[io.file as usize];
                let result = seek_and_call(file.fd, io, *position);
                *position = if result >= 0 {
                    io.offset + result as u64
                } else {
                    u64::MAX
                };
                result
            }
            CallStyle::Allocate if is_data => allocate(file.fd, io),
            CallStyle::Truncate if is_data => {
                // SAFETY: no memory is passed.
                let result = unsafe { libc::ftruncate(file.fd, io.offset as libc::off_t) };
                whole(result, io)
            }
            _ => match &self.pipe {
                Some(pipe) if is_data => pipe.transfer(file.fd, io),
                _ => execute(file, io),
            },
        }
    }
}

/// Repeats a call that a signal interrupted.
fn uninterrupted(mut call: impl FnMut() -> isize) -> i64 {
    loop {
        let result = result_of(call());
        if result != -i64::from(libc::EINTR) {
            return result;
        }
    }
}

/// One positioned call of any kind, here and now.
pub(in crate::native) fn execute(file: &OpenFile, io: &Io) -> i64 {
    let (fd, len) = (file.fd, io.len as usize);
    uninterrupted(|| match io.op {
        // SAFETY: `data` has room for `len` bytes of a slot nobody else uses.
        Op::Read => unsafe {
            libc::pread(fd, io.data.pointer().cast(), len, io.offset as libc::off_t)
        },
        // SAFETY: `data` holds `len` bytes of a slot nobody else uses.
        Op::Write => unsafe {
            libc::pwrite(fd, io.data.pointer().cast(), len, io.offset as libc::off_t)
        },
        // SAFETY: no memory is passed.
        Op::Fsync => (unsafe { libc::fsync(fd) }) as isize,
        // SAFETY: no memory is passed.
        Op::Fdatasync => (unsafe { libc::fdatasync(fd) }) as isize,
        Op::Trim => trim(file, io),
    })
}

fn allocate(fd: RawFd, io: &Io) -> i64 {
    let mode = match io.op {
        Op::Read => libc::FALLOC_FL_KEEP_SIZE,
        _ => 0,
    };
    let (offset, len) = (io.offset as libc::off_t, libc::off_t::from(io.len));
    // SAFETY: no memory is passed.
    whole(unsafe { libc::fallocate(fd, mode, offset, len) }, io)
}

/// The result of a call that does all or nothing.
fn whole(result: libc::c_int, io: &Io) -> i64 {
    match result_of(result as isize) {
        0.. => i64::from(io.len),
        error => error,
    }
}

fn seek_and_call(fd: RawFd, io: &Io, position: u64) -> i64 {
    uninterrupted(|| {
        // SAFETY: no memory is passed.
        let seek = || unsafe { libc::lseek(fd, io.offset as libc::off_t, libc::SEEK_SET) };
        if position != io.offset && seek() < 0 {
            return -1;
        }
        let len = io.len as usize;
        if io.op == Op::Read {
            // SAFETY: `data` has room for `len` bytes of a slot nobody else uses.
            unsafe { libc::read(fd, io.data.pointer().cast(), len) }
        } else {
            // SAFETY: `data` holds `len` bytes of a slot nobody else uses.
            unsafe { libc::write(fd, io.data.pointer().cast(), len) }
        }
    })
}

fn vectored(fd: RawFd, io: &Io, flags: i32) -> i64 {
    let vector = libc::iovec {
        iov_base: io.data.pointer().cast(),
        iov_len: io.len as usize,
    };
    let number = if io.op == Op::Read {
        libc::SYS_preadv2
    } else {
        libc::SYS_pwritev2
    };
    uninterrupted(|| {
        // SAFETY: one vector of a slot nobody else uses. The raw call, because
        // not every libc has a wrapper; it takes the offset as a low and a high
        // half (64-bit kernels read the low one whole: fs/read_write.c).
        (unsafe { libc::syscall(number, fd, &raw const vector, 1, io.offset, 0u64, flags) })
            as isize
    })
}

/// Discards a range: BLKDISCARD on a device, a hole in a file, as fio does.
fn trim(file: &OpenFile, io: &Io) -> isize {
    /// include/uapi/linux/fs.h: _IO(0x12, 119).
    const BLKDISCARD: libc::c_ulong = 0x1277;
    let done = if file.is_device {
        let range = [io.offset, u64::from(io.len)];
        // SAFETY: the request reads two u64 at the pointer.
        unsafe { libc::ioctl(file.fd, BLKDISCARD as _, range.as_ptr()) }
    } else {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: no memory is passed.
        unsafe {
            libc::fallocate(
                file.fd,
                mode,
                io.offset as libc::off_t,
                libc::off_t::from(io.len),
            )
        }
    };
    if done == 0 { io.len as isize } else { -1 }
}
