//! Memory for the data of I/Os: page-aligned, one slot for every I/O that can
//! be under way, allocated and touched before the first one.

use std::io;
use std::ptr::NonNull;

/// Alignment of each slot: the page size, which is what O_DIRECT may ask for at most.
const ALIGNMENT: usize = 4096;

/// The slots of one worker.
#[derive(Debug)]
pub(super) struct Buffers {
    base: NonNull<u8>,
    slot_bytes: usize,
    slots: usize,
    /// It stays mapped for as long as the process lives.
    kept: bool,
}

// SAFETY: `Buffers` owns its mapping; the pointer is not tied to a thread.
unsafe impl Send for Buffers {}

impl Buffers {
    /// `slots` slots that hold `bytes` each.
    pub(super) fn new(slots: usize, bytes: usize) -> io::Result<Self> {
        let slot_bytes = bytes.max(1).next_multiple_of(ALIGNMENT);
        let length = slot_bytes
            .checked_mul(slots.max(1))
            .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        // SAFETY: an anonymous private mapping of a length that did not
        // overflow; nothing else uses the address the kernel chooses. POPULATE
        // touches every page now, not in the first I/O.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Self {
            base,
            slot_bytes,
            slots: slots.max(1),
            kept: false,
        })
    }

    /// Where slot `slot` begins; what the kernel is told.
    #[inline]
    pub(super) fn address(&self, slot: u32) -> *mut u8 {
        let slot = slot as usize;
        assert!(slot < self.slots, "a slot of this worker");
        // SAFETY: below `slots`, so inside the mapping.
        unsafe { self.base.as_ptr().add(slot * self.slot_bytes) }
    }

    /// The first `len` bytes of slot `slot`, to fill or to check while no I/O
    /// on it is under way (the worker only does so with free slots).
    #[inline]
    pub(super) fn slot_mut(&mut self, slot: u32, len: usize) -> &mut [u8] {
        assert!(len <= self.slot_bytes, "no I/O is longer than a slot");
        // SAFETY: inside the mapping, and borrowed through `&mut self`; the
        // kernel has no I/O on a free slot.
        unsafe { std::slice::from_raw_parts_mut(self.address(slot), len) }
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
    pub(super) fn is_mapped(address: *mut u8) -> bool {
        let mut resident = 0;
        // SAFETY: the call reads no memory of the page; it writes one byte to `resident`.
        unsafe { libc::mincore(address.cast(), ALIGNMENT, &raw mut resident) == 0 }
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
        // SAFETY: the mapping made in `new`, unmapped once, and nothing is under way
        // on it: a worker keeps it otherwise.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.slot_bytes * self.slots) };
    }
}
