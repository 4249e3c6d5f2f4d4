//! Runs a test, or goes on with one.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use fathom_analysis::snia::{Setup, Test};
use fathom_campaign::budget::{Cost, Endurance, Limits, Over, Speed};
use fathom_campaign::flow::acts::Purging;
use fathom_campaign::flow::{Ending, Finish, Flow, Ready};
use fathom_campaign::ledger::Ledgers;
use fathom_campaign::snia::{FACTS, Snia, Start, write_cache};
use fathom_device::Sys;
use fathom_device::command::Live;
use fathom_device::purge::Want;
use fathom_engine::Control;
use fathom_engine::sim::Sim;
use fathom_model::environment::BlockDevice;
use fathom_model::{Event, Exit, RunStatus, units};
use fathom_record::Entries;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::dry::{self, Outlook};
use super::screen::Screen;
use super::{How, TestArgs, report};
use crate::cmd::job::duration;
use crate::cmd::{ExitError, Global, run::failed, show};
use crate::engine::EngineOrSim;
use crate::live::LiveOptions;
use crate::{out, signals};

/// Key of [`How`] in a record's facts.
const HOW: &str = "snia_how";
/// Key of the device in them.
const DEVICE: &str = "snia_device";

/// Arguments of `fathom snia resume`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The stage that was broken off is done anew, and what comes after it. The device is checked again and
has to be named again.

Examples:
  fathom snia resume --destroy nvme-ACME_1234
  fathom snia resume 20261121T1307 --destroy nvme-ACME_1234")]
pub struct ResumeArgs {
    /// A record folder, or its name or a part of it; without, the last run
    run: Option<String>,
    /// Confirm that the device may be overwritten
    #[arg(long, value_name = "WORDS")]
    destroy: Vec<String>,
    /// Longest time of this start
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_time: Option<Duration>,
    /// Most bytes written in this start
    #[arg(long, value_name = "BYTES", value_parser = crate::cmd::size)]
    max_written: Option<u64>,
}

/// One test on one device.
struct Job {
    script: Snia,
    how: How,
    device: PathBuf,
    destroy: Vec<String>,
    max_time: Option<Duration>,
    max_written: Option<u64>,
    speed: Option<Speed>,
    endurance_tbw: Option<u64>,
    record: Option<PathBuf>,
}

/// Runs a test on each device, one after the other.
pub fn test(global: &Global, args: &TestArgs, test: Test) -> anyhow::Result<Exit> {
    if args.how.sim.is_some() && args.how.engine != Some(EngineOrSim::Sim) {
        return Err(usage("--sim describes a simulated device\n  to do: add --engine sim").into());
    }
    let jobs: anyhow::Result<Vec<Job>> = args
        .devices
        .iter()
        .map(|device| Job::new(args, test, device))
        .collect();
    let jobs = jobs?;
    if args.dry_run {
        return dry_run(global, &jobs);
    }
    let control = signals::control()?;
    let mut docs = Vec::new();
    let mut worst = Exit::Success;
    for job in &jobs {
        let (exit, doc) = job.run(global, &control)?;
        docs.push(doc);
        if exit != Exit::Success {
            worst = exit;
        }
        if exit == Exit::Interrupted {
            break;
        }
    }
    match (global.json, &docs[..]) {
        (true, [only]) => out::json(only)?,
        (true, _) => out::json(&docs)?,
        (false, _) => {}
    }
    Ok(worst)
}

/// Goes on with a test.
pub fn resume(global: &Global, args: &ResumeArgs) -> anyhow::Result<Exit> {
    let dir = show::find_only(global, args.run.as_deref())?;
    let header = Entries::open(&dir)?.header;
    let kept = Kept::read(&header.facts).ok_or_else(|| ExitError {
        exit: Exit::Missing,
        message: format!(
            "{}: the run is none of fathom snia\n  to do: fathom runs lists what there is",
            dir.display()
        ),
    })?;
    let job = Job {
        script: script(kept.setup, &kept.device, &kept.how, &args.destroy),
        how: kept.how,
        device: kept.device,
        destroy: args.destroy.clone(),
        max_time: args.max_time,
        max_written: args.max_written,
        speed: None,
        endurance_tbw: None,
        record: Some(dir),
    };
    let control = signals::control()?;
    let (exit, doc) = job.run(global, &control)?;
    if global.json {
        out::json(&doc)?;
    }
    Ok(exit)
}

/// What a record's header says of the test in it.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    setup: Setup,
    how: How,
    device: PathBuf,
}

impl Kept {
    fn read(facts: &Map<String, Value>) -> Option<Self> {
        let setup = facts.get(FACTS)?.as_array()?.first()?.clone();
        Some(Self {
            setup: serde_json::from_value(setup).ok()?,
            how: serde_json::from_value(facts.get(HOW)?.clone()).ok()?,
            device: serde_json::from_value(facts.get(DEVICE)?.clone()).ok()?,
        })
    }
}

