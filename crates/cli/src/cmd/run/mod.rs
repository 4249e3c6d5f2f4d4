//! `fathom run` and `fathom resume`: run a campaign.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_campaign::Only;
use fathom_campaign::plan::{MeasureOrder, Overrides};
use fathom_campaign::run::{self, CampaignOptions, ReadyCampaign, RunStart};
use fathom_engine::Control;
use fathom_fleet::MaxErrors;
use fathom_flow::error::RunError;
use fathom_flow::ledger::Ledgers;
use fathom_flow::plan_log::Head;
use fathom_flow::progress::Progress;
use fathom_flow::{Ending, Finish, RunOptions};
use fathom_model::{Exit, RunStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::campaign::{Budget, CampaignArgs, OverBudget, tell_notes};
use super::hosts::{HostArgs, HostVariable, HostVariables, usage};
use super::job::duration;
use super::measuring::MeasuringArgs;
use super::run_args::{check_engine, from_here, program};
use super::{ErrorLimit, ExitError, Global, study};
use crate::engine::EngineOrSim;
use crate::{out, signals};

mod dry;
mod hosts;
pub mod screen;
pub mod stage;
pub mod summary;

/// Run a campaign, or go on with it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Goes on with the campaign's current record, the last one of this folder, and runs what has not been
measured there with the same job file on the same device. Ctrl-C ends the point that runs, keeps
what was measured and leaves the rest for fathom resume; so does a kill or a power cut. A point that
fails is a row with its reason, and the campaign goes on. The logs below logs/ are those of
fio-tests.

Examples:
  fathom run                           what is left, or all of it
  fathom run --dry-run                 every step and its command; nothing is run
  fathom run --destroy nvme-ACME_1234  writes to a device: name it
  fathom run --only randwrite          only these points
  fathom run --repeat 5                five measurements of each point
  fathom run --hosts bench1,bench2,root@nas
                                       on all of them at once, each point together
  fathom run --max-time 8h             no point begins that would end later
  fathom run --max-written 20T         it ends once it has written so much
  fathom run --again                   from the start, in a new record
  fathom run study.toml                a plan file: see docs/STUDIES.md")]
pub struct Args {
    /// A plan file instead of the campaign of a folder
    #[arg(value_name = "FILE.toml")]
    file: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// Start a new record instead of going on with the last
    #[arg(long)]
    again: bool,
}

/// What both commands take.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    #[command(flatten)]
    pub which: CampaignArgs,
    /// Show every step and every command that would be executed, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Confirm that a device may be overwritten: its serial number, its name in
    /// /dev/disk/by-id, or PATH=SIZE where it has neither (may be repeated)
    #[arg(long, value_name = "WORDS")]
    pub destroy: Vec<String>,
    /// Try points again that have failed
    #[arg(long)]
    retry_failed: bool,
    /// Measure each point so often
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// How the measurements of a point follow each other
    #[arg(long, value_enum, value_name = "ORDER")]
    order: Option<RepeatOrder>,
    /// Measure every series to its end, also when it only gets worse
    #[arg(long)]
    no_guard: bool,
    /// Time between two samples
    #[arg(long, value_name = "TIME", value_parser = duration)]
    interval: Option<Duration>,
    /// Longest time of a point
    #[arg(long, value_name = "TIME", value_parser = duration)]
    point_limit: Option<Duration>,
    #[command(flatten)]
    errors: ErrorLimit,
    #[command(flatten)]
    _measuring: MeasuringArgs,
    #[command(flatten)]
    pub budget: Budget,
    /// Which engine runs the points
    #[arg(long, value_enum)]
    pub engine: Option<EngineOrSim>,
    /// The device that '--engine sim' simulates [default: a healthy one]
    #[arg(long, value_name = "FILE", value_parser = from_here)]
    sim: Option<PathBuf>,
    /// The fio to use [default: $FATHOM_FIO, or the one in PATH]
    #[arg(long, value_name = "PATH", value_parser = program)]
    pub fio: Option<PathBuf>,
    /// The device under test, from the Fathom that sent this one
    #[arg(long, hide = true, value_name = "FILE")]
    dut: Option<PathBuf>,
    #[command(flatten)]
    hosts: HostArgs,
    /// A variable of the job files for all of these machines, or HOST:NAME=VALUE
    /// for one of them (may be repeated) [default: the value here, else each
    /// host's own]
    #[arg(long, value_name = "NAME=VALUE", help_heading = "On several machines")]
    var: Vec<HostVariable>,
}

/// How the measurements of a point follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
enum RepeatOrder {
    /// A whole series, then the series again
    Interleaved,
    /// A point as often as asked, then the next point
    InARow,
}

/// The flags that `resume` takes over from the last start: those that decide
/// which measurements there are.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ResumeFlags {
    only: Vec<String>,
    repeat: Option<u32>,
    order: Option<RepeatOrder>,
    engine: Option<EngineOrSim>,
    sim: Option<PathBuf>,
    no_guard: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    point_limit: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fio: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over_budget: Option<OverBudget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endurance_tbw: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_errors: Option<MaxErrors>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_written: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_hosts: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    allow_same_host: bool,
    #[serde(skip_serializing_if = "HostVariables::is_empty")]
    variables: HostVariables,
}

