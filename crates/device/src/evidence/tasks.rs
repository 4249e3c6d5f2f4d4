//! The threads of the engine: how long they ran, how long they waited for a CPU while they
//! could have run (Documentation/scheduler/sched-stats.rst, `/proc/PID/schedstat`), and what
//! storage delivered to them (Documentation/filesystems/proc.rst, `/proc/PID/io`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_model::{LayerKind, StackLayer};

use super::EvidenceReading;
use crate::process::{Process, pids};
use crate::sys::{Sys, names_in};
use crate::{mounts, stack};

/// Processes with more threads than that are not looked at: it would cost more than it tells.
const MOST_THREADS: usize = 4096;
/// A thread counts that runs a tenth as long as the one that runs longest: others hand on
/// what is told, or wait for the end.
const WORKING_SHARE: u64 = 10;
/// Processes from the engine up to this one: a guard may be between them.
const DEPTH_MOST: usize = 4;
/// A kernel worker that has nothing to do ends after this time (`IDLE_WORKER_TIMEOUT`,
/// kernel/workqueue.c). What those have read that came and went is not known.
const WORKER_IDLE: Duration = Duration::from_secs(300);

/// Times of a thread, in ns.
#[derive(Debug, Clone, Copy, Default)]
struct TaskTimes {
    ran: u64,
    waited: u64,
}

/// The engine's process, with those that it started, and the servers of the file systems
/// that it reads.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    root: Option<u32>,
    last: BTreeMap<String, TaskTimes>,
    sum: TaskTimes,
    /// Servers in FUSE, each with what it had read before; `None`: one was not found.
    servers: Option<Vec<(u32, u64)>>,
    workers: Option<Workers>,
}

/// The kernel's workers, which read the files of loop devices through the page cache, each
/// with what it had read before.
#[derive(Debug)]
struct Workers {
    began: Instant,
    before: BTreeMap<u32, u64>,
}

impl Workers {
    /// `None` where the targets are not all on loop devices that are read by these alone.
    fn before(sys: &Sys, targets: &[PathBuf]) -> Option<Self> {
        let is_read_by_them =
            |target: &PathBuf| stack::of(sys, target).is_some_and(|it| is_on_loop(sys, &it));
        let is_theirs = !targets.is_empty() && targets.iter().all(is_read_by_them);
        is_theirs.then(|| Self {
            began: Instant::now(),
            before: workers(sys),
        })
    }

    /// Bytes that storage has delivered to them since then.
    fn read_bytes(&self, sys: &Sys) -> Option<u64> {
        let now = workers(sys);
        let is_whole = self.before.keys().all(|pid| now.contains_key(pid));
        if !is_whole || now.is_empty() || self.began.elapsed() >= WORKER_IDLE {
            return None;
        }
        let before = |pid: &u32| self.before.get(pid).copied().unwrap_or(0);
        let grown = now.iter().map(|(pid, now)| now.saturating_sub(before(pid)));
        Some(grown.fold(0, u64::saturating_add))
    }
}

impl Tasks {
    /// An engine that is to read and write these, and has not begun.
    pub(super) fn before(sys: &Sys, targets: &[PathBuf]) -> Self {
        let had_read = |pid: u32| Some((pid, read_bytes(sys, &pid.to_string())?));
        let servers = servers(sys, targets);
        let servers = servers.and_then(|all| all.into_iter().map(had_read).collect());
        Self {
            servers,
            workers: Workers::before(sys, targets),
            ..Self::default()
        }
    }

    /// Looks at this process from now on.
    pub(super) fn watch(&mut self, sys: &Sys, root: u32) {
        *self = Self {
            root: Some(started_here(sys, root)),
            servers: self.servers.take(),
            workers: self.workers.take(),
            ..Self::default()
        };
    }

    /// Bytes that storage has delivered to the engine and the servers, once it has ended:
    /// before, those of a process that is just being waited for can be missing.
    pub(super) fn read_bytes(&self, sys: &Sys) -> Option<u64> {
        let root = self.root?.to_string();
        let mut sum = read_bytes(sys, &root)?;
        for (server, before) in self.servers.as_ref()? {
            let now = read_bytes(sys, &server.to_string())?;
            sum = sum.saturating_add(now.saturating_sub(*before));
        }
        Some(sum)
    }

    /// Bytes that storage has delivered for the loop devices that all targets are on.
    pub(super) fn loop_read_bytes(&self, sys: &Sys) -> Option<u64> {
        self.workers.as_ref()?.read_bytes(sys)
    }

    pub(super) fn read(&mut self, sys: &Sys, reading: &mut EvidenceReading) {
        let Some(now) = self.root.and_then(|root| all(sys, root)) else {
            return;
        };
        let mut ran = Vec::new();
        for (task, times) in &now {
            let before = self.last.get(task).copied().unwrap_or_default();
            let grown = times.ran.saturating_sub(before.ran);
            self.sum.ran = self.sum.ran.saturating_add(grown);
            let waited = times.waited.saturating_sub(before.waited);
            self.sum.waited = self.sum.waited.saturating_add(waited);
            ran.push(grown);
        }
        let longest = ran.iter().copied().max().unwrap_or(0);
        let works = |ran: &&u64| **ran > 0 && **ran >= longest / WORKING_SHARE;
        let working = ran.iter().filter(works).count();
        reading.count("job", "run_us", Some(self.sum.ran / 1000));
        reading.count("job", "wait_us", Some(self.sum.waited / 1000));
        reading.gauge("job", "threads", (working > 0).then_some(working as f64));
        self.last = now;
    }
}

