//! The threads of the engine: how long they ran, and how long they waited for a CPU while
//! they could have run (Documentation/scheduler/sched-stats.rst, `/proc/PID/schedstat`).

use std::collections::BTreeMap;
use std::fs;

use super::EvidenceReading;
use crate::sys::{Sys, names_in};

/// Processes with more threads than that are not looked at: it would cost more than it tells.
const MOST_THREADS: usize = 4096;
/// A thread counts that runs a tenth as long as the one that runs longest: others hand on
/// what is told, or wait for the end.
const WORKING_SHARE: u64 = 10;

/// Times of a thread, in ns.
#[derive(Debug, Clone, Copy, Default)]
struct TaskTimes {
    ran: u64,
    waited: u64,
}

/// The engine's process, with those that it started.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    root: Option<u32>,
    last: BTreeMap<String, TaskTimes>,
    sum: TaskTimes,
}

impl Tasks {
    /// Looks at this process from now on.
    pub(super) fn watch(&mut self, root: u32) {
        *self = Self {
            root: Some(root),
            ..Self::default()
        };
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
