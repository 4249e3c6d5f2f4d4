//! The cores that everything measured is held to, and what was used of them.

#![allow(unsafe_code)] // each block says why it is sound

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The machine's last CPUs, and the cpuset that holds commands to them. A plain
/// affinity would not do: io_uring's kernel workers take the affinity of the
/// cpuset, not of the thread that they work for (io_uring/io-wq.c, io_wq_create).
pub struct Cores {
    /// As cpusets and taskset have them.
    cpus: String,
    cpuset: Option<PathBuf>,
}

/// CPU time of a command and of all it started and waited for, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    pub user_s: f64,
    pub system_s: f64,
}

impl Cores {
    /// So many; `None` where the machine has fewer.
    pub fn last(count: usize) -> Option<Self> {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let cpus = format!("{}-{}", all.checked_sub(count)?, all - 1);
        let cpuset = make_cpuset(&cpus);
        if cpuset.is_none() {
            println!("no cpuset can be made here: io_uring's kernel workers may leave CPU {cpus}");
        }
        Some(Self { cpus, cpuset })
    }

    /// Whether kernel workers stay there, too.
    pub fn is_tight(&self) -> bool {
        self.cpuset.is_some()
    }

    /// Runs a command that must succeed there; what it printed, what it used.
    pub fn run(&self, command: &Command) -> (String, Used) {
        let mut held = match &self.cpuset {
            Some(dir) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
                shell.arg(dir.join("cgroup.procs"));
                shell
            }
            None => {
                let mut taskset = Command::new("taskset");
                taskset.args(["-c", &self.cpus]);
                taskset
            }
        };
        held.arg(command.get_program()).args(command.get_args());
        let before = used_by_children();
        let output = held.stdin(Stdio::null()).output().unwrap();
        let after = used_by_children();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {said}");
        let used = Used {
            user_s: after.user_s - before.user_s,
            system_s: after.system_s - before.system_s,
        };
        (String::from_utf8(output.stdout).unwrap(), used)
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        if let Some(dir) = &self.cpuset {
            let _ = fs::remove_dir(dir);
        }
    }
}

/// A cpuset, in whichever hierarchy the machine has.
fn make_cpuset(cpus: &str) -> Option<PathBuf> {
    let old = Path::new("/sys/fs/cgroup/cpuset");
    let root = if old.is_dir() {
        old
    } else {
        let root = Path::new("/sys/fs/cgroup");
        fs::write(root.join("cgroup.subtree_control"), "+cpuset").ok()?;
        root
    };
    let dir = root.join(format!("fathom-bench-{}-{cpus}", std::process::id()));
    fs::create_dir(&dir).ok()?;
    let set = |file: &str, value: &str| fs::write(dir.join(file), value);
    let made = set("cpuset.cpus", cpus).and_then(|()| set("cpuset.mems", "0"));
    if made.is_err() {
        let _ = fs::remove_dir(&dir);
        return None;
    }
    Some(dir)
}

/// How busy the whole machine is with something else between two moments.
pub struct Others {
    began: (f64, f64),
    own: Used,
}

impl Others {
    pub fn watch() -> Self {
        Self {
            began: machine_ticks(),
            own: used_by_children(),
        }
    }

    /// Cores that other processes have kept busy since, on average.
    pub fn cores(&self) -> f64 {
        let (busy, all) = machine_ticks();
        let (busy, all) = (busy - self.began.0, all - self.began.1);
        let own = used_by_children();
        let own = own.user_s + own.system_s - self.own.user_s - self.own.system_s;
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        // Every core has as many ticks as time went by: 100 a second (USER_HZ).
        let seconds = all / cpus / 100.0;
        (busy / 100.0 - own) / seconds
    }
}

/// Ticks in which the machine did something, and all (proc(5), /proc/stat).
fn machine_ticks() -> (f64, f64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = line
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|word| word.parse().ok())
        .collect();
    let all: f64 = ticks.iter().sum();
    // The fourth is idle, the fifth idle with I/O under way.
    let idle: f64 = ticks.iter().skip(3).take(2).sum();
    (all - idle, all)
}

/// All that ended and was waited for; a process's kernel workers are threads of it.
fn used_by_children() -> Used {
    // SAFETY: all fields of rusage are numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one rusage at the pointer.
    let result = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    assert_eq!(result, 0);
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Used {
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
    }
}
