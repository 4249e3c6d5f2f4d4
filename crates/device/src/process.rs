//! Processes as the system tells of them.

use std::collections::{HashMap, HashSet};

use crate::sys::Sys;

/// A process at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number, which another process may have had before.
    pub pid: u32,
    /// Its name, as it gave it to itself: any characters.
    pub name: String,
    /// Dead, only not waited for yet.
    pub is_zombie: bool,
    /// Who has started it, or taken it over.
    pub parent: u32,
    /// CPU time, of user and kernel, in ticks of USER_HZ.
    pub cpu_ticks: u64,
    /// Start in ticks since boot: with the pid it names one process for ever. 0
    /// where the system does not tell.
    pub started: u64,
}

impl Process {
    /// Reads a `/proc/PID/stat` (proc_pid_stat(5)): `PID (NAME) STATE PARENT …`.
    /// The name may hold anything, so that the last parenthesis ends it.
    pub fn parse(stat: &str) -> Option<Self> {
        let (pid, rest) = stat.split_once(" (")?;
        let (name, fields) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // Counted from the state, which is the third of all.
        let field = |place: usize| fields.get(place - 3).copied();
        let number = |place: usize| field(place)?.parse::<u64>().ok();
        const STATE: usize = 3;
        const PPID: usize = 4;
        const UTIME: usize = 14;
        const STIME: usize = 15;
        const STARTTIME: usize = 22;
        Some(Self {
            pid: pid.parse().ok()?,
            name: name.to_owned(),
            is_zombie: matches!(field(STATE)?, "Z" | "X"),
            parent: field(PPID)?.parse().ok()?,
            cpu_ticks: number(UTIME)?.saturating_add(number(STIME)?),
            started: number(STARTTIME)?,
        })
    }

    /// The process of a number, or of `self`; `None` where there is none.
    pub fn of(sys: &Sys, pid: &str) -> Option<Self> {
        let stat = std::fs::read(sys.path(format!("/proc/{pid}/stat"))).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }
}

/// The numbers of all processes.
pub(crate) fn pids(sys: &Sys) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(sys.path("/proc")).into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok())
}

/// All processes of this machine.
#[cfg(target_os = "linux")]
pub fn all(sys: &Sys) -> Vec<Process> {
    pids(sys)
        .filter_map(|pid| Process::of(sys, &pid.to_string()))
        .collect()
}

/// All processes of this machine, as ps(1) of POSIX tells them.
#[cfg(not(target_os = "linux"))]
pub fn all(_: &Sys) -> Vec<Process> {
    let listed = std::process::Command::new("ps")
        .args(["-A", "-o", "pid=", "-o", "ppid=", "-o", "state="])
        .output();
    let text = listed.map(|output| output.stdout).unwrap_or_default();
    let process = |line: &str| {
        let mut fields = line.split_whitespace();
        Some(Process {
            pid: fields.next()?.parse().ok()?,
            parent: fields.next()?.parse().ok()?,
            is_zombie: fields.next()?.starts_with('Z'),
            name: String::new(),
            cpu_ticks: 0,
            started: 0,
        })
    };
    let text = String::from_utf8_lossy(&text);
    text.lines().filter_map(process).collect()
}

/// Those of `processes` that one of `roots` has started, or one that they have.
pub fn below(processes: &[Process], roots: &[u32]) -> HashSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in processes {
        children
            .entry(process.parent)
            .or_default()
            .push(process.pid);
    }
    let mut found = HashSet::new();
    let mut left = roots.to_vec();
    while let Some(pid) = left.pop() {
        let of_pid = children.get(&pid).into_iter().flatten();
        left.extend(of_pid.filter(|&&child| found.insert(child)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "42 (a) S 1 (b) Z 7 42 42 0 -1 4194560 1 0 0 0 3 4 0 0 20 0 1 0 99 0 0";
        let process = Process::parse(stat).unwrap();
        let wanted = Process {
            pid: 42,
            name: "a) S 1 (b".to_owned(),
            is_zombie: true,
            parent: 7,
            cpu_ticks: 7,
            started: 99,
        };
        assert_eq!(process, wanted);
        assert_eq!(Process::parse("42 (cut) S 1 42"), None);
        assert_eq!(Process::parse(""), None);
    }
}
