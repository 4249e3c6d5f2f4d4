//! Priority, memory policy and resource usage of the calling thread.

#![allow(unsafe_code)] // each block says why it is sound

use std::io;

use super::usage::Usage;

/// Sets the calling thread's I/O priority (ioprio_set(2)).
pub(super) fn set_priority(priority: u16) -> io::Result<()> {
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
pub(super) fn set_nice(nice: i32) -> io::Result<()> {
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
pub(super) fn usage() -> Usage {
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
