//! The steps of a purge: what is issued, in order, and what a person would type
//! for the same.

use std::path::PathBuf;
use std::time::Duration;

use fathom_model::units;

use super::ata::{Ata, PASSWORD};
use super::capabilities::Capabilities;
use super::follow::Follow;
use super::method::{FormatNvm, OverwriteFill, PurgeMethod, SanitizeAction};
use super::scsi::Scsi;
use super::verify::Samples;
use crate::command::Command;

/// Longest discard in one request: one ioctl cannot be stopped, and some drives
/// take minutes for all of them.
pub(super) const DISCARD_STEP: u64 = 1 << 30;
/// Size of one write of an overwrite.
pub(super) const WRITE_STEP: usize = 1 << 20;

/// One step.
#[derive(Debug, Clone)]
pub struct PurgeStep {
    /// What it does, for a person.
    pub what: String,
    /// What a person would type for the same.
    pub like: String,
    /// Whether it is the one that takes the data away.
    pub(super) is_main: bool,
    pub(super) act: StepAction,
}

/// What a step does.
#[derive(Debug, Clone)]
pub(super) enum StepAction {
    /// Writes the samples.
    Mark,
    /// Gives the device a command.
    Give { device: PathBuf, command: Command },
    /// Waits until the device has done it.
    Follow {
        device: PathBuf,
        follow: Follow,
        expected: Option<Duration>,
    },
    /// Writes every block.
    Write(OverwriteFill),
    /// Looks for the samples.
    Look,
}

/// What is done when a step from `from` on fails.
#[derive(Debug, Clone)]
pub(super) struct PurgeUndo {
    pub(super) from: usize,
    pub(super) step: PurgeStep,
}

impl PurgeStep {
    /// The command as it is issued, with its bytes; `None` where Fathom reads or
    /// writes blocks.
    pub fn issued(&self) -> Option<String> {
        match &self.act {
            StepAction::Give { command, .. } => Some(command.to_string()),
            StepAction::Follow { follow, .. } => Some(follow.command().to_string()),
            StepAction::Mark | StepAction::Write(_) | StepAction::Look => None,
        }
    }
}

/// All steps of a purge, and what is done when it fails on its way.
pub(super) fn of(
    can: &Capabilities,
    method: PurgeMethod,
    format: &FormatNvm,
    samples: &Samples,
) -> (Vec<PurgeStep>, Option<PurgeUndo>) {
    let path = can.path.display();
    let (count, size) = (samples.count(), units::bytes(samples.sample_bytes().into()));
    let mut steps = vec![blocks(
        format!("{count} samples of {size} are written all over the device and read back"),
        format!("# Fathom writes {count} samples to {path}"),
        StepAction::Mark,
    )];
    let mut undo = None;
    match method {
        PurgeMethod::NvmeFormat => steps.extend(nvme_format(can, format)),
        PurgeMethod::NvmeSanitize(_)
        | PurgeMethod::AtaSanitize(_)
        | PurgeMethod::ScsiSanitize(_)
        | PurgeMethod::ScsiFormat => {
            steps.extend(followed(can, method));
        }
        PurgeMethod::AtaSecurityErase { enhanced } => {
            undo = can
                .ata
                .as_ref()
                .map(|ata| security_erase(can, ata, enhanced, &mut steps));
        }
        PurgeMethod::Discard { secure } => {
            let flag = if secure { " --secure" } else { "" };
            let like = format!("blkdiscard{flag} --step {DISCARD_STEP} {path}");
            let bytes = can.size_bytes;
            let command = Command::Discard {
                offset: 0,
                bytes,
                secure,
            };
            steps.push(main(method, like, can.path.clone(), command));
        }
        PurgeMethod::Overwrite(fill) => {
            let source = if fill == OverwriteFill::Zeros {
                "/dev/zero"
            } else {
                "/dev/urandom"
            };
            let like = format!("dd if={source} of={path} bs={WRITE_STEP} oflag=direct conv=fsync");
            let mut step = blocks(method.about().to_owned(), like, StepAction::Write(fill));
            step.is_main = true;
            steps.push(step);
        }
    }
    steps.push(blocks(
        "every sample is read past the page cache and looked for".to_owned(),
        format!("# Fathom reads {count} samples of {path}"),
        StepAction::Look,
    ));
    (steps, undo)
}

