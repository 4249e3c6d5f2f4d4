//! io_uring with registered files and buffers; one system call hands over a
//! batch and waits for completions.

#![allow(unsafe_code)] // each block says why it is sound

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::io_uring::{
    self as kernel, IoringEnterFlags, IoringRegisterOp, io_uring_getevents_arg, io_uring_ptr,
    io_uring_rsrc_update,
};

use super::{Backend, CompletedIo, Io, Op, OpenFile};
use crate::native::buffer::Buffers;
use crate::native::job::Queue;

/// The kernel registers at most this many buffers (io_uring/rsrc.c, IORING_MAX_REG_BUFFERS).
const MAX_BUFFERS: usize = 1 << 14;
/// How long the kernel's submission thread spins without work, ms; fio's value
/// (engines/io_uring.c).
const SQ_POLL_IDLE_MS: u32 = 1000;
const TOO_MANY_FIXED: &str = "fixedbufs: the kernel registers 16384 buffers at most";
const TOO_MANY_BUFFERS: &str = "buffers not registered with io_uring: the kernel takes 16384 at most; each I/O costs a little more CPU";
const NOT_LOCKED: &str = "buffers not registered with io_uring: the limit on locked memory is too low (ulimit -l unlimited raises it); each I/O costs a little more CPU";
const NOT_REGISTERED: &str = "buffers not registered with io_uring: the kernel refused them";
/// What the entries of a ring ask for.
pub(in crate::native) trait RingCommands {
    type Request: squeue::EntryMarker;
    type Answer: cqueue::EntryMarker + Into<cqueue::Entry>;

    /// The entry of an I/O; `None` for one that cannot be put into an entry.
    fn request(&mut self, io: &Io, flags: squeue::Flags) -> Option<Self::Request>;

    /// Bytes moved, or -errno, from what the kernel answered.
    fn result(&self, slot: u32, answer: i32) -> i64;
}

/// Reads, writes and syncs of files and block devices.
pub(in crate::native) struct FileCommands {
    fixed_buffers: bool,
    rw_flags: i32,
}

/// The way into the kernel: the ring by its place among those that the thread has
/// registered (since 5.18), which spares every call to look up and hold the descriptor.
struct RingFd {
    fd: RawFd,
    registered: Option<u32>,
}

impl RingFd {
    /// Must be called by the thread that enters.
    fn of(fd: RawFd) -> Self {
        let mut door = Self {
            fd,
            registered: None,
        };
        let mut place = io_uring_rsrc_update::default();
        (place.offset, place.data) = (u32::MAX, io_uring_ptr::from(fd as *mut c_void));
        if door.register(IoringRegisterOp::RegisterRingFds, &mut place) {
            door.registered = Some(place.offset);
        }
        door
    }

    fn register(&self, what: IoringRegisterOp, place: &mut io_uring_rsrc_update) -> bool {
        let place = std::ptr::from_mut(place);
        // SAFETY: the ring outlives its door; the kernel reads and writes one structure
        // at the pointer.
        let done = unsafe {
            let ring = BorrowedFd::borrow_raw(self.fd);
            kernel::io_uring_register(ring, what, place.cast_const().cast(), 1)
        };
        done == Ok(1)
    }

    /// io_uring_enter(2), with a limit on the wait where there is one.
    #[inline(always)]
    fn enter(
        &self,
        submit: u32,
        min: u32,
        flags: IoringEnterFlags,
        limit: Option<&io_uring_getevents_arg>,
    ) -> io::Result<usize> {
        let (fd, registered) = match self.registered {
            Some(place) => (place as RawFd, IoringEnterFlags::REGISTERED_RING),
            None => (self.fd, IoringEnterFlags::empty()),
        };
        let flags = flags | registered;
        // SAFETY: the ring outlives its door, by descriptor or by place; the limit lives
        // through the call; every pushed entry's memory lives in `Buffers`, which stay
        // for as long as an entry is under way.
        let taken = unsafe {
            let ring = BorrowedFd::borrow_raw(fd);
            match limit {
                Some(_) => {
                    let flags = flags | IoringEnterFlags::EXT_ARG;
                    kernel::io_uring_enter_arg(ring, submit, min, flags, limit)
                }
                None => kernel::io_uring_enter(ring, submit, min, flags),
            }
        };
        Ok(taken? as usize)
    }
}

