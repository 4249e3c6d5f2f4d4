//! What a device can do to take its data away, asked before anything is done.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_model::environment::BlockDevice;
use fathom_model::{ExpectedContent, HiddenCapacity};

use super::PurgeError;
use super::ata::Ata;
use super::hidden;
use super::method::{OverwriteFill, PurgeMethod, PurgeSettings, SanitizeAction};
use super::nvme::{self, Nvme};
use super::scsi::Scsi;
use crate::command::Issue;
use crate::identity;
use crate::sys::{Sys, SysBlock};

/// What is known of a device's ways to be purged.
#[derive(Debug, Clone)]
pub struct Capabilities {
    /// The path as it was given.
    pub path: PathBuf,
    /// What stands there.
    pub device: BlockDevice,
    /// Size of the device, or of the partition that was given, in bytes.
    pub size_bytes: u64,
    /// What the NVMe drive says, when it is one.
    pub nvme: Option<Nvme>,
    /// What the SCSI device says, when it is one; an ATA drive is one too.
    pub scsi: Option<Scsi>,
    /// What the ATA drive behind it says, when it is one.
    pub ata: Option<Ata>,
    /// What the block layer can do.
    pub discard: Discard,
    /// Other namespaces of the same drive.
    pub others: Vec<Other>,
    /// Capacity of the drive that no way reaches.
    pub hidden: Vec<HiddenCapacity>,
    zoned: bool,
    read_only: bool,
}

/// Limits of discarding (Documentation/ABI/stable/sysfs-block).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discard {
    /// Most bytes of one request; 0: there is no discard.
    pub max_bytes: u64,
    /// What was discarded reads as zeros, as the device promises.
    pub zeros: bool,
}

/// Another namespace of the same NVMe drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// Its id.
    pub nsid: u32,
    /// Its block device; absent where this system has none for it.
    pub path: Option<PathBuf>,
}

/// One way, and whether the device can go it.
#[derive(Debug, Clone)]
pub struct MethodSupport {
    /// The way.
    pub method: PurgeMethod,
    /// Why the device cannot; `None`: it can.
    pub against: Option<String>,
    /// What would be read afterwards.
    pub promise: ExpectedContent,
    /// Other namespaces whose data it takes away as well.
    pub touches: Vec<Other>,
    /// How long the device itself expects it to take.
    pub estimate: Option<Duration>,
}

impl Capabilities {
    /// Asks a device. Changes nothing.
    ///
    /// # Errors
    /// [`PurgeError::NotADevice`].
    pub fn find(sys: &Sys, issue: &dyn Issue, path: &Path) -> Result<Self, PurgeError> {
        let not = || PurgeError::NotADevice {
            path: path.to_owned(),
        };
        let node = sys.by_path(path).ok_or_else(not)?;
        let disk = node.whole();
        let nvme = Nvme::find(sys, &disk, issue);
        let is_scsi = disk.dir.join("device/scsi_level").exists();
        let scsi = is_scsi.then(|| Scsi::find(&disk.dev_path(), issue));
        let ata = match scsi.as_ref().is_some_and(|scsi| scsi.ata) {
            true => Ata::find(&disk.dev_path(), issue),
            false => Ata::behind(&disk, issue),
        };
        let hidden = match (&nvme, &ata) {
            (Some(nvme), _) => nvme.hidden(),
            (None, Some(ata)) => hidden::of_ata(ata, &disk, issue),
            (None, None) => Vec::new(),
        };
        let others = nvme
            .as_ref()
            .map_or_else(Vec::new, |nvme| others(sys, &disk, nvme));
        let kept = nvme.as_ref().and_then(|nvme| nvme.namespace.as_ref());
        let zeros = kept.is_some_and(|namespace| namespace.zeros)
            || scsi.as_ref().is_some_and(|scsi| scsi.zeros)
            || ata.as_ref().is_some_and(|ata| ata.zeros)
            || is_sparse(&disk);
        Ok(Self {
            // What a generic device is told reaches the same blocks; samples are read here.
            path: sys.block_path(path),
            device: identity::block_device(sys, &node),
            size_bytes: node.size_bytes(),
            discard: Discard {
                max_bytes: disk.value("queue/discard_max_bytes").unwrap_or(0),
                zeros,
            },
            zoned: disk
                .text("queue/zoned")
                .is_some_and(|zoned| zoned != "none"),
            read_only: node.value::<u8>("ro") == Some(1),
            nvme,
            scsi,
            ata,
            others,
            hidden,
        })
    }

    /// Every way, in the order in which `auto` takes the first possible one;
    /// those of other kinds of device are left out.
    pub fn offers(&self, want: &PurgeSettings) -> Vec<MethodSupport> {
        PurgeMethod::all()
            .filter(|&method| self.is_of_kind(method))
            .map(|method| self.offer(method, want))
            .collect()
    }

    /// Whether a way is one of this kind of device.
    pub(super) fn is_of_kind(&self, method: PurgeMethod) -> bool {
        match method {
            PurgeMethod::NvmeFormat | PurgeMethod::NvmeSanitize(_) => self.nvme.is_some(),
            PurgeMethod::AtaSanitize(_) | PurgeMethod::AtaSecurityErase { .. } => {
                self.ata.is_some()
            }
            // A translation has SCSI's commands in its own way at best.
            PurgeMethod::ScsiSanitize(_) | PurgeMethod::ScsiFormat => {
                self.scsi.is_some() && self.ata.is_none()
            }
            PurgeMethod::Discard { .. } | PurgeMethod::Overwrite(_) => true,
        }
    }