impl Flags {
    /// The machines that are named.
    pub fn hosts(&self) -> &HostArgs {
        &self.hosts
    }

    /// Puts what was given now into what was kept of another run.
    pub fn apply(&self, options: &mut RunOptions) {
        options.destroy.clear();
        options.max_time = None;
        self.over(options);
    }

    /// Refuses what the engine of a run that goes on does not use.
    ///
    /// # Errors
    /// As [`check_engine`].
    pub fn must_fit(&self, options: &RunOptions) -> Result<(), ExitError> {
        let engine = EngineOrSim::named(&options.engine);
        check_engine(engine, self.sim.is_some(), self.fio.is_some())
    }

    /// Puts what was given over what was said elsewhere.
    pub fn over(&self, options: &mut RunOptions) {
        options.destroy.extend(self.destroy.iter().cloned());
        options.max_time = self.budget.max_time.or(options.max_time);
        options.max_written = self.budget.max_written.or(options.max_written);
        options.max_errors = self.errors.max_errors.or(options.max_errors);
        if let Some(engine) = self.engine {
            engine.name().clone_into(&mut options.engine);
        }
        options.fio = self.fio.clone().or_else(|| options.fio.take());
        options.sim = self.sim.clone().or_else(|| options.sim.take());
    }

    fn kept(&self) -> ResumeFlags {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        ResumeFlags {
            only: self
                .which
                .only
                .iter()
                .map(|only| only.as_str().to_owned())
                .collect(),
            repeat: self.repeat,
            order: self.order,
            engine: self.engine,
            sim: self.sim.as_deref().map(absolute),
            fio: self.fio.as_deref().map(absolute),
            no_guard: self.no_guard,
            interval: self.interval,
            point_limit: self.point_limit,
            over_budget: self.budget.over_budget,
            endurance_tbw: self.budget.endurance_tbw,
            max_errors: self.errors.max_errors,
            max_written: self.budget.max_written,
            hosts: self.hosts.hosts.clone(),
            min_hosts: self.hosts.min_hosts,
            allow_same_host: self.hosts.allow_same_host,
            variables: self.hosts.variables.clone(),
        }
    }

    /// Takes over what was not given from the last start.
    fn fill(&mut self, kept: ResumeFlags) {
        if self.which.only.is_empty() {
            self.which.only = kept.only.iter().map(|only| Only::new(only)).collect();
        }
        self.repeat = self.repeat.or(kept.repeat);
        self.order = self.order.or(kept.order);
        self.engine = self.engine.or(kept.engine);
        self.sim = self.sim.take().or(kept.sim);
        // Another engine runs no fio.
        let runs_fio = !matches!(self.engine, Some(EngineOrSim::Native | EngineOrSim::Sim));
        self.fio = self.fio.take().or(kept.fio.filter(|_| runs_fio));
        self.no_guard |= kept.no_guard;
        self.interval = self.interval.or(kept.interval);
        self.point_limit = self.point_limit.or(kept.point_limit);
        self.budget.over_budget = self.budget.over_budget.or(kept.over_budget);
        self.budget.endurance_tbw = self.budget.endurance_tbw.or(kept.endurance_tbw);
        self.errors.max_errors = self.errors.max_errors.or(kept.max_errors);
        self.budget.max_written = self.budget.max_written.or(kept.max_written);
        if !self.hosts.is_given() {
            self.hosts.hosts = kept.hosts;
            self.hosts.variables = kept.variables;
        }
        self.hosts.min_hosts = self.hosts.min_hosts.or(kept.min_hosts);
        self.hosts.allow_same_host |= kept.allow_same_host;
    }

    fn overrides(&self) -> Overrides {
        self.budget.over(Overrides {
            repeat: self.repeat,
            order: self.order.map(|order| match order {
                RepeatOrder::Interleaved => MeasureOrder::Interleaved,
                RepeatOrder::InARow => MeasureOrder::InARow,
            }),
            interval: self.interval,
            point_limit: self.point_limit,
            engine: self.engine.map(|engine| engine.name().to_owned()),
            destroy: self.destroy.clone(),
            dut: self.dut.clone(),
            guard: self.no_guard.then_some(false),
            ..Overrides::default()
        })
    }
}

/// Runs `fathom run`.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if let Some(file) = &args.file {
        global.given.must_be_of("run FILE.toml", "a plan file")?;
        return study::run(global, file, &args.flags);
    }
    let begin = if args.again {
        RunStart::Again
    } else {
        RunStart::Run
    };
    go(global, &args.flags, begin)
}

/// Goes on with a campaign, whose current record is this one.
pub fn resume(global: &Global, mut flags: Flags, record: Option<&Path>) -> anyhow::Result<Exit> {
    if let Some(dir) = record {
        match Head::read(dir).map_err(failed)? {
            Some(head) => flags.fill(kept_flags(dir, head.flags)?),
            None => super::resume::must_have_begun(dir)?,
        }
    }
    go(global, &flags, RunStart::Resume)
}