impl Drop for RingFd {
    fn drop(&mut self) {
        // A registered ring outlives its descriptor.
        if let Some(offset) = self.registered {
            let mut place = io_uring_rsrc_update::default();
            place.offset = offset;
            self.register(IoringRegisterOp::UnregisterRingFds, &mut place);
        }
    }
}

/// An io_uring of one worker.
pub(in crate::native) struct Uring<C: RingCommands = FileCommands> {
    /// Closed before the ring.
    door: RingFd,
    ring: IoUring<C::Request, C::Answer>,
    commands: C,
    /// Slots of I/Os that no entry can hold.
    unencodable: Vec<u32>,
    note: Option<&'static str>,
    /// Pushed and not handed over.
    pending: usize,
    /// With IOPOLL and DEFER_TASKRUN the kernel looks for completions only when it is
    /// entered for them.
    must_enter: bool,
    sq_poll: bool,
    /// force_async, and how many I/Os until the next one of its.
    async_every: u32,
    until_async: u32,
    /// The submission has just entered the kernel: no need to look again.
    looked: bool,
}

impl Uring {
    /// Must be called by the thread that uses it. Without `buffers` none are registered.
    pub(in crate::native) fn new(
        files: &[OpenFile],
        buffers: Option<&Buffers>,
        queue: &Queue,
    ) -> io::Result<Self> {
        let rw_flags = queue.rw_flags();
        Self::with(files, buffers, queue, |fixed_buffers| FileCommands {
            fixed_buffers,
            rw_flags,
        })
    }
}

impl<C: RingCommands> Uring<C> {
    /// A ring for commands that are made when it is known whether the buffers are
    /// registered.
    pub(super) fn with(
        files: &[OpenFile],
        buffers: Option<&Buffers>,
        queue: &Queue,
        commands: impl FnOnce(bool) -> C,
    ) -> io::Result<Self> {
        let entries = queue.depth.max(1).next_power_of_two().min(32_768);
        let (ring, deferred) = build(entries, queue)?;
        let fds: Vec<RawFd> = files.iter().map(|file| file.fd).collect();
        ring.submitter().register_files(&fds)?;
        let registered = buffers.map(|buffers| register(&ring, buffers));
        let (fixed_buffers, note) = match registered.unwrap_or(Ok(false)) {
            Ok(true) => (true, None),
            Ok(false) if queue.fixed_buffers && buffers.is_some() => {
                return Err(io::Error::other(TOO_MANY_FIXED));
            }
            Ok(false) => (false, buffers.map(|_| TOO_MANY_BUFFERS)),
            Err(error) if queue.fixed_buffers => return Err(error),
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => (false, Some(NOT_LOCKED)),
            Err(_) => (false, Some(NOT_REGISTERED)),
        };
        Ok(Self {
            door: RingFd::of(ring.as_raw_fd()),
            ring,
            commands: commands(fixed_buffers),
            unencodable: Vec::with_capacity(queue.depth as usize),
            note,
            pending: 0,
            must_enter: deferred || queue.hipri,
            sq_poll: queue.sq_poll,
            async_every: queue.async_every,
            until_async: queue.async_every,
            looked: false,
        })
    }

