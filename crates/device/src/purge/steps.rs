//! The steps of a purge: what is issued, in order, and what a person would type
//! for the same.

use std::path::PathBuf;
use std::time::Duration;

use fathom_model::units;

use super::ata::{Ata, PASSWORD};
use super::capabilities::Capabilities;
use super::follow::Follow;
use super::method::{Fill, Format, Method};
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
pub struct Step {
    /// What it does, for a person.
    pub what: String,
    /// What a person would type for the same.
    pub like: String,
    /// Whether it is the one that takes the data away.
    pub(super) is_main: bool,
    pub(super) act: Act,
}

/// What a step does.
#[derive(Debug, Clone)]
pub(super) enum Act {
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
    Write(Fill),
    /// Looks for the samples.
    Look,
}

/// What is done when a step from `from` on fails.
#[derive(Debug, Clone)]
pub(super) struct Undo {
    pub(super) from: usize,
    pub(super) step: Step,
}

impl Step {
    /// The command as it is issued, with its bytes; `None` where Fathom reads or
    /// writes blocks.
    #[must_use]
    pub fn issued(&self) -> Option<String> {
        match &self.act {
            Act::Give { command, .. } => Some(command.to_string()),
            Act::Follow { follow, .. } => Some(follow.command().to_string()),
            Act::Mark | Act::Write(_) | Act::Look => None,
        }
    }
}

/// All steps of a purge, and what is done when it fails on its way.
pub(super) fn of(
    can: &Capabilities,
    method: Method,
    format: &Format,
    samples: &Samples,
) -> (Vec<Step>, Option<Undo>) {
    let path = can.path.display();
    let text = format!(
        "{} samples of {} are written all over the device and read back",
        samples.count(),
        units::bytes(samples.sample_bytes().into()),
    );
    let mut steps = vec![blocks(
        text,
        format!(
            "# Fathom writes {} of samples to {path}",
            units::bytes(samples.total_bytes() as f64)
        ),
        Act::Mark,
    )];
    let mut undo = None;
    match method {
        Method::NvmeFormat => steps.extend(nvme_format(can, format)),
        Method::NvmeSanitize(action) => {
            if let Some(nvme) = &can.nvme {
                let (command, like) = nvme.sanitize(action);
                steps.push(main(method, like, nvme.controller.clone(), command));
                steps.push(follow(
                    Follow::Nvme,
                    nvme.controller.clone(),
                    nvme.estimates.of(action),
                ));
            }
        }
        Method::AtaSecurityErase { enhanced } => {
            undo = can
                .ata
                .as_ref()
                .map(|ata| security_erase(can, ata, enhanced, &mut steps));
        }
        Method::AtaSanitize(action) => {
            let name = match action {
                super::Action::Block => "block-erase",
                super::Action::Crypto => "crypto-scramble",
                super::Action::Overwrite => "overwrite hex:00000000",
            };
            let disk = disk(can);
            let like = format!(
                "hdparm --yes-i-know-what-i-am-doing --sanitize-{name} {}",
                disk.display()
            );
            steps.push(main(method, like, disk.clone(), Ata::sanitize(action)));
            steps.push(follow(Follow::Ata, disk, None));
        }
        Method::ScsiSanitize(action) => {
            let (command, like) = Scsi::sanitize(action);
            let disk = disk(can);
            steps.push(main(
                method,
                format!("{like} {}", disk.display()),
                disk.clone(),
                command,
            ));
            steps.push(follow(Follow::Scsi, disk, None));
        }
        Method::ScsiFormat => {
            let (command, like) = can.scsi.clone().unwrap_or_default().format();
            let disk = disk(can);
            steps.push(main(
                method,
                format!("{like} {}", disk.display()),
                disk.clone(),
                command,
            ));
            steps.push(follow(Follow::Scsi, disk, None));
        }
        Method::Discard { secure } => {
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
        Method::Overwrite(fill) => {
            let source = if fill == Fill::Zeros {
                "/dev/zero"
            } else {
                "/dev/urandom"
            };
            let like = format!("dd if={source} of={path} bs={WRITE_STEP} oflag=direct conv=fsync");
            let mut step = blocks(method.about().to_owned(), like, Act::Write(fill));
            step.is_main = true;
            steps.push(step);
        }
    }
    let text = "every sample is read past the page cache and looked for".to_owned();
    let like = format!("# Fathom reads {} samples of {path}", samples.count());
    steps.push(blocks(text, like, Act::Look));
    (steps, undo)
}

fn blocks(what: String, like: String, act: Act) -> Step {
    Step {
        what,
        like,
        is_main: false,
        act,
    }
}

fn main(method: Method, like: String, device: PathBuf, command: Command) -> Step {
    Step {
        what: method.about().to_owned(),
        like,
        is_main: true,
        act: Act::Give { device, command },
    }
}

fn follow(follow: Follow, device: PathBuf, expected: Option<Duration>) -> Step {
    Step {
        what: "the drive is asked until it is done".to_owned(),
        like: format!("{} {}", follow.like(), device.display()),
        is_main: false,
        act: Act::Follow {
            device,
            follow,
            expected,
        },
    }
}

/// The whole disk's node: commands to a drive go there.
fn disk(can: &Capabilities) -> PathBuf {
    PathBuf::from("/dev").join(&can.device.name)
}

fn nvme_format(can: &Capabilities, format: &Format) -> Vec<Step> {
    let Some(nvme) = &can.nvme else {
        return Vec::new();
    };
    let resolved = nvme.resolved(format);
    let (command, like) = nvme.format(&resolved);
    let mut steps = vec![main(
        Method::NvmeFormat,
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
            false => "the kernel looks at the namespaces anew",
        };
        let command = nvme.afterwards(format.reset);
        steps.push(Step {
            what: what.to_owned(),
            like: command.to_string(),
            is_main: false,
            act: Act::Give {
                device: nvme.controller.clone(),
                command,
            },
        });
    }
    steps
}

/// The steps, and that the password is taken away again when it is not done.
fn security_erase(can: &Capabilities, ata: &Ata, enhanced: bool, steps: &mut Vec<Step>) -> Undo {
    let disk = disk(can);
    let path = disk.display();
    let option = if enhanced {
        "security-erase-enhanced"
    } else {
        "security-erase"
    };
    let give = |what: &str, like: String, command: Command| Step {
        what: what.to_owned(),
        like,
        is_main: false,
        act: Act::Give {
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
        "the drive is told that an erase follows",
        format!("# part of hdparm --{option} {path}"),
        Ata::prepare(),
    ));
    let method = Method::AtaSecurityErase { enhanced };
    let like = format!("hdparm --user-master u --{option} {PASSWORD} {path}");
    steps.push(main(method, like, disk.clone(), ata.erase(enhanced)));
    Undo {
        from,
        step: give(
            "the password is taken away again",
            format!("hdparm --user-master u --security-disable {PASSWORD} {path}"),
            Ata::disable_password(),
        ),
    }
}
