//! What an NVMe controller and namespace can do, and their commands.
//!
//! Numbers of clauses and figures are those of the NVMe Base Specification 2.0
//! and the NVM Command Set Specification 1.0 ("NVM").

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_model::HiddenCapacity;

use super::method::{FormatNvm, SanitizeAction};
use crate::command::{Command, CommandData, Issue};
use crate::sys::{Sys, SysBlock, names_in};

/// Get Log Page, Identify, Format NVM, Sanitize (figure 138).
const LOG: u8 = 0x02;
const IDENTIFY: u8 = 0x06;
const FORMAT: u8 = 0x80;
const SANITIZE: u8 = 0x84;
/// Every namespace (3.2.1.2).
pub(super) const ALL: u32 = 0xffff_ffff;
/// Length of every Identify data structure (5.17).
const IDENTIFY_BYTES: u32 = 4096;
/// Sanitize Status, and its length (5.16.1.25).
const SANITIZE_LOG: u32 = 0x81;
const SANITIZE_LOG_BYTES: u32 = 512;
/// Questions are answered at once.
const ASK: Duration = Duration::from_secs(30);

/// An NVMe drive and the namespace that is to be purged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nvme {
    /// The controller's device node.
    pub controller: PathBuf,
    /// Folder of the controller in sysfs.
    pub(super) sysfs: PathBuf,
    /// The namespace's id, from sysfs.
    pub nsid: u32,
    /// What the controller says; absent where it does not answer.
    pub can: Option<Controller>,
    /// What the namespace says; absent where it does not answer.
    pub namespace: Option<Namespace>,
    /// Ids of all other namespaces of the drive, as far as the controller
    /// lists them.
    pub others: Vec<u32>,
    /// Times that the drive expects sanitizing to take.
    pub estimates: Estimates,
}

/// What Identify Controller says (figure 275).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Controller {
    /// Optional admin commands.
    pub oacs: u16,
    /// Format NVM attributes: bit 0 a format formats all namespaces, bit 1 a
    /// secure erase erases all, bit 2 there is cryptographic erase, bit 3 there
    /// is no format of all by FFFFFFFFh.
    pub fna: u8,
    /// Sanitize capabilities: bit 0 crypto, bit 1 block, bit 2 overwrite.
    pub sanicap: u32,
    /// Capacity in bytes that belongs to no namespace (UNVMCAP; 0 also where the controller
    /// does not tell).
    pub unallocated_bytes: u64,
}

/// What Identify Namespace says (NVM figure 97).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its LBA formats, those that are not in use included.
    pub formats: Vec<LbaFormat>,
    /// The one in force.
    pub lbaf: u8,
    /// Metadata in force: 1 at the end of each block.
    pub ms: u8,
    /// Protection information in force.
    pub pi: u8,
    /// Its place: 1 the first bytes.
    pub pil: u8,
    /// Metadata capabilities: bit 0 with the block, bit 1 in its own buffer.
    mc: u8,
    /// Protection capabilities: bits 0–2 types 1–3, bit 3 first, bit 4 last bytes.
    dpc: u8,
    /// Whether a deallocated block reads as zeros (DLFEAT bits 2:0 = 001b).
    pub zeros: bool,
}

/// A format of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LbaFormat {
    /// Bytes of data in a block; 0: this format cannot be used.
    pub data_bytes: u64,
    /// Bytes of metadata of a block.
    pub metadata_bytes: u16,
}

/// Times in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimates {
    overwrite_s: Option<u32>,
    block_s: Option<u32>,
    crypto_s: Option<u32>,
}

impl Estimates {
    /// The one of an action.
    pub(super) fn of(&self, action: SanitizeAction) -> Option<Duration> {
        let seconds = match action {
            SanitizeAction::Block => self.block_s,
            SanitizeAction::Crypto => self.crypto_s,
            SanitizeAction::Overwrite => self.overwrite_s,
        };
        seconds.map(|seconds| Duration::from_secs(seconds.into()))
    }
}

impl Nvme {
    /// With what the controller says of itself (CNS 01h); `None` when the device is none.
    fn asked(disk: &SysBlock, issue: &dyn Issue) -> Option<Self> {
        let nsid: u32 = disk.value("nsid")?;
        let sysfs = controller(disk)?;
        let name = sysfs.file_name()?.to_str()?;
        let mut this = Self {
            controller: Path::new("/dev").join(name),
            nsid,
            can: None,
            namespace: None,
            others: Vec::new(),
            estimates: Estimates::default(),
            sysfs,
        };
        this.can = this
            .identify(issue, 0, 1)
            .as_deref()
            .and_then(Controller::read);
        Some(this)
    }

