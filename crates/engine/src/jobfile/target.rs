//! What a job touches, and whether it writes there: the ground of every check
//! for the safety of data, so everything unknown counts as a write.

use std::path::PathBuf;

use fathom_model::{JobSpec, Origin};

/// A path a job uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetUse {
    /// File, device or folder, as the job names it.
    pub path: PathBuf,
    /// Whether the job may change what is there.
    pub writes: bool,
    /// Where the path was written.
    pub named_by: Origin,
}

/// Every path the job uses; generated file names as the folder they fall in.
#[must_use]
pub fn targets(job: &JobSpec) -> Vec<TargetUse> {
    let Some(option) = job.option("filename") else {
        return Vec::new();
    };
    option
        .value
        .iter()
        .flat_map(|value| value.split(':'))
        .map(|path| TargetUse {
            path: PathBuf::from(path),
            writes: is_write(job),
            named_by: option.origin.clone(),
        })
        .collect()
}

/// Whether the job may change its targets.
#[must_use]
pub fn is_write(job: &JobSpec) -> bool {
    !matches!(
        job.value("rw").or_else(|| job.value("readwrite")),
        None | Some("read" | "randread")
    )
}
