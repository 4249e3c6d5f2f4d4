//! Putting back what a run has switched: at its end, and after a kill by whoever
//! comes next.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use fathom_device::command::{self, CommandData, Issue, KernelDevices, Reply};
use fathom_device::process::Process;
use fathom_device::settings::{SettingError, Settings};
use fathom_device::switches::Switches;
use fathom_device::{Hold, Sys, SysBlock, identity};
use fathom_jobfile::variables;
use fathom_model::environment::BlockDevice;
use fathom_model::{Event, SettingValue};
use fathom_record::{
    CommandUndo, SettingsFound, SwitchesFound, UndoFile, UndoNote, now_ms, undo_files,
};

use crate::error::RunError;
use crate::xdg;

/// What is noted when a run that was killed has left something.
pub const PUT_BACK_FIRST: &str = "switches that a killed run had left were put back first";

/// Something to put back.
#[derive(Debug, Clone, PartialEq)]
pub struct Undo {
    /// Where it is noted until then.
    pub file: UndoFile,
    /// What it is.
    pub note: UndoNote,
}

/// Folder of the notes of what is to be put back on this machine; `None`: the user
/// has no home.
pub fn folder() -> Option<PathBuf> {
    Some(xdg::base("XDG_STATE_HOME", ".local/state")?.join("fathom/switches"))
}

/// Everything that runs which were killed have left on this machine.
///
/// # Errors
/// A note that cannot be read.
pub fn left_behind() -> Result<Vec<Undo>, RunError> {
    let Some(folder) = folder() else {
        return Ok(Vec::new());
    };
    let read = |file: UndoFile| -> Result<Option<Undo>, RunError> {
        Ok(file.read()?.map(|note| Undo { file, note }))
    };
    let files = undo_files(&folder)?.into_iter().map(read);
    files.filter_map(Result::transpose).collect()
}

impl Undo {
    /// The switches of a device as they stand now, with those pages that are about to
    /// be replaced.
    ///
    /// # Errors
    /// Why they cannot be told.
    pub fn of_switches(
        node: &SysBlock,
        path: &Path,
        switches: &Switches<'_>,
        pages: &[fathom_device::cdl::CdlPage],
    ) -> Result<Self, String> {
        let device = identity::block_device(&Sys::live(), node);
        let folder = folder().ok_or(
            "HOME is not set: there is no place to note how the switches stood\n  to do: set HOME or XDG_STATE_HOME",
        )?;
        let found = switches.found(pages).map_err(|error| error.to_string())?;
        Ok(Self {
            file: UndoFile::of_device(&folder, &device),
            note: UndoNote::Switches(Box::new(SwitchesFound::now(device, path, found))),
        })
    }

    /// How these settings stand now.
    ///
    /// # Errors
    /// Why that is not known, or cannot be noted.
    pub fn of_settings(
        node: Option<&SysBlock>,
        settings: &Settings,
        names: &[String],
    ) -> Result<Self, String> {
        let sys = Sys::live();
        let device = node.map(|node| identity::block_device(&sys, &node.whole()));
        let folder = folder().ok_or(
            "HOME is not set: there is no place to note how the settings stood\n  to do: set HOME or XDG_STATE_HOME",
        )?;
        let found = names.iter().map(|name| settings.found(name));
        let found = found.collect::<Result<Vec<_>, SettingError>>();
        let found = SettingsFound {
            values: found.map_err(|error| error.to_string())?.concat(),
            boot: fathom_device::health::boot(&sys),
            at_ms: now_ms(),
            pid: std::process::id(),
            device: device.clone(),
        };
        Ok(Self {
            file: UndoFile::of_settings(&folder, device.as_ref()),
            note: UndoNote::Settings(Box::new(found)),
        })
    }

    /// Takes in what another one notes of the same device, before that is changed, too.
    ///
    /// # Errors
    /// That it cannot be kept.
    pub fn take_in(&mut self, other: Self) -> Result<(), String> {
        let (UndoNote::Settings(found), UndoNote::Settings(more)) = (&mut self.note, other.note)
        else {
            return Ok(());
        };
        let known = |value: &SettingValue| found.values.iter().any(|it| it.file == value.file);
        let new: Vec<_> = more.values.into_iter().filter(|it| !known(it)).collect();
        if new.is_empty() {
            return Ok(());
        }
        // A scheduler goes before what it changes.
        found.values.splice(0..0, new);
        self.keep()
    }

    /// What it is about, in a few words.
    pub fn subject(&self) -> String {
        match &self.note {
            UndoNote::Switches(switches) => {
                let serial = switches.device.serial.as_deref();
                let serial = serial.unwrap_or("no serial number");
                format!("{} ({serial})", switches.path.display())
            }
            UndoNote::Settings(found) => match &found.device {
                Some(device) => format!("the settings of {}", device.name),
                None => "the settings of this machine".to_owned(),
            },
            UndoNote::Command(undo) => format!("'{}'", undo.undoes),
        }
    }

    /// Notes it on the disk, before it is needed.
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn keep(&self) -> Result<(), String> {
        self.file
            .keep(&self.note)
            .map_err(|error| error.to_string())
    }

    /// Puts it back, and takes the note away: by the run itself, which holds the
    /// device.
    ///
    /// # Errors
    /// What could not be put back.
    pub fn put_back(&self, issue: &dyn Issue) -> Result<(), RunError> {
        match &self.note {
            UndoNote::Switches(switches) => self.switches_back(switches, issue)?,
            UndoNote::Settings(found) => self.settings_back(found, issue)?,
            UndoNote::Command(undo) => command_back(undo)?,
        }
        Ok(self.file.remove()?)
    }