    /// Enters the kernel until all that is pending was taken and, with `wait`
    /// as a limit, `min` completions are there.
    fn enter(&mut self, min: usize, wait: Option<Duration>) -> io::Result<()> {
        if self.sq_poll {
            return self.look_for(min, wait);
        }
        loop {
            let result = match wait {
                Some(limit) if min > 0 => self.enter_for(min, limit),
                _ => self.enter_once(min),
            };
            match result {
                Ok(taken) => {
                    self.pending = self.pending.saturating_sub(taken);
                    if self.pending == 0 {
                        return Ok(());
                    }
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::ETIME) => {
                        self.pending = 0;
                        return Ok(());
                    }
                    // The kernel has no memory for a request or its completion queue
                    // is full: take completions and come back.
                    Some(libc::EAGAIN | libc::EBUSY) => return Ok(()),
                    _ => return Err(error),
                },
            }
        }
    }

    /// With a thread of the kernel's that takes from the queue nobody enters: whoever
    /// waits looks (engines/io_uring.c, fio_ioring_getevents), and wakes the thread if it
    /// has gone to sleep.
    fn look_for(&mut self, min: usize, wait: Option<Duration>) -> io::Result<()> {
        let until = wait.map(|limit| Instant::now() + limit);
        loop {
            if self.ring.submission().need_wakeup() {
                match self.door.enter(0, 0, IoringEnterFlags::SQ_WAKEUP, None) {
                    Err(error) if !is_for_now(&error) => return Err(error),
                    _ => {}
                }
            }
            let late = || until.is_some_and(|until| Instant::now() >= until);
            if self.ring.completion().len() >= min || late() {
                self.pending = 0;
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    #[inline]
    fn enter_once(&mut self, min: usize) -> io::Result<usize> {
        let flags = if min > 0 || self.must_enter {
            IoringEnterFlags::GETEVENTS
        } else {
            IoringEnterFlags::empty()
        };
        self.door
            .enter(self.pending as u32, min as u32, flags, None)
    }

    fn enter_for(&mut self, min: usize, limit: Duration) -> io::Result<usize> {
        if !self.ring.params().is_feature_ext_arg() {
            // Before 5.11 there is no waiting with a limit.
            let taken = self.enter_once(0)?;
            std::thread::sleep(limit.min(Duration::from_millis(1)));
            return Ok(taken);
        }
        let mut limit = types::Timespec::from(limit);
        let argument = io_uring_getevents_arg {
            ts: io_uring_ptr::from(std::ptr::from_mut(&mut limit).cast::<c_void>()),
            ..Default::default()
        };
        let (pending, flags) = (self.pending as u32, IoringEnterFlags::GETEVENTS);
        self.door.enter(pending, min as u32, flags, Some(&argument))
    }
}

impl RingCommands for FileCommands {
    type Request = squeue::Entry;
    type Answer = cqueue::Entry;

    #[inline]
    fn request(&mut self, io: &Io, flags: squeue::Flags) -> Option<squeue::Entry> {
        let (read, write) = match self.fixed_buffers {
            true => (opcode::ReadFixed::CODE, opcode::WriteFixed::CODE),
            false => (opcode::Read::CODE, opcode::Write::CODE),
        };
        let code = match io.op {
            Op::Read => read,
            Op::Write => write,
            Op::Trim | Op::Fsync | Op::Fdatasync => {
                let kind = match io.op {
                    Op::Fdatasync => types::FsyncFlags::DATASYNC,
                    _ => types::FsyncFlags::empty(),
                };
                let sync = opcode::Fsync::new(types::Fixed(io.file)).flags(kind);
                let entry = sync.build().flags(flags);
                return Some(entry.user_data(u64::from(io.slot)));
            }
        };
        let flags = flags | squeue::Flags::FIXED_FILE;
        let words = [
            u64::from(code)
                | u64::from(flags.bits()) << 8
                | u64::from(io.priority) << 16
                | u64::from(io.file) << 32,
            io.offset,
            io.data.pointer() as u64,
            u64::from(io.len) | u64::from(self.rw_flags as u32) << 32,
            u64::from(io.slot),
            // Place of the registered buffer; other requests have none.
            u64::from(io.slot & 0xffff) * u64::from(self.fixed_buffers),
            0,
            0,
        ];
        // Made of whole words: the entries that the crate makes of bytes are read back
        // in other pieces than they were written in, which costs more than all else here.
        // SAFETY: an entry is struct io_uring_sqe, 64 bytes of numbers.
        Some(unsafe { std::mem::transmute::<[u64; 8], squeue::Entry>(words) })
    }

    #[inline]
    fn result(&self, _: u32, answer: i32) -> i64 {
        answer.into()
    }
}

/// Whether an error of a call is gone when it is made once more.
fn is_for_now(error: &io::Error) -> bool {
    let gone = [libc::EINTR, libc::EAGAIN, libc::EBUSY];
    error
        .raw_os_error()
        .is_some_and(|errno| gone.contains(&errno))
}

/// Whether the kernel offers io_uring to this process.
pub(in crate::native) fn offered() -> io::Result<()> {
    IoUring::new(1).map(drop)
}

fn build<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    entries: u32,
    queue: &Queue,
) -> io::Result<(IoUring<S, C>, bool)> {
    let base = || {
        let mut builder = IoUring::<S, C>::builder();
        if queue.hipri {
            builder.setup_iopoll();
        }
        if queue.sq_poll {
            builder.setup_sqpoll(SQ_POLL_IDLE_MS);
            if let Some(cpu) = queue.sq_poll_cpu {
                builder.setup_sqpoll_cpu(cpu);
            }
        }
        builder
    };
    // Who waits for one completion at a time in a queue of many does best when
    // the kernel posts them as it goes; who waits for batches, or has one I/O,
    // when it posts them on entry only. On zram at depth 32 either choice is
    // 15 to 50 % ahead of the other in its case.
    let deferred = queue.depth == 1 || queue.complete_min > 1;
    if !queue.sq_poll {
        let mut builder = base();
        if deferred {
            // Since 6.1.
            builder.setup_single_issuer().setup_defer_taskrun();
        } else {
            // Since 5.19.
            builder.setup_coop_taskrun();
        }
        match builder.build(entries) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            result => return result.map(|ring| (ring, deferred)),
        }
    }
    base().build(entries).map(|ring| (ring, false))
}

