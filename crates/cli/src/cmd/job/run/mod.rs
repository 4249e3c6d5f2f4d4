//! `fathom job run`: runs job files, or a job given as fio options, and records it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use fathom_engine::Control;
use fathom_engine::existing::{self, Owner};
use fathom_engine_fio::version::Program;
use fathom_engines::EngineName;
use fathom_engines::choice::{self, NoEngine};
use fathom_engines::select::EngineHandle;
use fathom_fio_output::raw;
use fathom_fio_output::stream::select;
use fathom_fleet::hosts::kept;
use fathom_flow::error::RunError;
use fathom_flow::ledger::Ledgers;
use fathom_flow::options::duration;
use fathom_flow::{
    Checked, Finish, Flow, JobStep, Jobs, KeptPlan, Ready, RunOptions, Script, last_try,
};
use fathom_model::{Event, Exit};
use serde_json::{Map, Value, json};

use crate::cmd::drive::{self, Driven, Ended, drive};
use crate::cmd::failed;
use crate::cmd::hosts::{HostVariables, SharedHosts};
use crate::cmd::job::Setting;
use crate::cmd::job::request::JobPlan;
use crate::cmd::planned::Start;
use crate::cmd::planned::{self, RequestKind, RunRequest};
use crate::cmd::run_args::RunArgs;
use crate::cmd::screen::{observed, observed_in_place};
use crate::cmd::{ExitError, Global, dry, header_facts};
use crate::format::FioOutputFormat;
use crate::live::{LiveLines, LiveOptions};
use crate::out;

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
    /// Run only this section (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub section: Vec<String>,
    /// Set an option in every job, or in one: JOB.KEY=VALUE (may be repeated)
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
    /// Take unknown options and other warnings as errors
    #[arg(long)]
    pub strict: bool,
    /// Print one of fio's own outputs instead of a table, or several: `json,normal`
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        value_delimiter = ',',
        conflicts_with = "json"
    )]
    pub output_format: Vec<FioOutputFormat>,
    /// Write that output to this file instead of stdout
    #[arg(long, value_name = "FILE", requires = "output_format")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub clients: clients::ClientArgs,
}

/// What is printed at the end instead of a table.
#[derive(Debug, Clone, Copy, Default)]
struct Output<'a> {
    /// Empty: a table, after all.
    formats: &'a [FioOutputFormat],
    /// Where it goes instead of stdout.
    file: Option<&'a Path>,
}

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    check_simulation(args)?;
    args.output
        .iter()
        .try_for_each(|path| may_print_to(path, &args.output_format))?;
    if !args.clients.hosts.is_empty() {
        return hosts::run(global, args);
    }
    let (servers, files) = clients::resolve(args)?;
    let plan = Plan::make(args, &files, servers.as_ref())?;
    let kept = plan.kept(args, servers)?;
    let output = Output {
        formats: &args.output_format,
        file: args.output.as_deref(),
    };
    kept.go(global, plan, Start::new(args.run.dry_run), output)
}

/// Whether what a run prints at its end may take the place of what is there, which is told
/// before it has run for hours.
fn may_print_to(path: &Path, formats: &[FioOutputFormat]) -> anyhow::Result<()> {
    crate::cmd::may_write(path)?;
    let is_json = |format| matches!(format, FioOutputFormat::Json | FioOutputFormat::JsonPlus);
    let json = formats.iter().copied().all(is_json);
    existing::check_output(path, json).map_err(|why| ExitError::new(Exit::Refused, why).into())
}

impl RequestKind for JobPlan {
    const NAME: &'static str = "job";
}

impl RunRequest for JobPlan {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    fn run(self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        let plan = Plan::of(&self)?;
        self.go(global, plan, start, Output::default())
    }

    fn job(&self) -> Option<&Self> {
        Some(self)
    }
}

