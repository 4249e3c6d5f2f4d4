//! What Fathom does to devices, kept in their ledgers: the one way for all
//! commands.
//!
//! A command that writes calls [`Ledgers::begin`] before it does, with its
//! record, [`Ledgers::did`] for what leads a device to a state, and
//! [`Ledgers::end`] behind everything: that enters the bytes which no deed has
//! told yet. When the command is killed in between, the entry of its begin names
//! the record, from which [`Ledgers::catch_up`] enters them later.
//!
//! There is a ledger for a device with an identifier of its own (WWID or serial number)
//! and for no other. Where two drives report one identifier, its ledger says so, and
//! nothing else is entered or believed from then on. A loop
//! or zram device is a name that today stands for this file and tomorrow for
//! another: what was done to it last week says nothing of what stands behind it
//! now. Simulations have none: [`Ledgers::none`].

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_device::command::{Issue, KernelDevices};
use fathom_device::content::{self, ContentSample};
use fathom_device::{Health, Sys, identity};
use fathom_model::environment::BlockDevice;
use fathom_model::{LedgerEntry, LedgerEvent};
use fathom_record::{Ledger, LedgerMention, RecordError, now_ms};
use serde::de::DeserializeOwned;

mod bytes_written;

pub use bytes_written::BytesWritten;

use crate::device_state::{ContentState, DeviceState};
use crate::xdg;

/// The ledgers of the devices that this user's Fathom has written to.
#[derive(Clone)]
pub struct Ledgers {
    folder: Option<PathBuf>,
    sys: Sys,
    issue: Arc<dyn Issue>,
}

impl Default for Ledgers {
    fn default() -> Self {
        Self::none()
    }
}

impl fmt::Debug for Ledgers {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Ledgers")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// A device that has a ledger.
#[derive(Debug, Clone)]
pub struct Known {
    /// As it was when its ledger was begun.
    pub device: BlockDevice,
    /// As it is now, where it is on this machine.
    pub here: Option<BlockDevice>,
    /// What it says of itself now.
    pub health: Option<Health>,
    /// Its state.
    pub state: DeviceState,
    /// What was done to it, oldest first.
    pub entries: Vec<LedgerEntry>,
}

impl Known {
    /// Bytes that Fathom has written to it.
    pub fn own_bytes(&self) -> u64 {
        let bytes = self.entries.iter().filter_map(|entry| entry.deed.bytes());
        bytes.fold(0, u64::saturating_add)
    }

    /// Bytes that all hosts have written to it, as it said last.
    pub fn host_bytes(&self) -> Option<u64> {
        let now = self.health.as_ref().and_then(|h| h.host_written_bytes);
        now.or_else(|| {
            self.last_look(|deed| match deed {
                LedgerEvent::Seen {
                    host_written_bytes, ..
                } => *host_written_bytes,
                _ => None,
            })
        })
    }

    /// Share of its rated endurance that is used, in percent, as it said last.
    pub fn used_percent(&self) -> Option<f64> {
        let now = self.health.as_ref().and_then(|h| h.used_percent);
        now.or_else(|| {
            self.last_look(|deed| match deed {
                LedgerEvent::Seen { used_percent, .. } => *used_percent,
                _ => None,
            })
        })
    }

    fn last_look<T>(&self, told: impl Fn(&LedgerEvent) -> Option<T>) -> Option<T> {
        self.entries
            .iter()
            .rev()
            .find_map(|entry| told(&entry.deed))
    }

    /// Whether somebody means it who says so: its serial number, a name in
    /// /dev/disk/by-id, its kernel name or its path now.
    pub fn is_called(&self, name: &str) -> bool {
        let known = [Some(&self.device), self.here.as_ref()];
        let by_names = known.into_iter().flatten().any(|device| {
            device.serial.as_deref() == Some(name) || device.by_id.iter().any(|id| id == name)
        });
        let kernel = self.here.as_ref().map(|device| device.name.as_str());
        by_names
            || kernel.is_some_and(|kernel| name.strip_prefix("/dev/").unwrap_or(name) == kernel)
    }
}

/// What is to be told of a ledger that could not be written: never a reason to
/// stop.
pub type Notes = Vec<String>;

impl Ledgers {
    /// Those in the user's state folder, for the devices of this machine. Without
    /// a home there are none.
    pub fn of_user() -> Self {
        let state = xdg::base("XDG_STATE_HOME", ".local/state");
        Self {
            folder: state.map(|state| state.join("fathom/devices")),
            sys: Sys::live(),
            issue: Arc::new(KernelDevices),
        }
    }

