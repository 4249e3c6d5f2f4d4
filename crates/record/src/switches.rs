//! How the switches of a device stood before a run touched them: one file for
//! each device, in the user's state folder, that is there as long as something
//! has to be put back. A run that was killed leaves it behind.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fathom_model::SwitchState;
use fathom_model::environment::BlockDevice;
use serde::{Deserialize, Serialize};

use crate::ledger::file_stem;
use crate::{RecordError, now_ms, replace};

/// Name and version of the format.
pub const SWITCHES_FORMAT: &str = "fathom.switches/1";

/// What such a file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leftover {
    /// [`SWITCHES_FORMAT`].
    pub schema: String,
    /// The device.
    pub device: BlockDevice,
    /// Path by which it was named.
    pub path: PathBuf,
    /// When its switches were found so, ms since 1970 UTC.
    pub at_ms: u64,
    /// How they stood.
    pub found: SwitchState,
}

/// The file of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchFile {
    path: PathBuf,
}

impl SwitchFile {
    /// The file of a device in the folder of such files: by its serial number,
    /// or by its kernel name where it has none.
    #[must_use]
    pub fn of(folder: &Path, device: &BlockDevice) -> Self {
        let name = file_stem(device).unwrap_or_else(|| device.name.replace('/', "_"));
        Self {
            path: folder.join(format!("{name}.json")),
        }
    }

    /// Where it is, or would be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps how the switches of a device stand; on the disk when it returns.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep(
        &self,
        device: &BlockDevice,
        path: &Path,
        found: &SwitchState,
    ) -> Result<(), RecordError> {
        let leftover = Leftover {
            schema: SWITCHES_FORMAT.to_owned(),
            device: device.clone(),
            path: path.to_owned(),
            at_ms: now_ms(),
            found: found.clone(),
        };
        let failed = |source| RecordError::file(&self.path, source);
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        replace(&self.path, |file| -> io::Result<()> {
            serde_json::to_writer_pretty(&mut *file, &leftover)?;
            file.write_all(b"\n")?;
            file.sync_all()
        })
        .map_err(failed)
    }

    /// What was kept; `None` when there is nothing.
    ///
    /// # Errors
    /// Those of the file system, and a file that is none of these.
    pub fn read(&self) -> Result<Option<Leftover>, RecordError> {
        let text = match fs::read(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|source| RecordError::file(&self.path, source))?,
        };
        let not = |reason: String| RecordError::NotARecord {
            path: self.path.clone(),
            reason,
        };
        let leftover: Leftover = serde_json::from_slice(&text).map_err(|e| not(e.to_string()))?;
        match leftover.schema == SWITCHES_FORMAT {
            true => Ok(Some(leftover)),
            false => Err(not(format!("it is not of this Fathom ({SWITCHES_FORMAT})"))),
        }
    }

    /// Takes it away: everything was put back.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(&self) -> Result<(), RecordError> {
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(RecordError::file(&self.path, e)),
            _ => Ok(()),
        }
    }
}

/// All files of a folder, in the order of their names.
///
/// # Errors
/// Those of the file system.
pub fn leftovers(folder: &Path) -> Result<Vec<SwitchFile>, RecordError> {
    let names = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names.map_err(|source| RecordError::file(folder, source))?,
    };
    let mut paths: Vec<PathBuf> = names.filter_map(|name| Some(name.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    Ok(paths.into_iter().map(|path| SwitchFile { path }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_kept_until_it_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("switches");
        let device = BlockDevice {
            name: "sdz".into(),
            ..BlockDevice::default()
        };
        let file = SwitchFile::of(&folder, &device);
        assert_eq!(leftovers(&folder).unwrap(), []);
        assert_eq!(file.read().unwrap(), None);
        let found = SwitchState {
            cdl: Some(false),
            scheduler: Some("mq-deadline".into()),
            ..SwitchState::default()
        };
        file.keep(&device, Path::new("/dev/sdz"), &found).unwrap();
        assert_eq!(leftovers(&folder).unwrap(), std::slice::from_ref(&file));
        assert_eq!(file.read().unwrap().unwrap().found, found);
        file.remove().unwrap();
        file.remove().unwrap();
        assert_eq!(leftovers(&folder).unwrap(), []);
        fs::write(file.path(), "{}").unwrap();
        assert!(file.read().is_err());
    }
}
