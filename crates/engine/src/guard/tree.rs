//! Processes below a process, from /proc or ps(1), and their end.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fathom_device::Sys;
use fathom_device::process;
use rustix::process::{Pid, Signal, kill_process};

/// Where a tree begins.
#[derive(Debug, Clone, Copy)]
pub enum Root {
    /// Everything below this process, itself left alone.
    Below(u32),
    /// This process and everything below it.
    Including(u32),
}

/// The living processes of a tree.
pub fn alive(root: Root) -> Vec<u32> {
    ProcessTree::new(root).look()
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
    let mut tree = ProcessTree::new(root);
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
struct ProcessTree {
    root: Root,
    known: HashMap<u32, u64>,
}

impl ProcessTree {
    fn new(root: Root) -> Self {
        Self {
            root,
            known: HashMap::new(),
        }
    }

    /// Looks once more and gives the living members.
    fn look(&mut self) -> Vec<u32> {
        let processes = process::all(&Sys::live());
        let started: HashMap<u32, u64> = processes.iter().map(|p| (p.pid, p.started)).collect();
        self.known
            .retain(|pid, then| started.get(pid) == Some(then));
        let (root, includes_root) = match self.root {
            Root::Below(pid) => (pid, false),
            Root::Including(pid) => (pid, true),
        };
        let roots: Vec<u32> = self.known.keys().copied().chain([root]).collect();
        let below = process::below(&processes, &roots).into_iter();
        let members = below.chain(includes_root.then_some(root));
        let members = members.filter_map(|pid| Some((pid, *started.get(&pid)?)));
        self.known.extend(members);
        processes
            .iter()
            .filter(|p| !p.is_zombie && self.known.contains_key(&p.pid))
            .map(|p| p.pid)
            .collect()
    }
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