    /// Those in a folder, for the devices of `sys`.
    pub fn at(folder: impl Into<PathBuf>, sys: Sys, issue: Arc<dyn Issue>) -> Self {
        Self {
            folder: Some(folder.into()),
            sys,
            issue,
        }
    }

    /// No ledgers at all: nothing is entered, nothing is known.
    pub fn none() -> Self {
        Self {
            folder: None,
            sys: Sys::live(),
            issue: Arc::new(KernelDevices),
        }
    }

    /// A command is about to write to these paths: enters what each device says
    /// of itself. A file counts for the disk under its file system, a partition
    /// for the disk it is on.
    pub fn begin<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p Path>,
        command: &str,
        record: Option<&Path>,
    ) -> Notes {
        let mut devices: Vec<BlockDevice> = Vec::new();
        let mut notes = Notes::new();
        for device in paths.into_iter().filter_map(|path| self.device(path)) {
            if !devices.iter().any(|other| other.is_same_drive(&device)) {
                notes.extend(self.look_at(&device, command, record));
                devices.push(device);
            }
        }
        notes
    }

    /// Where they are; `None`: nowhere.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Something was done to the device behind a path: enters it, and what the
    /// device says of itself afterwards. A command with a record is not over by
    /// that: [`Ledgers::end`].
    pub fn did(
        &self,
        path: &Path,
        command: &str,
        record: Option<&Path>,
        deed: LedgerEvent,
    ) -> Notes {
        let Some(device) = self.device(path) else {
            return Notes::new();
        };
        let entry = LedgerEntry {
            at_ms: now_ms(),
            command: command.to_owned(),
            record: record.map(absolute),
            content: self.content(&device, &deed),
            deed,
        };
        let mut notes = self.append(&device, &entry);
        notes.extend(self.look_at(&device, command, record));
        notes
    }

    /// A command has ended, that is or was recorded in `record` and has written
    /// `bytes` to all its devices in all its starts: enters the part of it that
    /// no deed has told. Several devices share it equally.
    pub fn end(&self, command: &str, record: &Path, bytes: u64) -> Notes {
        self.settle(command, record, bytes, now_ms())
    }

    /// Enters what commands have written that were killed before they could:
    /// from their records. A command that goes on in its record calls it before
    /// it opens that, which counts as running from then on.
    pub fn catch_up(&self) -> Notes {
        let mut open: Vec<(String, PathBuf)> = Vec::new();
        for (_, mentions) in self.read().unwrap_or_default() {
            open.extend(begun(mentions));
        }
        open.sort();
        open.dedup();
        let mut notes = Notes::new();
        for (command, record) in open {
            match bytes_written::read(&record) {
                // It goes on.
                Ok(None) => {}
                Ok(Some(killed)) => {
                    if killed.in_purge {
                        let what = "purge".to_owned();
                        let deed = LedgerEvent::Interrupted { what };
                        notes.extend(self.broke_off(&command, &record, deed, killed.at_ms));
                    }
                    let (bytes, at_ms) = (killed.bytes, killed.at_ms);
                    notes.extend(self.settle(&command, &record, bytes, at_ms));
                }
                Err(error) => notes.push(format!(
                    "what fathom {command} has written is not in the ledger, its record cannot be read: {error}"
                )),
            }
        }
        notes
    }

    /// All ledgers: each device with what was done to it, oldest first.
    ///
    /// # Errors
    /// Those of the file system, and a file that is no ledger.
    pub fn all(&self) -> Result<Vec<(BlockDevice, Vec<LedgerEntry>)>, RecordError> {
        self.read()
    }

    /// The same, or of each entry no more than what it is about ([`LedgerMention`]).
    fn read<T: DeserializeOwned>(&self) -> Result<Vec<(BlockDevice, Vec<T>)>, RecordError> {
        let folder = self.folder.as_deref();
        folder.map_or_else(|| Ok(Vec::new()), fathom_record::ledgers)
    }

    /// Every device that has a ledger, with what it says of itself where it is on
    /// this machine now.
    ///
    /// # Errors
    /// As [`Ledgers::all`].
    pub fn known(&self) -> Result<Vec<Known>, RecordError> {
        let all = self.all()?.into_iter();
        Ok(all
            .map(|(device, entries)| {
                let here = self.here(&device);
                let health = here.as_ref().map(|device| self.health_of(device));
                let now = health.as_ref().map(Health::seen);
                Known {
                    state: DeviceState::of(&entries, now.as_ref(), None),
                    device,
                    here,
                    health,
                    entries,
                }
            })
            .collect())
    }

