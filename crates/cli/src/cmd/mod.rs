//! The commands, one file each.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use fathom_device::safety::{Confirmations, Judge};
use fathom_device::threads::NoThread;
use fathom_model::Exit;

use crate::out::Color;

pub mod agent;
pub mod baseline;
mod campaign;
pub mod check;
#[cfg_attr(not(feature = "kube"), path = "cluster_left_out.rs")]
pub mod cluster;
pub mod completions;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod engines;
pub mod export;
mod fiolog;
pub mod r#gen;
pub mod graph;
mod hosts;
pub mod import;
pub mod init;
pub mod job;
pub mod lat;
pub mod ledger;
pub mod man;
pub mod plan;
pub mod plot;
pub mod pod;
pub mod prio;
pub mod provision;
pub mod purge;
pub mod quick;
pub mod report;
pub mod run;
pub mod runs;
pub mod serve;
pub mod show;
pub mod snia;
pub mod status;
pub mod steady;
pub mod watch;

/// Reads a number of bytes of the command line: `64M`, `1GiB`, `20T`.
fn size(text: &str) -> Result<u64, String> {
    let bytes = fathom_campaign::quick::parse_size(text);
    bytes.ok_or_else(|| "not a size like 64M or 20T".to_owned())
}

/// What stands below the list of commands; the exit codes are those of [`Exit`].
const AFTER_HELP: &str = "\
Examples:
  fathom doctor                      what works on this machine, what is missing
  fathom quick here /mnt/disk        the quick series on a file system
  fathom job run randread.fio        a fio job file, recorded
  fathom show                        the last run
  fathom report                      all of it in one HTML file
  fathom init nightly                a campaign in ./nightly, as a kernel is configured
  fathom show 2026 --json            one run as a document

Exit codes:
    0  everything asked for was done
    1  it ran, and at least one job or check failed; the record says which
    2  the command line is wrong
    3  a job file or another input is wrong; nothing was run
    4  refused for the safety of data, or because the figure would mislead
    5  something needed is missing: an engine, a privilege, a host, a run
    6  the record cannot be written
  130  ended by SIGINT or SIGTERM; what was measured is kept";

/// Measures storage: what a device, file system or cluster can do, and when that number is true.
#[derive(Debug, Parser)]
#[command(name = "fathom", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Folder of the runs where none is named.
pub const RUNS: &str = "fathom-runs";

/// Options of every command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// Folder that holds the runs
    #[arg(long, global = true, value_name = "DIR", default_value = RUNS)]
    pub runs: PathBuf,
    /// Print one JSON document to stdout and nothing else
    #[arg(long, global = true)]
    pub json: bool,
    /// No progress
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Use colours: auto (on a terminal, unless NO_COLOR is set), always, never
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    #[arg(hide_possible_values = true)]
    pub color: Color,
}

/// In the order in which people need them, which is how they are listed.
#[derive(Debug, Subcommand)]
pub enum Command {
    Quick(quick::Args),
    Baseline(baseline::Args),
    Job(job::Args),
    Serve(serve::Args),
    Engines(engines::Args),
    Init(init::Args),
    Config(config::Args),
    Gen(r#gen::Args),
    Check(check::Args),
    Plan(plan::Args),
    Run(run::Args),
    Resume(run::ResumeArgs),
    Status(status::Args),
    Watch(watch::Args),
    Purge(purge::Args),
    Provision(provision::Args),
    Snia(Box<snia::Args>),
    Ledger(ledger::Args),
    Steady(steady::Args),
    Prio(Box<prio::Args>),
    Lat(lat::Args),
    Plot(plot::Args),
    Cluster(cluster::Args),
    Import(import::Args),
    Runs(runs::Args),
    Show(show::Args),
    Export(export::Args),
    Graph(graph::Args),
    Report(report::Args),
    Demo(demo::Args),
    Doctor(doctor::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    Agent(agent::Args),
    #[command(hide = true)]
    Pod(pod::Args),
}

/// Calls the command.
pub fn dispatch(cli: &Cli) -> anyhow::Result<Exit> {
    match &cli.command {
        Command::Quick(args) => quick::run(&cli.global, args),
        Command::Baseline(args) => baseline::run(&cli.global, args),
        Command::Job(args) => job::run(&cli.global, args),
        Command::Serve(args) => serve::run(&cli.global, args),
        Command::Engines(args) => engines::run(&cli.global, args),
        Command::Init(args) => init::run(&cli.global, args),
        Command::Config(args) => config::run(&cli.global, args),
        Command::Gen(args) => r#gen::run(&cli.global, args),
        Command::Check(args) => check::run(&cli.global, args),
        Command::Plan(args) => plan::run(&cli.global, args),
        Command::Run(args) => run::run(&cli.global, args),
        Command::Resume(args) => run::resume(&cli.global, args),
        Command::Status(args) => status::run(&cli.global, args),
        Command::Watch(args) => watch::run(&cli.global, args),
        Command::Purge(args) => purge::run(&cli.global, args),
        Command::Provision(args) => provision::run(&cli.global, args),
        Command::Snia(args) => snia::run(&cli.global, args),
        Command::Ledger(args) => ledger::run(&cli.global, args),
        Command::Steady(args) => steady::run(&cli.global, args),
        Command::Prio(args) => prio::run(&cli.global, args),
        Command::Lat(args) => lat::run(&cli.global, args),
        Command::Plot(args) => plot::run(&cli.global, args),
        Command::Cluster(args) => cluster::run(&cli.global, args),
        Command::Import(args) => import::run(&cli.global, args),
        Command::Runs(args) => runs::run(&cli.global, args),
        Command::Show(args) => show::run(&cli.global, args),
        Command::Export(args) => export::run(&cli.global, args),
        Command::Graph(args) => graph::run(&cli.global, args),
        Command::Report(args) => report::run(&cli.global, args),
        Command::Demo(args) => demo::run(&cli.global, args),
        Command::Doctor(args) => doctor::run(&cli.global, args),
        Command::Completions(args) => completions::run(&cli.global, args),
        Command::Man(args) => man::run(&cli.global, args),
        Command::Agent(args) => agent::run(&cli.global, args),
        Command::Pod(args) => pod::run(&cli.global, args),
    }
}

/// Whether a command may write what it makes to a path that the user named.
///
/// # Errors
/// Exit 4: a device, or a file that is in use as one.
pub fn may_write(path: &Path) -> anyhow::Result<()> {
    let judge = Judge::new(&Confirmations::default());
    judge.output(path).map_err(|refusal| {
        let message = refusal.to_string();
        let exit = Exit::Refused;
        ExitError { exit, message }.into()
    })
}

/// An error that carries the exit code it is to end with.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExitError {
    pub exit: Exit,
    pub message: String,
}

/// The exit code of an error: its own, or plain failure.
pub fn exit_for(error: &anyhow::Error) -> Exit {
    if error.is::<NoThread>() {
        return Exit::Missing;
    }
    error
        .downcast_ref::<ExitError>()
        .map_or(Exit::Failed, |e| e.exit)
}
