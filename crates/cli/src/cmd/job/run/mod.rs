//! `fathom job run`: runs job files, or a job given as fio options, and records it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use fathom_campaign::Ledgers;
use fathom_campaign::ledger::BytesWritten;
use fathom_engine::Request;
use fathom_engine::fio::client::Servers;
use fathom_engine::fio::raw;
use fathom_engine::fio::stream::select;
use fathom_engine::jobfile::shell_quote;
use fathom_engine::jobfile::value::{self, TimeUnit};
use fathom_engine::select::Selected;
use fathom_engine::sim::SIMULATED;
use fathom_fleet::local::{self, FleetError, StepRequest};
use fathom_fleet::{MaxErrors, TargetCheck};
use fathom_model::{Event, Exit, RunStatus};
use fathom_record::{Header, Writer};
use serde_json::json;

use crate::cmd::job::Setting;
use crate::cmd::{ExitError, Global};
use crate::engine::EngineOrSim;
use crate::format::Format;
use crate::live::{Live, LiveOptions};
use crate::{out, signals};

mod clients;
mod engine;
mod globals;
mod hosts;
mod plan;

use plan::Plan;

/// Name of the command in a record's header.
const COMMAND: &str = "job run";

/// Run job files, or a job given as fio options, and record the run
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The run's record holds the samples of every interval, fio's own output, the job files as run and
the machine. Ctrl-C ends the run and keeps what was measured; a second Ctrl-C kills it. SIGUSR1, or
a file fathom-dump-status in $TMPDIR (else $TEMP, else /tmp), prints the state so far.

Examples:
  fathom job run randread.fio                          one job file
  fathom job run fill.fio read.fio                     two, one after the other
  fathom job run -- --name=a --rw=randread --size=64m  a job as fio options
  fathom job run mix.fio --section=reads --set runtime=10
  fathom job run disk.fio --destroy nvme-ACME_1234     writes to a device: name it
  fathom job run disk.fio --dry-run                    what would be executed
  fathom job run disk.fio --engine native              needs nothing installed
  fathom job run a.fio --client nas1 --client nas2,4444    by the fio servers there, as one run
  fathom job run a.fio --client lab.hosts --min-clients 30 goes on when a few are lost
  fathom job run a.fio --hosts bench1,bench2,root@nas      on all of them at once, over ssh
  fathom job run a.fio --output-format=json > a.json   exactly as fio writes it")]