    /// Asks the drive; `None` when the device is none.
    pub(super) fn find(sys: &Sys, disk: &SysBlock, issue: &dyn Issue) -> Option<Self> {
        let mut this = Self::asked(disk, issue)?;
        let nsid = this.nsid;
        // CNS 00h, 02h, 10h (figure 273).
        this.namespace = this
            .identify(issue, nsid, 0)
            .as_deref()
            .and_then(Namespace::read);
        let mut others = this
            .identify(issue, 0, 2)
            .map_or_else(Vec::new, |list| ids(&list));
        // Namespaces that exist and are not attached to this controller: told by
        // those that manage namespaces (OACS bit 3).
        if this.can.is_some_and(|can| can.oacs & 8 != 0) {
            others.extend(
                this.identify(issue, 0, 0x10)
                    .iter()
                    .flat_map(|list| ids(list)),
            );
        }
        others.extend(
            siblings(sys, disk)
                .iter()
                .filter_map(|other| other.value::<u32>("nsid")),
        );
        others.sort_unstable();
        others.dedup();
        others.retain(|&other| other != nsid);
        this.others = others;
        if this.can.is_some_and(|can| can.sanicap & 7 != 0) {
            let status = issue.issue(&this.controller, &sanitize_status());
            let status = status.ok().filter(crate::command::Reply::is_good);
            this.estimates = status.map_or_else(Estimates::default, |s| estimates(&s.data));
        }
        Some(this)
    }

    /// What the controller of a disk keeps back; `None`: it is no NVMe device.
    pub(super) fn unallocated(disk: &SysBlock, issue: &dyn Issue) -> Option<Vec<HiddenCapacity>> {
        Some(Self::asked(disk, issue)?.hidden())
    }

    pub(super) fn hidden(&self) -> Vec<HiddenCapacity> {
        let bytes = self.can.map_or(0, |can| can.unallocated_bytes);
        let hidden = (bytes > 0).then(|| HiddenCapacity {
            what: "capacity that belongs to no namespace (UNVMCAP)".to_owned(),
            bytes,
        });
        hidden.into_iter().collect()
    }

    fn identify(&self, issue: &dyn Issue, nsid: u32, cns: u32) -> Option<Vec<u8>> {
        let command = Command::Nvme {
            opcode: IDENTIFY,
            nsid,
            dwords: [cns, 0, 0, 0, 0, 0],
            data: CommandData::In(IDENTIFY_BYTES),
            timeout: ASK,
        };
        let reply = issue.issue(&self.controller, &command).ok()?;
        (reply.is_good() && reply.data.len() == IDENTIFY_BYTES as usize).then_some(reply.data)
    }

    /// Whether there is Format NVM (OACS bit 1).
    pub(super) fn formats(&self) -> bool {
        self.can.is_some_and(|can| can.oacs & 2 != 0)
    }

    /// Whether there is this action of Sanitize.
    pub(super) fn sanitizes(&self, action: SanitizeAction) -> bool {
        let bit = match action {
            SanitizeAction::Crypto => 1,
            SanitizeAction::Block => 2,
            SanitizeAction::Overwrite => 4,
        };
        self.can.is_some_and(|can| can.sanicap & bit != 0)
    }

    /// Whether a format with these settings touches every namespace.
    pub(super) fn format_is_wide(&self, format: &FormatNvm) -> bool {
        let fna = self.can.map_or(0, |can| can.fna);
        let erases = format.ses.unwrap_or(1) > 0;
        format.nsid == Some(ALL) || fna & 1 != 0 || (erases && fna & 2 != 0)
    }

