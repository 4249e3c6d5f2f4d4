//! A file system that is made for a comparison: once, and mounted anew before each
//! measurement with the options of its side.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_device::Claim;
use fathom_device::safety::{Confirmations, Refusal, WriteJudge};
use fathom_jobfile::shell_quote;
use fathom_model::StageEnd;
use serde::{Deserialize, Serialize};

use fathom_flow::{Act, ActionContext, ActionResult, ShellCommand, undo};

/// How often, and how long after one another, it is looked whether a device that was
/// unmounted is free.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Which file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileSystemKind {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
}

impl FileSystemKind {
    /// All of them, with the place of the UUID on the device: of ext4 in the superblock
    /// at 1 KiB (fs/ext4/ext4.h, `s_uuid`), of XFS in that at 0 (fs/xfs/libxfs/xfs_format.h,
    /// `sb_uuid`), of Btrfs in that at 64 KiB (fs/btrfs/fs.h, `fsid`).
    const ALL: [(Self, &'static str, u64); 3] = [
        (Self::Ext4, "ext4", 1024 + 0x68),
        (Self::Xfs, "xfs", 0x20),
        (Self::Btrfs, "btrfs", (64 << 10) + 0x20),
    ];

    /// As mount takes it.
    pub fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|known| known.0 == self)
            .map_or("", |known| known.1)
    }

    fn uuid_at(self) -> u64 {
        let mut all = Self::ALL.iter();
        all.find(|known| known.0 == self).map_or(0, |known| known.2)
    }

    /// How it is made, but for the device. Nothing of it is left to be done while others
    /// measure.
    fn mkfs(self, uuid: &str) -> Vec<String> {
        let words = match self {
            Self::Ext4 => "mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 -U ",
            Self::Xfs => "mkfs.xfs -q -f -m uuid=",
            Self::Btrfs => "mkfs.btrfs -q -f -U ",
        };
        let line = format!("{words}{uuid}");
        line.split(' ').map(str::to_owned).collect()
    }
}

impl std::str::FromStr for FileSystemKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|known| known.1 == text);
        let names: Vec<&str> = Self::ALL.iter().map(|known| known.1).collect();
        known
            .map(|known| known.0)
            .ok_or_else(|| format!("'{text}' is none of {}", names.join(", ")))
    }
}

/// The file system of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbFileSystem {
    /// Which.
    pub kind: FileSystemKind,
    /// The device that holds it, and nothing else.
    pub device: PathBuf,
    /// By which it is known.
    pub uuid: String,
    /// Where it is mounted.
    pub at: PathBuf,
    /// Words that confirm the device: they are given anew at each start.
    #[serde(skip)]
    pub destroy: Vec<String>,
}

impl AbFileSystem {
    /// One for this device; it is not made yet.
    ///
    /// # Errors
    /// What stands against writing to the device, or that there is no place for it.
    pub fn new(
        kind: FileSystemKind,
        device: &Path,
        destroy: &[String],
    ) -> Result<Result<Self, Refusal>, String> {
        let confirmed = Confirmations(destroy.to_vec());
        if let Err(refusal) = WriteJudge::new(&confirmed).write(device) {
            return Ok(Err(refusal));
        }
        let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid");
        let uuid = uuid.map_err(|error| format!("no random UUID is to be had: {error}"))?;
        let folder = undo::folder().ok_or("HOME is not set: there is no place to mount it")?;
        let name = device.file_name().unwrap_or_default();
        Ok(Ok(Self {
            kind,
            device: device.to_owned(),
            uuid: uuid.trim().to_owned(),
            at: folder.with_file_name("mounts").join(name),
            destroy: destroy.to_vec(),
        }))
    }

    /// What unmounts it, where it is mounted: a moment is left for who looks at it.
    fn umount(&self) -> String {
        let at = quoted(&self.at);
        format!(
            "n=0; while mountpoint -q {at}; do umount {at} && break; n=$((n+1)); [ $n -lt 10 ] || exit 1; sleep 0.3; done"
        )
    }