pub struct Args {
    /// Job files, run one after the other
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Options of fio's own, or a whole job instead of a file
    #[arg(last = true, value_name = "FIO OPTIONS")]
    pub fio_options: Vec<String>,
    /// Which engine runs the jobs
    #[arg(long, value_enum, default_value_t)]
    pub engine: EngineOrSim,
    /// The device that '--engine sim' simulates [default: a healthy one]
    #[arg(long, value_name = "FILE")]
    pub sim: Option<PathBuf>,
    /// Run only this section (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub section: Vec<String>,
    /// Set an option in every job (may be repeated)
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Setting>,
    /// Name of the run [default: the first file's, or the job's]
    #[arg(long)]
    pub name: Option<String>,
    /// Time between two samples
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub interval: Duration,
    /// Stop the run after this time
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Fail when more I/Os of a job fail than this number, or share in percent, though the job
    /// goes on after them (continue_on_error, ignore_error)
    #[arg(long, value_name = "N|P%")]
    pub max_errors: Option<MaxErrors>,
    /// Confirm that a device may be overwritten: its serial number, its name in
    /// /dev/disk/by-id, or PATH=SIZE where it has neither (may be repeated)
    #[arg(long, value_name = "WORDS")]
    pub destroy: Vec<String>,
    /// Show every command that would be executed, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Take unknown options and other warnings as errors
    #[arg(long)]
    pub strict: bool,
    /// Print one of fio's own outputs instead of a table
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "json")]
    pub output_format: Option<Format>,
    /// Write that output to this file instead of stdout
    #[arg(long, value_name = "FILE", requires = "output_format")]
    pub output: Option<PathBuf>,
    /// The fio to use [default: $FATHOM_FIO, or the one in PATH]
    #[arg(long, value_name = "PATH")]
    pub fio: Option<PathBuf>,
    #[command(flatten)]
    pub clients: clients::ClientArgs,
}

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    check_simulation(args)?;
    args.output
        .iter()
        .try_for_each(|path| crate::cmd::may_write(path))?;
    if !args.clients.hosts.is_empty() {
        return hosts::run(global, args);
    }
    let (servers, files) = clients::resolve(args)?;
    let Some(mut ready) = ready(global, args, servers, &files)? else {
        return Ok(Exit::Success);
    };
    // Taken over before anything starts: an early Ctrl-C leaves no fio behind.
    let control = signals::control()?;
    if !control.all_are_ready() {
        return Ok(Exit::Interrupted);
    }
    let mut writer = begin_record(global, args, &ready)?;
    let dir = writer.dir().to_owned();
    let steps = store_jobs(args, &ready, &writer)?;
    let mut entered = Entered::begin(&mut ready, &dir);
    let mut live = Live::new(LiveOptions::new(global.quiet, global.color));
    for note in &ready.plan.notes {
        let note = Event::Note { text: note.clone() };
        writer.append(&note).map_err(record_error)?;
        live.observe(&note);
    }
    let told_by_table = table_follows_at_once(global, args, &steps);
    let engine = ready.runner.engine();
    let targets = ready.is_here.then(|| TargetCheck::new(&args.destroy));
    let done = local::run(engine, &steps, writer, targets, &control, &mut |event| {
        entered.moved.take(event);
        if !(told_by_table && matches!(event, Event::Note { .. } | Event::Failure(_))) {
            live.observe(event);
        }
    });
    live.finish();
    for text in entered.end(&dir) {
        match control.lead() {
            Some(lead) => lead.event(&Event::Note { text }),
            None => out::note(text),
        }
    }
    show(global, args, &dir, &steps)?;
    exit_of(done)
}

fn exit_of(done: Result<(PathBuf, RunStatus), FleetError>) -> anyhow::Result<Exit> {
    match done {
        Ok((_, RunStatus::Complete)) => Ok(Exit::Success),
        Ok((_, RunStatus::Interrupted)) => Ok(Exit::Interrupted),
        Ok((_, RunStatus::Failed | RunStatus::Running)) => Ok(Exit::Failed),
        Err(error @ FleetError::Record { .. }) => Err(record_error(error)),
    }
}

/// Everything checked that can be checked; nothing opened but what is kept from
/// others.
struct Ready {
    plan: Plan,
    runner: Selected,
    work_dir: PathBuf,
    /// Whether the jobs use devices of this machine.
    is_here: bool,
    _hold: fathom_device::Hold,
}

/// What the ledgers of this machine's devices are told of a run: wherever the
/// jobs run, Fathom there keeps the ledgers.
struct Entered {
    ledgers: Ledgers,
    moved: BytesWritten,
}

impl Entered {
    /// The run is about to write; what could not be entered joins the notes.
    fn begin(ready: &mut Ready, dir: &Path) -> Self {
        let ledgers = match ready.is_here {
            true => Ledgers::of_user(),
            false => Ledgers::none(),
        };
        let written = ready.plan.written(&ready.work_dir);
        let written = written.iter().map(PathBuf::as_path);
        let notes = ledgers.begin(written, COMMAND, Some(dir));
        ready.plan.notes.extend(notes);
        let moved = BytesWritten::default();
        Self { ledgers, moved }
    }

    /// The run has ended; gives what could not be entered.
    fn end(self, dir: &Path) -> Vec<String> {
        self.ledgers.end(COMMAND, dir, self.moved.of_jobs())
    }
}

