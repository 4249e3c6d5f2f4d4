//! Who takes part, and the command that runs a job.

use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::Lab;
use crate::cells::Setting;

/// An engine and how its job is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    Native,
    NativeBatched,
    /// The first without latencies: what `gtod_reduce` leaves out.
    NativeBare,
    Fio,
    FioTuned,
    FioBare,
    /// fio's t/io_uring, which is no engine: the least that a loop over io_uring can be,
    /// in batches as fio tuned and one I/O at a time as the first.
    Ring,
    RingSingle,
}

/// Who goes in batches has so many in each, where the queue has room for them.
const BATCH: u32 = 16;

/// In the order of their turns and of the table's columns.
pub const ALL: &[Contender] = &[
    Contender::Native,
    Contender::NativeBatched,
    Contender::Fio,
    Contender::FioTuned,
    Contender::Ring,
    Contender::RingSingle,
];
/// Who is measured with one job and with two.
pub const PAIRS: &[Contender] = &[
    Contender::NativeBatched,
    Contender::FioTuned,
    Contender::Ring,
];
/// Who is measured with ways of calling the kernel that are not for everybody.
pub const RINGS: &[Contender] = &[Contender::NativeBatched, Contender::FioTuned];
/// Who is measured with latencies and without.
pub const LATENCIES: &[Contender] = &[
    Contender::Native,
    Contender::NativeBare,
    Contender::Fio,
    Contender::FioBare,
];

impl Contender {
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::NativeBatched => "native, batched",
            Self::NativeBare => "native, gtod_reduce",
            Self::Fio => "fio",
            Self::FioTuned => "fio, tuned",
            Self::FioBare => "fio, gtod_reduce",
            Self::Ring => "t/io_uring",
            Self::RingSingle => "t/io_uring, one by one",
        }
    }

    pub fn is_native(self) -> bool {
        matches!(self, Self::Native | Self::NativeBatched | Self::NativeBare)
    }

    pub fn is_ring(self) -> bool {
        matches!(self, Self::Ring | Self::RingSingle)
    }

    /// Whether it can do what is asked here.
    pub fn takes_part(self, lab: &Lab, setting: &Setting) -> bool {
        let ring = lab.ring.is_some() && setting.engine == "io_uring";
        let single = self == Self::RingSingle;
        !self.is_ring() || (ring && (!single || setting.depth >= BATCH))
    }

    /// What a job gets that spends as little CPU as fio can: the same options for
    /// both engines, as far as the I/O engine and the depth have a use for them.
    pub fn options(self, engine: &str, depth: u32) -> String {
        let mut text = String::new();
        match self {
            Self::Native | Self::Fio | Self::Ring | Self::RingSingle => return text,
            Self::NativeBare | Self::FioBare => return "gtod_reduce=1\n".to_owned(),
            Self::NativeBatched | Self::FioTuned => {}
        }
        text += "norandommap\n";
        if depth >= BATCH {
            for option in ["submit", "complete_min", "complete_max"] {
                text += &format!("iodepth_batch_{option}={BATCH}\n");
            }
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

    /// t/io_uring on a target; it takes whole seconds.
    pub fn ring(self, program: &Path, target: &Path, setting: &Setting, seconds: u32) -> Command {
        let mut command = Command::new(program);
        let batch = match self {
            Self::Ring if setting.depth >= BATCH => BATCH,
            _ => 1,
        };
        for (option, value) in [
            ("-d", setting.depth),
            ("-s", batch),
            ("-c", batch),
            ("-p", 0),
            ("-n", setting.jobs),
            ("-O", setting.direct.into()),
            ("-r", seconds),
        ] {
            command.arg(format!("{option}{value}"));
        }
        command.arg(target);
        command
    }
}