    /// What was done to the device behind a path, oldest first; nothing for a
    /// device without a ledger.
    ///
    /// # Errors
    /// As [`Ledgers::all`].
    pub fn entries(&self, path: &Path) -> Result<Vec<LedgerEntry>, RecordError> {
        let ledger = self.device(path).and_then(|device| self.ledger(&device));
        ledger.map_or_else(|| Ok(Vec::new()), |ledger| ledger.entries())
    }

    /// The state of the device behind a path, as it is now; `own` as for
    /// [`DeviceState::of`].
    ///
    /// # Errors
    /// As [`Ledgers::all`].
    pub fn state(&self, path: &Path, own: Option<&Path>) -> Result<DeviceState, RecordError> {
        // What cannot be caught up is told by the command that begins.
        let _ = self.catch_up();
        let entries = self.entries(path)?;
        if self.device(path).is_some_and(|device| device.is_duplicate) {
            return Ok(DeviceState::of_duplicate());
        }
        let now = self.health(path).seen();
        let own = own.map(absolute);
        let mut state = DeviceState::of(&entries, Some(&now), own.as_deref());
        state.compare(|content| self.holds(path, content));
        Ok(state)
    }

    /// The name of the device behind a path, where it has a ledger that does not say what
    /// was done to it before this record.
    pub fn without_history(&self, path: &Path, own: &Path) -> Option<String> {
        let device = self.device(path)?;
        self.ledger(&device)?;
        let state = self.state(path, Some(own)).ok()?;
        let is_known = state.made.is_some() && state.content != Some(ContentState::Changed);
        (!is_known).then_some(device.name)
    }

    /// What a device holds where a deed has just written to it.
    fn content(&self, device: &BlockDevice, deed: &LedgerEvent) -> ContentSample {
        let (LedgerEvent::Filled { range_percent, .. }
        | LedgerEvent::Settled { range_percent, .. }) = deed
        else {
            return ContentSample::new();
        };
        let share = (range_percent / 100.0).clamp(0.0, 1.0);
        let bytes = (device.capacity_bytes as f64 * share) as u64;
        let path = Path::new("/dev").join(&device.name);
        // Without a sample the state is unverified later, and is reported as such.
        content::sample(&self.sys.path(path), bytes).unwrap_or_default()
    }

    /// Whether the device still holds a sample; `None` if it cannot be read.
    fn holds(&self, path: &Path, content: &[(u64, u32)]) -> Option<bool> {
        let device = self.device(path)?;
        let path = Path::new("/dev").join(&device.name);
        content::holds(&self.sys.path(path), content).ok()
    }

    /// What the drive behind a path says of itself.
    pub fn health(&self, path: &Path) -> Health {
        match self.device(path) {
            Some(device) => self.health_of(&device),
            None => Health::default(),
        }
    }

    fn health_of(&self, device: &BlockDevice) -> Health {
        self.sys
            .by_name(&device.name)
            .map_or_else(Health::default, |node| {
                Health::of(self.issue.as_ref(), &self.sys, &node)
            })
    }

    /// A device of a ledger as it is on this machine now: its kernel name may be
    /// another one than when the ledger was begun, and its old one another
    /// device's.
    fn here(&self, device: &BlockDevice) -> Option<BlockDevice> {
        let named = self.sys.by_name(&device.name);
        let disks = named.into_iter().chain(self.sys.disks());
        disks
            .map(|disk| identity::block_device(&self.sys, &disk))
            .find(|other| other.is_same_drive(device))
    }

    /// The disk that a path stands for.
    fn device(&self, path: &Path) -> Option<BlockDevice> {
        self.folder.as_ref()?;
        let target = identity::target(&self.sys, path);
        target.device.or_else(|| target.file_system?.device)
    }

    fn ledger(&self, device: &BlockDevice) -> Option<Ledger> {
        let folder = self.folder.as_deref()?;
        let ledger = Ledger::of(folder, device)?;
        if ledger.path().exists() {
            return Some(ledger);
        }
        // One of an older Fathom, if its serial number is still this device's alone.
        let node = self.sys.by_name(&device.name);
        let older = Ledger::by_serial(folder, device).filter(|older| {
            older.path().exists()
                && node.is_some_and(|node| !identity::shares_serial(&self.sys, &node))
        });
        Some(older.unwrap_or(ledger))
    }