/// `None` after a dry run.
fn ready(
    global: &Global,
    args: &Args,
    servers: Option<Servers>,
    files: &[PathBuf],
) -> anyhow::Result<Option<Ready>> {
    let mut plan = Plan::make(args, files, servers.as_ref())?;
    let work_dir = std::env::current_dir().context("the current folder is gone")?;
    let (runner, note) = engine::choose(args, &plan, servers.clone())?;
    plan.notes.extend(note);
    // A simulation touches nothing, and the jobs of servers nothing here.
    let is_here = !runner.is_simulated() && servers.is_none();
    if args.dry_run {
        let layouts = match is_here {
            true => plan.layouts(&work_dir),
            false => Vec::new(),
        };
        dry_run(global, args, &plan, &runner, &work_dir, &layouts)?;
    }
    if is_here {
        plan.check_targets(&work_dir, &args.destroy)?;
    } else if let Some(servers) = &servers {
        let notes = clients::check_devices(servers, &plan.steps, &args.destroy)?;
        plan.notes.extend(notes);
    }
    if args.dry_run {
        return Ok(None);
    }
    let hold = match is_here {
        true => plan.hold(&work_dir)?,
        false => fathom_device::Hold::default(),
    };
    Ok(Some(Ready {
        plan,
        runner,
        work_dir,
        is_here,
        _hold: hold,
    }))
}

/// Refuses what makes no sense together with, or without, a simulation.
fn check_simulation(args: &Args) -> anyhow::Result<()> {
    let simulated = args.engine == EngineOrSim::Sim;
    let is_fio = matches!(args.engine, EngineOrSim::Auto | EngineOrSim::Fio);
    let what = if !args.clients.client.is_empty() && !is_fio {
        "fio servers run jobs with fio, and with no other engine\n  to do: leave out --engine"
    } else if args.sim.is_some() && !simulated {
        "--sim describes a simulated device\n  to do: add --engine sim"
    } else if simulated && args.output_format.is_some() {
        "figures of a simulation are not written in the formats of fio, where nothing would tell that they are none"
    } else {
        return Ok(());
    };
    Err(ExitError {
        exit: Exit::Usage,
        message: what.to_owned(),
    }
    .into())
}

/// Whether the person who sees the progress reads the same from the table a
/// moment later: failures of a single step come at its end.
fn table_follows_at_once(global: &Global, args: &Args, steps: &[StepRequest]) -> bool {
    let on_terminal = out::style(global.color).width.is_some();
    on_terminal && steps.len() == 1 && !global.json && args.output_format.is_none()
}

fn record_error(error: impl std::fmt::Display) -> anyhow::Error {
    ExitError {
        exit: Exit::Record,
        message: error.to_string(),
    }
    .into()
}

fn begin_record(global: &Global, args: &Args, ready: &Ready) -> anyhow::Result<Writer> {
    let (plan, runner) = (&ready.plan, &ready.runner);
    let first = plan.steps.first().map_or("job", |step| step.name.as_str());
    let name = args.name.as_deref().unwrap_or(first);
    let (name, targets) = match runner.is_simulated() {
        true => (format!("{name}{SIMULATED}"), Vec::new()),
        // What is on other machines cannot be looked at from here.
        false if !args.clients.client.is_empty() => (name.to_owned(), Vec::new()),
        false => (name.to_owned(), plan.targets(&ready.work_dir)),
    };
    let mut header = Header::new(&name, COMMAND);
    header.environment = Some(fathom_device::environment(&targets));
    let command: Vec<_> = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    header.facts.insert("command".into(), json!(command));
    Writer::create(&global.runs, &header).map_err(record_error)
}

/// Puts the job files into the record, from where they are run.
fn store_jobs(args: &Args, ready: &Ready, writer: &Writer) -> anyhow::Result<Vec<StepRequest>> {
    let (plan, work_dir) = (&ready.plan, ready.work_dir.as_path());
    let jobs_dir = writer.jobs_dir().map_err(record_error)?;
    let raw_dir = writer.raw_dir().map_err(record_error)?;
    let keep = |path: &Path, bytes: &[u8]| {
        fs::write(path, bytes).map_err(|e| record_error(format!("{}: {e}", path.display())))
    };
    let mut requests = Vec::new();
    for step in &plan.steps {
        let job_file = jobs_dir.join(&step.file_name);
        keep(&job_file, step.text.as_bytes())?;
        if let Some(written) = step
            .written
            .as_ref()
            .filter(|w| **w != step.text.as_bytes())
        {
            keep(
                &jobs_dir.join(format!("{}.as-written", step.file_name)),
                written,
            )?;
        }
        let raw_dir = match plan.steps.len() {
            1 => raw_dir.clone(),
            _ => raw_dir.join(step.file_name.trim_end_matches(".fio")),
        };
        requests.push(request(args, plan, step, job_file, raw_dir, work_dir));
    }
    Ok(requests)
}

