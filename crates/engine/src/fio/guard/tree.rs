//! Processes below a process, from /proc or ps(1), and their end.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Where a tree begins.
#[derive(Debug, Clone, Copy)]
pub enum Root {
    /// Everything below this process, itself left alone.
    Below(u32),
    /// This process and everything below it.
    Including(u32),
}

/// A process as /proc shows it.
struct Process {
    pid: u32,
    parent: u32,
    /// Start in clock ticks since boot: with the pid it names one process for ever.
    started: u64,
    /// Dead, only not waited for yet.
    zombie: bool,
}

/// The living processes of a tree.
pub fn alive(root: Root) -> Vec<u32> {
    Tree::new(root).look()
}

/// The children of a process of one thread, where the kernel tells them.
pub fn children(pid: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let listed = listed.unwrap_or_default();
    listed.split_whitespace().flat_map(str::parse).collect()
}

/// Kills the tree, again and again while something of it lives and `patience`
/// lasts, and calls `between` after each round. Gives the pids that are left.
pub fn kill(root: Root, patience: Duration, mut between: impl FnMut()) -> Vec<u32> {
    let end = Instant::now() + patience;
    let mut tree = Tree::new(root);
    loop {
        let living = tree.look();
        for pid in &living {
            if let Some(pid) = i32::try_from(*pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        between();
        if living.is_empty() || Instant::now() > end {
            return living;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A tree under observation: whoever was below its root once still counts
/// after its parent has died and it has moved elsewhere.
struct Tree {
    root: Root,
    known: HashMap<u32, u64>,
}

impl Tree {
    fn new(root: Root) -> Self {
        Self {
            root,
            known: HashMap::new(),
        }
    }

    /// Looks once more and gives the living members.
    fn look(&mut self) -> Vec<u32> {
        let processes = processes();
        self.known.retain(|pid, started| {
            processes
                .iter()
                .any(|p| p.pid == *pid && p.started == *started)
        });
        let mut grew = true;
        while grew {
            grew = false;
            for p in &processes {
                let belongs = match self.root {
                    Root::Below(pid) => p.parent == pid,
                    Root::Including(pid) => p.pid == pid || p.parent == pid,
                } || self.known.contains_key(&p.parent);
                if belongs && self.known.insert(p.pid, p.started).is_none() {
                    grew = true;
                }
            }
        }
        processes
            .iter()
            .filter(|p| !p.zombie && self.known.contains_key(&p.pid))
            .map(|p| p.pid)
            .collect()
    }
}

/// All processes, as ps(1) of POSIX tells them; when they started it does not.
#[cfg(not(target_os = "linux"))]
fn processes() -> Vec<Process> {
    let listed = std::process::Command::new("ps")
        .args(["-A", "-o", "pid=", "-o", "ppid=", "-o", "state="])
        .output();
    let text = listed.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            Some(Process {
                pid: fields.next()?.parse().ok()?,
                parent: fields.next()?.parse().ok()?,
                started: 0,
                zombie: fields.next()?.starts_with('Z'),
            })
        })
        .collect()
}

/// All processes.
#[cfg(target_os = "linux")]
fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(read)
        .collect()
}

/// Reads `/proc/PID/stat` (proc_pid_stat(5)): the name in parentheses may hold
/// anything, so the fields are counted from its last parenthesis.
#[cfg(target_os = "linux")]
fn read(pid: u32) -> Option<Process> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    // starttime is field 22; 3 and 4 are taken.
    let started = fields.nth(17)?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        started,
        zombie,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_that_left_its_session_is_still_in_the_tree() {
        let mut shell = Command::new("sh")
            .args(["-c", "setsid sleep 60 & sleep 60"])
            .spawn()
            .unwrap();
        let root = Root::Including(shell.id());
        let seen = Instant::now() + Duration::from_secs(60);
        while alive(root).len() < 3 && Instant::now() < seen {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(alive(root).len(), 3);
        let left = kill(root, Duration::from_secs(60), || {
            let _ = shell.try_wait();
        });
        assert_eq!(left, Vec::<u32>::new());
    }
}