fn usage(message: &str) -> ExitError {
    ExitError {
        exit: Exit::Usage,
        message: message.to_owned(),
    }
}

fn input(message: String) -> ExitError {
    ExitError {
        exit: Exit::Input,
        message,
    }
}

/// The test as it is run on a device.
fn script(setup: Setup, device: &Path, how: &How, destroy: &[String]) -> Snia {
    let want = Want {
        // It was read before, when it was given.
        choice: how
            .purge
            .as_ref()
            .and_then(|name| name.parse().ok())
            .unwrap_or_default(),
        ..Want::default()
    };
    let reason = format!(
        "fathom snia {} begins on a device that is as new",
        setup.test.name()
    );
    let start = Start {
        purging: Purging::new(device, want, destroy, &reason),
        no_purge: how.no_purge.then(|| "--no-purge".to_owned()),
        cache: setup.write_cache.wanted,
    };
    Snia {
        setup,
        dut: device.to_owned(),
        ioengine: how.ioengine.clone(),
        start: Rc::new(start),
    }
}

/// The size of what is measured: of a partition its own.
fn capacity(device: &BlockDevice) -> u64 {
    let partition = device.partition.as_ref();
    partition.map_or(device.capacity_bytes, |partition| partition.size_bytes)
}

impl Job {
    fn new(args: &TestArgs, test: Test, device: &Path) -> anyhow::Result<Self> {
        let simulated = args.how.engine == Some(EngineOrSim::Sim);
        let device = std::path::absolute(device)?;
        let (capacity_bytes, logical_block_bytes) = match simulated {
            true => {
                let sim = Sim::read(args.how.sim.as_deref()).map_err(input)?;
                (sim.capacity_bytes(), 1)
            }
            false => {
                let environment = fathom_device::environment(std::slice::from_ref(&device));
                let found = environment
                    .targets
                    .into_iter()
                    .find_map(|target| target.device);
                let found = found.ok_or_else(|| ExitError {
                    exit: Exit::Missing,
                    message: format!(
                        "{} is no block device; only whole drives are brought into steady state\n  \
                         to do: name a device (lsblk)",
                        device.display()
                    ),
                })?;
                (capacity(&found), u64::from(found.logical_block_bytes))
            }
        };
        let setup = args
            .other
            .wanted()
            .setup(test, args.class(), capacity_bytes);
        let mut setup = setup.map_err(input)?;
        setup.fit_blocks(logical_block_bytes);
        let wanted = setup
            .write_cache
            .wanted
            .filter(|_| !args.how.keep_cache && !simulated);
        setup.write_cache = match simulated {
            true => fathom_analysis::snia::WriteCache::default(),
            false => write_cache(&Sys::live(), &Live, &device, wanted),
        };
        Ok(Self {
            script: script(setup, &device, &args.how, &args.destroy),
            how: args.how.clone(),
            destroy: args.destroy.clone(),
            max_time: args.max_time,
            max_written: args.max_written,
            speed: args
                .write_speed
                .map(Speed::Said)
                .or_else(|| Speed::of_link(&device)),
            endurance_tbw: args.endurance_tbw,
            record: None,
            device,
        })
    }

    /// The test has ended: its result is shown again, and its record, which says
    /// whether it was interrupted, stays as it is.
    fn nothing_left(
        &self,
        global: &Global,
        dir: &Path,
    ) -> anyhow::Result<(Exit, fathom_report::snia::Document)> {
        let doc = report::read(dir)?;
        if !global.quiet {
            out::note(format_args!("Nothing is left to do in {}.", dir.display()));
        }
        if !global.json {
            report::present(global, &doc)?;
        }
        Ok((Exit::Success, doc))
    }

    fn flow<'f>(&'f self, global: &Global, command: &'f str) -> Flow<'f> {
        let how = &self.how;
        let mut facts = Map::new();
        facts.insert(FACTS.to_owned(), self.script.facts());
        facts.insert(HOW.to_owned(), json!(how));
        facts.insert(DEVICE.to_owned(), json!(self.device));
        Flow {
            script: &self.script,
            command,
            name: command,
            device: self.device.clone(),
            destroy: self.destroy.clone(),
            engine: how.engine.unwrap_or_default().name().to_owned(),
            fio: how.fio.clone(),
            sim: how.sim.clone(),
            interval: Duration::from_millis(self.script.setup.interval_ms),
            limits: Limits {
                time: self.max_time,
                bytes: self.max_written,
                over: Over::Cut,
            },
            runs_dir: global.runs.clone(),
            record: self.record.clone(),
            ledgers: Ledgers::of_user(),
            facts,
        }
    }

    fn command(&self) -> String {
        format!("snia {}", self.script.setup.test.name())
    }