impl JobPlan {
    fn go(
        self,
        global: &Global,
        plan: Plan,
        start: Start,
        output: Output<'_>,
    ) -> anyhow::Result<Exit> {
        let placed = self.placed()?;
        let what = (COMMAND, planned::kept(&placed)?);
        let work_dir = placed.work_dir.clone().unwrap_or_default();
        let steps = placed.steps(&plan, &work_dir);
        let jobs = DrivenJobs {
            hosts: placed.hosts.as_ref(),
            by_second: Some((output, steps.len())),
            show: &|dir, exit| show(global, output, dir, &steps).map(|()| exit),
        };
        let script = Jobs(steps.clone());
        placed.execute(global, &plan, what, start, &script, &jobs)
    }

    /// Relative names are meant from here, also when it goes on from elsewhere.
    ///
    /// # Errors
    /// When there is no such folder any more.
    pub fn placed(mut self) -> anyhow::Result<Self> {
        if self.work_dir.is_none() {
            let here = std::env::current_dir();
            self.work_dir = Some(here.context("the current folder is gone")?);
        }
        Ok(self)
    }

    /// Refuses a fio that does not run the job file at this place.
    ///
    /// # Errors
    /// What it lacks.
    pub fn must_run_by(&self, place: usize, fio: &Program) -> anyhow::Result<()> {
        let plan = Plan::of(self)?;
        let Some(step) = plan.steps.get(place) else {
            return Ok(());
        };
        let runs = choice::fio_runs(fio, &step.jobs, &step.text, &[]);
        let none = |lack| failed(RunError::Engine(NoEngine(vec![("fio", lack)])));
        Ok(runs.map_err(none)?)
    }

    /// Every path that its jobs use, from the root on.
    ///
    /// # Errors
    /// What is wrong with its job files.
    pub fn targets(&self) -> anyhow::Result<Vec<PathBuf>> {
        let work_dir = self.work_dir.clone().unwrap_or_default();
        Ok(Plan::of(self)?.targets(&work_dir))
    }

