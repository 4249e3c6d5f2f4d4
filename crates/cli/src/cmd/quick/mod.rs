//! `fathom quick`: the quick series, here or over ssh.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use fathom_campaign::quick::{self, Group, Order, QuickError, RemoteMode};
use fathom_model::Exit;
use fathom_record::Record;

use super::{ExitError, Global};
use crate::engine::EngineName;

mod compare;
mod events;
mod hosts;
mod list;
mod run;
mod screen;
mod summary;
pub mod xdg;

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
  fathom quick list                     the tests, with their baselines
  fathom quick compare RUN RUN          before and after tuning

The test files remain until 'cleanup'. FATHOM_SSH replaces the command ssh.";

/// Measure with a fixed series of tests, without configuration, here or over ssh
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = EXAMPLES
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
struct SeriesArgs {
    /// "here", or the host to run on over ssh (anything ssh takes); not with --hosts
    #[arg(value_name = "here|USER@HOST", required_unless_present = "hosts")]
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
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    size: Option<u64>,
    /// Never install fio
    #[arg(long)]
    no_install: bool,
    /// How to run on another machine
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    remote_mode: Mode,
    /// Engine that runs the tests
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t)]
    engine: EngineName,
    /// Write the run as lines for the Fathom that sent this one
    #[arg(long, hide = true)]
    events: bool,
    /// Text of the group's file, from the Fathom that sent this one
    #[arg(long, hide = true, value_name = "TEXT")]
    group_text: Option<String>,
    #[command(flatten)]
    hosts: super::hosts::HostArgs,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Send fathom where it can run, else drive that host's fio
    #[default]
    Auto,
    /// Send fathom itself (Linux of this architecture)
    #[value(name = "self")]
    Itself,
    /// Drive that host's own fio with plain sh
    Fio,
}

impl From<Mode> for RemoteMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Auto => Self::Auto,
            Mode::Itself => Self::Itself,
            Mode::Fio => Self::Fio,
        }
    }
}

/// Calls the subcommand, or runs the series.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Some(Command::List(args)) => list::run(global, args),
        Some(Command::Compare(args)) => compare::run(global, args),
        None if args.series.hosts.is_given() => hosts::run(global, &args.series),
        None => run::run(global, &args.series),
    }
}

impl SeriesArgs {
    /// What the words after the target ask for. A first word `cleanup` is never a path.
    fn order(&self) -> Result<Wanted, QuickError> {
        let is_cleanup = |word: &str| word == "cleanup";
        if self
            .path
            .as_deref()
            .and_then(|path| path.to_str())
            .is_some_and(is_cleanup)
        {
            return match &self.test {
                None => Ok(Wanted::Cleanup(None)),
                Some(_) => Err(QuickError::Order(
                    "cleanup takes no test; a folder of that name is ./cleanup".into(),
                )),
            };
        }
        if self.test.as_deref().is_some_and(is_cleanup) {
            return Ok(Wanted::Cleanup(self.path.clone()));
        }
        let group = match &self.group_text {
            Some(text) => Group::parse(text, "the group sent along".as_ref())?,
            None => Group::find(&self.group, xdg::groups_dir().as_deref())?,
        };
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
        Ok(Wanted::Run(Box::new(Order {
            path: self.path.clone(),
            group,
            only: self.test.clone(),
            runtime_s: self.runtime,
            size_bytes: self.size,
            may_install: !self.no_install,
            engine: self.engine.into(),
        })))
    }
}

enum Wanted {
    Run(Box<Order>),
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
    ExitError {
        exit: error.exit(),
        message: error.to_string(),
    }
    .into()
}