/// The flags of the last start; of an older Fathom there may be none.
fn kept_flags(dir: &Path, kept: Value) -> anyhow::Result<ResumeFlags> {
    if kept.is_null() {
        return Ok(ResumeFlags::default());
    }
    serde_json::from_value(kept).map_err(|error| {
        let dir = dir.display();
        let what = format!(
            "{dir}: the options of its last start cannot be read: {error}\n  to do: go on with the Fathom that wrote it, or fathom run --again with the options that are wanted"
        );
        ExitError::new(Exit::Input, what).into()
    })
}

fn go(global: &Global, flags: &Flags, begin: RunStart) -> anyhow::Result<Exit> {
    check_engine(flags.engine, flags.sim.is_some(), flags.fio.is_some())?;
    if flags.hosts.is_given() {
        return hosts::go(global, flags, begin);
    }
    if !flags.var.is_empty() {
        return Err(usage(
            "--var is for --hosts\n  to do: on this machine set the variable in the environment",
        ));
    }
    let plan = flags.which.plan(&flags.overrides())?;
    let options = CampaignOptions {
        begin,
        retry_failed: flags.retry_failed,
        partial: !flags.which.only.is_empty(),
        max_errors: flags.errors.max_errors,
        flags: serde_json::to_value(flags.kept())?,
        fio: flags.fio.clone(),
        sim: flags.sim.clone(),
        ledgers: Ledgers::of_user(),
    };
    let runs_dir = flags.which.runs_dir(global);
    if flags.dry_run {
        return dry::run(
            global,
            run::look(&plan, &runs_dir, options).map_err(failed)?,
            &plan,
        );
    }
    let ready = run::ready(&plan, &runs_dir, options).map_err(failed)?;
    if ready.is_done() {
        return nothing_left(global, &ready);
    }
    if let (Some(dir), Some(reason)) = (ready.record(), ready.not_steady()) {
        show(global, dir)?;
        tell_not_steady(&reason, "; --again starts over, in a new record");
        return Ok(Exit::Failed);
    }
    if !global.quiet {
        tell_notes(ready.notes());
        tell_notes(&ready.spending());
    }
    // Taken over before anything starts: an early Ctrl-C leaves no fio behind.
    let control = signals::control()?;
    let finish = screen::observed(global, |begun, observer| {
        ready.run(&control, begun, observer)
    });
    let finish = finish.map_err(failed)?;
    conclude(global, &finish, &control)
}

/// Nothing is left to do: says so, and what could be done.
fn nothing_left(global: &Global, ready: &ReadyCampaign) -> anyhow::Result<Exit> {
    let dir = ready.record().unwrap_or(Path::new(""));
    if !global.quiet {
        let again = "--again starts a new record";
        let hint = match ready.failed() {
            0 => again.to_owned(),
            n => format!("{n} failed: --retry-failed tries them again; {again}"),
        };
        out::note(format_args!(
            "Nothing is left to do in {} ({hint}).",
            dir.display()
        ));
    }
    show(global, dir)?;
    Ok(match ready.failed() {
        0 => Exit::Success,
        _ => Exit::Failed,
    })
}

fn conclude(global: &Global, finish: &Finish, control: &Control) -> anyhow::Result<Exit> {
    show(global, &finish.dir)?;
    // It ran, and what was asked for, points of a steady device, is not there.
    let not_steady = match &finish.ending {
        Some(Ending::NotAttained(reason)) => Some(reason),
        _ => None,
    };
    if let Some(reason) = not_steady {
        tell_not_steady(reason, "");
    }
    if let Some(spent) = &finish.spent {
        let hint = "fathom resume with a higher limit continues";
        tell_notes(&[format!("{spent} ({hint})")]);
    }
    Ok(match finish.status {
        RunStatus::Complete if not_steady.is_some() => Exit::Failed,
        RunStatus::Complete => Exit::Success,
        RunStatus::Interrupted if control.stop_requests() > 0 => Exit::Interrupted,
        _ => Exit::Failed,
    })
}

/// That points were left out because the device is not steady, and what to do.
fn tell_not_steady(reason: &str, more: &str) {
    out::note(format_args!(
        "{reason}\n  to do: SANTA_CLARA_ROUND_LIMIT for more time, or \
         SANTA_CLARA_ROUND_LIMIT_SOFT to measure anyway{more}"
    ));
}

/// The document of the run, or its summary.
fn show(global: &Global, dir: &Path) -> anyhow::Result<()> {
    if global.json {
        let mut doc = fathom_document::read(dir)?;
        fathom_document::drop_histograms(&mut doc);
        return out::json(&doc);
    }
    let progress = Progress::read(dir).map_err(failed)?;
    out::text(summary::text(&progress, out::style(global.color)));
    Ok(())
}

impl From<&RunError> for ExitError {
    /// With the exit code it is to end with.
    fn from(error: &RunError) -> Self {
        let findings = match error {
            RunError::Refused(refused) => refused.findings.clone(),
            _ => Vec::new(),
        };
        Self::new(error.exit(), error).with_findings(findings)
    }
}

/// With the exit code it is to end with.
pub fn failed(error: RunError) -> ExitError {
    ExitError::from(&error)
}
