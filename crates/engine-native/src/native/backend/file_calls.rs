//! Calls about a file that move no data.

#![allow(unsafe_code)] // each block says why it is sound

use std::io;
use std::os::fd::RawFd;

use super::OpenFile;

/// include/uapi/linux/fcntl.h: F_LINUX_SPECIFIC_BASE + 12 and 14.
const F_SET_RW_HINT: libc::c_int = 1024 + 12;
const F_SET_FILE_RW_HINT: libc::c_int = 1024 + 14;

fn done(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Asks for a range to be written back, as the flags say (sync_file_range(2)).
pub(in crate::native) fn sync_range(
    fd: RawFd,
    start: u64,
    bytes: u64,
    flags: u32,
) -> io::Result<()> {
    let (start, bytes) = (start as libc::off64_t, bytes as libc::off64_t);
    // SAFETY: no memory is passed.
    done(unsafe { libc::sync_file_range(fd, start, bytes, flags) })
}

/// Tells how long what is written stays: of the open file where the kernel still has that
/// (up to 5.16) and the I/O is direct, else of the file.
pub(in crate::native) fn set_write_hint(fd: RawFd, hint: u64, direct: bool) -> io::Result<()> {
    // SAFETY: the kernel reads a number of 64 bits at the pointer.
    let set = |command| done(unsafe { libc::fcntl(fd, command, &raw const hint) });
    match direct {
        true => set(F_SET_FILE_RW_HINT).or_else(|_| set(F_SET_RW_HINT)),
        false => set(F_SET_RW_HINT),
    }
}

/// Drops the clean pages of a file's range, or all of a device's (which needs
/// root), from the cache. What cannot be dropped stays, as with fio.
pub(in crate::native) fn drop_cache(target: &OpenFile, start: u64, len: u64) {
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
