//! Threads, where there are any to be had. `std::thread::spawn` panics where there
//! are none, and is forbidden (clippy.toml); these say which limit it was.

#![allow(unsafe_code)] // each block says why it is sound

use std::fmt;
use std::fs;
use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use fathom_model::{Failure, FailureKind};

/// Starts a thread.
///
/// # Errors
/// When there is none to be had.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, NoThread> {
    let builder = Builder::new().name(name.to_owned());
    let begun = room().and_then(|()| builder.spawn(work));
    begun.map_err(|error| NoThread::new(&error))
}

/// Starts a thread that ends before `scope` does.
///
/// # Errors
/// As [`spawn`].
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, NoThread> {
    let builder = Builder::new().name(name.to_owned());
    let begun = room().and_then(|()| builder.spawn_scoped(scope, work));
    begun.map_err(|error| NoThread::new(&error))
}

/// Where the address space is limited, threads share one heap: each of its own would
/// reserve 64 MiB, and twice that for a moment, in which others find none and the program
/// ends (glibc, malloc/arena.c, `alloc_new_heap`). To be called before there are threads.
pub fn share_heap_in_limited_space() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if address_space().is_some() {
        // SAFETY: no pointer is passed, and nobody else sets it.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// The limit of the address space in bytes, where there is one.
fn address_space() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

/// What has to be free of a limited address space before another thread is started: its
/// stack (2 MiB, `std::thread`), and what the threads that run ask for meanwhile. They
/// have no way to go on without, and the program would end.
const ROOM: u64 = 16 << 20;

/// Whether one more thread fits under the limit of the address space, where there is one.
///
/// # Errors
/// As the system says it of a thread for which it has no room.
pub fn room() -> io::Result<()> {
    let Some(limit) = address_space() else {
        return Ok(());
    };
    // Pages in all, then of other kinds (proc_pid_statm(5)).
    let used = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = used.split(' ').next().and_then(|pages| pages.parse().ok());
    let bytes = pages.map_or(0, |pages: u64| pages * rustix::param::page_size() as u64);
    match bytes + ROOM > limit {
        true => Err(rustix::io::Errno::AGAIN.into()),
        false => Ok(()),
    }
}

/// The system gives no more threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoThread {
    said: String,
    limits: Vec<String>,
}

impl NoThread {
    /// As the system said, with the limits that this process is under.
    pub fn new(error: &io::Error) -> Self {
        let said = error.to_string();
        let said = said.split(" (os error").next().unwrap_or(&said).to_owned();
        let limits = limits();
        Self { said, limits }
    }
}

/// What to do about a process that cannot be started, where a limit is the reason;
/// `None` where it is another.
pub fn advice_on(error: &io::Error) -> Option<String> {
    let is_lack = matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory
    );
    is_lack.then(|| NoThread::new(error).advice())
}

impl NoThread {
    fn what(&self) -> String {
        format!("no thread can be started: {}", self.said)
    }

    fn advice(&self) -> String {
        let limits = match self.limits.is_empty() {
            true => "the kernel's own limits (sysctl kernel.threads-max, vm.max_map_count)".into(),
            false => self.limits.join(", "),
        };
        format!("raise what limits it here: {limits}")
    }
}

impl std::error::Error for NoThread {}

impl fmt::Display for NoThread {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}\n  to do: {}", self.what(), self.advice())
    }
}

impl From<NoThread> for io::Error {
    fn from(error: NoThread) -> Self {
        Self::other(error)
    }
}

impl From<NoThread> for Failure {
    fn from(error: NoThread) -> Self {
        Self::new(FailureKind::NoThread, error.what()).to_do(error.advice())
    }
}

/// The limits on threads and their memory that this process is under, by the name
/// of what sets them.
fn limits() -> Vec<String> {
    let mut found = Vec::new();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    // "Max processes   100   200   processes": soft, hard.
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    // The kernel does not hold root to it.
    let is_root = rustix::process::geteuid().is_root();
    if let Some(most) = soft("Max processes").filter(|_| !is_root) {
        found.push(format!(
            "ulimit -u (processes and threads of this user: {most})"
        ));
    }
    if let Some(most) = soft("Max address space") {
        found.push(format!("ulimit -v (address space: {} MiB)", most >> 20));
    }
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = group.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        match controllers {
            "" => Some(format!("/sys/fs/cgroup{path}/pids.max")),
            "pids" => Some(format!("/sys/fs/cgroup/pids{path}/pids.max")),
            _ => None,
        }
    });
    for file in groups {
        let most = fs::read_to_string(&file).unwrap_or_default();
        if let Ok(most) = most.trim().parse::<u64>() {
            found.push(format!("pids.max of its control group ({most}, {file})"));
        }
    }
    found
}
