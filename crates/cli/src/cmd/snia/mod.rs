//! `fathom snia`: tests after SNIA's specification, interpreted.

use std::path::PathBuf;

use clap::Subcommand;
use fathom_analysis::snia::{DriveClass, SniaTest};
use fathom_flow::RunOptions;
use fathom_flow::options::size;
use fathom_model::Exit;
use fathom_suites::snia::{SniaChoices, SniaHow};

use super::Global;
use super::campaign::terabytes;
use super::measuring::MeasuringArgs;
use super::planned::KindArgs;

mod dry;
mod panel;
mod report;
mod run;

pub use panel::SniaPanel;
pub use run::{SniaRequest, of_record};

/// Measure a drive in steady state after the SNIA specification (an interpretation, no SNIA test)
///
/// IOPS, throughput, latency and write saturation after SSS PTS 2.0.x as Fathom reads it: purge,
/// pre-conditioning, rounds until the tracked variables are steady. Not a SNIA test, not certified or
/// endorsed by SNIA.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each test purges the drive and writes it many times over: the plan that is told first has the hours
and the terabytes. A test that was stopped or killed goes on with fathom snia resume; the report says
so, because the specification allows no gap. That steady state was not attained is a result: the exit
code is 0, the summary says it, and --json has attained: false. docs/SNIA.md has what each test does.

Examples:
  fathom snia iops /dev/nvme0n1 --dry-run
  fathom snia iops /dev/nvme0n1 --destroy nvme-ACME_1234
  fathom snia latency /dev/sda --client --destroy S3Z8NB0K
  fathom snia wsat /dev/loop3 --debug --destroy /dev/loop3=512MiB
  fathom snia resume
  fathom snia report                     the pages of the last test, to print")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Random I/O over 7 mixes and 8 block sizes: 56 cells a round
    #[command(after_help = IOPS_EXAMPLES)]
    Iops(TestArgs),
    /// Sequential reads and writes of 1024k and of 128k
    #[command(after_help = THROUGHPUT_EXAMPLES)]
    Throughput(TestArgs),
    /// One I/O at a time: 3 mixes and 3 block sizes, then a histogram
    #[command(after_help = LATENCY_EXAMPLES)]
    Latency(TestArgs),
    /// Write saturation: 4k random writes from the purged drive on, then a histogram
    #[command(after_help = WSAT_EXAMPLES)]
    Wsat(TestArgs),
    /// Go on with a test that was stopped or killed
    Resume(run::ResumeArgs),
    /// Show what came of a recorded test
    Show(report::ShowArgs),
    /// Write the report pages of a recorded test as one HTML file, a sheet of paper each
    Report(report::ReportArgs),
}

const IOPS_EXAMPLES: &str = "\
Examples:
  fathom snia iops /dev/nvme0n1 --dry-run
  fathom snia iops /dev/nvme0n1 --destroy nvme-ACME_1234
  fathom snia iops /dev/sda /dev/sdb --client --destroy S1 --destroy S2   one after the other
  fathom snia iops /dev/nvme0n1 --max-time 30h --max-written 40T --destroy nvme-ACME_1234
  fathom snia iops /dev/none --engine sim --sim drive.toml                a simulated drive";

const THROUGHPUT_EXAMPLES: &str = "\
Examples:
  fathom snia throughput /dev/nvme0n1 --dry-run
  fathom snia throughput /dev/sda --client --destroy S3Z8NB0K";

const LATENCY_EXAMPLES: &str = "\
Examples:
  fathom snia latency /dev/nvme0n1 --dry-run
  fathom snia latency /dev/sda --client --purge overwrite --destroy S3Z8NB0K";

const WSAT_EXAMPLES: &str = "\
Examples:
  fathom snia wsat /dev/nvme0n1 --dry-run
  fathom snia wsat /dev/nvme0n1 --stop-fills 2 --destroy nvme-ACME_1234
  fathom snia wsat /dev/loop3 --debug --destroy /dev/loop3=512MiB         does it go through?";

/// What every test takes.
#[derive(Debug, Clone, clap::Args)]
struct TestArgs {
    /// The devices, measured one after the other, each with a record of its own
    #[arg(required = true, value_name = "DEV")]
    devices: Vec<PathBuf>,
    /// As a client drive: 75 % of the range, QD 16 × 2 threads, write cache on
    #[arg(long, conflicts_with = "enterprise")]
    client: bool,
    /// As an enterprise drive (the default): all of the range, QD 32 × 4 threads, write cache off
    #[arg(long)]
    enterprise: bool,
    #[command(flatten)]
    options: RunOptions,
    /// Show the plan and every command that would be executed, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// How fast the device is written at most, for the plan [default: that of its PCIe link]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    write_speed: Option<u64>,
    /// Terabytes that may be written in all its life, from the data sheet
    #[arg(long, value_name = "TB", value_parser = terabytes)]
    endurance_tbw: Option<u64>,
    #[command(flatten)]
    _measuring: MeasuringArgs,
    #[command(flatten)]
    how: SniaHow,
    #[command(flatten)]
    wanted: SniaChoices,
}

impl TestArgs {
    fn class(&self) -> DriveClass {
        match self.client {
            true => DriveClass::Client,
            false => DriveClass::Enterprise,
        }
    }
}

impl KindArgs for Args {
    fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        run(global, self)
    }
}

/// Runs one of them.
fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Iops(args) => run::test(global, args, SniaTest::Iops),
        Command::Throughput(args) => run::test(global, args, SniaTest::Throughput),
        Command::Latency(args) => run::test(global, args, SniaTest::Latency),
        Command::Wsat(args) => run::test(global, args, SniaTest::Wsat),
        Command::Resume(args) => run::resume(global, args),
        Command::Show(args) => report::show(global, args),
        Command::Report(args) => report::report(global, args),
    }
}