    /// What of the settings this drive cannot do, each a sentence; with
    /// `capabilities` false only what no drive could be told.
    pub(super) fn faults(&self, format: &FormatNvm, capabilities: bool) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |wrong: bool, text: String| {
            if wrong {
                faults.push(text);
            }
        };
        let nsid = format.nsid.unwrap_or(self.nsid);
        let fna = self.can.map_or(0, |can| can.fna);
        fault(
            nsid != self.nsid && nsid != ALL,
            format!(
                "namespace {nsid} is not this device, which is namespace {} (its nsid in sysfs): \
                 its data would stay",
                self.nsid
            ),
        );
        let ses = format.ses.unwrap_or(1);
        fault(ses > 2, format!("there is no secure erase {ses}: 0, 1, 2"));
        for (name, value, most) in [
            ("LBA format", format.lbaf, 63),
            ("metadata setting", format.ms, 1),
            ("type of protection information", format.pi, 3),
            ("place of protection information", format.pil, 1),
        ] {
            let value = value.unwrap_or(0);
            fault(
                value > most,
                format!("there is no {name} {value}: 0 to {most}"),
            );
        }
        if !capabilities || !faults.is_empty() {
            return faults;
        }
        let mut fault = |wrong: bool, text: &str| {
            if wrong {
                faults.push(text.to_owned());
            }
        };
        fault(
            nsid == ALL && fna & 8 != 0,
            "the controller formats no namespace by FFFFFFFFh (FNA bit 3)",
        );
        fault(
            ses == 2 && fna & 4 == 0,
            "the controller has no cryptographic erase (FNA bit 2); take --ses 1",
        );
        if let Some(namespace) = &self.namespace {
            faults.extend(namespace.faults(format));
        }
        faults
    }

    /// The format as it will be done: what is not set stays as it is.
    pub(super) fn resolved(&self, format: &FormatNvm) -> FormatNvm {
        let now = self.namespace.as_ref();
        let lbaf = format.lbaf.or(now.map(|now| now.lbaf)).unwrap_or(0);
        let metadata = now.and_then(|now| now.formats.get(usize::from(lbaf)));
        let metadata = metadata.map_or(0, |format| format.metadata_bytes);
        let kept = |value: Option<u8>, least: u16| value.filter(|_| metadata >= least);
        FormatNvm {
            nsid: Some(format.nsid.unwrap_or(self.nsid)),
            lbaf: Some(lbaf),
            ms: format.ms.or(kept(now.map(|now| now.ms), 1)),
            // Protection information takes 8 bytes of the metadata (NVM 5.2).
            pi: format.pi.or(kept(now.map(|now| now.pi), 8)),
            pil: format.pil.or(kept(now.map(|now| now.pil), 8)),
            ses: Some(format.ses.unwrap_or(1)),
            timeout: Some(format.timeout.unwrap_or(FormatNvm::TIMEOUT)),
            reset: format.reset,
        }
    }

    /// Format NVM (figure 328 for dword 10), with the command that a person
    /// would type for the same, for a resolved format.
    pub(super) fn format(&self, format: &FormatNvm) -> (Command, String) {
        let field = |value: Option<u8>| u32::from(value.unwrap_or(0));
        let lbaf = field(format.lbaf);
        let dword10 = (lbaf & 0xf)
            | field(format.ms) << 4
            | field(format.pi) << 5
            | field(format.pil) << 8
            | field(format.ses) << 9
            | (lbaf >> 4) << 12;
        let nsid = format.nsid.unwrap_or(self.nsid);
        let timeout = format.timeout.unwrap_or(FormatNvm::TIMEOUT);
        let mut like = format!(
            "nvme format --namespace-id={nsid:#x} --ses={} --lbaf={lbaf} --ms={}",
            field(format.ses),
            field(format.ms),
        );
        if field(format.pi) > 0 {
            like.push_str(&format!(
                " --pi={} --pil={}",
                field(format.pi),
                field(format.pil)
            ));
        }
        like.push_str(&format!(" --timeout={}", timeout.as_millis()));
        like.push_str(&format!(" {}", self.controller.display()));
        let command = Command::Nvme {
            opcode: FORMAT,
            nsid,
            dwords: [dword10, 0, 0, 0, 0, 0],
            data: CommandData::None,
            timeout,
        };
        (command, like)
    }

    /// What makes the kernel look at the namespaces anew, or resets the
    /// controller (Documentation/ABI/stable/sysfs-… `drivers/nvme/host/sysfs.c`).
    pub(super) fn afterwards(&self, reset: bool) -> Command {
        let attribute = if reset {
            "reset_controller"
        } else {
            "rescan_controller"
        };
        Command::Attribute {
            path: self.sysfs.join(attribute),
            value: "1".to_owned(),
        }
    }

    /// Sanitize (figure 343 for dword 10): zeros, once, where it overwrites.
    pub(super) fn sanitize(&self, action: SanitizeAction) -> (Command, String) {
        let (number, name) = match action {
            SanitizeAction::Block => (2, "start-block-erase"),
            SanitizeAction::Overwrite => (3 | 1 << 4, "start-overwrite --owpass=1"),
            SanitizeAction::Crypto => (4, "start-crypto-erase"),
        };
        let command = Command::Nvme {
            opcode: SANITIZE,
            nsid: 0,
            dwords: [number, 0, 0, 0, 0, 0],
            data: CommandData::None,
            timeout: ASK,
        };
        (command, format!("nvme sanitize --sanact={name}"))
    }
}

