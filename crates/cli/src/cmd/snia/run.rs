//! Runs a test, or goes on with one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_analysis::snia::{Setup, SniaTest};
use fathom_campaign::snia::{FACTS, Snia, SniaChoices};
use fathom_engine::Control;
use fathom_flow::budget::{Cost, Endurance, Speed};
use fathom_flow::ledger::Ledgers;
use fathom_flow::{Ending, Finish, Flow, KeptPlan, Ready, RunOptions};
use fathom_model::{Exit, units};
use fathom_record::{Entries, Header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::dry::{self, Outlook};
use super::{How, TestArgs, report};
use crate::cmd::campaign::{tell, tell_notes};
use crate::cmd::dry::DryRun;
use crate::cmd::measuring::MeasuringArgs;
use crate::cmd::resume::as_started;
use crate::cmd::run::screen::observed;
use crate::cmd::run::{Flags, failed};
use crate::cmd::{ExitError, Global, nothing_left, run_args, show};
use crate::{out, signals};

/// Key of [`How`] in a record's facts.
const HOW: &str = "snia_how";
/// Key of the device in them.
const DEVICE: &str = "snia_device";
/// Key of the options in them, and of the most bytes where an earlier version kept them.
const OPTIONS: &str = "snia_options";
const MAX_WRITTEN: &str = "snia_max_written";

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
    #[command(flatten)]
    options: RunOptions,
    /// Show what is left and every command that would be executed, and run nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    _measuring: MeasuringArgs,
}

/// One test on one device.
struct Job {
    script: Snia,
    how: How,
    device: PathBuf,
    options: RunOptions,
    speed: Option<Speed>,
    endurance_tbw: Option<u64>,
    record: Option<PathBuf>,
}

