//! The first line of a log, and what is known of a run without it.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde_json::Value;

use crate::folder::stamp_ms;
use crate::live::open;
use crate::{EVENTS, FORMAT, Header, RecordError, VERSION};

/// So much of a record that cannot be read is looked at.
const HEADER_BYTES_MAX: u64 = 64 << 10;

/// What is asked of the first line before anything else.
#[derive(Deserialize)]
pub(crate) struct FormatVersion {
    pub(crate) format: String,
    pub(crate) version: u32,
}

impl FormatVersion {
    fn is_of_fathom(&self) -> bool {
        self.format == FORMAT
    }

    fn is_readable(&self) -> bool {
        self.is_of_fathom() && self.version <= VERSION
    }

    /// Whether this Fathom reads it.
    pub(crate) fn check(&self, dir: &Path) -> Result<(), RecordError> {
        let Self { format, version } = self;
        if !self.is_of_fathom() {
            let reason = format!("{EVENTS} is of format '{format}', not {FORMAT}");
            return Err(not_a_record(dir, reason));
        }
        if !self.is_readable() {
            let reason = format!(
                "written by a newer Fathom (record version {version}, this one reads up to {VERSION})"
            );
            return Err(not_a_record(dir, reason));
        }
        Ok(())
    }
}

pub(crate) fn version(line: &[u8]) -> Result<FormatVersion, serde_json::Error> {
    serde_json::from_slice(line)
}

pub(crate) fn header(dir: &Path, line: &[u8]) -> Result<Header, RecordError> {
    let damaged = |e| {
        let reason = format!(
            "line 1 of {EVENTS} is damaged: {e}; 'fathom show --salvage' reads the lines that are intact"
        );
        not_a_record(dir, reason)
    };
    version(line).map_err(damaged)?.check(dir)?;
    serde_json::from_slice(line).map_err(damaged)
}

/// Whether a first line is that of a newer Fathom, or of another format.
pub(crate) fn is_newer(line: &[u8]) -> bool {
    version(line).is_ok_and(|version| !version.is_readable())
}

pub(crate) fn not_a_record(dir: &Path, reason: String) -> RecordError {
    RecordError::NotARecord {
        path: dir.to_owned(),
        reason,
    }
}

/// A record folder's own name, also when it is given as `.` or `runs/x/..`.
pub(crate) fn id_of(dir: &Path) -> String {
    let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    name(dir)
        .or_else(|| name(&dir.canonicalize().ok()?))
        .unwrap_or_else(|| dir.to_string_lossy().into_owned())
}

/// Start and command of a run whose record cannot be read: as its header says, else
/// by its first intact line, its folder's name, the last change of its log.
pub(crate) fn remains(dir: &Path) -> (u64, Option<String>) {
    let mut begin = Vec::new();
    if let Ok(file) = open(dir) {
        // What can be read of it is enough.
        let _ = file.take(HEADER_BYTES_MAX).read_to_end(&mut begin);
    }
    let mut lines = begin.split(|&b| b == b'\n');
    let values = lines.by_ref().map(serde_json::from_slice::<Value>);
    let mut values = values.map(Result::unwrap_or_default);
    let header = values.next().unwrap_or_default();
    let command = header["command"].as_str().map(str::to_owned);
    let started_ms = header["started_ms"].as_u64();
    let started_ms = started_ms.or_else(|| values.find_map(|value| value["at_ms"].as_u64()));
    (started_ms.unwrap_or_else(|| begun_ms(dir)), command)
}

/// When a run was begun whose log does not say it.
fn begun_ms(dir: &Path) -> u64 {
    // The kernel stamps files with the time of its last tick, of which there are 100 a
    // second at the least (kernel/Kconfig.hz).
    const TICK_MS: u128 = 10;
    let modified = || {
        let modified = fs::metadata(dir.join(EVENTS)).ok()?.modified().ok()?;
        modified.duration_since(UNIX_EPOCH).ok()
    };
    // Names say whole seconds: it is not to be taken for older than another.
    let by_name = id_of(dir).split('-').next().and_then(stamp_ms);
    by_name
        .map(|ms| ms + 999)
        .or_else(|| u64::try_from(modified()?.as_millis() + TICK_MS).ok())
        .unwrap_or(0)
}
