//! The switches of priorities and duration limits, and putting them back.
//!
//! NCQ priority and Command Duration Limits exclude each other: the one is
//! switched off before the other is switched on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_model::{FormerPage, SwitchState};

use crate::SysBlock;
use crate::cdl::file::{self, FileError};
use crate::cdl::scsi::{self, ScsiError};
use crate::cdl::wire::BYTES;
use crate::cdl::{CdlPage, Page};
use crate::command::{Command, CommandData, Issue};

/// SET FEATURES moves no data; the kernel waits as long (`SD_TIMEOUT`).
const TIMEOUT: Duration = Duration::from_secs(30);
/// Subcommands of SET FEATURES that switch the priority of commands, each with
/// its COUNT: on takes two.
const PRIORITY_ON: [(u8, u8); 2] = [(0x57, 0), (0x58, 200)];
const PRIORITY_OFF: [(u8, u8); 1] = [(0x56, 0)];

/// What I/Os with a priority are to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorityMode {
    /// A device that looks at no priority.
    Plain,
    /// NCQ priority.
    NcqPriority,
    /// Command Duration Limits.
    Limits,
}

/// A switch that could not be set.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// A command could not be given.
    #[error("{command}: {source}")]
    Io {
        /// The command, as a person would type it.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// The device or a program refused it.
    #[error("{command}: {why}")]
    Refused {
        /// The command, as a person would type it.
        command: String,
        /// What it said.
        why: String,
    },
    /// The program that handles pages of ATA devices is missing.
    #[error(
        "cdladm is not installed: it is what reads and uploads pages of ATA devices\n  to do: \
         install cdl-tools (https://github.com/westerndigitalcorporation/cdl-tools)"
    )]
    NoCdladm,
    /// A page of a SCSI disk.
    #[error(transparent)]
    Page(#[from] ScsiError),
    /// A page file.
    #[error(transparent)]
    File(#[from] FileError),
    /// What is kept of a former page cannot be used.
    #[error("page {page} cannot be put back: what was kept of it is damaged")]
    Kept {
        /// Its name.
        page: String,
    },
    /// What cdladm uploaded is not there afterwards.
    #[error("the disk did not take page {kind} as it is: {}", differences.join("; "))]
    Other {
        /// The page.
        kind: CdlPage,
        /// How it differs.
        differences: Vec<String>,
    },
}

/// The switches of one disk.
pub struct Switches<'i> {
    node: SysBlock,
    issue: &'i dyn Issue,
    ata: bool,
    /// Where files that `cdladm` reads and writes go.
    folder: PathBuf,
}

impl<'i> Switches<'i> {
    /// Those of a disk. `ata` says that its pages are cdladm's matter, `folder`
    /// where the files for that go.
    pub fn new(node: SysBlock, ata: bool, folder: PathBuf, issue: &'i dyn Issue) -> Self {
        Self {
            node,
            issue,
            ata,
            folder,
        }
    }