fn register<S: squeue::EntryMarker, C: cqueue::EntryMarker>(
    ring: &IoUring<S, C>,
    buffers: &Buffers,
) -> io::Result<bool> {
    if buffers.slots() > MAX_BUFFERS {
        return Ok(false);
    }
    let vectors: Vec<libc::iovec> = (0..buffers.slots() as u32)
        .map(|slot| libc::iovec {
            iov_base: buffers.place(slot, 0).pointer().cast(),
            iov_len: buffers.slot_bytes(),
        })
        .collect();
    // SAFETY: the kernel holds the pages of registered buffers itself; the buffers
    // stay mapped until after the ring is dropped, and for good where an I/O is under
    // way then.
    unsafe { ring.submitter().register_buffers(&vectors) }?;
    Ok(true)
}

impl<C: RingCommands> Backend for Uring<C> {
    const QUEUES_SYNCS: bool = true;

    fn note(&self) -> Option<&'static str> {
        self.note
    }

    #[inline]
    fn push(&mut self, io: Io) {
        let mut flags = squeue::Flags::empty();
        if self.async_every > 0 {
            self.until_async -= 1;
            if self.until_async == 0 {
                self.until_async = self.async_every;
                flags = squeue::Flags::ASYNC;
            }
        }
        let Some(entry) = self.commands.request(&io, flags) else {
            return self.unencodable.push(io.slot);
        };
        // SAFETY: the entry's memory is a slot that nobody touches until it is done.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            // The queue has an entry for every slot, but the kernel's thread shows how
            // far it has come behind the completions of what it took at once (io_uring.c,
            // io_submit_sqes): it is just about to.
            debug_assert!(self.sq_poll, "the queue has an entry for every slot");
            std::hint::spin_loop();
        }
        self.pending += 1;
    }

    #[inline]
    fn submit(&mut self, waiting: bool) -> io::Result<()> {
        if waiting || self.pending == 0 {
            return Ok(());
        }
        self.looked = true;
        self.enter(0, None)
    }

    #[inline]
    fn reap(
        &mut self,
        min: usize,
        max: usize,
        wait: Option<Duration>,
        done: &mut Vec<CompletedIo>,
    ) -> io::Result<()> {
        if !self.unencodable.is_empty() {
            let few = self.unencodable.len().min(max);
            done.extend(self.unencodable.drain(..few).map(|slot| CompletedIo {
                slot,
                result: -i64::from(libc::EINVAL),
            }));
            return Ok(());
        }
        // The kernel counts what is already in the queue towards `min`.
        let ready = self.ring.completion().len();
        // With COOP_TASKRUN, too, what another CPU has found to be over is posted when
        // this one enters the kernel: whoever waits for a time and not for completions
        // would find them then, and their latencies would end there.
        let unseen = ready == 0 && !self.looked;
        if self.pending > 0 || ready < min || unseen {
            self.enter(min, wait)?;
        }
        self.looked = false;
        let completions = self.ring.completion().take(max);
        done.extend(completions.map(|entry| {
            let entry: cqueue::Entry = entry.into();
            let slot = entry.user_data() as u32;
            let result = self.commands.result(slot, entry.result());
            CompletedIo { slot, result }
        }));
        Ok(())
    }
}