    /// The plan of one job file with these settings in all its jobs; `elsewhere`
    /// where other machines run it.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn of_file(
        file: &Path,
        settings: &[Setting],
        options: RunOptions,
        elsewhere: Option<HostVariables>,
    ) -> anyhow::Result<Self> {
        let plan = Plan::of_file(file, settings, elsewhere)?;
        Ok(plan.with(None, options, (Duration::from_secs(1), None), None))
    }

    /// The same on these machines together, where there are any.
    ///
    /// # Errors
    /// What is wrong with its job files.
    pub fn on(mut self, hosts: Option<SharedHosts>) -> anyhow::Result<Self> {
        if let Some(hosts) = hosts {
            self.hosts = Some(hosts.clone());
            let named = Plan::of(&self)?.variables();
            self.hosts = Some(hosts.knowing(&named));
        }
        Ok(self)
    }

    /// Runs its steps as `repeat` has them, as another command; `show` shows what came of
    /// it, and gives the exit code for that of the jobs.
    ///
    /// # Errors
    /// As [`JobPlan::run`].
    pub fn repeated(
        self,
        global: &Global,
        what: (&str, Value),
        start: Start,
        repeat: impl FnOnce(Vec<JobStep>) -> Box<dyn Script>,
        show: impl Fn(&Path, Exit) -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let plan = Plan::of(&self)?;
        let work_dir = self.work_dir.clone().unwrap_or_default();
        let script = repeat(self.steps(&plan, &work_dir));
        let jobs = DrivenJobs {
            hosts: self.hosts.as_ref(),
            by_second: None,
            show: &show,
        };
        self.execute(global, &plan, what, start, script.as_ref(), &jobs)
    }

    fn execute(
        &self,
        global: &Global,
        plan: &Plan,
        (command, kept): (&str, Value),
        start: Start,
        script: &dyn Script,
        jobs: &DrivenJobs<'_>,
    ) -> anyhow::Result<Exit> {
        let work_dir = self.work_dir.clone().unwrap_or_default();
        let began = Owner::of(start.record.as_deref(), &[]).began;
        let checked = self.check(plan, &work_dir, began)?;
        let flow = self.flow(global, script, command, start.record, (work_dir, kept));
        let ready = flow.checked(checked).map_err(failed)?;
        drive(global, ready, start.dry_run, jobs)
    }

    /// What is found of the engine and the targets, for a run that began then.
    fn check(&self, plan: &Plan, work_dir: &Path, began: SystemTime) -> anyhow::Result<Checked> {
        let (selected, note) = match &self.hosts {
            Some(hosts) => (EngineHandle::Remote(Box::new(hosts.engine(self)?)), None),
            None => engine::choose(self, plan).map_err(|none| failed(RunError::Engine(none)))?,
        };
        let mut notes: Vec<String> = plan.notes.iter().cloned().chain(note).collect();
        // A simulation touches nothing, and the jobs of other machines nothing here.
        let is_elsewhere = self.servers.is_some() || self.hosts.is_some();
        let is_here = !selected.is_simulated() && !is_elsewhere;
        let destroy = &self.options.destroy;
        let (mut targets, mut layouts, mut written) = (Vec::new(), Vec::new(), Vec::new());
        let mut refusal = None;
        if is_here {
            targets = plan.targets(work_dir);
            layouts = plan.layouts(work_dir);
            written = plan.written(work_dir);
            if let Some(device) = &self.device {
                // Its files are not there yet.
                (targets, written) = (vec![device.clone()], Vec::new());
            }
            refusal = plan.against_targets(work_dir, Owner { destroy, began });
        } else if let Some(servers) = &self.servers {
            match clients::check_devices(servers, &plan.steps, destroy) {
                Ok(told) => notes.extend(told),
                Err(against) => refusal = Some(against),
            }
        }
        Ok(Checked {
            selected,
            is_here,
            environment: fathom_device::environment(&targets),
            written,
            notes,
            layouts,
            refusal,
        })
    }

    fn steps(&self, plan: &Plan, work_dir: &Path) -> Vec<JobStep> {
        let of = u32::try_from(plan.steps.len()).unwrap_or(u32::MAX);
        let step = |(number, step): (u32, &plan::JobFileStep)| {
            let written = step.written.as_ref();
            JobStep {
                as_written: written.filter(|it| **it != step.text.as_bytes()).cloned(),
                job_file: PathBuf::from(&step.file_name),
                raw: match of {
                    1 => PathBuf::new(),
                    _ => PathBuf::from(step.file_name.trim_end_matches(".fio")),
                },
                sections: plan.sections.clone(),
                extra_args: plan.passed.clone(),
                work_dir: Some(work_dir.to_owned()),
                interval: self.interval,
                deadline: self.timeout,
                ..JobStep::new((number, of), &step.name, step.text.clone(), &step.jobs)
            }
        };
        (1..).zip(&plan.steps).map(step).collect()
    }

    /// What the header of its record holds.
    fn facts(&self) -> Map<String, Value> {
        let mut facts = header_facts();
        if let Some(hosts) = &self.hosts {
            facts.insert(kept::FACTS.into(), json!(hosts.names));
            if !hosts.variables.is_empty() {
                facts.insert("variables".into(), json!(hosts.variables));
            }
        }
        facts
    }

    fn flow<'f>(
        &'f self,
        global: &Global,
        script: &'f dyn Script,
        command: &'f str,
        record: Option<PathBuf>,
        (work_dir, kept): (PathBuf, Value),
    ) -> Flow<'f> {
        Flow {
            script,
            command,
            name: &self.name,
            device: self.device.clone(),
            work_dir,
            options: RunOptions {
                // Each machine looks at its own.
                max_errors: self.options.max_errors.filter(|_| self.hosts.is_none()),
                ..self.options.clone()
            },
            engine_needs: Vec::new(),
            interval: self.interval,
            runs_dir: global.runs.clone(),
            record,
            ledgers: Ledgers::of_user(),
            facts: self.facts(),
            kept: KeptPlan::Config(kept),
        }
    }
}

/// Jobs of whatever command.
struct DrivenJobs<'a> {
    hosts: Option<&'a SharedHosts>,
    /// A line for each second stays, of so many steps.
    by_second: Option<(Output<'a>, usize)>,
    show: &'a dyn Fn(&Path, Exit) -> anyhow::Result<Exit>,
}

