//! Memory for the data of I/Os: page-aligned, one slot for every I/O that can
//! be under way, allocated and touched before the first one.

#![allow(unsafe_code)] // each block says why it is sound

use std::io;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::job::{MemoryKind, MemoryOptions};

/// Alignment of each slot: the page size, which is what O_DIRECT may ask for at most.
fn alignment() -> usize {
    rustix::param::page_size()
}

/// Where the data of an I/O begin: inside a slot. Only [`Buffers`] makes one, so that no
/// other address gets to the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct DataPlace(*mut u8);

impl DataPlace {
    #[inline]
    pub(super) fn pointer(self) -> *mut u8 {
        self.0
    }

    /// One that no call is made with.
    #[cfg(test)]
    pub(super) fn unused(address: usize) -> Self {
        Self(std::ptr::without_provenance_mut(address))
    }
}

/// Memory of whole pages that belongs to one owner.
#[derive(Debug)]
struct Pages {
    base: NonNull<u8>,
    bytes: usize,
    kind: MemoryKind,
}

impl Pages {
    /// Pages of the process. POPULATE touches every page now, not in the first I/O.
    fn own(bytes: usize, flags: libc::c_int) -> io::Result<Self> {
        let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: an anonymous private mapping; nothing else uses the address that the
        // kernel chooses.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                flags,
                -1,
                0,
            )
        };
        Self::at(address, libc::MAP_FAILED, bytes, MemoryKind::Own)
    }

    /// A segment of shared memory, which is gone when its owner is.
    fn segment(bytes: usize, flags: libc::c_int) -> io::Result<Self> {
        let flags = flags | libc::IPC_CREAT | 0o600;
        // SAFETY: no memory is passed.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, bytes, flags) };
        if id < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: attached where the kernel chooses.
        let address = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        let pages = Self::at(address, usize::MAX as *mut _, bytes, MemoryKind::Segment);
        // SAFETY: nobody else knows the segment; it lasts until it is detached.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        if let Ok(pages) = &pages {
            for page in (0..bytes).step_by(alignment()) {
                // SAFETY: inside the segment, which nobody else uses; touched now, not
                // in the first I/O.
                unsafe { pages.base.as_ptr().add(page).write_volatile(0) };
            }
        }
        pages
    }

    fn at(
        address: *mut libc::c_void,
        failed: *mut libc::c_void,
        bytes: usize,
        kind: MemoryKind,
    ) -> io::Result<Self> {
        if address == failed {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { base, bytes, kind })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let base = self.base.as_ptr().cast();
        match self.kind {
            // SAFETY: mapped by `own`, unmapped once.
            MemoryKind::Own => unsafe { libc::munmap(base, self.bytes) },
            // SAFETY: attached by `segment`, detached once.
            MemoryKind::Segment => unsafe { libc::shmdt(base) },
        };
    }
}

/// Memory that stays in RAM and is used by nobody (lockmem).
#[derive(Debug)]
pub(super) struct LockedMemory {
    _pages: Pages,
}

