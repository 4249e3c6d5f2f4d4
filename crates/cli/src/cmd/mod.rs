//! The commands, one file each.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use fathom_model::refusal::REFUSAL_SCHEMA;
use fathom_model::{Exit, RefusalDocument};
use fathom_record::Tag;
use serde_json::{Map, Value, json};

pub use crate::exit_error::{ExitError, exit_for, failed, may_write, write_named};
use crate::out::{self, ColorChoice};

pub mod ab;
pub mod agent;
pub mod answered;
pub mod archived;
pub mod baseline;
mod campaign;
pub mod check;
#[cfg_attr(not(feature = "kube"), path = "cluster_left_out.rs")]
pub mod cluster;
pub mod compare;
pub mod complete;
pub mod completions;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod drive;
mod dry;
mod elsewhere;
pub mod engines;
pub mod explain;
pub mod export;
pub mod find;
mod fiolog;
pub mod r#gen;
pub mod graph;
mod groups;
pub mod history;
mod hosts;
pub mod import;
pub mod init;
pub mod job;
mod kinds;
pub mod lat;
pub mod ledger;
pub mod man;
mod meant;
pub mod measuring;
mod metrics;
mod not_offered;
pub mod notify;
pub mod options;
mod pages;
pub mod plan;
pub mod planned;
pub mod plot;
pub mod pod;
mod prio;
pub mod provision;
pub mod purge;
#[cfg_attr(not(feature = "query"), path = "query_left_out.rs")]
pub mod query;
pub mod quick;
pub mod repeat;
pub mod report;
pub mod require;
pub mod restore;
mod resume;
#[cfg_attr(not(feature = "query"), allow(dead_code))] // forms that export has not
mod rows;
mod run;
mod run_args;
pub mod runs;
mod schema;
pub mod screen;
pub mod serve;
mod serve_runs;
pub mod show;
pub mod snia;
mod soak;
mod started;
pub mod status;
pub mod steady;
mod study;
pub mod tune;
pub mod watch;

/// What stands below the list of commands; the exit codes are those of [`Exit`].
const AFTER_HELP: &str = "\
Examples:
  fathom doctor                      what works on this machine, what is missing
  fathom quick here /mnt/disk        the quick series on a file system
  fathom job run randread.fio        a fio job file, recorded
  fathom find mix.fio --p99 1ms      how much load a latency allows
  fathom show                        the last run
  fathom report                      all of it in one HTML file
  fathom compare BEFORE AFTER        what differs, and whether it is faster
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
    7  measured, but a stated condition does not hold
    8  it waits for what it says (a reboot); then fathom resume goes on
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
    /// Tag the run, to find it again; with 'compare' and 'history': take the runs that have it
    /// (may be repeated)
    #[arg(long, global = true, value_name = "NAME=VALUE")]
    pub tag: Vec<Tag>,
    /// Use colours: auto (on a terminal, unless NO_COLOR is set), always, never
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    #[arg(hide_possible_values = true)]
    pub color: ColorChoice,
    /// What is asked of the figures of a command that measures.
    #[arg(skip)]
    pub requirement: require::Requirement,
    /// What is called when a run has ended.
    #[arg(skip)]
    pub notify: Option<String>,
    /// Who is told what a command does that runs something.
    #[arg(skip)]
    pub metrics: metrics::Exporter,
    /// The options of the command that were given.
    #[arg(skip)]
    pub given: options::GivenOptions,
}

impl Global {
    /// What a Fathom is told that another one drives.
    fn of_agent(runs: PathBuf) -> Self {
        Self {
            runs,
            json: false,
            quiet: true,
            tag: Vec::new(),
            color: ColorChoice::default(),
            requirement: require::Requirement::default(),
            notify: None,
            metrics: metrics::Exporter::default(),
            given: options::GivenOptions::default(),
        }
    }
}

/// The words of this command line.
pub fn command_line() -> Vec<String> {
    let words = std::env::args_os();
    words
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect()
}

/// What the header of a new record says of where it comes from.
pub fn header_facts() -> Map<String, Value> {
    let mut facts = Map::new();
    facts.insert("command".into(), json!(command_line()));
    facts
}

