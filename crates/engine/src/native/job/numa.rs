//! Nodes of a machine whose memory is not uniform.

/// Nodes of memory and CPUs (NUMA).
#[derive(Debug, Clone, Default)]
pub(in crate::native) struct NumaOptions {
    /// Nodes on whose CPUs the job runs.
    pub(in crate::native) cpus: Option<NumaNodes>,
    /// Where its memory comes from.
    pub(in crate::native) memory: Option<NumaPolicy>,
}

/// Which nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::native) enum NumaNodes {
    All,
    These(Vec<usize>),
}

/// How the kernel chooses the node of a page (set_mempolicy(2)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::native) enum NumaPolicy {
    Default,
    Local,
    Prefer(usize),
    Bind(NumaNodes),
    Interleave(NumaNodes),
}
