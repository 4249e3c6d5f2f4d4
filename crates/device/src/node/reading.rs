//! One reading of a machine, and what it did between two.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::NodeSample;
use fathom_model::node::{CpuTime, DeviceCounts, InterfaceCounts, Memory, ProcessTime};

use super::{disk_line, sections};
use crate::process::Process;

/// Processes that a sample names.
const PROCESSES: usize = 10;
/// Network interfaces that a sample names: a node has one for each of its pods.
const INTERFACES: usize = 4;
/// Length of a clock tick in what the kernel tells of CPU time: USER_HZ is 100 on
/// every architecture that Fathom runs on (include/asm-generic/param.h).
const TICK_MS: u64 = 10;

/// The files of a reading, `/proc` of the machine being at `proc`. The clock
/// stands first and the counters that are divided by it next. `/sys` is that of
/// whoever reads: block devices are the same in all namespaces.
pub fn files(proc: &str) -> Vec<String> {
    let of_proc = [
        "uptime",
        "diskstats",
        "stat",
        "meminfo",
        "1/net/dev",
        "[0-9]*/stat",
    ];
    let of_proc = of_proc.iter().map(|name| format!("{proc}/{name}"));
    of_proc.chain(["/sys/block/*/dev".to_owned()]).collect()
}

/// The counters of a machine at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeReading {
    /// Time since it was started.
    uptime_ms: u64,
    cpu: CpuTime,
    memory: Memory,
    /// By name: whole disks only, where `/sys` tells which these are.
    devices: BTreeMap<String, DeviceCounts>,
    interfaces: BTreeMap<String, InterfaceCounts>,
    /// By id and start: ids are given again.
    processes: BTreeMap<(u32, u64), ProcessTime>,
}

impl NodeReading {
    /// Reads the text of [`files`].
    ///
    /// # Errors
    /// What is missing in it that everything else depends on.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reading = Self::default();
        let mut disks: Vec<((u32, u32), DeviceCounts)> = Vec::new();
        let mut whole: BTreeSet<(u32, u32)> = BTreeSet::new();
        for (name, body) in sections(text) {
            match name {
                _ if name.ends_with("/[0-9]*/stat") => {
                    reading.processes = body.lines().filter_map(process).collect();
                }
                _ if name.ends_with("/uptime") => reading.uptime_ms = uptime_ms(body).unwrap_or(0),
                _ if name.ends_with("/diskstats") => {
                    disks = body.lines().filter_map(disk_line).collect();
                }
                _ if name.ends_with("/stat") => reading.cpu = cpu(body).unwrap_or_default(),
                _ if name.ends_with("/meminfo") => reading.memory = memory(body),
                _ if name.ends_with("/net/dev") => {
                    reading.interfaces = body.lines().filter_map(interface).collect();
                }
                _ if name.ends_with("/dev") => whole = body.lines().filter_map(number).collect(),
                _ => {}
            }
        }
        if reading.uptime_ms == 0 || reading.cpu.total_ms() == 0 {
            return Err("neither its clock nor its CPUs can be read".to_owned());
        }
        let kept = |number: &(u32, u32)| whole.is_empty() || whole.contains(number);
        let disks = disks.into_iter().filter(|(number, _)| kept(number));
        reading.devices = disks.map(|(_, disk)| (disk.name.clone(), disk)).collect();
        Ok(reading)
    }

    /// What the machine did since an earlier reading, to end at `at_ms`; `None`
    /// when no time has passed, or it was started again in between.
    pub fn since(&self, before: &Self, at_ms: u64) -> Option<NodeSample> {
        let span_ms = self.uptime_ms.checked_sub(before.uptime_ms)?;
        if span_ms == 0 {
            return None;
        }
        Some(NodeSample {
            at_ms,
            span_ms,
            cpu: spent(self.cpu, before.cpu),
            memory: self.memory,
            devices: self.devices_since(before),
            interfaces: self.interfaces_since(before),
            processes: self.processes_since(before),
        })
    }

    /// Devices that did something. One whose counters went back was taken away
    /// meanwhile and came again.
    fn devices_since(&self, before: &Self) -> Vec<DeviceCounts> {
        let since = |now: &DeviceCounts| {
            let then = before.devices.get(&now.name)?;
            Some(DeviceCounts {
                name: now.name.clone(),
                read_ios: now.read_ios.checked_sub(then.read_ios)?,
                read_bytes: now.read_bytes.checked_sub(then.read_bytes)?,
                read_ms: now.read_ms.checked_sub(then.read_ms)?,
                write_ios: now.write_ios.checked_sub(then.write_ios)?,
                write_bytes: now.write_bytes.checked_sub(then.write_bytes)?,
                write_ms: now.write_ms.checked_sub(then.write_ms)?,
                busy_ms: now.busy_ms.checked_sub(then.busy_ms)?,
                queue_ms: now.queue_ms.checked_sub(then.queue_ms)?,
            })
        };
        let worked = |one: &DeviceCounts| {
            // Requests that go on count in `busy` alone; flushes in `queue`.
            one.read_ios + one.write_ios + one.busy_ms + one.queue_ms > 0
        };
        let all = self.devices.values().filter_map(since);
        all.filter(worked).collect()
    }

    fn interfaces_since(&self, before: &Self) -> Vec<InterfaceCounts> {
        let since = |now: &InterfaceCounts| {
            let then = before.interfaces.get(&now.name)?;
            Some(InterfaceCounts {
                name: now.name.clone(),
                rx_bytes: now.rx_bytes.checked_sub(then.rx_bytes)?,
                tx_bytes: now.tx_bytes.checked_sub(then.tx_bytes)?,
            })
        };
        let mut moved: Vec<InterfaceCounts> = self.interfaces.values().filter_map(since).collect();
        moved.retain(|one| one.rx_bytes > 0 || one.tx_bytes > 0);
        moved.sort_by_key(|one| std::cmp::Reverse(one.rx_bytes + one.tx_bytes));
        moved.truncate(INTERFACES);
        moved
    }

    /// Processes that have begun since are there with all they used.
    fn processes_since(&self, before: &Self) -> Vec<ProcessTime> {
        let since = |(key, now): (&(u32, u64), &ProcessTime)| {
            let then = before.processes.get(key).map_or(0, |then| then.cpu_ms);
            ProcessTime {
                cpu_ms: now.cpu_ms.saturating_sub(then),
                ..now.clone()
            }
        };
        let mut busy: Vec<ProcessTime> = self.processes.iter().map(since).collect();
        busy.retain(|one| one.cpu_ms > 0);
        busy.sort_by_key(|one| std::cmp::Reverse(one.cpu_ms));
        busy.truncate(PROCESSES);
        busy
    }
}

