//! Linux AIO by its system calls (include/uapi/linux/aio_abi.h); no library.

#![allow(unsafe_code)] // each block says why it is sound

use std::io;
use std::time::Duration;

use super::{Backend, CompletedIo, Io, Op, OpenFile};

/// struct iocb on little-endian machines.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Iocb {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_fd: u32,
}

/// struct io_event.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct IoEvent {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FLAG_PRIORITY: u32 = 1 << 1;

/// A context of one worker.
#[derive(Debug)]
pub(in crate::native) struct Libaio {
    context: libc::c_ulong,
    files: Vec<OpenFile>,
    /// Of every read and write.
    rw_flags: i32,
    /// A block for each slot.
    blocks: Vec<Iocb>,
    /// Blocks to hand over next.
    pending: Vec<*mut Iocb>,
    events: Vec<IoEvent>,
    /// Those of `events` that the kernel has given and nobody has taken.
    fetched: std::ops::Range<usize>,
}

impl Libaio {
    pub(in crate::native) fn new(
        files: Vec<OpenFile>,
        depth: usize,
        rw_flags: i32,
    ) -> io::Result<Self> {
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word to `context`, which is 0 as it demands.
        check(unsafe {
            libc::syscall(libc::SYS_io_setup, depth as libc::c_uint, &raw mut context)
        })?;
        Ok(Self {
            context,
            files,
            rw_flags,
            blocks: vec![Iocb::default(); depth],
            pending: Vec::with_capacity(depth),
            events: vec![IoEvent::default(); depth],
            fetched: 0..0,
        })
    }
}

fn check(result: libc::c_long) -> io::Result<usize> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result as usize)
    }
}

impl Backend for Libaio {
    const QUEUES_SYNCS: bool = false;

    #[inline]
    fn push(&mut self, io: Io) {
        let block = &mut self.blocks[io.slot as usize];
        *block = Iocb {
            data: u64::from(io.slot),
            rw_flags: self.rw_flags,
            opcode: if io.op == Op::Read { PREAD } else { PWRITE },
            fd: self.files[io.file as usize].fd as u32,
            buffer: io.data.pointer() as u64,
            bytes: u64::from(io.len),
            offset: io.offset as i64,
            ..Iocb::default()
        };
        if io.priority != 0 {
            block.priority = io.priority as i16;
            block.flags = FLAG_PRIORITY;
        }
        self.pending.push(block);
    }

    #[inline]
    fn submit(&mut self, _waiting: bool) -> io::Result<()> {
        while !self.pending.is_empty() {
            // SAFETY: `pending` points to blocks of `blocks`, which never moves
            // (its length is fixed); their buffers are slots under way.
            let taken = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.context,
                    self.pending.len() as libc::c_long,
                    self.pending.as_mut_ptr(),
                )
            };
            match check(taken) {
                Ok(taken) => {
                    self.pending.drain(..taken);
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // No room in the kernel: come back when something is over.
                    Some(libc::EAGAIN) if self.pending.len() < self.blocks.len() => return Ok(()),
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    #[inline]
    fn reap(
        &mut self,
        min: usize,
        max: usize,
        wait: Option<Duration>,
        done: &mut Vec<CompletedIo>,
    ) -> io::Result<()> {
        // One call fetches all there are, of which as many are taken as are wanted.
        let mut wanted = max.min(self.events.len());
        let mut missing = min.min(wanted);
        while wanted > 0 {
            if self.fetched.is_empty() {
                self.fetch(missing, wait)?;
            }
            let taken = self.fetched.len().min(wanted);
            let events = self.fetched.by_ref().take(taken).map(|at| self.events[at]);
            done.extend(events.map(|event| CompletedIo {
                slot: event.data as u32,
                result: event.result,
            }));
            wanted -= taken;
            missing = missing.saturating_sub(taken);
            if missing == 0 || taken == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Libaio {
    /// Waits for `min` events, no longer than `wait`, and fetches all that are there.
    fn fetch(&mut self, min: usize, wait: Option<Duration>) -> io::Result<()> {
        let mut limit = wait.map(|wait| libc::timespec {
            tv_sec: wait.as_secs() as _,
            tv_nsec: wait.subsec_nanos() as _,
        });
        let limit = limit
            .as_mut()
            .map_or(std::ptr::null_mut(), std::ptr::from_mut);
        loop {
            // SAFETY: room for all events; the time limit lives through the call.
            let result = check(unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    min as libc::c_long,
                    self.events.len() as libc::c_long,
                    self.events.as_mut_ptr(),
                    limit,
                )
            });
            match result {
                Ok(count) => {
                    self.fetched = 0..count;
                    return Ok(());
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Libaio {
    fn drop(&mut self) {
        // SAFETY: the context made in `new`; the call waits for what is under
        // way, so no buffer is written after it.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}
