//! NUMA nodes: whose CPUs a job's threads run on, and where their memory comes from.

use std::fs;

use super::options::number_list;
use super::this_thread::set_memory_policy;

/// Where the kernel tells of nodes.
const NODES: &str = "/sys/devices/system/node";

/// Nodes as a job names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeList {
    All,
    These(Vec<usize>),
}

/// `numa_mem_policy`, by the kernel's kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MemoryPolicy {
    Default,
    Prefer(usize),
    Bind(NodeList),
    Interleave(NodeList),
    Local,
}

/// What a job asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NumaOptions {
    pub(super) cpu_nodes: Option<NodeList>,
    pub(super) memory: Option<MemoryPolicy>,
}

impl NodeList {
    /// Those there are, of a file such as `online`.
    fn present(&self, file: &str) -> Result<Vec<usize>, String> {
        let there = numbers(file)?;
        match self {
            Self::All => Ok(there),
            Self::These(nodes) => match nodes.iter().find(|node| !there.contains(node)) {
                Some(missing) => Err(format!("this machine has no NUMA node {missing}")),
                None => Ok(nodes.clone()),
            },
        }
    }
}

fn numbers(file: &str) -> Result<Vec<usize>, String> {
    let path = format!("{NODES}/{file}");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    match text.trim() {
        "" => Ok(Vec::new()),
        list => number_list(list),
    }
}

/// Binds the calling thread; says what cannot be done.
pub(super) fn settle(options: &NumaOptions) -> Result<(), String> {
    if let Some(nodes) = &options.cpu_nodes {
        bind(nodes).map_err(|why| format!("numa_cpu_nodes: {why}"))?;
    }
    if let Some(policy) = &options.memory {
        allocate_by(policy).map_err(|why| format!("numa_mem_policy: {why}"))?;
    }
    Ok(())
}

fn bind(nodes: &NodeList) -> Result<(), String> {
    let mut set = rustix::thread::CpuSet::new();
    for node in nodes.present("online")? {
        let cpus = numbers(&format!("node{node}/cpulist"))?;
        cpus.into_iter().for_each(|cpu| set.set(cpu));
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(|error| error.to_string())
}

fn allocate_by(policy: &MemoryPolicy) -> Result<(), String> {
    // include/uapi/linux/mempolicy.h: MPOL_DEFAULT and those that follow it.
    let (mode, nodes) = match policy {
        MemoryPolicy::Default => (0, Vec::new()),
        MemoryPolicy::Prefer(node) => (1, NodeList::These(vec![*node]).present("has_memory")?),
        MemoryPolicy::Bind(nodes) => (2, nodes.present("has_memory")?),
        MemoryPolicy::Interleave(nodes) => (3, nodes.present("has_memory")?),
        MemoryPolicy::Local => (4, Vec::new()),
    };
    let words = nodes.iter().max().map_or(0, |most| most / 64 + 1);
    let mut mask = vec![0u64; words];
    nodes
        .iter()
        .for_each(|node| mask[node / 64] |= 1 << (node % 64));
    set_memory_policy(mode, &mask).map_err(|error| error.to_string())
}
