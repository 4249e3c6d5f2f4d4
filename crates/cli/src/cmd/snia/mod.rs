//! `fathom snia`: tests after SNIA's specification, interpreted.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use fathom_analysis::snia::{DriveClass, SniaTest, TrackedVariable};
use fathom_campaign::snia::{SniaAsk, SniaChoices};
use fathom_device::purge::PurgeMethods;
use fathom_flow::RunOptions;
use fathom_flow::options::size;
use fathom_model::Exit;
use serde::{Deserialize, Serialize};

use super::Global;
use super::campaign::terabytes;
use super::kinds::KindArgs;
use super::measuring::MeasuringArgs;
use fathom_flow::options::duration;

mod dry;
mod panel;
mod report;
mod run;

pub use panel::SniaPanel;
pub use run::resume_as as resume;

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
    how: How,
    #[command(flatten)]
    other: Otherwise,
}

/// How it is run; kept for `resume`.
#[derive(Debug, Clone, Default, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "How it is run")]
struct How {
    /// Which way to purge it: auto, nvme-format, blkdiscard, overwrite, …
    #[arg(long, value_name = "METHOD", value_parser = method, conflicts_with = "no_purge")]
    purge: Option<String>,
    /// Do not purge it: the figures are not those of the specification then
    #[arg(long)]
    no_purge: bool,
    /// Leave the drive's write cache as it is
    #[arg(long)]
    keep_cache: bool,
    /// The ioengine of the jobs, in fio's words
    #[arg(long, value_name = "NAME", default_value = "libaio")]
    ioengine: String,
}

impl How {
    fn ask(&self, test: SniaTest, class: DriveClass, wanted: SniaChoices) -> SniaAsk {
        SniaAsk {
            test,
            class,
            wanted,
            purge: self.purge.clone(),
            no_purge: self.no_purge,
            keep_cache: self.keep_cache,
            ioengine: self.ioengine.clone(),
        }
    }
}

/// What may be otherwise than in the specification; the report tells all of it.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Different from the specification (the report says so)")]
struct Otherwise {
    /// Short instead of right: cells of a second, 4 MiB, one fill, two or three rounds
    #[arg(long)]
    debug: bool,
    /// Active range: a part such as 75%, or a size such as 8g
    #[arg(long, value_name = "RANGE")]
    range: Option<String>,
    /// I/Os that each thread keeps under way
    #[arg(long, value_name = "N")]
    iodepth: Option<u32>,
    /// Threads
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// How often the range is filled before the rounds
    #[arg(long, value_name = "N")]
    fills: Option<u32>,
    /// IOPS: the mixes, reads/writes in percent: 100/0,65/35,0/100
    #[arg(long, value_name = "LIST")]
    mixes: Option<String>,
    /// IOPS: the block sizes: 1024k,64k,4k
    #[arg(long, value_name = "LIST")]
    blocks: Option<String>,
    /// Time of a cell (write saturation: of a sample)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    cell: Option<Duration>,
    /// Time of the histogram
    #[arg(long, value_name = "TIME", value_parser = duration)]
    histogram: Option<Duration>,
    /// Rounds of the measurement window
    #[arg(long, value_name = "N")]
    window: Option<usize>,
    /// Rounds after which steady state is not attained
    #[arg(long, value_name = "N")]
    max_rounds: Option<usize>,
    /// Go on beyond them, with a warning, until it is
    #[arg(long)]
    soft: bool,
    /// Limit of the data excursion, in percent of the average
    #[arg(long, value_name = "PERCENT")]
    data_limit: Option<f64>,
    /// Limit of the slope excursion, in percent of the average
    #[arg(long, value_name = "PERCENT")]
    slope_limit: Option<f64>,
    /// fio-tests' stricter criterion decides: in every round of the window every
    /// cell keeps fio's rule
    #[arg(long)]
    all_cells: bool,
    /// Write saturation: drive fills that end it
    #[arg(long, value_name = "N")]
    stop_fills: Option<f64>,
    /// Write saturation: time that ends it
    #[arg(long, value_name = "TIME", value_parser = duration)]
    stop_after: Option<Duration>,
}

fn method(text: &str) -> Result<String, String> {
    text.parse::<PurgeMethods>().map(|_| text.to_owned())
}

impl TestArgs {
    fn class(&self) -> DriveClass {
        match self.client {
            true => DriveClass::Client,
            false => DriveClass::Enterprise,
        }
    }
}

impl Otherwise {
    fn wanted(&self) -> SniaChoices {
        let base = match self.debug {
            true => SniaChoices::debug(),
            false => SniaChoices::default(),
        };
        SniaChoices {
            active_range: self.range.clone().or(base.active_range),
            iodepth: self.iodepth.or(base.iodepth),
            jobs: self.threads.or(base.jobs),
            fill_loops: self.fills.or(base.fill_loops),
            mixes: self.mixes.clone(),
            blocks: self.blocks.clone(),
            cell: self.cell.or(base.cell),
            histogram: self.histogram.or(base.histogram),
            window: self.window.or(base.window),
            max_rounds: self.max_rounds.or(base.max_rounds),
            soft: self.soft,
            data_percent: self.data_limit.or(base.data_percent),
            slope_percent: self.slope_limit.or(base.slope_percent),
            criterion: match self.all_cells {
                true => TrackedVariable::AllCells,
                false => TrackedVariable::Tracked,
            },
            stop_fills: self.stop_fills.or(base.stop_fills),
            stop: self.stop_after.or(base.stop),
            ..base
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