    /// Puts it back for a run that was killed.
    ///
    /// # Errors
    /// What could not be put back; somebody else has the device.
    pub fn restore(&self) -> Result<(), RunError> {
        if let Some(refusal) = self.in_use() {
            return Err(RunError::Refused(refusal.into()));
        }
        let hold = match &self.note {
            UndoNote::Switches(switches) => {
                Hold::of([self.node(&switches.device)?.dev_path().as_path()])
            }
            UndoNote::Settings(_) | UndoNote::Command(_) => Ok(Hold::default()),
        };
        let _hold = hold.map_err(|refusal| RunError::Refused(refusal.to_string().into()))?;
        self.put_back(&KernelDevices)
    }

    /// That a run which goes on puts it back at its end.
    pub fn in_use(&self) -> Option<String> {
        let pid = match &self.note {
            UndoNote::Switches(_) => return None,
            UndoNote::Settings(found) if is_of_another_boot(found) => return None,
            UndoNote::Settings(found) => found.pid,
            UndoNote::Command(undo) => undo.pid,
        };
        is_running(pid).then(|| {
            format!(
                "{} belongs to a run that is still going (process {pid}), which undoes it at its end",
                self.subject()
            )
        })
    }

    /// What another boot has set is as that boot, or whoever configured it, wants it.
    fn settings_back(&self, found: &SettingsFound, issue: &dyn Issue) -> Result<(), RunError> {
        if is_of_another_boot(found) {
            return Ok(());
        }
        let node = found.device.as_ref().map(|device| self.node(device));
        let node = node.transpose()?;
        let settings = Settings::new(Sys::live(), node.as_ref());
        let each = found.values.iter();
        // One that fails keeps none of the others from being put back.
        let failed: Vec<String> = each
            .filter_map(|value| settings.set(issue, std::slice::from_ref(value)).err())
            .map(|error| error.to_string())
            .collect();
        match failed.is_empty() {
            true => Ok(()),
            false => Err(not_all_back(&failed)),
        }
    }

    fn switches_back(&self, noted: &SwitchesFound, issue: &dyn Issue) -> Result<(), RunError> {
        let ata = noted.found.pages.iter().any(|page| page.file.is_some());
        let folder = self.file.path().parent().unwrap_or(Path::new("/"));
        let switches = Switches::new(self.node(&noted.device)?, ata, folder.to_owned(), issue);
        let failed = switches.put_back(&noted.found);
        if failed.is_empty() {
            return Ok(());
        }
        let reasons: Vec<String> = failed.iter().map(ToString::to_string).collect();
        Err(not_all_back(&reasons))
    }

    /// The device of a note under its name of today: by its identifier where it has
    /// one.
    fn node(&self, device: &BlockDevice) -> Result<SysBlock, RunError> {
        let sys = Sys::live();
        let same = |node: &SysBlock| {
            let now = identity::block_device(&sys, node);
            match device.has_identifier() {
                true => device.is_same_drive(&now),
                false => now.name == device.name && now.capacity_bytes == device.capacity_bytes,
            }
        };
        sys.disks().into_iter().find(same).ok_or_else(|| {
            RunError::Missing(format!(
                "{} is not here\n  to do: attach it and run 'fathom restore' again, or remove {}",
                self.subject(),
                self.file.path().display()
            ))
        })
    }
}

fn not_all_back(reasons: &[String]) -> RunError {
    RunError::NotPutBack(format!(
        "not everything could be put back as it was:\n  {}\n  to do: run 'fathom restore' after fixing the cause",
        reasons.join("\n  ")
    ))
}

fn is_of_another_boot(found: &SettingsFound) -> bool {
    let now = fathom_device::health::boot(&Sys::live());
    found.boot.is_some() && found.boot != now
}

/// Whether the process that changed something may still be there.
fn is_running(pid: u32) -> bool {
    let sys = Sys::live();
    let process = Process::of(&sys, &pid.to_string());
    process.is_some_and(|process| process.name.starts_with("fathom"))
}

fn command_back(undo: &CommandUndo) -> Result<(), RunError> {
    let failed = |why: String| {
        RunError::NotPutBack(format!(
            "'{}' was not undone: '{}' {why}\n  to do: run 'fathom restore' after fixing the cause",
            undo.undoes, undo.command
        ))
    };
    let mut command = Command::new("sh");
    command
        .args(["-c", &undo.command])
        .current_dir(&undo.folder);
    variables::set(&mut command, &undo.variables);
    let ended = command.stdin(Stdio::null()).status();
    let status = ended.map_err(|error| failed(format!("cannot be started: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(format!("ended with {status}"))),
    }
}

/// The devices of this machine, and the commands that changed something there.
#[derive(Debug, Default)]
pub struct Overheard(Mutex<Vec<String>>);

impl Overheard {
    /// The commands since they were asked for last, a note each.
    pub fn notes(&self) -> impl Iterator<Item = Event> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let said = std::mem::take(&mut *said);
        said.into_iter().map(|text| Event::Note { text })
    }
}

impl Issue for Overheard {
    fn issue(&self, path: &Path, command: &command::Command) -> io::Result<Reply> {
        let only_asks = matches!(
            command,
            command::Command::Scsi {
                data: CommandData::In(_),
                ..
            }
        );
        if !only_asks {
            let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            said.push(format!("{}: {command}", path.display()));
        }
        KernelDevices.issue(path, command)
    }
}
