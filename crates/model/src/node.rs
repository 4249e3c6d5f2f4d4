//! What a machine did while a run went on: its CPUs, memory, block devices,
//! network interfaces and processes, and what the volumes of its servers moved.
//!
//! A [`NodeSample`] holds what one interval alone did, as counts: rates are
//! counts over its time, and intervals are merged by adding them up.

use serde::{Deserialize, Serialize};

/// One interval of one machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodeSample {
    /// End of the interval, ms since 1970 UTC by the clock of the machine that
    /// drives the run.
    pub at_ms: u64,
    /// Its length in ms, by the node's own clock.
    pub span_ms: u64,
    /// Where the time of all CPUs went.
    pub cpu: CpuTime,
    /// Memory at the end of the interval.
    pub memory: Memory,
    /// Block devices that did something, whole disks only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceCounts>,
    /// Network interfaces that moved something, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceCounts>,
    /// The processes that used most CPU, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessTime>,
}

/// CPU time in ms, of all CPUs together (`/proc/stat`, proc_stat(5)).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct CpuTime {
    /// Programs, `nice` ones and guests included.
    pub user_ms: u64,
    /// The kernel, interrupts included.
    pub system_ms: u64,
    /// Idle while a task on it waited for a disk.
    pub iowait_ms: u64,
    /// Taken by the hypervisor.
    pub steal_ms: u64,
    /// Idle.
    pub idle_ms: u64,
}

impl CpuTime {
    /// All of it.
    pub fn total_ms(&self) -> u64 {
        self.user_ms + self.system_ms + self.iowait_ms + self.steal_ms + self.idle_ms
    }
}

/// Memory in bytes (`/proc/meminfo`, proc_meminfo(5)).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Memory {
    /// All there is.
    pub total_bytes: u64,
    /// What programs can still get without swapping.
    pub available_bytes: u64,
    /// The page cache: files and block devices, without shared memory.
    pub page_cache_bytes: u64,
    /// Of that what waits to be written, and what is being written.
    pub dirty_bytes: u64,
}

/// What a block device did (`/proc/diskstats`,
/// Documentation/admin-guide/iostats.rst).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DeviceCounts {
    /// Kernel name.
    pub name: String,
    /// Reads completed.
    pub read_ios: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Time of all reads, summed up, in ms.
    pub read_ms: u64,
    /// Writes completed.
    pub write_ios: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Time of all writes, summed up, in ms.
    pub write_ms: u64,
    /// Time in which at least one request was under way, in ms.
    pub busy_ms: u64,
    /// Time of all requests, summed up, in ms.
    pub queue_ms: u64,
}

/// What a network interface moved (`/proc/net/dev`, proc_net(5)).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InterfaceCounts {
    /// Its name.
    pub name: String,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
}

/// CPU time of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProcessTime {
    /// Its id on the node.
    pub pid: u32,
    /// Its name, cut to 15 bytes by the kernel.
    pub name: String,
    /// In user and kernel mode, in ms.
    pub cpu_ms: u64,
}

/// A figure over the intervals of a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FigureRange {
    /// Over all of the time.
    pub mean: f64,
    /// Of the interval where it was lowest.
    pub min: f64,
    /// Of the interval where it was highest.
    pub max: f64,
}

/// What a machine did in one step of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodeUse {
    /// Its name.
    pub node: String,
    /// The step, when the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Number of intervals.
    pub samples: u32,
    /// How often it did not answer.
    pub missed: u32,
    /// CPU time of programs in percent of all CPUs, as all below; absent, like the memory,
    /// where nobody told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_percent: Option<FigureRange>,
    /// Of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_percent: Option<FigureRange>,
    /// Idle while a task waited for a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iowait_percent: Option<FigureRange>,
    /// Taken by the hypervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_percent: Option<FigureRange>,
    /// Memory there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Memory that programs could still get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<FigureRange>,
    /// The page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_bytes: Option<FigureRange>,
    /// What waited to be written, or was being written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<FigureRange>,
    /// The block devices that did something, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceUse>,
    /// The network interfaces that moved something, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<InterfaceUse>,
    /// The processes that used most CPU, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessUse>,
}

/// What a block device did in one step of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DeviceUse {
    /// Kernel name.
    pub name: String,
    /// Reads per second.
    pub read_iops: FigureRange,
    /// Writes per second.
    pub write_iops: FigureRange,
    /// Bytes read per second.
    pub read_bw_bytes: FigureRange,
    /// Bytes written per second.
    pub write_bw_bytes: FigureRange,
    /// Time of a read, queueing included; absent without reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_await_ns: Option<FigureRange>,
    /// Time of a write, queueing included; absent without writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_await_ns: Option<FigureRange>,
    /// Requests under way, on average.
    pub queue: FigureRange,
    /// Share of the time in which a request was under way.
    pub util_percent: FigureRange,
}

/// What a network interface moved in one step of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InterfaceUse {
    /// Its name.
    pub name: String,
    /// Bytes received per second.
    pub rx_bw_bytes: FigureRange,
    /// Bytes sent per second.
    pub tx_bw_bytes: FigureRange,
}

/// A process in one step of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProcessUse {
    /// Its id on the node.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// CPU time in percent of one CPU; at least, because only the intervals
    /// count in which it was among the busiest.
    pub cpu_percent: f64,
}

/// What lies under the data of some servers of a node, and what it moved in a
/// step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Volume {
    /// The node.
    pub node: String,
    /// The step, when the run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Kernel name of the block device, or what is mounted; absent when neither
    /// could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The servers whose data it holds, as their figures name them.
    pub hosts: Vec<String>,
    /// Bytes it delivered, to everybody on the node; absent: nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes it took, from everybody on the node; absent: nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bytes: Option<u64>,
    /// Why nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}