    /// What takes it away at the end of a run; what is on the device stays there.
    pub fn unmount(&self) -> String {
        let at = quoted(&self.at);
        format!("{}; [ ! -d {at} ] || rmdir {at}", self.umount())
    }

    /// A command for the shell.
    pub(super) fn shell(&self, name: &str, command: String, undo: Option<String>) -> ShellCommand {
        ShellCommand {
            name: name.to_owned(),
            command,
            undo,
            timeout: None,
            folder: PathBuf::from("/"),
        }
    }

    fn mkfs(&self) -> String {
        let mut words = self.kind.mkfs(&self.uuid);
        words.push(quoted(&self.device));
        words.join(" ")
    }

    fn mount(&self, options: &str) -> String {
        let (device, at) = (quoted(&self.device), quoted(&self.at));
        let options = shell_quote(options);
        format!("mount -t {} -o {options} {device} {at}", self.kind.name())
    }

    /// Whether it is what is on the device.
    fn is_there(&self) -> bool {
        let digits: String = self.uuid.chars().filter(|c| *c != '-').collect();
        let mut found = [0; 16];
        let read = File::open(&self.device)
            .and_then(|file| file.read_exact_at(&mut found, self.kind.uuid_at()));
        read.is_ok() && u128::from_str_radix(&digits, 16) == Ok(u128::from_be_bytes(found))
    }

    /// Whether the device may be written to: where the file system is on it, that is what
    /// has been written there.
    fn judged(&self, doing: &ActionContext<'_>, has_to_be_there: bool) -> Result<(), String> {
        let judge = WriteJudge::new(&Confirmations(self.destroy.clone()));
        let is_there = self.is_there();
        let look = || match is_there {
            true => judge.write_again(&self.device, &Claim::default()),
            false => judge.write(&self.device),
        };
        let mut judged = look();
        for _ in 0..LOOKS {
            // The kernel lets go of what was mounted a moment later.
            if !(is_there && matches!(judged, Err(Refusal::InUse(_)))) {
                break;
            }
            std::thread::sleep(PAUSE);
            judged = look();
        }
        let judged = judged.map_err(|refusal| refusal.to_string());
        let judged = judged.and(match is_there || !has_to_be_there {
            true => Ok(()),
            false => Err(format!(
                "what was made on {} is there no more",
                self.device.display()
            )),
        });
        judged.inspect_err(|_| doing.control.refuse())
    }
}

/// Makes it.
#[derive(Debug)]
pub(super) struct MakeFileSystem(pub AbFileSystem);

impl Act for MakeFileSystem {
    fn commands(&self) -> Vec<String> {
        vec![self.0.mkfs()]
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        if !doing.selected.is_simulated()
            && let Err(reason) = self.0.judged(doing, false)
        {
            return failed(reason);
        }
        let shell = self.0.shell("mkfs", self.0.mkfs(), None);
        shell.run(doing)
    }
}

/// Mounts it with these options, where it is mounted already anew.
#[derive(Debug)]
pub(super) struct MountFileSystem {
    pub file_system: AbFileSystem,
    pub options: String,
}

impl Act for MountFileSystem {
    fn commands(&self) -> Vec<String> {
        let it = &self.file_system;
        vec![it.umount(), it.mount(&self.options)]
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        let it = &self.file_system;
        let umount = it.shell("umount", it.umount(), None).run(doing);
        if !is_done(&umount) {
            return umount;
        }
        if let Err(reason) = it.judged(doing, true) {
            return failed(reason);
        }
        if let Err(error) = fs::create_dir_all(&it.at) {
            return failed(format!("{}: {error}", it.at.display()));
        }
        it.shell("mount", it.mount(&self.options), None).run(doing)
    }
}

fn is_done(result: &ActionResult) -> bool {
    matches!(
        result,
        ActionResult::Ended {
            end: StageEnd::Done,
            ..
        }
    )
}

fn failed(reason: String) -> ActionResult {
    let end = StageEnd::Failed { reason };
    ActionResult::Ended { end, deed: None }
}

fn quoted(path: &Path) -> String {
    shell_quote(&path.to_string_lossy())
}