impl LockedMemory {
    /// No more than this machine has, less 128 MiB (fio's memory.c, fio_pin_memory).
    pub(super) fn new(bytes: u64) -> io::Result<Self> {
        // SAFETY: no memory is passed.
        let [pages, page] = [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE]
            .map(|of| u64::try_from(unsafe { libc::sysconf(of) }).unwrap_or(0));
        let most = pages.saturating_mul(page).saturating_sub(128 << 20);
        let bytes = usize::try_from(bytes.min(most)).map_err(io::Error::other)?;
        let pages = Pages::own(bytes, 0)?;
        // SAFETY: the mapping made above.
        match unsafe { libc::mlock(pages.base.as_ptr().cast(), bytes) } {
            0 => Ok(Self { _pages: pages }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The slots of one worker.
#[derive(Debug)]
pub(super) struct Buffers {
    pages: ManuallyDrop<Pages>,
    /// Where the first slot begins.
    offset: usize,
    slot_bytes: usize,
    slots: usize,
    /// It stays mapped for as long as the process lives.
    kept: bool,
}

// SAFETY: `Buffers` owns its mapping; the pointer is not tied to a thread.
unsafe impl Send for Buffers {}

impl Buffers {
    /// `slots` slots that hold `bytes` each.
    pub(super) fn new(slots: usize, bytes: usize, memory: &MemoryOptions) -> io::Result<Self> {
        let too_much = || io::Error::from_raw_os_error(libc::ENOMEM);
        let slot_bytes = bytes.max(1).next_multiple_of(alignment());
        let offset = memory.offset as usize;
        let whole = match memory.huge {
            true => usize::try_from(memory.huge_bytes).map_err(|_| too_much())?,
            false => alignment(),
        };
        let length = slot_bytes
            .checked_mul(slots.max(1))
            .and_then(|bytes| bytes.checked_add(offset))
            .and_then(|bytes| bytes.checked_next_multiple_of(whole.max(1)))
            .ok_or_else(too_much)?;
        let huge = |flag| if memory.huge { flag } else { 0 };
        let pages = match memory.kind {
            MemoryKind::Own => Pages::own(length, libc::MAP_POPULATE | huge(libc::MAP_HUGETLB)),
            MemoryKind::Segment => Pages::segment(length, huge(libc::SHM_HUGETLB)),
        };
        Ok(Self {
            pages: ManuallyDrop::new(pages?),
            offset,
            slot_bytes,
            slots: slots.max(1),
            kept: false,
        })
    }

    /// Where what is left of an I/O of slot `slot` begins, after `moved` of its bytes.
    #[inline]
    pub(super) fn place(&self, slot: u32, moved: u32) -> DataPlace {
        let (slot, moved) = (slot as usize, moved as usize);
        assert!(slot < self.slots, "a slot of this worker");
        assert!(moved <= self.slot_bytes, "no I/O is longer than a slot");
        // SAFETY: inside slot `slot`, or at its end, so inside the mapping.
        DataPlace(unsafe {
            self.pages
                .base
                .as_ptr()
                .add(self.offset + slot * self.slot_bytes + moved)
        })
    }

    /// The first `len` bytes of slot `slot`, to fill or to check while no I/O
    /// on it is under way (the worker only does so with free slots).
    #[inline]
    pub(super) fn slot_mut(&mut self, slot: u32, len: usize) -> &mut [u8] {
        assert!(len <= self.slot_bytes, "no I/O is longer than a slot");
        // SAFETY: inside the mapping, and borrowed through `&mut self`; the
        // kernel has no I/O on a free slot.
        unsafe { std::slice::from_raw_parts_mut(self.place(slot, 0).0, len) }
    }

    /// Never unmaps it: the kernel may still write to it. Closing an io_uring asks for
    /// what is under way to be cancelled and does not wait for it; what cannot be
    /// cancelled goes on behind it (io_uring/io_uring.c, io_ring_exit_work). Pages of
    /// direct or registered I/O are pinned and hurt nobody; but a buffered read is copied
    /// to its address by one of the ring's own threads (io-wq), to whatever is mapped
    /// there by then.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }

    /// Whether something is mapped at a page.
    #[cfg(test)]
    pub(super) fn is_mapped(place: DataPlace) -> bool {
        let mut resident = 0;
        // SAFETY: the call reads no memory of the page; it writes one byte to `resident`.
        unsafe { libc::mincore(place.0.cast(), alignment(), &raw mut resident) == 0 }
    }

    /// Number of slots.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes of a slot.
    pub(super) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // SAFETY: dropped once, and nothing is under way on it: a worker keeps it
        // otherwise.
        unsafe { ManuallyDrop::drop(&mut self.pages) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_where_the_job_wants_them() {
        for kind in [MemoryKind::Own, MemoryKind::Segment] {
            for offset in [0, 512] {
                let memory = MemoryOptions {
                    kind,
                    offset,
                    ..MemoryOptions::default()
                };
                let mut buffers = Buffers::new(3, 5000, &memory).unwrap();
                for slot in 0..3 {
                    let place = buffers.place(slot, 0).0 as usize;
                    assert_eq!(place % alignment(), offset as usize);
                    buffers.slot_mut(slot, 5000).fill(1);
                }
            }
        }
    }
}