/// Reads the log page of the sanitize in progress.
pub(super) fn sanitize_status() -> Command {
    let dwords = SANITIZE_LOG_BYTES / 4 - 1;
    Command::Nvme {
        opcode: LOG,
        nsid: ALL,
        dwords: [SANITIZE_LOG | dwords << 16, 0, 0, 0, 0, 0],
        data: CommandData::In(SANITIZE_LOG_BYTES),
        timeout: ASK,
    }
}

/// How far a sanitize is (figure 269: SPROG in 65536ths, SSTAT bits 2:0).
pub(super) fn sanitize_progress(log: &[u8]) -> super::follow::PurgeState {
    use super::follow::PurgeState;
    let (Some(done), Some(status)) = (word(log, 0), word(log, 2)) else {
        return PurgeState::Unknown("the log page is too short".to_owned());
    };
    match status & 7 {
        2 => PurgeState::Going(f64::from(done) / 65536.0),
        1 | 4 => PurgeState::Done,
        3 => PurgeState::Failed("the drive says that the sanitize failed (SSTAT 3)".to_owned()),
        0 => PurgeState::Failed("the drive says that it never was sanitized (SSTAT 0)".to_owned()),
        other => PurgeState::Unknown(format!("SSTAT {other}")),
    }
}

/// FFFFFFFFh: no time is told (figure 269, bytes 8 to 19).
fn estimates(log: &[u8]) -> Estimates {
    let at = |from: usize| dword(log, from).filter(|&seconds| seconds != u32::MAX && seconds > 0);
    Estimates {
        overwrite_s: at(8),
        block_s: at(12),
        crypto_s: at(16),
    }
}

impl Controller {
    fn read(data: &[u8]) -> Option<Self> {
        Some(Self {
            oacs: word(data, 256)?,
            fna: *data.get(524)?,
            sanicap: dword(data, 328)?,
            unallocated_bytes: u64::from_le_bytes(data.get(296..304)?.try_into().ok()?),
        })
    }
}

impl Namespace {
    fn read(data: &[u8]) -> Option<Self> {
        let byte = |at: usize| data.get(at).copied();
        let (flbas, dps) = (byte(26)?, byte(29)?);
        // NLBAF counts from 0.
        let formats = (0..=usize::from(byte(25)?)).map_while(|index| {
            let at = 128 + 4 * index;
            let shift = u32::from(byte(at + 2)?);
            Some(LbaFormat {
                data_bytes: if shift == 0 {
                    0
                } else {
                    1u64.checked_shl(shift)?
                },
                metadata_bytes: word(data, at)?,
            })
        });
        Some(Self {
            formats: formats.collect(),
            lbaf: (flbas & 0xf) | (flbas >> 5 & 3) << 4,
            ms: flbas >> 4 & 1,
            pi: dps & 7,
            pil: dps >> 3 & 1,
            mc: byte(27)?,
            dpc: byte(28)?,
            zeros: byte(33)? & 7 == 1,
        })
    }

    fn faults(&self, format: &FormatNvm) -> Vec<String> {
        let mut faults = Vec::new();
        let lbaf = format.lbaf.unwrap_or(self.lbaf);
        let last = self.formats.len().saturating_sub(1);
        let Some(blocks) = self.formats.get(usize::from(lbaf)) else {
            return vec![format!(
                "the namespace has no LBA format {lbaf}: 0 to {last}"
            )];
        };
        if blocks.data_bytes == 0 {
            return vec![format!(
                "LBA format {lbaf} of the namespace is not available"
            )];
        }
        let mut fault = |wrong: bool, text: String| {
            if wrong {
                faults.push(text);
            }
        };
        let metadata = blocks.metadata_bytes;
        if let Some(ms) = format.ms.filter(|_| metadata > 0) {
            let bit = if ms == 1 { 1 } else { 2 };
            fault(
                self.mc & bit == 0,
                format!("metadata setting {ms} is not supported"),
            );
        }
        let pi = format.pi.unwrap_or(0);
        fault(
            pi > 0 && self.dpc & (1 << (pi.max(1) - 1)) == 0,
            format!("protection information of type {pi} is not supported"),
        );
        fault(
            pi > 0 && metadata < 8,
            format!(
                "protection information needs 8 bytes of metadata, LBA format {lbaf} has {metadata}"
            ),
        );
        if let Some(pil) = format.pil.filter(|_| pi > 0) {
            let (bit, place) = if pil == 1 { (8, "first") } else { (16, "last") };
            fault(
                self.dpc & bit == 0,
                format!("protection information in the {place} bytes is not supported"),
            );
        }
        faults
    }
}

