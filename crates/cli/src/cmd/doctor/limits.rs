//! Limits of the kernel that stop large jobs.

#![allow(unsafe_code)] // each block says why it is sound

use fathom_model::units;
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::{CheckState, Topic, read};

/// libaio contexts of a large job: numjobs 64 × iodepth 1024.
const AIO_COMFORTABLE: u64 = 64 * 1024;
/// Files of a large job, and what fio opens besides.
const FILES_COMFORTABLE: u64 = 1024;

pub fn look(topic: &mut Topic) {
    aio(topic);
    io_uring(topic);
    calls(topic);
    resources(topic);
    block_devices(topic);
}

fn aio(topic: &mut Topic) {
    let number = |name: &str| read(&format!("/proc/sys/fs/{name}"))?.parse::<u64>().ok();
    let (Some(used), Some(max)) = (number("aio-nr"), number("aio-max-nr")) else {
        return;
    };
    let found = format!("{used} of {max} in use (fs.aio-max-nr)");
    if max.saturating_sub(used) < AIO_COMFORTABLE {
        let fix = Some("sysctl -w fs.aio-max-nr=1048576".to_owned());
        let found = format!("{found}: less than 64 jobs of iodepth 1024 need");
        topic.add("libaio requests", CheckState::Note, found, fix);
    } else {
        topic.ok("libaio requests", found);
    }
}

/// Whether io_uring may be used, asked of the kernel itself: a container's
/// system call filter is not visible in sysctl.
#[cfg(target_os = "linux")]
fn io_uring(topic: &mut Topic) {
    // With no entries and no parameters (io_uring/io_uring.c, io_uring_setup).
    let errno = refusal_of(libc::SYS_io_uring_setup, [0; 4]);
    let disabled = read("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match errno {
        None | Some(libc::EFAULT | libc::EINVAL) => topic.ok("io_uring", "allowed"),
        Some(libc::ENOSYS) => topic.add(
            "io_uring",
            CheckState::Note,
            "this kernel, or the container around, does not have it: use libaio",
            None,
        ),
        _ if disabled == "1" || disabled == "2" => topic.add(
            "io_uring",
            CheckState::Note,
            format!("switched off (kernel.io_uring_disabled = {disabled})"),
            Some("sysctl -w kernel.io_uring_disabled=0".to_owned()),
        ),
        _ => topic.add(
            "io_uring",
            CheckState::Note,
            "not permitted here (a container's system call filter): use libaio",
            None,
        ),
    }
}

#[cfg(not(target_os = "linux"))]
fn io_uring(_topic: &mut Topic) {}

/// The errno with which the kernel refuses a system call. Only for calls that it refuses for
/// their arguments before it changes anything.
#[cfg(target_os = "linux")]
fn refusal_of(number: libc::c_long, [a, b, c, d]: [libc::c_long; 4]) -> Option<i32> {
    // SAFETY: callers pass no pointers but null, and each call is refused before any memory of
    // ours is read or written.
    let status = unsafe { libc::syscall(number, a, b, c, d) };
    let error = (status < 0).then(std::io::Error::last_os_error);
    error.and_then(|error| error.raw_os_error())
}

/// System calls that jobs need and a container's filter may block: number, arguments that
/// the kernel refuses before it changes anything, and what does without.
#[cfg(target_os = "linux")]
const CALLS: [(&str, libc::c_long, [libc::c_long; 4], &str); 6] = [
    // No events (fs/aio.c).
    (
        "io_setup",
        libc::SYS_io_setup,
        [0; 4],
        "ioengine=io_uring or psync in place of libaio",
    ),
    // Class 7 (block/ioprio.c).
    (
        "ioprio_set",
        libc::SYS_ioprio_set,
        [1, 0, 7 << 13, 0],
        "jobs without prio and prioclass",
    ),
    // A policy that there is not (kernel/sched/syscalls.c).
    (
        "sched_setscheduler",
        libc::SYS_sched_setscheduler,
        [0, 99, 0, 0],
        "jobs without real-time priority",
    ),
    // No mask (kernel/sched/syscalls.c).
    (
        "sched_setaffinity",
        libc::SYS_sched_setaffinity,
        [0, 0, 0, 0],
        "jobs without cpus_allowed",
    ),
    // No file.
    (
        "fallocate",
        libc::SYS_fallocate,
        [-1, 0, 0, 1],
        "fallocate=none",
    ),
    (
        "preadv2",
        libc::SYS_preadv2,
        [-1, 0, 0, 0],
        "ioengine=psync in place of pvsync2",
    ),
];

#[cfg(target_os = "linux")]
fn calls(topic: &mut Topic) {
    let is_blocked = |number, with| {
        let errno = refusal_of(number, with);
        matches!(errno, Some(libc::EPERM | libc::ENOSYS))
    };
    let mut blocked = CALLS
        .iter()
        .filter(|(_, number, with, _)| is_blocked(*number, *with))
        .peekable();
    if blocked.peek().is_none() {
        topic.ok("system calls", "those of the engines are allowed");
    }
    for (name, _, _, without) in blocked {
        let found = format!("the system call {name} is blocked (a container's filter) or missing");
        topic.add(
            "system calls",
            CheckState::Note,
            found,
            Some(format!("use {without}")),
        );
    }
}

#[cfg(not(target_os = "linux"))]
fn calls(_topic: &mut Topic) {}

fn resources(topic: &mut Topic) {
    let files = getrlimit(Resource::Nofile).current;
    let found = files.map_or("no limit".to_owned(), |n| format!("{n} at once"));
    if files.is_some_and(|n| n < FILES_COMFORTABLE) {
        let fix = Some("ulimit -n 65536".to_owned());
        topic.add("open files", CheckState::Note, found, fix);
    } else {
        topic.ok("open files", found);
    }
    // io_uring's registered buffers (fio: fixedbufs) and lockmem= count against it.
    let locked = getrlimit(Resource::Memlock).current;
    let found = locked.map_or("no limit".to_owned(), |n| units::bytes(n as f64));
    if locked.is_some_and(|n| n < 8 << 20) && !rustix::process::geteuid().is_root() {
        let fix = Some("ulimit -l unlimited (as root)".to_owned());
        let found = format!("{found}: too little for fixedbufs of a deep queue");
        topic.add("locked memory", CheckState::Note, found, fix);
    } else {
        topic.ok("locked memory", found);
    }
}

/// Devices to try things on without a drive.
fn block_devices(topic: &mut Topic) {
    if !cfg!(target_os = "linux") {
        return;
    }
    // What is opened to make one (`drivers/block/loop.c`, `zram_drv.c`).
    for (name, path, access, module) in [
        (
            "loop devices",
            "/dev/loop-control",
            Access::WRITE_OK,
            "loop",
        ),
        (
            "zram devices",
            "/sys/class/zram-control/hot_add",
            Access::READ_OK,
            "zram",
        ),
        ("FUSE", "/dev/fuse", Access::WRITE_OK, "fuse"),
    ] {
        match rustix::fs::access(path, access) {
            Ok(()) => topic.ok(name, "can be made"),
            Err(Errno::ACCESS | Errno::PERM) => {
                let fix = Some("run as root what makes them".to_owned());
                topic.add(
                    name,
                    CheckState::Absent,
                    "not by this user; for trials only",
                    fix,
                );
            }
            Err(_) => {
                let fix = Some(format!("modprobe {module}"));
                topic.add(name, CheckState::Absent, "not here; for trials only", fix);
            }
        }
    }
}
