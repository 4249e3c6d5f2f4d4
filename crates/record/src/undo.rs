//! What is to be put back when a run ends: how the switches of a device stood before
//! the run touched them, how its settings stood, or the command that takes another one
//! back. A file each in
//! the user's state folder, there as long as something has to be put back. A run that
//! was killed leaves it behind.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fathom_model::environment::BlockDevice;
use fathom_model::{SettingValue, SwitchState};
use serde::{Deserialize, Serialize};

use crate::ledger::file_stem;
use crate::{RecordError, now_ms, replace};

/// Name and version of the format of [`SwitchesFound`].
pub const SWITCHES_FORMAT: &str = "fathom.switches/1";
/// Name and version of the format of [`CommandUndo`].
pub const COMMAND_UNDO_FORMAT: &str = "fathom.undo-command/1";

/// Name and version of the format of [`SettingsFound`].
pub const SETTINGS_FORMAT: &str = "fathom.settings/1";

/// What is to be put back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "schema")]
pub enum UndoNote {
    /// The switches of a device.
    #[serde(rename = "fathom.switches/1")]
    Switches(Box<SwitchesFound>),
    /// Settings of a device and of the machine.
    #[serde(rename = "fathom.settings/1")]
    Settings(Box<SettingsFound>),
    /// What a command has done.
    #[serde(rename = "fathom.undo-command/1")]
    Command(CommandUndo),
}

/// How the switches of a device stood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SwitchesFound {
    /// The device.
    pub device: BlockDevice,
    /// Path by which it was named.
    pub path: PathBuf,
    /// When its switches were found so, ms since 1970 UTC.
    pub at_ms: u64,
    /// How they stood.
    pub found: SwitchState,
}

/// How settings of a device and of the machine stood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingsFound {
    /// The device; `None`: only the machine has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<BlockDevice>,
    /// What is written to have them as they stood, in this order.
    pub values: Vec<SettingValue>,
    /// The boot in which they stood so: the next one begins with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// When they stood so, ms since 1970 UTC.
    pub at_ms: u64,
    /// The process that set others.
    pub pid: u32,
}

/// A command that takes another one back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandUndo {
    /// For the shell.
    pub command: String,
    /// Where it is run.
    pub folder: PathBuf,
    /// The variables that it depends on, as they were then; `null` is one that was not set.
    #[serde(default)]
    pub variables: BTreeMap<String, Option<String>>,
    /// What it takes back.
    pub undoes: String,
    /// When that was done, ms since 1970 UTC.
    pub at_ms: u64,
    /// The process that did it.
    pub pid: u32,
}

impl SwitchesFound {
    /// That they stand so now.
    pub fn now(device: BlockDevice, path: &Path, found: SwitchState) -> Self {
        Self {
            device,
            path: path.to_owned(),
            at_ms: now_ms(),
            found,
        }
    }
}

/// The file of one thing that is to be put back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UndoFile {
    path: PathBuf,
}

impl UndoFile {
    /// The file of a device's switches in the folder of such files: by its
    /// identifier, or by its kernel name where it has none of its own.
    pub fn of_device(folder: &Path, device: &BlockDevice) -> Self {
        Self::named(folder, &Self::stem(device))
    }

    /// The file of settings in the folder of such files: of a device, or of the machine.
    pub fn of_settings(folder: &Path, device: Option<&BlockDevice>) -> Self {
        let stem = device.map(Self::stem);
        let stem = stem.unwrap_or_else(|| "machine".to_owned());
        Self::named(folder, &format!("settings-{stem}"))
    }

    fn stem(device: &BlockDevice) -> String {
        let known = file_stem(device).filter(|_| !device.is_duplicate);
        known.unwrap_or_else(|| device.name.replace('/', "_"))
    }

    /// The file of this name in the folder of such files.
    pub fn named(folder: &Path, stem: &str) -> Self {
        Self {
            path: folder.join(format!("{stem}.json")),
        }
    }

    /// Where it is, or would be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps what is to be put back; on the disk when it returns.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep(&self, note: &UndoNote) -> Result<(), RecordError> {
        let failed = |source| RecordError::file(&self.path, source);
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        replace(&self.path, |file| -> io::Result<()> {
            serde_json::to_writer_pretty(&mut *file, note)?;
            file.write_all(b"\n")?;
            file.sync_all()
        })
        .map_err(failed)
    }

    /// What was kept; `None` when there is nothing.
    ///
    /// # Errors
    /// Those of the file system, and a file that is not one of these.
    pub fn read(&self) -> Result<Option<UndoNote>, RecordError> {
        let text = match fs::read(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|source| RecordError::file(&self.path, source))?,
        };
        let note = serde_json::from_slice(&text);
        note.map(Some).map_err(|error| RecordError::NotARecord {
            path: self.path.clone(),
            reason: format!(
                "this Fathom reads {SWITCHES_FORMAT}, {SETTINGS_FORMAT} and {COMMAND_UNDO_FORMAT}: {error}"
            ),
        })
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
pub fn undo_files(folder: &Path) -> Result<Vec<UndoFile>, RecordError> {
    let names = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names.map_err(|source| RecordError::file(folder, source))?,
    };
    let mut paths: Vec<PathBuf> = names.filter_map(|name| Some(name.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    paths.sort();
    Ok(paths.into_iter().map(|path| UndoFile { path }).collect())
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
        let file = UndoFile::of_device(&folder, &device);
        assert_eq!(undo_files(&folder).unwrap(), []);
        assert_eq!(file.read().unwrap(), None);
        let found = SwitchState {
            cdl: Some(false),
            scheduler: Some("mq-deadline".into()),
            ..SwitchState::default()
        };
        let found = SwitchesFound::now(device, Path::new("/dev/sdz"), found);
        let note = UndoNote::Switches(Box::new(found));
        file.keep(&note).unwrap();
        assert_eq!(undo_files(&folder).unwrap(), std::slice::from_ref(&file));
        assert_eq!(file.read().unwrap(), Some(note));
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(text.contains(r#""schema": "fathom.switches/1""#), "{text}");
        file.remove().unwrap();
        file.remove().unwrap();
        assert_eq!(undo_files(&folder).unwrap(), []);
        fs::write(file.path(), "{}").unwrap();
        assert!(file.read().is_err());
    }
}