/// `4242.17 8000.01`: seconds since the start, and idle ones.
fn uptime_ms(text: &str) -> Option<u64> {
    let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some((seconds * 1000.0).round() as u64)
}

/// The line of all CPUs. Guests are in `user` and `nice` already; `irq` and
/// `softirq` are the kernel's (proc_stat(5)).
fn cpu(text: &str) -> Option<CpuTime> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .skip(1)
        .map_while(|field| field.parse().ok())
        .collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
        return None;
    };
    Some(CpuTime {
        user_ms: (user + nice) * TICK_MS,
        system_ms: (system + irq + softirq) * TICK_MS,
        iowait_ms: iowait * TICK_MS,
        steal_ms: steal * TICK_MS,
        idle_ms: idle * TICK_MS,
    })
}

/// Idle time and that of waiting for disks can go back a little (proc_stat(5)).
fn spent(now: CpuTime, then: CpuTime) -> CpuTime {
    CpuTime {
        user_ms: now.user_ms.saturating_sub(then.user_ms),
        system_ms: now.system_ms.saturating_sub(then.system_ms),
        iowait_ms: now.iowait_ms.saturating_sub(then.iowait_ms),
        steal_ms: now.steal_ms.saturating_sub(then.steal_ms),
        idle_ms: now.idle_ms.saturating_sub(then.idle_ms),
    }
}

fn memory(text: &str) -> Memory {
    // `MemTotal:       16319808 kB`, in truth KiB (proc_meminfo(5)).
    let bytes = |wanted: &str| {
        let kib = text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let value = value.split_ascii_whitespace().next()?;
            (name == wanted).then(|| value.parse::<u64>().ok())?
        });
        kib.unwrap_or(0).saturating_mul(1024)
    };
    Memory {
        total_bytes: bytes("MemTotal"),
        available_bytes: bytes("MemAvailable"),
        // `Cached` counts tmpfs and shared memory too, which are no cache.
        page_cache_bytes: (bytes("Cached") + bytes("Buffers")).saturating_sub(bytes("Shmem")),
        dirty_bytes: bytes("Dirty") + bytes("Writeback"),
    }
}

/// `  eth0: 1 2 3 …`: bytes received stand first, those sent ninth. What a
/// machine tells itself over `lo` moves nothing.
fn interface(line: &str) -> Option<(String, InterfaceCounts)> {
    let (name, counts) = line.split_once(':')?;
    let name = name.trim().to_owned();
    let counts: Vec<u64> = counts
        .split_ascii_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let [rx_bytes, _, _, _, _, _, _, _, tx_bytes, ..] = counts[..] else {
        return None;
    };
    let moved = InterfaceCounts {
        name: name.clone(),
        rx_bytes,
        tx_bytes,
    };
    (name != "lo").then_some((name, moved))
}

/// `8:0`.
fn number(line: &str) -> Option<(u32, u32)> {
    let (major, minor) = line.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A line of `/proc/PID/stat`.
fn process(line: &str) -> Option<((u32, u64), ProcessTime)> {
    let process = Process::parse(line)?;
    let time = ProcessTime {
        pid: process.pid,
        name: process.name,
        cpu_ms: process.cpu_ticks.saturating_mul(TICK_MS),
    };
    Some(((process.pid, process.started), time))
}
