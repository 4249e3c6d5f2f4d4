//! Reads and writes by memcpy from and to a shared mapping of each file.

#![allow(unsafe_code)] // each block says why it is sound

use std::io;
use std::ptr::NonNull;

use super::one_by_one::Immediate;
use super::{Io, Op, OpenFile, result_of};

/// One file's mapping.
#[derive(Debug)]
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, unmapped once.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// Mappings of one worker's files.
#[derive(Debug)]
pub(in crate::native) struct Mmap {
    files: Vec<Mapping>,
    /// O_DIRECT was asked for: each write is written back at once, as fio does
    /// (engines/mmap.c).
    direct: bool,
}

impl Mmap {
    pub(in crate::native) fn new(
        files: &[OpenFile],
        writes: bool,
        direct: bool,
    ) -> io::Result<Self> {
        Ok(Self {
            files: files
                .iter()
                .map(|file| map(file, writes))
                .collect::<io::Result<_>>()?,
            direct,
        })
    }
}

impl Immediate for Mmap {
    fn run(&mut self, io: &Io) -> i64 {
        let mapping = &self.files[io.file as usize];
        let (offset, len) = (io.offset as usize, io.len as usize);
        if offset
            .checked_add(len)
            .is_none_or(|end| end > mapping.bytes)
        {
            return -i64::from(libc::EINVAL);
        }
        // SAFETY: inside the mapping, as just checked.
        let at = unsafe { mapping.base.as_ptr().add(offset) };
        match io.op {
            Op::Read => {
                // SAFETY: `at` has `len` bytes in the mapping, `data` in its slot; they do not overlap.
                unsafe { std::ptr::copy_nonoverlapping(at, io.data.pointer(), len) };
                len as i64
            }
            Op::Write => {
                // SAFETY: as above; the mapping is writable when the job writes.
                unsafe { std::ptr::copy_nonoverlapping(io.data.pointer(), at, len) };
                let stored = if self.direct {
                    write_back(mapping, offset, len)
                } else {
                    0
                };
                if stored < 0 { stored } else { len as i64 }
            }
            Op::Fsync | Op::Fdatasync => write_back(mapping, 0, mapping.bytes),
            Op::Trim => -i64::from(libc::EOPNOTSUPP),
        }
    }
}

/// msync of the pages that hold a range.
fn write_back(mapping: &Mapping, offset: usize, len: usize) -> i64 {
    let start = offset - offset % rustix::param::page_size();
    // SAFETY: a range of the mapping, from a page's start on.
    let result = unsafe {
        libc::msync(
            mapping.base.as_ptr().add(start).cast(),
            len + (offset - start),
            libc::MS_SYNC,
        )
    };
    result_of(result as isize)
}

fn map(file: &OpenFile, writes: bool) -> io::Result<Mapping> {
    let bytes =
        usize::try_from(file.bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    let access = libc::PROT_READ | if writes { libc::PROT_WRITE } else { 0 };
    // SAFETY: a shared mapping of an open file at an address the kernel chooses.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes.max(1),
            access,
            libc::MAP_SHARED,
            file.fd,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(Mapping {
        base: NonNull::new(address.cast()).ok_or_else(io::Error::last_os_error)?,
        bytes: bytes.max(1),
    })
}