/// A command that is answered at once, and what the drive is asked until it has
/// done it.
fn followed(can: &Capabilities, method: PurgeMethod) -> Vec<PurgeStep> {
    let mut device = disk(can);
    let mut expected = None;
    let (command, like, kind) = match (method, &can.nvme) {
        (PurgeMethod::NvmeSanitize(action), Some(nvme)) => {
            device.clone_from(&nvme.controller);
            expected = nvme.estimates.of(action);
            let (command, like) = nvme.sanitize(action);
            (command, like, Follow::Nvme)
        }
        (PurgeMethod::AtaSanitize(action), _) => {
            let name = match action {
                SanitizeAction::Block => "block-erase",
                SanitizeAction::Crypto => "crypto-scramble",
                SanitizeAction::Overwrite => "overwrite hex:00000000",
            };
            let like = format!("hdparm --yes-i-know-what-i-am-doing --sanitize-{name}");
            (Ata::sanitize(action), like, Follow::Ata)
        }
        (PurgeMethod::ScsiSanitize(action), _) => {
            let (command, like) = Scsi::sanitize(action);
            (command, like.to_owned(), Follow::Scsi)
        }
        (PurgeMethod::ScsiFormat, _) => {
            let (command, like) = can.scsi.clone().unwrap_or_default().format();
            (command, like, Follow::Scsi)
        }
        // Not offered where there is no NVMe drive; the others have no second part.
        _ => return Vec::new(),
    };
    let like = format!("{like} {}", device.display());
    vec![
        main(method, like, device.clone(), command),
        PurgeStep {
            what: "the drive is asked until it is done".to_owned(),
            like: format!("{} {}", kind.like(), device.display()),
            is_main: false,
            act: StepAction::Follow {
                device,
                follow: kind,
                expected,
            },
        },
    ]
}

fn blocks(what: String, like: String, act: StepAction) -> PurgeStep {
    PurgeStep {
        what,
        like,
        is_main: false,
        act,
    }
}

fn main(method: PurgeMethod, like: String, device: PathBuf, command: Command) -> PurgeStep {
    PurgeStep {
        what: method.about().to_owned(),
        like,
        is_main: true,
        act: StepAction::Give { device, command },
    }
}

/// The whole disk's node: commands to a drive go there.
fn disk(can: &Capabilities) -> PathBuf {
    PathBuf::from("/dev").join(&can.device.name)
}

fn nvme_format(can: &Capabilities, format: &FormatNvm) -> Vec<PurgeStep> {
    let Some(nvme) = &can.nvme else {
        return Vec::new();
    };
    let resolved = nvme.resolved(format);
    let (command, like) = nvme.format(&resolved);
    let mut steps = vec![main(
        PurgeMethod::NvmeFormat,
        like,
        nvme.controller.clone(),
        command,
    )];
    let other_blocks = nvme
        .namespace
        .as_ref()
        .is_some_and(|now| Some(now.lbaf) != resolved.lbaf);
    if format.reset || other_blocks {
        let what = match format.reset {
            true => "the controller is reset",
            false => "the kernel scans the namespaces again",
        };
        let command = nvme.afterwards(format.reset);
        steps.push(PurgeStep {
            what: what.to_owned(),
            like: command.to_string(),
            is_main: false,
            act: StepAction::Give {
                device: nvme.controller.clone(),
                command,
            },
        });
    }
    steps
}

/// The steps, and that the password is taken away again when it is not done.
fn security_erase(
    can: &Capabilities,
    ata: &Ata,
    enhanced: bool,
    steps: &mut Vec<PurgeStep>,
) -> PurgeUndo {
    let disk = disk(can);
    let path = disk.display();
    let option = if enhanced {
        "security-erase-enhanced"
    } else {
        "security-erase"
    };
    let give = |what: &str, like: String, command: Command| PurgeStep {
        what: what.to_owned(),
        like,
        is_main: false,
        act: StepAction::Give {
            device: disk.clone(),
            command,
        },
    };
    steps.push(give(
        "the drive gets a password, without which it erases nothing",
        format!("hdparm --user-master u --security-set-pass {PASSWORD} {path}"),
        Ata::set_password(),
    ));
    let from = steps.len();
    steps.push(give(
        "tell the drive that an erase follows",
        format!("# part of hdparm --{option} {path}"),
        Ata::prepare(),
    ));
    let method = PurgeMethod::AtaSecurityErase { enhanced };
    let like = format!("hdparm --user-master u --{option} {PASSWORD} {path}");
    steps.push(main(method, like, disk.clone(), ata.erase(enhanced)));
    PurgeUndo {
        from,
        step: give(
            "the password is taken away again",
            format!("hdparm --user-master u --security-disable {PASSWORD} {path}"),
            Ata::disable_password(),
        ),
    }
}