/// The other namespaces of a drive that are block devices here.
pub(super) fn siblings(sys: &Sys, disk: &SysBlock) -> Vec<SysBlock> {
    let drive = |node: &SysBlock| std::fs::canonicalize(node.dir.join("device")).ok();
    let own = drive(disk);
    let same = |other: &SysBlock| {
        other.name != disk.name
            && other.value::<u8>("hidden") != Some(1)
            && other.value::<u32>("nsid").is_some()
            && drive(other).is_some_and(|drive| Some(drive) == own)
    };
    sys.disks().into_iter().filter(same).collect()
}

/// The controller's folder: the device of the disk, or, where several paths may lead to it,
/// one of its subsystem to which the namespace is attached: there is a hidden node of that
/// path, `nvme0c1n2` for `nvme0n2` by the controller 1 (drivers/nvme/host/multipath.c). One
/// that is live comes first.
fn controller(disk: &SysBlock) -> Option<PathBuf> {
    let device = std::fs::canonicalize(disk.dir.join("device")).ok()?;
    let is_controller = |dir: &PathBuf| dir.join("rescan_controller").exists();
    if is_controller(&device) {
        return Some(device);
    }
    let paths = names_in(&device).into_iter().map(|name| device.join(name));
    let all: Vec<PathBuf> = paths
        .filter_map(|path| std::fs::canonicalize(path).ok())
        .filter(is_controller)
        .collect();
    let leads = |dir: &&PathBuf| {
        names_in(dir)
            .iter()
            .any(|name| is_path_to(name, &disk.name))
    };
    let is_live = |dir: &&PathBuf| {
        let state = std::fs::read_to_string(dir.join("state"));
        state.is_ok_and(|state| state.trim() == "live")
    };
    let mut attached = all.iter().filter(leads);
    let live = attached.clone().find(is_live);
    live.or_else(|| attached.next()).or(all.first()).cloned()
}

/// Whether `nvme0c1n2` is a path to `nvme0n2`.
fn is_path_to(path: &str, disk: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let split = || -> Option<bool> {
        let (subsystem, namespace) = disk.rsplit_once('n')?;
        let between = path.strip_prefix(subsystem)?.strip_prefix('c')?;
        let (controller, of) = between.split_once('n')?;
        Some(number(controller) && of == namespace)
    };
    split().unwrap_or(false)
}

/// A list of namespace ids, which ends with a 0 or with its room.
fn ids(list: &[u8]) -> Vec<u32> {
    let numbers = list.chunks_exact(4).filter_map(|four| dword(four, 0));
    numbers.take_while(|&id| id != 0).collect()
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    let bytes = data.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_le_bytes(bytes))
}

fn dword(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_go_to_a_controller_that_the_namespace_is_attached_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let subsystem = at("nvme-subsys0");
        for (number, state) in [(0, "live"), (1, "resetting"), (2, "live")] {
            let controller = at(&format!("nvme{number}"));
            std::fs::create_dir_all(&controller).unwrap();
            std::fs::write(controller.join("rescan_controller"), "").unwrap();
            std::fs::write(controller.join("state"), state).unwrap();
            std::fs::create_dir_all(&subsystem).unwrap();
            let link = subsystem.join(format!("nvme{number}"));
            std::os::unix::fs::symlink(&controller, link).unwrap();
        }
        for path in [
            "nvme0/nvme0c0n1",
            "nvme1/nvme0c1n2",
            "nvme2/nvme0c2n3",
            "nvme1/nvme0c1n3",
        ] {
            std::fs::create_dir(at(path)).unwrap();
        }
        let of = |name: &str| {
            let block = at("block").join(name);
            std::fs::create_dir_all(&block).unwrap();
            std::os::unix::fs::symlink(&subsystem, block.join("device")).unwrap();
            let disk = SysBlock {
                name: name.to_owned(),
                dir: block,
            };
            let found = controller(&disk).unwrap();
            found.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(of("nvme0n1"), "nvme0");
        assert_eq!(of("nvme0n2"), "nvme1", "the only one");
        assert_eq!(of("nvme0n3"), "nvme2", "the one that is live");
        assert_eq!(of("nvme0n4"), "nvme0", "a kernel without such nodes");
        for (path, disk) in [
            ("nvme1c0n2", "nvme0n2"),
            ("nvme0c0n21", "nvme0n2"),
            ("nvme0cn2", "nvme0n2"),
            ("nvme0n2", "nvme0n2"),
            ("nvme0c0n2", "sda"),
        ] {
            assert!(!is_path_to(path, disk), "{path} {disk}");
        }
    }
}