    fn endurance(&self) -> Endurance {
        let ledgers = Ledgers::of_user();
        let entries = ledgers.entries(&self.device).unwrap_or_default();
        Endurance::of(&ledgers.health(&self.device), &entries, self.endurance_tbw)
    }

    /// Tells the plan; refuses one that wants more than it may have.
    fn plan(&self, global: &Global, ready: &Ready) -> anyhow::Result<Outlook> {
        let outlook = Outlook::of(&self.script, ready.history(), self.speed);
        if !global.quiet {
            for line in dry::plan(&self.script, &outlook, &self.endurance()) {
                out::note(line);
            }
            for note in ready.notes() {
                out::note(format_args!("note: {note}"));
            }
        }
        self.within(&outlook.least())?;
        Ok(outlook)
    }

    fn within(&self, least: &Cost) -> Result<(), ExitError> {
        let refused = |what: String| ExitError {
            exit: Exit::Refused,
            message: format!("{what}\n  to do: allow more, or see what --dry-run says"),
        };
        if let Some(limit) = self.max_time.filter(|&limit| least.duration > limit) {
            let ms = |time: Duration| units::duration(time.as_millis() as u64);
            return Err(refused(format!(
                "the test takes {} at least, and --max-time allows {}",
                ms(least.duration),
                ms(limit)
            )));
        }
        if let Some(limit) = self.max_written.filter(|&limit| least.write_bytes > limit) {
            let bytes = |bytes: u64| units::bytes(bytes as f64);
            return Err(refused(format!(
                "the test writes {} at least, and --max-written allows {}",
                bytes(least.write_bytes),
                bytes(limit)
            )));
        }
        Ok(())
    }

    /// Runs it and tells what came of it.
    fn run(
        &self,
        global: &Global,
        control: &Control,
    ) -> anyhow::Result<(Exit, fathom_report::snia::Document)> {
        let command = self.command();
        let ready = self.flow(global, &command).look().map_err(failed)?;
        if let Some(dir) = self.record.as_deref()
            && Outlook::of(&self.script, ready.history(), None).is_over()
        {
            return self.nothing_left(global, dir);
        }
        // A refusal comes before a plan that could not be carried out.
        if ready.refusal().is_none() {
            self.plan(global, &ready)?;
        }
        let options = LiveOptions::new(global.quiet, global.color);
        let mut screen = Screen::new(options, &self.script, ready.history().clone());
        let mut observer = |event: &Event| screen.take(event);
        let finish = ready.run(control, &mut |_| {}, &mut observer);
        screen.finish();
        let finish = finish.map_err(failed)?;
        let doc = report::read(&finish.dir)?;
        if !global.json {
            report::present(global, &doc)?;
        }
        Ok((conclude(&finish), doc))
    }
}

/// What is to be said behind the findings, and the exit code: that steady state
/// was not attained is a result.
fn conclude(finish: &Finish) -> Exit {
    let resume = format!("fathom snia resume {} --destroy …", finish.dir.display());
    match (&finish.ending, &finish.stopped) {
        (Some(Ending::Complete), _) => return Exit::Success,
        (Some(Ending::NotAttained(numbers)), _) => {
            out::note(format_args!("NOT STEADY: {numbers}"));
            return Exit::Success;
        }
        (Some(Ending::Failed(reason)), _) => {
            out::note(format_args!("fathom: {reason}\n  to do: {resume}"));
        }
        (None, Some(reason)) => {
            out::note(format_args!(
                "fathom: it was stopped: {reason}\n  to do: {resume}"
            ));
        }
        (None, None) => out::note(format_args!("to go on: {resume}")),
    }
    match finish.status {
        RunStatus::Interrupted if finish.stopped.is_none() => Exit::Interrupted,
        _ => Exit::Failed,
    }
}

/// Shows what would be done.
fn dry_run(global: &Global, jobs: &[Job]) -> anyhow::Result<Exit> {
    let mut steps = Vec::new();
    let mut refusal: Option<(Exit, String)> = None;
    let mut engine = "";
    for job in jobs {
        let command = job.command();
        let ready = job.flow(global, &command).look().map_err(failed)?;
        let outlook = Outlook::of(&job.script, ready.history(), job.speed);
        engine = ready.selected().engine().name();
        for line in dry::plan(&job.script, &outlook, &job.endurance()) {
            out::note(line);
        }
        steps.extend(dry::show(global, &job.script, &outlook, engine));
        if let Some(against) = ready.refusal() {
            refusal = refusal.or_else(|| Some((against.exit(), against.to_string())));
            continue;
        }
        job.within(&outlook.least())?;
    }
    if global.json {
        out::json(&json!({ "schema": "fathom.dry-run/1", "engine": engine, "steps": steps }))?;
    }
    match refusal {
        Some((exit, message)) => Err(ExitError { exit, message }.into()),
        None => Ok(Exit::Success),
    }
}
