//! The targets of a log that is replayed (`read_iolog`): the log names them,
//! not the job file.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fathom_model::JobSpec;

use super::spec;
use super::target::{Role, TargetUse, changes_regardless, names};
use crate::iolog::{IologFault, IologOp, IologReader, device_here};

/// What a job replays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// Nothing, or all of it onto the device that `replay_redirect` names.
    None,
    /// Logs that name these files and devices.
    Files(Vec<TargetUse>),
    /// A log that is not understood, for this reason: it may name any device.
    Unknown(String),
}

/// Reads the logs that a job replays; `open` opens them.
///
/// # Errors
/// When a log cannot be read.
pub fn replay(
    job: &JobSpec,
    open: &dyn Fn(&Path) -> io::Result<Box<dyn Read + Send>>,
) -> io::Result<Replay> {
    let Some(option) = spec::option(job, "read_iolog") else {
        return Ok(Replay::None);
    };
    if spec::option(job, "replay_redirect").is_some() {
        return Ok(Replay::None);
    }
    // What happens to a file whatever its I/O is.
    let changed = changes_regardless(job);
    let mut files: BTreeMap<String, bool> = BTreeMap::new();
    for log in names(option) {
        if log == "-" {
            let what = "standard input can be read only once";
            return Ok(Replay::Unknown(what.to_owned()));
        }
        match scan(&log, open(Path::new(&log))?, &mut files) {
            Ok(()) => {}
            Err(IologFault::Unreadable { source, .. }) => return Err(source),
            Err(fault) => return Ok(Replay::Unknown(fault.to_string())),
        }
    }
    let files = files.into_iter().map(|(path, writes)| TargetUse {
        path: PathBuf::from(path),
        role: Role::File,
        writes: writes || changed,
        creates: true,
        named_by: option.origin.clone(),
    });
    Ok(Replay::Files(files.collect()))
}

/// Adds the files of one log, each with whether it is written to.
fn scan(
    name: &str,
    log: Box<dyn Read + Send>,
    files: &mut BTreeMap<String, bool>,
) -> Result<(), IologFault> {
    let mut reader = IologReader::new(name, log, device_here)?;
    let mut written: Vec<bool> = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        written.resize(reader.files().len(), false);
        written[entry.file as usize] |= matches!(entry.op, IologOp::Write | IologOp::Trim);
    }
    for (file, writes) in reader.files().iter().zip(written) {
        *files.entry(file.clone()).or_default() |= writes;
    }
    Ok(())
}
