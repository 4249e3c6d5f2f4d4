//! Runs in folders of their own while a command reads them: out of an archive, or copies
//! that do not say whose they are.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context;
use fathom_device::scratch::Scratch;
use fathom_model::Exit;
use fathom_record::{Redaction, archive};

use super::ExitError;
use crate::out;

/// What a file begins with that Zstandard has compressed (RFC 8878, 3.1.1).
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Those of this command, each once.
static UNPACKED: Mutex<Vec<(PathBuf, Scratch)>> = Mutex::new(Vec::new());

/// A folder of runs, out of an archive, and the run in it that is meant.
pub struct ArchivedRun {
    pub runs: PathBuf,
    /// A name or a part of it, where there is one behind the archive's: `a.tar.zst/1307`.
    pub name: Option<String>,
}

/// The runs of an archive, where a name of a run is the path of one.
///
/// # Errors
/// When it cannot be unpacked.
pub fn open(name: &str) -> anyhow::Result<Option<ArchivedRun>> {
    let whole = Path::new(name);
    let Some(archive) = whole.ancestors().find(|path| is_archive(path)) else {
        return Ok(None);
    };
    let name = whole
        .strip_prefix(archive)?
        .to_str()
        .filter(|it| !it.is_empty());
    Ok(Some(ArchivedRun {
        runs: unpacked(archive)?,
        name: name.map(str::to_owned),
    }))
}

fn is_archive(path: &Path) -> bool {
    let mut begin = [0; MAGIC.len()];
    let mut read = || File::open(path).and_then(|mut file| file.read_exact(&mut begin));
    path.is_file() && read().is_ok() && begin == MAGIC
}

fn unpacked(archive: &Path) -> anyhow::Result<PathBuf> {
    let known = fs::canonicalize(archive)?;
    let mut all = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, to)) = all.iter().find(|(path, _)| *path == known) {
        return Ok(to.path().to_owned());
    }
    let to = Scratch::new().context("cannot make a folder to unpack into")?;
    archive::unpack(archive, to.path())
        .map_err(|error| ExitError::new(Exit::Input, error.to_string()))?;
    if !archive::has_runs(to.path()) {
        let message = format!("{}: there is no run in it", archive.display());
        return Err(ExitError::new(Exit::Missing, message).into());
    }
    let runs = to.path().to_owned();
    all.push((known, to));
    Ok(runs)
}

/// Where a file that a command makes of a run lies by default: in its folder, or here, with
/// the run's name before it, where that is in an archive.
pub fn beside(dir: &Path, name: &str) -> PathBuf {
    let all = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_unpacked = all.iter().any(|(_, to)| dir.starts_with(to.path()));
    match dir.file_name() {
        Some(id) if is_unpacked => PathBuf::from(format!("{}.{name}", id.to_string_lossy())),
        _ => dir.join(name),
    }
}

/// Copies of records that do not say whose they are; all with the same pseudonyms.
///
/// # Errors
/// When one cannot be redacted: it is damaged, for example.
pub fn redacted(dirs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let to = Scratch::new().context("cannot make a folder to redact in")?;
    let mut redaction = Redaction::default();
    let mut copies = Vec::new();
    for dir in dirs {
        let copy = redaction.copy(dir, to.path())?;
        for path in &copy.left_out {
            out::note(format_args!(
                "fathom: {}: left out: no text in which names could be found",
                path.display()
            ));
        }
        copies.push(copy.dir);
    }
    let mut all = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    all.push((to.path().to_owned(), to));
    Ok(copies)
}

/// Removes what was unpacked.
pub fn close() {
    let mut all = UNPACKED.lock().unwrap_or_else(PoisonError::into_inner);
    all.clear();
}