    fn look_at(&self, device: &BlockDevice, command: &str, record: Option<&Path>) -> Notes {
        if self.ledger(device).is_none() {
            return Notes::new();
        }
        let entry = LedgerEntry {
            at_ms: now_ms(),
            command: command.to_owned(),
            record: record.map(absolute),
            deed: self.health_of(device).seen(),
            content: Vec::new(),
        };
        self.append(device, &entry)
    }

    /// The devices whose ledgers name a record.
    fn of_record(&self, record: &Path) -> Result<Vec<BlockDevice>, RecordError> {
        let names = |entry: &LedgerMention| entry.record.as_deref() == Some(record);
        let mut all = self.read()?;
        all.retain(|(_, mentions)| mentions.iter().any(names));
        Ok(all.into_iter().map(|(device, _)| device).collect())
    }

    /// Enters what a command did not bring to its end, where its begin stands.
    fn broke_off(&self, command: &str, record: &Path, deed: LedgerEvent, at_ms: u64) -> Notes {
        let devices = match self.of_record(record) {
            Ok(devices) => devices,
            Err(error) => return vec![unwritten(&error)],
        };
        let entry = LedgerEntry {
            at_ms,
            command: command.to_owned(),
            record: Some(record.to_owned()),
            deed,
            content: Vec::new(),
        };
        let enter = |device| self.append(device, &entry);
        devices.iter().flat_map(enter).collect()
    }

    /// Enters what of a record's bytes is in no ledger yet.
    fn settle(&self, command: &str, record: &Path, bytes: u64, at_ms: u64) -> Notes {
        let record = absolute(record);
        let devices = match self.of_record(&record) {
            Ok(devices) => devices,
            Err(error) => return vec![unwritten(&error)],
        };
        let of_record = |entry: &&LedgerEntry| entry.record.as_deref() == Some(&*record);
        let share = bytes / devices.len().max(1) as u64;
        let mut notes = Notes::new();
        for device in devices {
            notes.extend(self.enter(&device, |entries| {
                let told = entries.iter().filter(of_record);
                let last = told.clone().next_back();
                let is_open = last.is_some_and(|last| !last.deed.is_end());
                let told: u64 = told.filter_map(|entry| entry.deed.bytes()).sum();
                let bytes = share.saturating_sub(told);
                // Without locks a run that goes on may have been taken for a
                // killed one: what it wrote since comes to that.
                (is_open || bytes > 0).then(|| LedgerEntry {
                    at_ms,
                    command: command.to_owned(),
                    record: Some(record.clone()),
                    deed: LedgerEvent::Written { bytes },
                    content: Vec::new(),
                })
            }));
            if let Some(here) = self.here(&device) {
                notes.extend(self.look_at(&here, command, None));
            }
        }
        notes
    }

    fn enter(
        &self,
        device: &BlockDevice,
        choose: impl FnOnce(&[LedgerEntry]) -> Option<LedgerEntry>,
    ) -> Notes {
        let amended = |ledger: Ledger| ledger.amend(device, choose).err();
        let failed = self.ledger(device).and_then(amended);
        failed.iter().map(unwritten).collect()
    }

    /// Notes, once, that two drives report one identifier.
    fn note_duplicate(&self, device: &BlockDevice, entry: &LedgerEntry) -> Notes {
        let is_noted = |entry: &LedgerEntry| entry.deed == LedgerEvent::Duplicate;
        self.enter(device, |entries| {
            (!entries.iter().any(is_noted)).then(|| LedgerEntry {
                deed: LedgerEvent::Duplicate,
                ..entry.clone()
            })
        })
    }

    fn append(&self, device: &BlockDevice, entry: &LedgerEntry) -> Notes {
        if device.is_duplicate {
            return self.note_duplicate(device, entry);
        }
        let appended = |ledger: Ledger| ledger.append(device, entry).err();
        let failed = self.ledger(device).and_then(appended);
        failed.iter().map(unwritten).collect()
    }
}

fn unwritten(error: &RecordError) -> String {
    format!("the device's ledger cannot be written: {error}")
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Commands whose begin was entered and whose end was not, with their records:
/// the last entry that names the record is not one of bytes.
fn begun(
    mentions: impl IntoIterator<Item = LedgerMention>,
) -> impl Iterator<Item = (String, PathBuf)> {
    let mut open: Vec<(String, PathBuf)> = Vec::new();
    for mention in mentions {
        let is_end = mention.is_end();
        let Some(record) = mention.record else {
            continue;
        };
        open.retain(|(_, other)| *other != record);
        if !is_end {
            open.push((mention.command, record));
        }
    }
    open.into_iter()
}

#[cfg(test)]
mod tests;
