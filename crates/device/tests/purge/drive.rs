//! A drive that is played: it answers as it is told, and its blocks are those of
//! a loop device.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fathom_device::command::{Command, CommandData, Issue, KernelDevices, Reply};

use crate::purge::SIZE;

type Answer = dyn Fn(&Command) -> Reply + Send + Sync;

pub struct Drive {
    blocks: PathBuf,
    /// What it answers, and whether it erases everything meanwhile.
    answer: Box<Answer>,
    erases_at: Option<u8>,
    issued: Mutex<Vec<Command>>,
}

impl Drive {
    /// A drive that answers by `answer`.
    pub fn new(blocks: &Path, answer: impl Fn(&Command) -> Reply + Send + Sync + 'static) -> Self {
        Self {
            blocks: blocks.to_owned(),
            answer: Box::new(answer),
            erases_at: None,
            issued: Mutex::new(Vec::new()),
        }
    }

    /// Really takes all data away when this command comes.
    pub fn erasing_at(mut self, opcode: u8) -> Self {
        self.erases_at = Some(opcode);
        self
    }

    /// Every command that asks for nothing, in order.
    pub fn orders(&self) -> Vec<Command> {
        let issued = self.issued.lock().unwrap();
        let orders = issued.iter().filter(|command| {
            !matches!(
                command,
                Command::Nvme {
                    data: CommandData::In(_),
                    ..
                } | Command::Scsi {
                    data: CommandData::In(_),
                    ..
                }
            )
        });
        orders.cloned().collect()
    }

    /// How often a command was given.
    pub fn count(&self, wanted: u8) -> usize {
        let issued = self.issued.lock().unwrap();
        issued
            .iter()
            .filter(|command| opcode(command) == Some(wanted))
            .count()
    }
}

/// The opcode: of ATA PASS-THROUGH(16) that of ATA.
pub fn opcode(command: &Command) -> Option<u8> {
    match command {
        Command::Nvme { opcode, .. } => Some(*opcode),
        Command::Scsi { cdb, .. } if cdb[0] == 0x85 => Some(cdb[14]),
        Command::Scsi { cdb, .. } => Some(cdb[0]),
        _ => None,
    }
}

impl Issue for Drive {
    fn issue(&self, _: &Path, command: &Command) -> io::Result<Reply> {
        self.issued.lock().unwrap().push(command.clone());
        let reply = (self.answer)(command);
        if opcode(command).is_some() && opcode(command) == self.erases_at {
            let (offset, bytes, secure) = (0, SIZE, false);
            KernelDevices.issue(
                &self.blocks,
                &Command::Discard {
                    offset,
                    bytes,
                    secure,
                },
            )?;
        }
        Ok(reply)
    }
}

/// A good answer with these bytes.
pub fn good(data: Vec<u8>) -> Reply {
    Reply {
        data,
        ..Reply::default()
    }
}

/// An answer with this status.
pub fn bad(status: u32, sense: &[u8]) -> Reply {
    Reply {
        status,
        sense: sense.to_vec(),
        ..Reply::default()
    }
}