    /// One way.
    pub fn offer(&self, method: PurgeMethod, want: &PurgeSettings) -> MethodSupport {
        MethodSupport {
            method,
            against: self.against(method, want),
            promise: self.promise(method),
            touches: self.touches(method, want),
            estimate: self.estimate(method),
        }
    }

    /// Why the device cannot; whether the settings of a format are right is not
    /// asked here.
    fn against(&self, method: PurgeMethod, want: &PurgeSettings) -> Option<String> {
        if let Some(partition) = self.device.partition.as_ref().filter(|_| method.is_whole()) {
            return Some(format!(
                "acts on the whole device /dev/{}, of which {} is a part",
                self.device.name, partition.name
            ));
        }
        if self.read_only {
            return Some("the device is read-only".to_owned());
        }
        if self.zoned {
            return Some("the device is zoned; its zones are reset with blkzone reset".to_owned());
        }
        let against: Result<(), &str> = match method {
            PurgeMethod::NvmeFormat => match &self.nvme {
                None => Err("it is no NVMe device"),
                Some(nvme) if nvme.formats() || !want.check => Ok(()),
                Some(_) => Err("the controller has no Format NVM (OACS bit 1)"),
            },
            PurgeMethod::NvmeSanitize(action) => match &self.nvme {
                None => Err("it is no NVMe device"),
                Some(nvme) if nvme.sanitizes(action) || !want.check => Ok(()),
                Some(_) => Err("the controller has no such sanitize (SANICAP)"),
            },
            PurgeMethod::AtaSanitize(action) => match &self.ata {
                None => Err("it is no ATA device"),
                Some(ata) if ata.sanitizes(action) || !want.check => Ok(()),
                Some(_) => Err("the drive has no such sanitize (IDENTIFY word 59)"),
            },
            PurgeMethod::AtaSecurityErase { enhanced } => match &self.ata {
                None => Err("it is no ATA device"),
                Some(ata) => return ata.security_stands_against(enhanced, want.check),
            },
            PurgeMethod::ScsiSanitize(action) => self.scsi_can(want, |scsi| scsi.sanitizes(action)),
            PurgeMethod::ScsiFormat => self.scsi_can(want, |scsi| scsi.format),
            PurgeMethod::Discard { secure: false } if self.discard.max_bytes == 0 => {
                Err("the device has no discard (discard_max_bytes 0)")
            }
            // No attribute tells whether it is there.
            PurgeMethod::Discard { secure: true } if want.choice.only() != Some(method) => {
                Err("only by name: the system does not tell whether the device has it")
            }
            PurgeMethod::Discard { .. } | PurgeMethod::Overwrite(_) => Ok(()),
        };
        against.err().map(str::to_owned)
    }

    /// A command that a device does not speak of is tried when it is asked for
    /// by name only.
    fn scsi_can(
        &self,
        want: &PurgeSettings,
        can: impl Fn(&Scsi) -> Option<bool>,
    ) -> Result<(), &'static str> {
        match &self.scsi {
            None => Err("it is no SCSI device"),
            Some(_) if self.ata.is_some() => Err("it is an ATA device"),
            Some(scsi) => match can(scsi) {
                Some(true) => Ok(()),
                Some(false) if want.check => Err("the device says that it has no such command"),
                _ if want.choice.only().is_some() => Ok(()),
                _ => Err("only by name: the device does not say whether it has the command"),
            },
        }
    }

    /// What a block reads as afterwards. Formats and erasures leave that to the
    /// drive (NVMe 5.14: "indeterminate").
    fn promise(&self, method: PurgeMethod) -> ExpectedContent {
        match method {
            PurgeMethod::Overwrite(OverwriteFill::Random) => ExpectedContent::Written,
            PurgeMethod::Overwrite(OverwriteFill::Zeros)
            | PurgeMethod::NvmeSanitize(SanitizeAction::Overwrite)
            | PurgeMethod::AtaSanitize(SanitizeAction::Overwrite)
            | PurgeMethod::ScsiSanitize(SanitizeAction::Overwrite) => ExpectedContent::Zeros,
            PurgeMethod::Discard { .. } if self.discard.zeros => ExpectedContent::Zeros,
            _ => ExpectedContent::Gone,
        }
    }

    fn touches(&self, method: PurgeMethod, want: &PurgeSettings) -> Vec<Other> {
        let wide = match (method, &self.nvme) {
            (PurgeMethod::NvmeFormat, Some(nvme)) => nvme.format_is_wide(&want.format),
            (PurgeMethod::NvmeSanitize(_), Some(_)) => true,
            _ => false,
        };
        if wide {
            self.others.clone()
        } else {
            Vec::new()
        }
    }

    fn estimate(&self, method: PurgeMethod) -> Option<Duration> {
        match method {
            PurgeMethod::NvmeSanitize(action) => self.nvme.as_ref()?.estimates.of(action),
            PurgeMethod::AtaSecurityErase { enhanced } => self.ata.as_ref()?.estimate(enhanced),
            _ => None,
        }
    }
}

/// Blocks that a loop device or zram does not keep read as zeros
/// (`loop_fallocate` in drivers/block/loop.c, `zram_bio_discard`).
fn is_sparse(disk: &SysBlock) -> bool {
    disk.dir.join("loop").exists() || disk.name.starts_with("zram")
}

fn others(sys: &Sys, disk: &SysBlock, nvme: &Nvme) -> Vec<Other> {
    let here = nvme::siblings(sys, disk);
    let path = |nsid: u32| {
        let node = here
            .iter()
            .find(|other| other.value::<u32>("nsid") == Some(nsid));
        node.map(SysBlock::dev_path)
    };
    let other = |&nsid: &u32| Other {
        nsid,
        path: path(nsid),
    };
    nvme.others.iter().map(other).collect()
}