    /// How they stand, with those pages that are about to be replaced.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub fn found(&self, pages: &[CdlPage]) -> Result<SwitchState, SwitchError> {
        let on = |name: &str| {
            self.node
                .value::<u8>(&format!("device/{name}"))
                .map(|v| v != 0)
        };
        Ok(SwitchState {
            ncq_priority: on("ncq_prio_enable"),
            cdl: on("cdl_enable"),
            scheduler: self
                .node
                .text("queue/scheduler")
                .and_then(|all| in_force(&all)),
            pages: pages
                .iter()
                .map(|&kind| self.former(kind))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Whether a feature that the device has is on.
    fn is_on(&self, feature: &str) -> Option<bool> {
        let flag = |what: &str| self.node.value::<u8>(&format!("device/{feature}_{what}"));
        flag("supported").filter(|&supported| supported != 0)?;
        Some(flag("enable")? != 0)
    }

    fn former(&self, kind: CdlPage) -> Result<FormerPage, SwitchError> {
        let mut former = FormerPage {
            page: kind.name().to_owned(),
            bytes: None,
            file: None,
        };
        if self.ata {
            let file = self.folder.join(format!("{}.{kind}.cdl", self.node.name));
            fs::create_dir_all(&self.folder).map_err(|source| SwitchError::Io {
                command: format!("mkdir {}", self.folder.display()),
                source,
            })?;
            self.save(kind, &file)?;
            former.file = Some(file);
        } else {
            let (_, bytes) = scsi::read(self.issue, &self.node.dev_path(), kind)?;
            former.bytes = Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        Ok(former)
    }

    /// Switches both mechanisms as a workload needs them.
    ///
    /// # Errors
    /// What was refused.
    pub fn set(&self, mode: PriorityMode) -> Result<(), SwitchError> {
        if mode != PriorityMode::Limits && self.is_on("cdl") == Some(true) {
            self.cdl(false)?;
        }
        if mode != PriorityMode::NcqPriority && self.is_on("ncq_prio") == Some(true) {
            self.ncq_priority(false)?;
        }
        match mode {
            PriorityMode::Plain => Ok(()),
            PriorityMode::NcqPriority => self.ncq_priority(true),
            PriorityMode::Limits => self.cdl(true),
        }
    }

    /// Switches NCQ priority, where the device has it.
    ///
    /// # Errors
    /// What was refused.
    pub fn ncq_priority(&self, on: bool) -> Result<(), SwitchError> {
        if self.is_on("ncq_prio").is_none() {
            return Ok(());
        }
        if on {
            self.features(&PRIORITY_ON)?;
            self.attribute("device/ncq_prio_enable", "1")
        } else {
            self.attribute("device/ncq_prio_enable", "0")?;
            self.features(&PRIORITY_OFF)
        }
    }

    /// Switches Command Duration Limits, where the device has them.
    ///
    /// # Errors
    /// What was refused.
    pub fn cdl(&self, on: bool) -> Result<(), SwitchError> {
        if self.is_on("cdl").is_none() {
            return Ok(());
        }
        self.attribute("device/cdl_enable", if on { "1" } else { "0" })
    }

    /// Chooses the I/O scheduler, unless it is the one in force.
    ///
    /// # Errors
    /// What was refused.
    pub fn scheduler(&self, name: &str) -> Result<(), SwitchError> {
        let all = self.node.text("queue/scheduler");
        match all.and_then(|all| in_force(&all)) {
            Some(now) if now != name => self.attribute("queue/scheduler", name),
            _ => Ok(()),
        }
    }

    /// Uploads a page, and checks that the device has it then. `file` holds it
    /// for `cdladm`, which needs one.
    ///
    /// # Errors
    /// What was refused.
    pub fn upload(&self, page: &Page, file: &Path) -> Result<(), SwitchError> {
        match self.ata {
            true => self.upload_file(page, file),
            false => Ok(scsi::upload(self.issue, &self.node.dev_path(), page)?),
        }
    }

    fn upload_file(&self, page: &Page, file: &Path) -> Result<(), SwitchError> {
        let path = file.display().to_string();
        self.cdladm(&["upload", "--file", &path])?;
        let back = self
            .folder
            .join(format!("{}.{}.now.cdl", self.node.name, page.kind));
        self.save(page.kind, &back)?;
        let have = file::read(&back)?;
        // It was only looked at.
        let _ = fs::remove_file(&back);
        let differences = page.differences(&have);
        match differences.is_empty() {
            true => Ok(()),
            false => Err(SwitchError::Other {
                kind: page.kind,
                differences,
            }),
        }
    }

    fn save(&self, kind: CdlPage, file: &Path) -> Result<(), SwitchError> {
        let path = file.display().to_string();
        self.cdladm(&["save", "--page", kind.name(), "--file", &path])
            .map(drop)
    }

    /// The pages as `cdladm show` prints them, of an ATA device by itself.
    ///
    /// # Errors
    /// When a page cannot be read.
    pub fn show(&self, pages: &[CdlPage]) -> Result<String, SwitchError> {
        if self.ata {
            let reply = self.cdladm(&["show"])?;
            return Ok(String::from_utf8_lossy(&reply).into_owned());
        }
        let mut text = String::new();
        for &kind in pages {
            let (page, _) = scsi::read(self.issue, &self.node.dev_path(), kind)?;
            text += &crate::cdl::show::page(&page);
        }
        Ok(text)
    }

    /// Puts everything back as it was found, whatever of it fails; gives what did.
    pub fn put_back(&self, found: &SwitchState) -> Vec<SwitchError> {
        let mut failed = Vec::new();
        let mut step = |done: Result<(), SwitchError>| failed.extend(done.err());
        // Off first: a page cannot be replaced under I/Os that use it, and the
        // one mechanism cannot be switched on beside the other.
        step(self.cdl(false));
        // Also where sysfs says that it is off: a run that was killed may have
        // switched the disk alone.
        step(self.ncq_priority(false));
        for page in &found.pages {
            step(self.page_back(page));
        }
        if let Some(scheduler) = &found.scheduler {
            step(self.scheduler(scheduler));
        }
        if found.ncq_priority == Some(true) {
            step(self.ncq_priority(true));
        }
        if found.cdl == Some(true) {
            step(self.cdl(true));
        }
        if failed.is_empty() {
            for file in found.pages.iter().filter_map(|page| page.file.as_ref()) {
                // What it kept is in the device again.
                let _ = fs::remove_file(file);
            }
        }
        failed
    }

    fn page_back(&self, former: &FormerPage) -> Result<(), SwitchError> {
        let damaged = || SwitchError::Kept {
            page: former.page.clone(),
        };
        let kind = CdlPage::of_name(&former.page).ok_or_else(damaged)?;
        if let Some(file) = &former.file {
            return self.upload_file(&file::read(file)?, file);
        }
        let bytes = former
            .bytes
            .as_deref()
            .and_then(bytes)
            .ok_or_else(damaged)?;
        Ok(scsi::put_back(
            self.issue,
            &self.node.dev_path(),
            kind,
            &bytes,
        )?)
    }

    fn cdladm(&self, arguments: &[&str]) -> Result<Vec<u8>, SwitchError> {
        let device = self.node.dev_path().display().to_string();
        let mut argv = vec!["cdladm".to_owned()];
        argv.extend(arguments.iter().map(|&word| word.to_owned()));
        argv.push(device);
        match self.give(&Command::Program { argv }) {
            Err(SwitchError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Err(SwitchError::NoCdladm)
            }
            other => other,
        }
    }

    /// Gives SET FEATURES (ACS-5 7.43) to the disk, each subcommand with its COUNT,
    /// in ATA PASS-THROUGH(16) (SAT-5 12.2.2.3) as a command without data.
    fn features(&self, list: &[(u8, u8)]) -> Result<(), SwitchError> {
        for &(feature, count) in list {
            let mut cdb = vec![0; 16];
            cdb[0] = 0x85;
            cdb[1] = 3 << 1;
            cdb[4] = feature;
            cdb[6] = count;
            cdb[14] = 0xef;
            self.give(&Command::Scsi {
                cdb,
                data: CommandData::None,
                timeout: TIMEOUT,
            })?;
        }
        Ok(())
    }

    fn attribute(&self, name: &str, value: &str) -> Result<(), SwitchError> {
        let path = Path::new("/sys/class/block")
            .join(&self.node.name)
            .join(name);
        let value = value.to_owned();
        self.give(&Command::Attribute { path, value }).map(drop)
    }

    fn give(&self, command: &Command) -> Result<Vec<u8>, SwitchError> {
        let named = || command.to_string();
        let given = self.issue.issue(&self.node.dev_path(), command);
        let reply = given.map_err(|source| SwitchError::Io {
            command: named(),
            source,
        })?;
        if reply.is_good() {
            return Ok(reply.data);
        }
        let why = match command {
            Command::Program { .. } => String::from_utf8_lossy(&reply.sense).trim().to_owned(),
            _ => format!("the disk refused it ({})", scsi::sense(&reply)),
        };
        Err(SwitchError::Refused {
            command: named(),
            why,
        })
    }
}

/// The scheduler in brackets, or the only one.
pub(crate) fn in_force(all: &str) -> Option<String> {
    let bracketed = all
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    let name = bracketed.map_or(all, |(name, _)| name);
    (!name.is_empty()).then(|| name.to_owned())
}

fn bytes(hex: &str) -> Option<[u8; BYTES]> {
    let digits = hex.as_bytes();
    if digits.len() != 2 * BYTES {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}
