//! Removing runs: whole, and only what is sure to be an ended run of this folder.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::first_line::id_of;
use crate::live::is_at;
use crate::writer::lock;
use crate::{EVENTS, RecordError};

/// What the names of folders begin with that are being removed: they are no runs any more.
pub(crate) const REMOVED: &str = ".removed.";

/// How many bytes the files in a folder are long. Links are not followed, and what may not
/// be looked into does not count.
pub fn folder_bytes(dir: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            // That of the entry itself, not of what it may point to.
            match entry.metadata() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => bytes += kind.len(),
                _ => {}
            }
        }
    }
    bytes
}

/// A run that may be removed.
#[derive(Debug)]
pub struct Removal {
    /// Name of the run's folder.
    pub id: String,
    /// How long its files are together.
    pub bytes: u64,
    runs: PathBuf,
    dir: PathBuf,
    /// Device and inode of the folder: another one of its name is not meant.
    inode: (u64, u64),
}

impl Removal {
    /// Whether a record folder may be removed: it lies in the folder of runs itself, is no
    /// link, and nobody writes to it.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(runs_dir: &Path, dir: &Path) -> Result<Self, RecordError> {
        let failed = |e| RecordError::file(dir, e);
        let refused = |reason: &str| Err(RecordError::kept(dir, reason));
        let kind = fs::symlink_metadata(dir).map_err(failed)?;
        if !kind.is_dir() {
            return refused("it is a link, or no folder; a run is removed where it lies");
        }
        let whole = dir.canonicalize().map_err(failed)?;
        let runs = runs_dir
            .canonicalize()
            .map_err(|e| RecordError::file(runs_dir, e))?;
        if whole.parent() != Some(&runs) {
            let reason = format!("it does not lie in {}; say --runs", runs_dir.display());
            return refused(&reason);
        }
        hold(&whole)?;
        Ok(Self {
            id: id_of(&whole),
            bytes: folder_bytes(&whole),
            inode: (kind.dev(), kind.ino()),
            runs,
            dir: whole,
        })
    }

    /// Judges it again, and removes it: first its name, so that what a kill leaves is no
    /// half of a run, then its files. Gives their bytes.
    ///
    /// # Errors
    /// When it may not be removed any more, or cannot be.
    pub fn remove(self) -> Result<u64, RecordError> {
        let now = Self::judge(&self.runs, &self.dir)?;
        if now.inode != self.inode {
            let reason = "another folder has taken its place meanwhile";
            return Err(RecordError::kept(&self.dir, reason));
        }
        // While this is held nobody goes on with the run.
        let _lock = hold(&self.dir)?;
        let name = format!("{REMOVED}{}.{}", std::process::id(), self.id);
        let gone = self.runs.join(name);
        let failed = |e| RecordError::file(&self.dir, e);
        // One of an earlier process may have the name; a folder that is not empty stays.
        fs::rename(&self.dir, &gone).map_err(failed)?;
        fs::remove_dir_all(&gone).map_err(|e| RecordError::file(&gone, e))?;
        Ok(now.bytes)
    }
}

/// Removes what removals that were killed have left in a folder of runs. Gives the bytes.
///
/// # Errors
/// When it cannot be removed.
pub fn remove_leftovers(runs_dir: &Path) -> Result<u64, RecordError> {
    let mut bytes = 0;
    let entries = fs::read_dir(runs_dir).map_err(|e| RecordError::file(runs_dir, e))?;
    for entry in entries.flatten() {
        let path = entry.path();
        let is_left = id_of(&path).starts_with(REMOVED);
        // Another process that removes it now has its lock.
        if is_left && entry.file_type().is_ok_and(|kind| kind.is_dir()) && hold(&path).is_ok() {
            bytes += folder_bytes(&path);
            fs::remove_dir_all(&path).map_err(|e| RecordError::file(&path, e))?;
        }
    }
    Ok(bytes)
}

/// The event log of a record to which nobody writes, locked.
///
/// # Errors
/// When somebody writes to it, or it cannot be known.
pub(crate) fn hold(dir: &Path) -> Result<Option<File>, RecordError> {
    let path = dir.join(EVENTS);
    let failed = |e| RecordError::file(&path, e);
    let kind = match fs::symlink_metadata(&path) {
        // What is left of a record that is being removed.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        kind => kind.map_err(failed)?,
    };
    if !kind.is_file() {
        return Err(RecordError::kept(dir, "its log is no regular file"));
    }
    let file = File::open(&path).map_err(failed)?;
    // A log that was closed meanwhile has a successor that is locked.
    if !lock(&file).map_err(failed)? || !is_at(&file, &path) {
        return Err(RecordError::Busy {
            dir: dir.to_owned(),
        });
    }
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use fathom_model::RunStatus;

    use super::*;
    use crate::{Header, Writer, list};

    fn a_run(runs: &Path, ended: bool) -> (PathBuf, Option<Writer>) {
        let writer = Writer::create(runs, &Header::new("a", "job run")).unwrap();
        match ended {
            true => (writer.finish(RunStatus::Complete).unwrap(), None),
            false => (writer.dir().to_owned(), Some(writer)),
        }
    }

    #[test]
    fn only_an_ended_run_of_the_folder_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs");
        let (ended, _) = a_run(&runs, true);
        let (running, writer) = a_run(&runs, false);
        let (elsewhere, _) = a_run(&folder.path().join("other"), true);
        let link = runs.join("link");
        symlink(&elsewhere, &link).unwrap();
        let why = |dir: &Path| Removal::judge(&runs, dir).unwrap_err().to_string();
        assert!(why(&running).contains("writes to this record"));
        assert!(why(&elsewhere).contains("does not lie in"));
        assert!(why(&link).contains("is a link"));
        // What it points to stays.
        symlink(&elsewhere, ended.join("link")).unwrap();
        let removal = Removal::judge(&runs, &ended).unwrap();
        assert_eq!(removal.bytes, folder_bytes(&ended));
        assert!(removal.remove().unwrap() > 0);
        assert!(!ended.exists() && elsewhere.join(EVENTS).exists());
        drop(writer);
        // Another run, or the same one that goes on, is not what was judged.
        let removal = Removal::judge(&runs, &running).unwrap();
        let resumed = Writer::reopen(&running).unwrap();
        assert!(matches!(removal.remove(), Err(RecordError::Busy { .. })));
        drop(resumed);
        let removal = Removal::judge(&runs, &running).unwrap();
        fs::rename(&running, runs.join("moved")).unwrap();
        fs::create_dir(&running).unwrap();
        assert!(removal.remove().is_err());
    }

    #[test]
    fn what_a_killed_removal_left_is_no_run_and_is_removed_next() {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path();
        let (dir, _) = a_run(runs, true);
        let left = runs.join(format!("{REMOVED}1.x"));
        fs::rename(dir, &left).unwrap();
        assert_eq!(list(runs).unwrap().len(), 0);
        assert!(remove_leftovers(runs).unwrap() > 0);
        assert!(!left.exists());
    }
}