/// In the order in which people need them, which is how they are listed.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(flatten)]
    Kind(kinds::KindCommand),
    Baseline(baseline::Args),
    Serve(serve::Args),
    Engines(engines::Args),
    Init(init::Args),
    Config(config::Args),
    Gen(r#gen::Args),
    Check(check::Args),
    Plan(plan::Args),
    Run(run::Args),
    Resume(resume::Args),
    Restore(restore::Args),
    Status(status::Args),
    Watch(watch::Args),
    Purge(purge::Args),
    Provision(provision::Args),
    Ledger(ledger::Args),
    Steady(steady::Args),
    Lat(lat::Args),
    Plot(plot::Args),
    Cluster(cluster::Args),
    Import(import::Args),
    Runs(runs::Args),
    Show(show::Args),
    Explain(explain::Args),
    Compare(compare::Args),
    History(history::Args),
    Query(query::Args),
    Export(export::Args),
    Graph(graph::Args),
    Report(report::Args),
    ServeRuns(serve_runs::Args),
    Demo(demo::Args),
    Doctor(doctor::Args),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    Agent(agent::Args),
    #[command(hide = true)]
    Pod(pod::Args),
}

impl Command {
    /// Whether it makes records, or chooses among them by their tags.
    fn takes_tags(&self) -> bool {
        matches!(
            self,
            Self::Kind(_)
                | Self::Run(_)
                | Self::Purge(_)
                | Self::Provision(_)
                | Self::Cluster(_)
                | Self::Import(_)
                | Self::Compare(_)
                | Self::History(_)
        )
    }
}

/// Calls the command.
pub fn dispatch(cli: &Cli) -> anyhow::Result<Exit> {
    if !cli.global.tag.is_empty() && !cli.command.takes_tags() {
        let message = "--tag is for commands that make a record, and for compare and history";
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    fathom_record::tag_records(&cli.global.tag);
    // What runs on another host is told there.
    if !matches!(&cli.command, Command::Resume(args) if args.is_elsewhere()) {
        cli.global.metrics.start(cli.global.quiet)?;
    }
    match &cli.command {
        Command::Kind(kind) => kind.run(&cli.global),
        Command::Baseline(args) => baseline::run(&cli.global, args),
        Command::Serve(args) => serve::run(&cli.global, args),
        Command::Engines(args) => engines::run(&cli.global, args),
        Command::Init(args) => init::run(&cli.global, args),
        Command::Config(args) => config::run(&cli.global, args),
        Command::Gen(args) => r#gen::run(&cli.global, args),
        Command::Check(args) => check::run(&cli.global, args),
        Command::Plan(args) => plan::run(&cli.global, args),
        Command::Run(args) => run::run(&cli.global, args),
        Command::Resume(args) => resume::run(&cli.global, args),
        Command::Restore(args) => restore::run(&cli.global, args),
        Command::Status(args) => status::run(&cli.global, args),
        Command::Watch(args) => watch::run(&cli.global, args),
        Command::Purge(args) => purge::run(&cli.global, args),
        Command::Provision(args) => provision::run(&cli.global, args),
        Command::Ledger(args) => ledger::run(&cli.global, args),
        Command::Steady(args) => steady::run(&cli.global, args),
        Command::Lat(args) => lat::run(&cli.global, args),
        Command::Plot(args) => plot::run(&cli.global, args),
        Command::Cluster(args) => cluster::run(&cli.global, args),
        Command::Import(args) => import::run(&cli.global, args),
        Command::Runs(args) => runs::run(&cli.global, args),
        Command::Show(args) => show::run(&cli.global, args),
        Command::Explain(args) => explain::run(&cli.global, args),
        Command::Compare(args) => compare::run(&cli.global, args),
        Command::History(args) => history::run(&cli.global, args),
        Command::Query(args) => query::run(&cli.global, args),
        Command::Export(args) => export::run(&cli.global, args),
        Command::Graph(args) => graph::run(&cli.global, args),
        Command::Report(args) => report::run(&cli.global, args),
        Command::ServeRuns(args) => serve_runs::run(&cli.global, args),
        Command::Demo(args) => demo::run(&cli.global, args),
        Command::Doctor(args) => doctor::run(&cli.global, args),
        Command::Schema(args) => schema::run(&cli.global, args),
        Command::Completions(args) => completions::run(&cli.global, args),
        Command::Man(args) => man::run(&cli.global, args),
        Command::Agent(args) => agent::run(&cli.global, args),
        Command::Pod(args) => pod::run(&cli.global, args),
    }
}

/// Prints an error; with `--json`, a refusal also as a document.
pub fn tell_error(global: &Global, error: &anyhow::Error) {
    out::error(error);
    if global.json && exit_for(error) == Exit::Refused && !out::has_document() {
        let known = error.downcast_ref::<ExitError>();
        let document = RefusalDocument {
            schema: REFUSAL_SCHEMA,
            message: &format!("{error:#}"),
            findings: known.map_or(&[], |error| &error.findings),
        };
        // What cannot be written has been said on stderr.
        let _ = out::json(&document).and_then(|()| out::end());
    }
}
