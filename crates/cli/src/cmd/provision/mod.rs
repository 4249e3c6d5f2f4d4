//! `fathom provision`: brings many drives into a known state at once.

use std::path::PathBuf;
use std::time::Duration;

use fathom_campaign::provision::Workload;
use fathom_device::drives::Transport;

use super::job::duration;
use crate::engine::EngineOrSim;

mod dashboard;
mod row;

/// Bring drives into steady state, all at the same time
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Purges each drive, fills it, and writes the wanted load until it is steady; every drive with a
record and an engine of its own. A drive that fails does not stop the others. Nothing is written
before every drive is free and named. In the folder of a campaign its configuration says how, and
its device is the one where none is named; else the defaults of a campaign hold. A drive that is
in the wanted state already is left as it is, unless --force.

Examples:
  fathom provision --all nvme                            what is there, and the command to confirm it
  fathom provision /dev/nvme1n1 --destroy ACME_1234      one drive, for random work
  fathom provision --all nvme --workload mixed --destroy S1 --destroy S2
                                                         even drives sequential, odd ones random
  fathom provision /dev/sda /dev/sdb --dry-run           every command of every drive; nothing is run
  fathom provision --resume --destroy S1 --destroy S2    goes on after Ctrl-C, a kill, a power cut")]
pub struct Args {
    /// The drives
    #[arg(value_name = "DEV")]
    devices: Vec<PathBuf>,
    /// All drives of this kind that nobody uses
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "devices")]
    all: Option<Kind>,
    /// Folder of the campaign whose configuration holds [default: the current
    /// one, if it is one]
    #[arg(short = 'C', value_name = "DIR")]
    campaign: Option<PathBuf>,
    /// The load for which the drives are to be steady [default: random, or what
    /// the campaign says]
    #[arg(long, value_enum, value_name = "LOAD")]
    workload: Option<Load>,
    /// How they get there [default: sc, or what the campaign says]
    #[arg(long, value_enum)]
    method: Option<Method>,
    /// How they are purged first (fathom purge --help) [default: auto]
    #[arg(long, value_name = "METHOD")]
    purge: Option<String>,
    /// Do not purge them first
    #[arg(long, conflicts_with = "purge")]
    no_purge: bool,
    /// Also drives that are in the wanted state already
    #[arg(long)]
    force: bool,
    /// Confirm that a drive may be overwritten: its serial number, its name in
    /// /dev/disk/by-id, or PATH=SIZE where it has neither; once for each drive
    #[arg(long, value_name = "WORDS")]
    destroy: Vec<String>,
    /// Show every command that would be executed, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Go on with the drives of the last start that are not done
    #[arg(long, conflicts_with_all = ["all", "workload", "method", "purge", "no_purge", "force"])]
    resume: bool,
    /// Folder for a log of each drive, in fio-tests' form [default: logs/ of the
    /// campaign]
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
    /// Refuse when it may take longer than this
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_time: Option<Duration>,
    /// Which engine writes
    #[arg(long, value_enum)]
    engine: Option<EngineOrSim>,
    /// The device that '--engine sim' simulates; of several, the first is for the
    /// first drive, the last for all others [default: a healthy one]
    #[arg(long, value_name = "FILE")]
    sim: Vec<PathBuf>,
    /// The fio to use [default: $FATHOM_FIO, or the one in PATH]
    #[arg(long, value_name = "PATH")]
    fio: Option<PathBuf>,
}

/// How drives are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// NVMe namespaces
    Nvme,
    /// SCSI disks: SAS, Fibre Channel, iSCSI, virtual ones
    Scsi,
    /// ATA disks
    Ata,
}

impl From<Kind> for Transport {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Nvme => Self::Nvme,
            Kind::Scsi => Self::Scsi,
            Kind::Ata => Self::Ata,
        }
    }
}

/// What the drives are to be steady for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Load {
    /// Sequential writes
    Seq,
    /// Random writes
    Random,
    /// Sequential on drives with an even number in their name, random on odd ones
    Mixed,
}

impl From<Load> for Workload {
    fn from(load: Load) -> Self {
        match load {
            Load::Seq => Self::Sequential,
            Load::Random => Self::Random,
            Load::Mixed => Self::Mixed,
        }
    }
}

/// How a steady state is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Method {
    /// Santa Clara: fills, then the load until fio's rule holds
    Sc,
    /// SNIA's way, interpreted: fills, then the rounds of the IOPS test
    Snia,
}