fn request(
    args: &Args,
    plan: &Plan,
    step: &plan::Step,
    job_file: PathBuf,
    raw_dir: PathBuf,
    work_dir: &Path,
) -> StepRequest {
    StepRequest {
        name: step.name.clone(),
        request: Request {
            job_file,
            sections: plan.sections.clone(),
            extra_args: plan.passed.clone(),
            work_dir: work_dir.to_owned(),
            raw_dir,
            interval: args.interval,
            deadline: args.timeout,
        },
        max_errors: args.max_errors,
    }
}

/// Prints the result: fio's own words, a document, or a table.
fn show(global: &Global, args: &Args, dir: &Path, steps: &[StepRequest]) -> anyhow::Result<()> {
    let Some(format) = args.output_format else {
        return show_report(global, dir);
    };
    let mut written = Vec::new();
    for step in steps {
        // A step that failed early left nothing; its failure was told.
        let kept = fs::read(step.request.raw_dir.join(raw::OUT)).unwrap_or_default();
        written.extend(select(&kept, format.into()));
    }
    match &args.output {
        Some(path) => fs::write(path, written).with_context(|| path.display().to_string()),
        None => {
            out::bytes(&written);
            Ok(())
        }
    }
}

fn show_report(global: &Global, dir: &Path) -> anyhow::Result<()> {
    let mut doc = fathom_report::read(dir)?;
    if global.json {
        fathom_report::drop_histograms(&mut doc);
        out::json(&doc)
    } else {
        out::text(fathom_report::table(&doc, out::style(global.color)));
        Ok(())
    }
}

/// Shows each command and the job file that it would read.
fn dry_run(
    global: &Global,
    args: &Args,
    plan: &Plan,
    runner: &Selected,
    work_dir: &Path,
    layouts: &[String],
) -> anyhow::Result<()> {
    let jobs_dir = global.runs.join("RUN").join("jobs");
    let mut steps = Vec::new();
    for step in &plan.steps {
        let job_file = jobs_dir.join(&step.file_name);
        let request = request(args, plan, step, job_file.clone(), PathBuf::new(), work_dir).request;
        let command = runner.command(&request)?;
        if global.json {
            steps.push(json!({ "name": step.name, "command": command, "job_file": step.text }));
            continue;
        }
        if command.is_empty() {
            let name = runner.engine().name();
            out::line(format_args!("# the {name} engine, in this process, runs"));
        } else {
            let quoted: Vec<String> = command.iter().map(|arg| shell_quote(arg)).collect();
            out::line(quoted.join(" "));
        }
        out::line(format_args!("# {}:", job_file.display()));
        for line in step.text.lines() {
            out::line(format_args!("#   {line}"));
        }
    }
    if global.json {
        out::json(
            &json!({ "schema": "fathom.dry-run/1", "engine": runner.engine().name(), "steps": steps, "layouts": layouts }),
        )?;
    } else {
        layouts
            .iter()
            .for_each(|text| out::line(format_args!("# {text}")));
    }
    Ok(())
}

/// Reads a time as fio does, in seconds without a unit: `500ms`, `10s`, `2m`, `1h`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let time_us = value::time_us(text, TimeUnit::Seconds).map_err(|fault| fault.to_string())?;
    match u64::try_from(time_us).map(Duration::from_micros) {
        Ok(time) if time >= Duration::from_millis(1) => Ok(time),
        _ => Err("it must be at least 1ms".to_owned()),
    }
}