impl Driven<Ready<'_>> for DrivenJobs<'_> {
    fn dry_run(&self, global: &Global, ready: &Ready<'_>) -> anyhow::Result<Exit> {
        dry::show_on(global, ready, |dry| {
            self.hosts.map_or(Ok(()), |hosts| hosts.tell(dry))
        })
    }

    fn run(
        &self,
        global: &Global,
        ready: Ready<'_>,
        control: &Control,
    ) -> anyhow::Result<Option<Finish>> {
        drive::begun(match self.by_second {
            Some((output, steps)) => observed_by_second(global, output, steps, ready, control),
            None => observed(global, |begun, observer| {
                ready.run(control, begun, observer)
            }),
        })
    }

    fn conclude(&self, _global: &Global, ended: &Ended<'_>) -> anyhow::Result<Exit> {
        let exit = ended.finish.map_or(Exit::Success, conclude);
        (self.show)(ended.dir, exit)
    }
}

fn conclude(finish: &Finish) -> Exit {
    if let Some(reason) = &finish.stopped {
        out::note(format_args!(
            "fathom: the run stopped: {reason}\n  to do: fathom resume {} with a higher limit",
            finish.dir.display()
        ));
    }
    if let Some(reason) = &finish.waits {
        out::note(format_args!(
            "fathom: the run waits\n  to do: {reason}, then: fathom resume {}",
            finish.dir.display()
        ));
    }
    finish.exit()
}

/// Runs jobs before somebody's eyes: a line for each second.
fn observed_by_second(
    global: &Global,
    output: Output<'_>,
    steps: usize,
    ready: Ready<'_>,
    control: &Control,
) -> Result<Finish, RunError> {
    let mut lines = LiveLines::new(LiveOptions::new(global.quiet, global.color));
    let told_by_table = steps == 1 && table_follows_at_once(global, output);
    observed_in_place(global, |begun, observer| {
        ready.run(control, begun, &mut |event| {
            if !(told_by_table && matches!(event, Event::Note { .. } | Event::Failure(_))) {
                lines.take(event);
            }
            observer(event);
        })
    })
}

/// Refuses what makes no sense together with, or without, a simulation.
fn check_simulation(args: &Args) -> anyhow::Result<()> {
    let engine = args.run.options.engine();
    let simulated = engine == EngineName::Sim;
    let is_fio = matches!(engine, EngineName::Auto | EngineName::Fio);
    let what = if !args.clients.client.is_empty() && !is_fio {
        "fio servers run jobs with fio, and with no other engine\n  to do: leave out --engine"
    } else if simulated && !args.output_format.is_empty() {
        "figures of a simulation are not written in the formats of fio, where nothing would tell that they are none"
    } else {
        return Ok(());
    };
    Err(ExitError::new(Exit::Usage, what).into())
}

/// Whether the person who sees the progress reads the same from the table a
/// moment later: failures of a single step come at its end.
fn table_follows_at_once(global: &Global, output: Output<'_>) -> bool {
    let on_terminal = out::style(global.color).width.is_some();
    on_terminal && !global.json && output.formats.is_empty()
}

/// Prints the result: fio's own words, a document, or a table.
fn show(global: &Global, output: Output<'_>, dir: &Path, steps: &[JobStep]) -> anyhow::Result<()> {
    if output.formats.is_empty() {
        return show_report(global, dir);
    }
    let formats: Vec<_> = output.formats.iter().map(|&format| format.into()).collect();
    let mut written = Vec::new();
    for step in steps {
        // A step that failed early left nothing; its failure was told.
        let raw_dir = last_try(&dir.join("raw").join(&step.raw)).unwrap_or_default();
        let kept = fs::read(raw_dir.join(raw::OUT)).unwrap_or_default();
        written.extend(select(&kept, &formats));
    }
    match output.file {
        Some(path) => crate::cmd::write_named(path, written),
        None => {
            out::bytes(&written);
            Ok(())
        }
    }
}

fn show_report(global: &Global, dir: &Path) -> anyhow::Result<()> {
    let mut doc = fathom_document::read(dir)?;
    if global.json {
        fathom_document::drop_histograms(&mut doc);
        out::json(&doc)
    } else {
        out::text(fathom_report::table(&doc, out::style(global.color)));
        Ok(())
    }
}
