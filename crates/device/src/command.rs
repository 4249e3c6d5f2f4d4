//! Commands to a device itself, past the block layer: as values that can be
//! shown before they are issued, issued, and played back where no such device is.
//!
//! Everything that changes a device by other means than writing blocks goes
//! through [`Issue`]: [`KernelDevices`] gives it to the kernel, [`Played`] answers with
//! replies that were recorded and keeps what it was asked.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

mod ioctl;
mod namespace;

#[cfg(target_os = "linux")]
pub use ioctl::{nvme_namespace, scsi_transfer};
pub use namespace::NvmeNamespace;

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// An NVMe admin command (NVMe Base Specification 2.0, chapter 5), by the
    /// ioctl `NVME_IOCTL_ADMIN_CMD` (linux/nvme_ioctl.h).
    Nvme {
        /// Opcode (figure 138 there).
        opcode: u8,
        /// Namespace id; 0 where none is meant.
        nsid: u32,
        /// Command dwords 10 to 15.
        dwords: [u32; 6],
        /// What goes along.
        data: CommandData,
        /// How long it may take; zero is the kernel's own limit.
        timeout: Duration,
    },
    /// A SCSI command by the ioctl `SG_IO` (scsi/sg.h).
    Scsi {
        /// The command descriptor block, 6 to 32 bytes.
        cdb: Vec<u8>,
        /// What goes along.
        data: CommandData,
        /// How long it may take.
        timeout: Duration,
    },
    /// Bytes the device need not keep, by the ioctl `BLKDISCARD` (linux/fs.h).
    Discard {
        /// Where they begin.
        offset: u64,
        /// How many.
        bytes: u64,
        /// That they cannot be had back either: `BLKSECDISCARD`.
        secure: bool,
    },
    /// A value for an attribute in sysfs or procfs.
    Attribute {
        /// The attribute, from the root on.
        path: PathBuf,
        /// What is written to it.
        value: String,
    },
    /// A program of the machine, its arguments after it.
    Program {
        /// The command line.
        argv: Vec<String>,
    },
}

/// What goes along with a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CommandData {
    /// Nothing.
    #[default]
    None,
    /// So many bytes come from the device.
    In(u32),
    /// These go to it.
    Out(Vec<u8>),
}

/// What a device answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// 0: it was done. NVMe: status code type and status code (Base
    /// Specification 2.0, 3.3.3.2.1). SCSI: the status byte (SAM-5 5.3.1). A
    /// program: its exit code.
    pub status: u32,
    /// The bytes that came, no more than were asked for; a program's stdout.
    pub data: Vec<u8>,
    /// SCSI sense data (SPC-5 4.4); a program's stderr.
    pub sense: Vec<u8>,
    /// NVMe: dword 0 of the completion.
    pub result: u32,
}

impl Reply {
    /// Whether the device says that it did it.
    pub fn is_good(&self) -> bool {
        self.status == 0
    }
}

/// Gives commands to devices.
pub trait Issue: Send + Sync {
    /// Gives one command to the device at `path` and waits for its answer. That
    /// a device refuses is a [`Reply`].
    ///
    /// # Errors
    /// When it could not be given to it, or no answer came.
    fn issue(&self, path: &Path, command: &Command) -> io::Result<Reply>;
}

/// The devices of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct KernelDevices;

impl Issue for KernelDevices {
    fn issue(&self, path: &Path, command: &Command) -> io::Result<Reply> {
        match command {
            Command::Attribute { path, value } => fs::write(path, value).map(|()| Reply::default()),
            Command::Program { argv } => run(argv),
            _ => ioctl::issue(path, command),
        }
    }
}

fn run(argv: &[String]) -> io::Result<Reply> {
    let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let output = std::process::Command::new(program)
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .output()?;
    // A program that a signal ended did not do it.
    let status = output.status.code().unwrap_or(-1).unsigned_abs();
    Ok(Reply {
        status,
        data: output.stdout,
        sense: output.stderr,
        result: 0,
    })
}

/// Replies in the order in which they are to be given, and what was asked for
/// them.
#[derive(Debug, Default)]
pub struct Played(Mutex<Tape>);

#[derive(Debug, Default)]
struct Tape {
    replies: std::collections::VecDeque<Reply>,
    issued: Vec<(PathBuf, Command)>,
}

impl Played {
    /// Gives these replies; once there are no more, every command fails with
    /// `ENOTTY`, as where a device knows no commands.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self(Mutex::new(Tape {
            replies: replies.into_iter().collect(),
            issued: Vec::new(),
        }))
    }

    /// The commands so far, each with the device it was for.
    pub fn issued(&self) -> Vec<(PathBuf, Command)> {
        self.tape().issued.clone()
    }

    fn tape(&self) -> std::sync::MutexGuard<'_, Tape> {
        // A tape is whole whoever panicked with it in hand.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Issue for Played {
    fn issue(&self, path: &Path, command: &Command) -> io::Result<Reply> {
        let mut tape = self.tape();
        tape.issued.push((path.to_owned(), command.clone()));
        let enotty = || io::Error::from_raw_os_error(rustix::io::Errno::NOTTY.raw_os_error());
        tape.replies.pop_front().ok_or_else(enotty)
    }
}

/// As a person would type it, or nearly: a command that no shell has is named
/// with its bytes.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Nvme {
                opcode,
                nsid,
                dwords,
                ..
            } => {
                write!(
                    f,
                    "nvme admin-passthru --opcode={opcode:#04x} --namespace-id={nsid}"
                )?;
                for (dword, value) in (10..).zip(dwords).filter(|(_, value)| **value != 0) {
                    write!(f, " --cdw{dword}={value:#x}")?;
                }
                Ok(())
            }
            Self::Scsi { cdb, data, .. } => {
                f.write_str("SG_IO")?;
                for byte in cdb {
                    write!(f, " {byte:02x}")?;
                }
                match data {
                    CommandData::Out(bytes) => write!(f, " < {} bytes", bytes.len()),
                    CommandData::In(_) | CommandData::None => Ok(()),
                }
            }
            Self::Discard {
                offset,
                bytes,
                secure,
            } => {
                let secure = if *secure { " --secure" } else { "" };
                write!(f, "blkdiscard{secure} --offset {offset} --length {bytes}")
            }
            Self::Attribute { path, value } => write!(f, "echo {value} > {}", path.display()),
            Self::Program { argv } => f.write_str(&argv.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_answers_in_order_and_keeps_what_was_asked() {
        let tape = Played::new([Reply {
            status: 2,
            ..Reply::default()
        }]);
        let command = Command::Attribute {
            path: "/sys/x".into(),
            value: "1".into(),
        };
        let disk = Path::new("/dev/sda");
        assert!(!tape.issue(disk, &command).unwrap().is_good());
        assert_eq!(
            tape.issue(disk, &command).unwrap_err().raw_os_error(),
            Some(25)
        );
        assert_eq!(tape.issued().len(), 2);
        assert_eq!(command.to_string(), "echo 1 > /sys/x");
    }

    #[test]
    fn programs_give_their_outputs_and_their_exit() {
        let argv = ["sh", "-c", "echo out; echo err >&2; exit 3"];
        let argv = argv.map(str::to_owned).to_vec();
        let reply = KernelDevices
            .issue(Path::new("/"), &Command::Program { argv })
            .unwrap();
        assert_eq!(
            (reply.status, &reply.data[..], &reply.sense[..]),
            (3, &b"out\n"[..], &b"err\n"[..])
        );
    }
}
