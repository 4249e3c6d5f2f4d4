//! `fathom quick`: the quick series, here or over ssh.

use std::path::PathBuf;

use clap::Subcommand;
use fathom_flow::options::size;
use fathom_model::Exit;
use fathom_record::Record;
use fathom_suites::quick::{self, QuickError, QuickRequest, RemoteMode, SeriesGroup};

use super::planned::KindArgs;
use super::{ExitError, Global};
use crate::cmd::hosts::usage;
use crate::cmd::not_offered::why_not;
use crate::cmd::run_args::RunArgs;

mod compare;
mod events;
mod hosts;
pub mod list;
pub mod run;
mod screen;
pub(in crate::cmd) mod summary;
pub mod xdg;

pub use run::QuickPlan;

const EXAMPLES: &str = "\
Examples:
  fathom quick here                     all tests, in ~/stb-testdir
  fathom quick here /mnt                all tests, in /mnt/stb-testdir
  fathom quick here /mnt \"1 file, 1 thread, rnd 16k writes, simple\"
                                        one test again, after a full run
  fathom quick here /mnt cleanup        remove /mnt/stb-testdir
  fathom quick root@nas /tank           the same on another machine, over ssh
  fathom quick --hosts bench1,bench2,root@nas /tank
                                        on all of them at once, each test together
  fathom quick here /mnt --runtime 1 --size 64M
                                        a short trial
  fathom quick here /mnt --dry-run      every command, and nothing is run
  fathom quick list                     the tests, with their baselines
  fathom quick compare RUN RUN          before and after tuning

The test files remain until 'cleanup'. FATHOM_SSH replaces the command ssh.";

/// Measure with a fixed series of tests, without configuration, here or over ssh
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = EXAMPLES,
    mut_arg("max_time", |arg| arg.help("Longest time of the series")),
    mut_arg("max_written", |arg| arg.help("Most bytes that the series writes")),
    mut_arg("destroy", |arg| arg.hide(true)),
    mut_arg("sim", |arg| arg.hide(true)),
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    series: SeriesArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Compare(compare::Args),
}

#[derive(Debug, Clone, clap::Args)]
pub struct SeriesArgs {
    /// "here", or the host to run on over ssh (anything ssh takes); not with --hosts
    #[arg(value_name = "here|USER@HOST", required_unless_present_any = ["hosts", "request"])]
    target: Option<String>,
    /// Folder in which the folder stb-testdir is made [default: the home directory]
    #[arg(value_name = "PATH|cleanup")]
    path: Option<PathBuf>,
    /// Name of the one test to repeat [default: all tests]
    #[arg(value_name = "TEST|cleanup")]
    test: Option<String>,
    /// Group of tests: a name of 'fathom quick list', or a file
    #[arg(long, value_name = "GROUP", default_value = quick::DEFAULT_GROUP)]
    group: String,
    /// Baseline to give percentages of; several with commas or repeated [default: HDD]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    baseline: Vec<String>,
    /// No percentages
    #[arg(long, conflicts_with = "baseline")]
    no_baseline: bool,
    /// Seconds of each timed test, to shorten a trial
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    runtime: Option<u32>,
    /// Size of each set of files, to shorten a trial (for example 64M)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    size: Option<u64>,
    /// Make the test files without copy-on-write (btrfs)
    #[arg(long)]
    nocow: bool,
    /// Never install fio
    #[arg(long)]
    no_install: bool,
    /// How to run on another machine
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    remote_mode: RemoteMode,
    #[command(flatten)]
    run: RunArgs,
    /// Write the run as lines for the Fathom that sent this one
    #[arg(long, hide = true)]
    events: bool,
    /// Everything that is asked for, from the Fathom that sent this one
    #[arg(long, hide = true, value_name = "JSON", value_parser = request)]
    request: Option<Box<QuickRequest>>,
    #[command(flatten)]
    hosts: super::hosts::HostArgs,
}

impl KindArgs for Args {
    fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        run(global, self)
    }
}

