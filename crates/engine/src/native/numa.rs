//! numa_cpu_nodes and numa_mem_policy: where a worker runs, and which node's memory its
//! buffers are.

use std::path::Path;

use fathom_model::{Failure, FailureKind};

use super::backend::{MemoryMode, set_memory_policy};
use super::job::{NumaNodes, NumaPolicy};
use super::options::cpus;

/// Where the kernel tells of its nodes (Documentation/admin-guide/mm/numaperf.rst).
const NODES: &str = "/sys/devices/system/node";

/// Binds the calling thread to the CPUs of these nodes.
pub(super) fn run_on(nodes: &NumaNodes) -> Result<(), Failure> {
    let refused =
        |what: String| Failure::new(FailureKind::BadOption, format!("numa_cpu_nodes: {what}"));
    let mut set = rustix::thread::CpuSet::new();
    for node in present(nodes, "has_cpu").map_err(refused)? {
        let path = format!("node{node}/cpulist");
        // A node of memory alone has no CPUs.
        let list = read(&path).map_err(refused)?;
        if !list.is_empty() {
            cpus(&list)
                .map_err(refused)?
                .iter()
                .for_each(|&cpu| set.set(cpu));
        }
    }
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| refused(format!("the thread cannot be bound: {error}")))
}

/// Sets where memory that the calling thread touches first comes from.
pub(super) fn allocate_by(policy: &NumaPolicy) -> Result<(), Failure> {
    let refused =
        |what: String| Failure::new(FailureKind::BadOption, format!("numa_mem_policy: {what}"));
    let (mode, nodes) = match policy {
        NumaPolicy::Default => (MemoryMode::Default, Vec::new()),
        NumaPolicy::Local => (MemoryMode::Local, Vec::new()),
        NumaPolicy::Prefer(node) => (MemoryMode::Prefer, vec![*node]),
        NumaPolicy::Bind(nodes) => (
            MemoryMode::Bind,
            present(nodes, "has_memory").map_err(refused)?,
        ),
        NumaPolicy::Interleave(nodes) => (
            MemoryMode::Interleave,
            present(nodes, "has_memory").map_err(refused)?,
        ),
    };
    set_memory_policy(mode, &nodes).map_err(|error| refused(format!("cannot be set: {error}")))
}

/// The nodes, each of which there must be; of all those that have what `kind` says.
fn present(nodes: &NumaNodes, kind: &str) -> Result<Vec<usize>, String> {
    match nodes {
        NumaNodes::All => cpus(&read(kind)?),
        NumaNodes::These(nodes) => {
            let missing = |node: &&usize| !Path::new(&format!("{NODES}/node{node}")).exists();
            match nodes.iter().find(missing) {
                Some(node) => Err(format!("this machine has no node {node}")),
                None => Ok(nodes.clone()),
            }
        }
    }
}

fn read(name: &str) -> Result<String, String> {
    let told = std::fs::read_to_string(format!("{NODES}/{name}"));
    let told = told.map_err(|_| "this kernel tells of no nodes".to_owned())?;
    Ok(told.trim().to_owned())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_the_threads_own_and_a_missing_node_is_named() {
        let told = std::thread::spawn(|| {
            run_on(&NumaNodes::All)?;
            run_on(&NumaNodes::These(vec![0]))?;
            allocate_by(&NumaPolicy::Interleave(NumaNodes::All))?;
            allocate_by(&NumaPolicy::Prefer(0))?;
            allocate_by(&NumaPolicy::Bind(NumaNodes::These(vec![0])))?;
            let maps = std::fs::read_to_string("/proc/thread-self/numa_maps");
            allocate_by(&NumaPolicy::Local)?;
            allocate_by(&NumaPolicy::Default)?;
            Ok::<_, Failure>(maps)
        });
        let told = told.join().unwrap();
        if !Path::new(NODES).exists() {
            assert!(told.is_err());
            return;
        }
        // Whoever may not read the maps of a thread has at least set the policy.
        if let Ok(maps) = told.unwrap() {
            assert!(maps.contains("bind:0"), "{maps}");
        }
        let missing = NumaNodes::These(vec![1023]);
        let said = run_on(&missing).unwrap_err().message;
        assert!(said.contains("no node 1023"), "{said}");
        assert!(allocate_by(&NumaPolicy::Bind(missing)).is_err());
    }
}
