//! What the kernel has counted as written to the targets of a run, by whatever
//! means: jobs, their ramp time, laying out, a purge.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::openers;
use crate::sys::{Sys, SysBlock};

/// Counts from its making on. Of block devices it is what the kernel's own counter
/// of each has, so other programs that write to them count too; I/O past the block
/// layer (sg, ng) does not. A file shares its device with others: of files it is
/// what this process and those that it started have written, wherever to
/// (`write_bytes`, proc_pid_io(5)).
#[derive(Debug)]
pub struct WriteCounter {
    sys: Sys,
    /// With the bytes that were written before.
    devices: Vec<(SysBlock, u64)>,
    /// `None` where every target is a block device.
    processes: Option<Mutex<Processes>>,
}

/// What each process has written, by its number and start: it stays when the
/// process is gone.
#[derive(Debug, Default)]
struct Processes {
    bytes: HashMap<(u32, u64), u64>,
    before: u64,
}

impl WriteCounter {
    /// A counter for these targets; `None` where the kernel counts for none of them.
    pub fn of<'p>(sys: &Sys, targets: impl IntoIterator<Item = &'p Path>) -> Option<Self> {
        let mut devices: Vec<(SysBlock, u64)> = Vec::new();
        let mut has_files = false;
        for target in targets {
            match sys.by_path(target) {
                None => has_files |= !is_character_device(target),
                Some(node) if devices.iter().any(|(known, _)| *known == node) => {}
                Some(node) => devices.extend(node.written_bytes().map(|bytes| (node, bytes))),
            }
        }
        // What is written to a partition counts for its disk already.
        let nodes: Vec<SysBlock> = devices.iter().map(|(node, _)| node.clone()).collect();
        devices.retain(|(node, _)| !node.is_partition() || !nodes.contains(&node.whole()));
        let processes = has_files.then(|| Mutex::new(Processes::now(sys)));
        (has_files || !devices.is_empty()).then(|| Self {
            sys: sys.clone(),
            devices,
            processes,
        })
    }

    /// The devices whose own counters are read; empty where there are files among
    /// the targets.
    pub fn devices(&self) -> Vec<PathBuf> {
        match self.processes {
            Some(_) => Vec::new(),
            None => self
                .devices
                .iter()
                .map(|(node, _)| node.dev_path())
                .collect(),
        }
    }

    /// Bytes so far. For files it has to be asked while the processes live.
    pub fn bytes(&self) -> u64 {
        let device = |(node, before): &(SysBlock, u64)| {
            let now = node.written_bytes();
            now.map_or(0, |now| now.saturating_sub(*before))
        };
        let of_devices = self.devices.iter().map(device).sum::<u64>();
        let of_files = self.processes.as_ref().map_or(0, |processes| {
            let mut processes = processes.lock().unwrap_or_else(|e| e.into_inner());
            processes.look(&self.sys);
            processes.total().saturating_sub(processes.before)
        });
        // Processes write to the devices as well.
        of_devices.max(of_files)
    }
}

impl Processes {
    fn now(sys: &Sys) -> Self {
        let mut processes = Self::default();
        processes.look(sys);
        processes.before = processes.total();
        processes
    }

    fn look(&mut self, sys: &Sys) {
        for (pid, started) in openers::own_processes(sys) {
            if let Some(bytes) = write_bytes(sys, pid) {
                self.bytes.insert((pid, started), bytes);
            }
        }
    }

    fn total(&self) -> u64 {
        self.bytes.values().sum()
    }
}

fn write_bytes(sys: &Sys, pid: u32) -> Option<u64> {
    let text = fs::read_to_string(sys.path(format!("/proc/{pid}/io"))).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes:"))?;
    line.trim().parse().ok()
}

/// The nodes of the SCSI generic and NVMe passthrough engines.
fn is_character_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    fs::metadata(path).is_ok_and(|meta| meta.file_type().is_char_device())
}
