//! The ledger of a device: one file for each, in the user's state folder, to
//! which every command that writes to the device appends a line.
//!
//! It is a convenience and no proof: a device that was written to elsewhere
//! looks untouched here. The records tell the whole story.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};

use fathom_model::LedgerEntry;
use fathom_model::environment::BlockDevice;
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::RecordError;

/// Name and version of the format, in the first line of every ledger.
pub const LEDGER_FORMAT: &str = "fathom.ledger/1";

/// The first line: whose ledger it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LedgerHead {
    schema: String,
    device: BlockDevice,
}

/// What an entry is about. Reading no more of it takes a fifth of the time, and ledgers
/// grow for as long as a device is used.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LedgerMention {
    /// The command.
    pub command: String,
    /// Its record, where there is one.
    pub record: Option<PathBuf>,
    /// The tag of its [`LedgerEvent`](fathom_model::LedgerEvent).
    deed: String,
}

impl LedgerMention {
    /// Whether it tells what the command wrote: its last word.
    pub fn is_end(&self) -> bool {
        self.deed == "written"
    }
}

/// The ledger of one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// The ledger of a device in the folder of ledgers. `None` for a device
    /// without an identifier: it cannot be known again.
    pub fn of(folder: &Path, device: &BlockDevice) -> Option<Self> {
        Some(Self::named(folder, &file_stem(device)?))
    }

    /// The ledger that Fathom up to 0.1.0 kept, by serial number alone.
    pub fn by_serial(folder: &Path, device: &BlockDevice) -> Option<Self> {
        Some(Self::named(folder, &serial_stem(device)?))
    }

    fn named(folder: &Path, stem: &str) -> Self {
        Self {
            path: folder.join(format!("{stem}.jsonl")),
        }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends what was done, whole or not at all, and makes it last.
    ///
    /// # Errors
    /// Those of the file system, and a file that is no ledger.
    pub fn append(&self, device: &BlockDevice, entry: &LedgerEntry) -> Result<(), RecordError> {
        let failed = |source| RecordError::file(&self.path, source);
        let mut file = self.open().map_err(failed)?;
        let last = last_byte(&file).map_err(failed)?;
        if last.is_some() {
            head(&self.path, &mut BufReader::new(&file))?;
        }
        write(&mut file, last, device, entry).map_err(failed)
    }

    /// Appends what `choose` makes of everything that stands there, if anything;
    /// nobody else writes meanwhile.
    ///
    /// # Errors
    /// Those of the file system, and a file that is no ledger.
    pub fn amend(
        &self,
        device: &BlockDevice,
        choose: impl FnOnce(&[LedgerEntry]) -> Option<LedgerEntry>,
    ) -> Result<(), RecordError> {
        let failed = |source| RecordError::file(&self.path, source);
        let mut file = self.open().map_err(failed)?;
        let last = last_byte(&file).map_err(failed)?;
        let entries = match last {
            None => Vec::new(),
            Some(_) => read::<LedgerEntry>(&self.path, &file)?.1,
        };
        match choose(&entries) {
            Some(entry) => write(&mut file, last, device, &entry).map_err(failed),
            None => Ok(()),
        }
    }

    /// Opens it for one writer at a time, and makes it where it is missing.
    fn open(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(&self.path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// What was done to the device, oldest first; nothing when there is no
    /// ledger. Lines that cannot be read are passed over: half-written ones, and
    /// deeds that a newer Fathom knows.
    ///
    /// # Errors
    /// Those of the file system, and a file that is no ledger.
    pub fn entries(&self) -> Result<Vec<LedgerEntry>, RecordError> {
        match File::open(&self.path) {
            Ok(file) => Ok(read(&self.path, &file)?.1),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(RecordError::file(&self.path, source)),
        }
    }
}

/// The name of a device's files: `MODEL_ID` with the identifier that it reports, else
/// `MODEL_SERIAL[_nNSID]`, in plain characters. `None` without either.
pub(crate) fn file_stem(device: &BlockDevice) -> Option<String> {
    match &device.unique_id {
        Some(id) => Some(stem(device, id)),
        None => serial_stem(device),
    }
}

fn serial_stem(device: &BlockDevice) -> Option<String> {
    let serial = device.serial.as_deref()?;
    // Namespaces of one controller share its serial.
    let namespace = device.nsid.map(|nsid| format!("_n{nsid}"));
    Some(stem(
        device,
        &(serial.to_owned() + &namespace.unwrap_or_default()),
    ))
}

fn stem(device: &BlockDevice, id: &str) -> String {
    let model = device.model.as_ref().map(|model| format!("{model}_"));
    let plain = |c: char| match c.is_ascii_alphanumeric() || "-_.".contains(c) {
        true => c,
        false => '_',
    };
    let name = model.unwrap_or_default() + id;
    name.chars().map(plain).collect()
}

/// All ledgers of a folder, each with its device and what was done to it: whole entries or
/// [`LedgerMention`]s.
///
/// # Errors
/// Those of the file system, and a file that is no ledger.
pub fn ledgers<T: DeserializeOwned>(
    folder: &Path,
) -> Result<Vec<(BlockDevice, Vec<T>)>, RecordError> {
    let names = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        names => names.map_err(|source| RecordError::file(folder, source))?,
    };
    let mut paths: Vec<PathBuf> = names.filter_map(|name| Some(name.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    let read = |path: PathBuf| {
        let file = File::open(&path).map_err(|source| RecordError::file(&path, source))?;
        read(&path, &file)
    };
    paths.into_iter().map(read).collect()
}

/// Appends an entry behind `last`, the last byte there is.
fn write(
    file: &mut File,
    last: Option<u8>,
    device: &BlockDevice,
    entry: &LedgerEntry,
) -> io::Result<()> {
    let mut lines = Vec::new();
    match last {
        None => {
            let schema = LEDGER_FORMAT.to_owned();
            let device = device.clone();
            serde_json::to_writer(&mut lines, &LedgerHead { schema, device })?;
            lines.push(b'\n');
        }
        // A line that a power cut left half written stays by itself.
        Some(last) if last != b'\n' => lines.push(b'\n'),
        Some(_) => {}
    }
    serde_json::to_writer(&mut lines, entry)?;
    lines.push(b'\n');
    file.write_all(&lines)?;
    file.sync_data()
}

/// Whose ledger it is.
fn head(path: &Path, lines: &mut impl BufRead) -> Result<BlockDevice, RecordError> {
    let mut line = Vec::new();
    let taken = lines.read_until(b'\n', &mut line);
    taken.map_err(|source| RecordError::file(path, source))?;
    match serde_json::from_slice::<LedgerHead>(&line) {
        Ok(head) if head.schema == LEDGER_FORMAT => Ok(head.device),
        _ => Err(RecordError::NotARecord {
            path: path.to_owned(),
            reason: format!("it is no ledger of this Fathom ({LEDGER_FORMAT})"),
        }),
    }
}

fn read<T: DeserializeOwned>(
    path: &Path,
    file: &File,
) -> Result<(BlockDevice, Vec<T>), RecordError> {
    let mut lines = BufReader::new(file);
    let device = head(path, &mut lines)?;
    let mut entries = Vec::new();
    for line in lines.split(b'\n') {
        let line = line.map_err(|source| RecordError::file(path, source))?;
        entries.extend(serde_json::from_slice::<T>(&line).ok());
    }
    Ok((device, entries))
}

/// `None`: the file is empty.
fn last_byte(file: &File) -> io::Result<Option<u8>> {
    use std::os::unix::fs::FileExt as _;
    let Some(last) = file.metadata()?.len().checked_sub(1) else {
        return Ok(None);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(Some(byte[0]))
}

#[cfg(test)]
mod tests {
    use fathom_model::LedgerEvent;

    use super::*;

    fn device() -> BlockDevice {
        BlockDevice {
            model: Some("QEMU NVMe/Ctrl".into()),
            serial: Some("N-1".into()),
            nsid: Some(7),
            ..BlockDevice::default()
        }
    }

    #[test]
    fn what_was_appended_is_read_back_also_behind_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::of(folder.path(), &device()).unwrap();
        assert!(ledger.path().ends_with("QEMU_NVMe_Ctrl_N-1_n7.jsonl"));
        assert_eq!(ledger.entries().unwrap(), []);
        let written = |bytes| LedgerEvent::Written { bytes };
        let append = |command: &str, deed| {
            let entry = LedgerEntry {
                content: Vec::new(),
                at_ms: 1,
                command: command.to_owned(),
                record: None,
                deed,
            };
            ledger.append(&device(), &entry).unwrap();
        };
        append("job run", written(1));
        let mut file = OpenOptions::new().append(true).open(ledger.path()).unwrap();
        file.write_all(b"{\"at_ms\":1,\"comm").unwrap();
        append("run", written(2));
        let deeds: Vec<LedgerEvent> = ledger
            .entries()
            .unwrap()
            .into_iter()
            .map(|e| e.deed)
            .collect();
        assert_eq!(deeds, [written(1), written(2)]);
        let all = ledgers::<LedgerEntry>(folder.path()).unwrap();
        assert_eq!((all.len(), &all[0].0, all[0].1.len()), (1, &device(), 2));
        let brief = ledgers::<LedgerMention>(folder.path()).unwrap();
        let read = brief[0].1.iter();
        let read = read.map(|of| (&of.command, &of.record, of.is_end()));
        let made = all[0].1.iter();
        let made = made.map(|of| (&of.command, &of.record, of.deed.is_end()));
        assert_eq!(read.collect::<Vec<_>>(), made.collect::<Vec<_>>());
    }

    #[test]
    fn a_device_without_a_serial_number_has_no_ledger() {
        assert_eq!(Ledger::of(Path::new("/x"), &BlockDevice::default()), None);
    }
}