/// Calls the subcommand, or runs the series.
fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    args.series.check()?;
    match &args.command {
        Some(Command::List(args)) => list::run(global, args),
        Some(Command::Compare(args)) => compare::run(global, args),
        None if args.series.hosts.is_given() => hosts::run(global, &args.series),
        None => run::run(global, &args.series),
    }
}

impl SeriesArgs {
    /// Refuses what a series cannot be told.
    fn check(&self) -> anyhow::Result<()> {
        let is_simulated = self.run.options.is_simulated();
        let is_here = self.hosts.is_given() || self.target.as_deref().is_none_or(|it| it == "here");
        let why = if is_simulated {
            why_not("quick", "sim").unwrap_or_default()
        } else if self.run.dry_run && !is_here {
            "--dry-run is for this machine, or for --hosts\n  to do: fathom quick --hosts HOST PATH --dry-run"
        } else {
            return Ok(());
        };
        Err(usage(why))
    }

    /// The baselines that are asked for.
    fn baseline_names(&self) -> Vec<String> {
        match (self.no_baseline, self.baseline.is_empty()) {
            (true, _) => Vec::new(),
            (false, true) => vec![quick::DEFAULT_BASELINE.to_owned()],
            (false, false) => self.baseline.clone(),
        }
    }

    /// What the words after the target ask for. A first word `cleanup` is never a path.
    fn order(&self) -> Result<WantedTests, QuickError> {
        let path = self.path.as_deref().and_then(|path| path.to_str());
        let [at_path, at_test] = [path, self.test.as_deref()].map(|word| word == Some("cleanup"));
        if self.run.dry_run && (at_path || at_test) {
            return Err(QuickError::Order(
                "cleanup has no dry run: it removes the folder stb-testdir, and only files of the \
                 series in it\n  to do: leave out --dry-run"
                    .into(),
            ));
        }
        if at_path {
            return match &self.test {
                None => Ok(WantedTests::Cleanup(None)),
                Some(_) => Err(QuickError::Order(
                    "cleanup takes no test; a folder of that name is ./cleanup".into(),
                )),
            };
        }
        if at_test {
            return Ok(WantedTests::Cleanup(self.path.clone()));
        }
        if let Some(sent) = &self.request {
            return Ok(WantedTests::Run(sent.clone()));
        }
        let group = SeriesGroup::find(&self.group, xdg::groups_dir().as_deref())?;
        if let Some(path) = self.path.as_ref().filter(|path| !path.exists())
            && group
                .tests()
                .any(|test| path.as_os_str() == test.name.as_str())
        {
            return Err(QuickError::Order(format!(
                "\"{}\" is a test; name the folder of its full run first: fathom quick {} PATH \"{0}\"",
                path.display(),
                self.target.as_deref().unwrap_or("here"),
            )));
        }
        let options = self.run.options();
        Ok(WantedTests::Run(Box::new(QuickRequest {
            path: self.path.clone(),
            group,
            only: self.test.clone(),
            runtime_s: self.runtime,
            size_bytes: self.size,
            nocow: self.nocow,
            may_install: !self.no_install,
            dry_run: self.run.dry_run,
            options: options.map_err(|error| QuickError::Order(error.to_string()))?,
        })))
    }
}

fn request(text: &str) -> Result<Box<QuickRequest>, serde_json::Error> {
    serde_json::from_str(text)
}

enum WantedTests {
    Run(Box<QuickRequest>),
    Cleanup(Option<PathBuf>),
}

/// The user's baselines.
pub fn shelf() -> quick::Shelf {
    quick::Shelf::new(xdg::baselines_dir())
}

/// The record of a run: a folder, or a name under --runs.
pub fn record(global: &Global, run: &str) -> anyhow::Result<Record> {
    fathom_record::find(&global.runs, Some(run))
        .and_then(|dir| Record::open(&dir))
        .map_err(|error| failed(error.into()))
}

/// An error of the series with its exit code.
pub fn failed(error: QuickError) -> anyhow::Error {
    ExitError::new(error.exit(), error).into()
}