/// Runs a test on each device, one after the other.
pub fn test(global: &Global, args: &TestArgs, test: SniaTest) -> anyhow::Result<Exit> {
    args.options.check().map_err(run_args::usage)?;
    if let (true, Some(why)) = (args.other.all_cells, test.why_not("all-cells")) {
        let what = format!("there is no --all-cells here: {why}");
        return Err(ExitError::new(Exit::Usage, what).into());
    }
    let jobs: anyhow::Result<Vec<Job>> = args
        .devices
        .iter()
        .enumerate()
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

/// Goes on with the test of this record, as `fathom resume` was told.
pub fn resume_as(
    global: &Global,
    flags: &Flags,
    dir: PathBuf,
    header: &Header,
) -> anyhow::Result<Exit> {
    let args = ResumeArgs {
        run: None,
        options: flags.request.options.clone(),
        _measuring: MeasuringArgs::default(),
        dry_run: flags.dry_run,
    };
    go_on(global, &args, dir, header)
}

/// Goes on with a test.
pub fn resume(global: &Global, args: &ResumeArgs) -> anyhow::Result<Exit> {
    let dir = show::find_only(global, args.run.as_deref())?;
    let header = Entries::open(&dir)?.header;
    as_started(&header);
    go_on(global, args, dir, &header)
}

fn go_on(
    global: &Global,
    args: &ResumeArgs,
    dir: PathBuf,
    header: &Header,
) -> anyhow::Result<Exit> {
    let kept = SniaFacts::read(&header.facts).ok_or_else(|| {
        ExitError::new(
            Exit::Missing,
            format!(
                "{}: not a fathom snia run\n  to do: fathom runs lists what there is",
                dir.display()
            ),
        )
    })?;
    let mut options = kept.options;
    options.again(&args.options).map_err(failed)?;
    options.check_one().map_err(run_args::usage)?;
    let job = Job {
        script: {
            let setup = kept.setup;
            let ask = kept
                .how
                .ask(setup.test, setup.class, SniaChoices::default());
            Snia::of_setup(setup, &ask, &kept.device, &options.destroy).map_err(failed)?
        },
        how: kept.how,
        device: kept.device,
        options,
        speed: None,
        endurance_tbw: None,
        record: Some(dir),
    };
    if args.dry_run {
        return dry_run(global, &[job]);
    }
    let control = signals::control()?;
    let (exit, doc) = job.run(global, &control)?;
    if global.json {
        out::json(&doc)?;
    }
    Ok(exit)
}

/// What a record's header says of the test in it.
#[derive(Debug, Serialize, Deserialize)]
struct SniaFacts {
    setup: Setup,
    how: How,
    device: PathBuf,
    options: RunOptions,
}

impl SniaFacts {
    fn read(facts: &Map<String, Value>) -> Option<Self> {
        let setup = facts.get(FACTS)?.as_array()?.first()?.clone();
        let how = facts.get(HOW)?;
        // Records of earlier versions have them among those of the test.
        let options = facts.get(OPTIONS).unwrap_or(how).clone();
        let mut options: RunOptions = serde_json::from_value(options).ok()?;
        let max_written = facts.get(MAX_WRITTEN).and_then(Value::as_u64);
        options.max_written = options.max_written.or(max_written);
        Some(Self {
            setup: serde_json::from_value(setup).ok()?,
            how: serde_json::from_value(how.clone()).ok()?,
            device: serde_json::from_value(facts.get(DEVICE)?.clone()).ok()?,
            options,
        })
    }
}

impl Job {
    fn new(
        args: &TestArgs,
        test: SniaTest,
        (place, device): (usize, &PathBuf),
    ) -> anyhow::Result<Self> {
        let options = args.options.of_device(place);
        let sim = options.is_simulated().then_some(options.sim(0));
        let device = std::path::absolute(device)?;
        let ask = args.how.ask(test, args.class(), args.other.wanted());
        let script = Snia::on(&ask, &device, sim, &options.destroy).map_err(failed)?;
        Ok(Self {
            script,
            how: args.how.clone(),
            options,
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
        nothing_left(global, dir);
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
        facts.insert(OPTIONS.to_owned(), json!(self.options.kept()));
        Flow {
            script: &self.script,
            command,
            name: command,
            device: Some(self.device.clone()),
            work_dir: PathBuf::from("/"),
            kept: KeptPlan::Tasks,
            engine_needs: Vec::new(),
            options: self.options.clone(),
            interval: Duration::from_millis(self.script.setup.interval_ms),
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
                tell(&line);
            }
            tell_notes(ready.notes());
        }
        self.within(&outlook.least(), ready.written_bytes())?;
        Ok(outlook)
    }

    /// Whether what is left can be done; earlier starts have written `written` bytes.
    fn within(&self, least: &Cost, written: u64) -> Result<(), ExitError> {
        let refused = |what: String| {
            ExitError::new(
                Exit::Refused,
                format!("{what}\n  to do: allow more, or see what --dry-run says"),
            )
        };
        if let Some(limit) = self
            .options
            .max_time
            .filter(|&limit| least.duration > limit)
        {
            let ms = |time: Duration| units::duration(time.as_millis() as u64);
            return Err(refused(format!(
                "the test takes {} at least, and --max-time allows {}",
                ms(least.duration),
                ms(limit)
            )));
        }
        let all = least.write_bytes.saturating_add(written);
        if let Some(limit) = self.options.max_written.filter(|&limit| all > limit) {
            let bytes = |bytes: u64| units::bytes(bytes as f64);
            return Err(refused(format!(
                "the test writes {} at least, in all its starts, and --max-written allows {}",
                bytes(all),
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
            && ready.is_closed()
            && Outlook::of(&self.script, ready.history(), None).is_over()
        {
            return self.nothing_left(global, dir);
        }
        // A refusal comes before a plan that could not be carried out.
        if ready.refusal().is_none() {
            self.plan(global, &ready)?;
        }
        let finish = observed(global, |begun, observer| {
            ready.run(control, begun, observer)
        });
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
    finish.exit()
}

/// Shows what would be done.
fn dry_run(global: &Global, jobs: &[Job]) -> anyhow::Result<Exit> {
    let mut dry = DryRun::new(global);
    let mut refusal = None;
    let mut engine = "";
    for job in jobs {
        let command = job.command();
        let ready = job.flow(global, &command).look().map_err(failed)?;
        let outlook = Outlook::of(&job.script, ready.history(), job.speed);
        engine = ready.selected().engine().name();
        for line in dry::plan(&job.script, &outlook, &job.endurance()) {
            out::note(line);
        }
        dry.device = Some(job.device.clone());
        for task in &outlook.best {
            dry.task(task, ready.selected(), &global.runs.join("RUN"))?;
            if out::is_stopped() {
                break;
            }
        }
        match ready.refusal() {
            Some(against) => refusal = refusal.or_else(|| Some(against.into())),
            None => job.within(&outlook.least(), ready.written_bytes())?,
        }
    }
    dry.document.engine = Some(engine.to_owned());
    dry.end(refusal)
}
