//! Who takes part, and the command that runs a job.

use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::Lab;

/// An engine and how its job is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    Native,
    NativeBatched,
    Fio,
    FioTuned,
}

/// In the order of their turns and of the table's columns.
pub const ALL: [Contender; 4] = [
    Contender::Native,
    Contender::NativeBatched,
    Contender::Fio,
    Contender::FioTuned,
];

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::NativeBatched => "native, batched",
            Self::Fio => "fio",
            Self::FioTuned => "fio, tuned",
        }
    }

    fn is_native(self) -> bool {
        matches!(self, Self::Native | Self::NativeBatched)
    }

    /// What a job gets that spends as little CPU as fio can: the same options for
    /// both engines, as far as the I/O engine and the depth have a use for them.
    pub fn options(self, engine: &str, depth: u32) -> String {
        let mut text = String::new();
        if matches!(self, Self::Native | Self::Fio) {
            return text;
        }
        text += "norandommap\n";
        if depth >= 16 {
            text += "iodepth_batch_submit=16\niodepth_batch_complete_min=16\niodepth_batch_complete_max=16\n";
        }
        if engine == "io_uring" {
            text += "registerfiles\nfixedbufs\nnonvectored=1\n";
        }
        text
    }

    /// The command that runs a job and prints JSON, in which both call the counts alike.
    pub fn command(self, lab: &Lab, job: &Path) -> Command {
        let mut command;
        if self.is_native() {
            command = Command::new(&lab.fathom);
            command.arg("--json");
            command.arg("--runs").arg(lab.dir.path().join("runs"));
            command.args(["job", "run", "--quiet", "--engine", "native"]);
        } else {
            command = Command::new("fio");
            command.arg("--output-format=json");
        }
        command.arg(job);
        command
    }
}
