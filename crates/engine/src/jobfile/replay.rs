//! The targets of a log that is replayed (`read_iolog`): the log names them,
//! not the job file.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use fathom_model::JobSpec;

use super::spec;
use super::target::{Role, TargetUse, names};

/// What a job replays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// Nothing, or all of it onto the device that `replay_redirect` names.
    None,
    /// A log of fio's, which names these files and devices.
    Files(Vec<TargetUse>),
    /// A block trace, or a log that is not understood: it may name any device.
    Unknown,
}

/// Longer lines are none of fio's (a path and three numbers).
const MAX_LINE: u64 = 8192;

/// Reads the logs that a job replays; `open` opens them.
///
/// # Errors
/// When a log cannot be read.
pub fn replay(
    job: &JobSpec,
    open: &dyn Fn(&Path) -> io::Result<Box<dyn Read>>,
) -> io::Result<Replay> {
    let Some(option) = spec::option(job, "read_iolog") else {
        return Ok(Replay::None);
    };
    if spec::option(job, "replay_redirect").is_some() {
        return Ok(Replay::None);
    }
    let mut files: BTreeMap<String, bool> = BTreeMap::new();
    for log in names(option) {
        // Standard input and sockets can be read only once.
        let understood = log != "-" && scan(open(Path::new(&log))?, &mut files)?;
        if !understood {
            return Ok(Replay::Unknown);
        }
    }
    let files = files.into_iter().map(|(path, writes)| TargetUse {
        path: PathBuf::from(path),
        role: Role::File,
        writes,
        creates: true,
        named_by: option.origin.clone(),
    });
    Ok(Replay::Files(files.collect()))
}

/// Adds the files of one log, each with whether it is written to; `false` when
/// the log is not understood. The format is that of fio's HOWTO, "Trace file
/// format": lines of `[TIME] FILE ACTION [OFFSET LENGTH]`.
fn scan(log: Box<dyn Read>, files: &mut BTreeMap<String, bool>) -> io::Result<bool> {
    let mut log = BufReader::new(log);
    let timed = match next(&mut log)?.as_deref() {
        Some("fio version 2 iolog") => false,
        Some("fio version 3 iolog") => true,
        _ => return Ok(false),
    };
    while let Some(line) = next(&mut log)? {
        let mut words = line.split_whitespace().skip(usize::from(timed));
        let (Some(file), Some(action)) = (words.next(), words.next()) else {
            return Ok(false);
        };
        let writes = match action {
            "add" | "open" | "close" | "read" | "wait" | "sync" | "datasync" => false,
            "write" | "trim" => true,
            _ => return Ok(false),
        };
        *files.entry(file.to_owned()).or_default() |= writes;
    }
    Ok(true)
}

/// The next line; one that is too long, or no text, as a line of its own that
/// is no action.
fn next(log: &mut BufReader<Box<dyn Read>>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    log.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8(line).unwrap_or_default();
    Ok(Some(text.trim_end().to_owned()))
}