/// The times of all threads by their number; `None`: there are too many.
fn all(sys: &Sys, root: u32) -> Option<BTreeMap<String, TaskTimes>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_string()];
    while let Some(process) = open.pop() {
        let tasks = sys.path(format!("/proc/{process}/task"));
        for task in names_in(&tasks) {
            let folder = tasks.join(&task);
            let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
            let stat = read("schedstat");
            let mut numbers = stat
                .split_whitespace()
                .map(|word| word.parse().unwrap_or(0));
            let mut next = || numbers.next().unwrap_or(0);
            let times = TaskTimes {
                ran: next(),
                waited: next(),
            };
            open.extend(read("children").split_whitespace().map(str::to_owned));
            found.insert(task, times);
            if found.len() > MOST_THREADS {
                return None;
            }
        }
    }
    Some(found)
}

/// The child of this process that is `process` or one of its ancestors. The kernel adds what a
/// process read to its parent's counter when the parent waits for it, and this child is waited
/// for only after its last reading.
fn started_here(sys: &Sys, process: u32) -> u32 {
    let parent = |pid: &u32| Some(Process::of(sys, &pid.to_string())?.parent);
    let mut above = std::iter::successors(Some(process), parent).take(DEPTH_MOST);
    let is_child = |pid: &u32| parent(pid) == Some(std::process::id());
    above.find(is_child).unwrap_or(process)
}

/// Bytes that storage delivered to a process and to the children it has waited for.
fn read_bytes(sys: &Sys, process: &str) -> Option<u64> {
    let text = fs::read_to_string(sys.path(format!("/proc/{process}/io"))).ok()?;
    let mut lines = text.lines();
    lines.find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok())
}

/// Whether everything below a layer is read through the page cache of loop devices, whose
/// files only the kernel's workers read: no server in FUSE, and nothing unknown.
fn is_on_loop(sys: &Sys, layer: &StackLayer) -> bool {
    let is_buffered = |node: crate::SysBlock| node.text("loop/dio").as_deref() == Some("0");
    let is_loop = layer.kind == LayerKind::Loop;
    if is_loop && sys.by_name(&layer.name).is_some_and(is_buffered) {
        use LayerKind::{Fuse, Memory, Network, Unknown};
        return !layer
            .layers()
            .any(|it| matches!(it.kind, Fuse | Memory | Network | Unknown));
    }
    !layer.under.is_empty() && layer.under.iter().all(|it| is_on_loop(sys, it))
}

/// What each of the kernel's workers has read; nothing where that may not be looked at.
fn workers(sys: &Sys) -> BTreeMap<u32, u64> {
    let is_worker = |pid: &u32| {
        let name = fs::read_to_string(sys.path(format!("/proc/{pid}/comm")));
        name.is_ok_and(|name| name.starts_with("kworker/"))
    };
    let all = pids(sys).filter(is_worker);
    all.filter_map(|pid| Some((pid, read_bytes(sys, &pid.to_string())?)))
        .collect()
}

/// The processes that serve the file systems of these paths in FUSE; `None`: one is not found,
/// because it is of another machine or namespace, or the kernel is older than 6.14.
fn servers(sys: &Sys, targets: &[PathBuf]) -> Option<Vec<u32>> {
    let mounts = mounts::own(sys);
    let connection = |target: &PathBuf| {
        let (_, mount) = mounts::of_path(&mounts, target)?;
        let (major, minor) = mount.number;
        // A number as the kernel keeps it (include/linux/kdev_t.h).
        let is_fuse = mount.kind.starts_with("fuse");
        is_fuse.then_some(major << 20 | minor)
    };
    let mut connections: Vec<u32> = targets.iter().filter_map(connection).collect();
    connections.sort_unstable();
    connections.dedup();
    if connections.is_empty() {
        return Some(Vec::new());
    }
    let all: Vec<(u32, u32)> = pids(sys).flat_map(|pid| served(sys, pid)).collect();
    let server = |wanted: u32| all.iter().find(|(_, connection)| *connection == wanted);
    let found = connections.into_iter().map(|it| Some(server(it)?.0));
    found.collect()
}

/// The connections that a process serves, with its number.
fn served(sys: &Sys, pid: u32) -> Vec<(u32, u32)> {
    let open = sys.path(format!("/proc/{pid}/fd"));
    let is_fuse =
        |fd: &String| fs::read_link(open.join(fd)).is_ok_and(|to| to == Path::new("/dev/fuse"));
    let connection = |fd: String| {
        let text = fs::read_to_string(sys.path(format!("/proc/{pid}/fdinfo/{fd}"))).ok()?;
        let mut lines = text.lines();
        let number = lines.find_map(|line| line.strip_prefix("fuse_connection:"))?;
        Some((pid, number.trim().parse().ok()?))
    };
    let all = names_in(&open).into_iter().filter(is_fuse);
    all.filter_map(connection).collect()
}
