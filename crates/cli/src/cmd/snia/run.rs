//! Runs a test, or goes on with one.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use fathom_analysis::snia::{Setup, SniaTest, TrackedVariable};
use fathom_flow::budget::{Cost, Endurance, Speed};
use fathom_flow::ledger::Ledgers;
use fathom_flow::{Ending, Finish, Flow, KeptPlan, Ready, RunOptions};
use fathom_model::{Exit, units};
use fathom_record::{Entries, Header};
use fathom_suites::snia::{FACTS, Snia, SniaAsk, SniaChoices, SniaHow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, from_value};

use super::dry::{self, Outlook};
use super::{TestArgs, report};
use crate::cmd::campaign::Flags;
use crate::cmd::campaign::{tell, tell_notes};
use crate::cmd::drive::{Driven, Ended, drive};
use crate::cmd::dry::DryRun;
use crate::cmd::failed;
use crate::cmd::measuring::MeasuringArgs;
use crate::cmd::planned::Start;
use crate::cmd::planned::{RequestKind, RunRequest, kept};
use crate::cmd::resume::go_on;
use crate::cmd::started::as_started;
use crate::cmd::{ExitError, Global, run_args, show};
use crate::out;

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

/// A test on a device: what a record keeps of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SniaRequest {
    pub ask: SniaAsk,
    pub device: PathBuf,
    pub options: RunOptions,
    /// How fast the device is written at most, in bytes a second.
    write_speed: Option<u64>,
    endurance_tbw: Option<u64>,
    /// What was made of it on the device; `None`: it has not begun.
    setup: Option<Setup>,
}

/// Runs a test on each device, one after the other.
pub fn test(global: &Global, args: &TestArgs, test: SniaTest) -> anyhow::Result<Exit> {
    args.options.check().map_err(run_args::usage)?;
    let all_cells = args.wanted.criterion == TrackedVariable::AllCells;
    if let (true, Some(why)) = (all_cells, test.why_not("all-cells")) {
        let what = format!("there is no --all-cells here: {why}");
        return Err(ExitError::new(Exit::Usage, what).into());
    }
    let ask = SniaAsk {
        test,
        class: args.class(),
        wanted: args.wanted.clone(),
        how: args.how.clone(),
    };
    let request = |(place, device): (usize, &PathBuf)| {
        Ok(SniaRequest {
            ask: ask.clone(),
            device: std::path::absolute(device)?,
            options: args.options.of_device(place),
            write_speed: args.write_speed,
            endurance_tbw: args.endurance_tbw,
            setup: None,
        })
    };
    let requests: anyhow::Result<Vec<_>> = args.devices.iter().enumerate().map(request).collect();
    each(global, requests?, Start::new(args.dry_run))
}

/// Goes on with a test.
pub fn resume(global: &Global, args: &ResumeArgs) -> anyhow::Result<Exit> {
    let dir = show::find_only(global, args.run.as_deref())?;
    let header = Entries::open(&dir)?.header;
    if !header.facts.contains_key(FACTS) || !header.command.starts_with("snia ") {
        let what = format!(
            "{}: not a fathom snia run\n  to do: fathom runs lists what there is",
            dir.display()
        );
        return Err(ExitError::new(Exit::Missing, what).into());
    }
    as_started(&header);
    let flags = Flags::of(args.options.clone(), args.dry_run);
    go_on(global, &flags, dir, &header)
}

/// What an earlier version keeps of a test in the header of its record.
pub fn of_record(header: &Header) -> Option<SniaRequest> {
    let facts = &header.facts;
    let fact = |key: &str| facts.get(key).cloned();
    let setup: Setup = from_value(fact(FACTS)?.as_array()?.first()?.clone()).ok()?;
    let how = fact("snia_how")?;
    // The oldest have them among those of the test.
    let options = fact("snia_options").unwrap_or_else(|| how.clone());
    let mut options: RunOptions = from_value(options).ok()?;
    let max_written = fact("snia_max_written").and_then(|it| it.as_u64());
    options.max_written = options.max_written.or(max_written);
    let how: SniaHow = from_value(how).ok()?;
    Some(SniaRequest {
        ask: SniaAsk {
            test: setup.test,
            class: setup.class,
            wanted: SniaChoices::default(),
            how,
        },
        device: from_value(fact("snia_device")?).ok()?,
        options,
        write_speed: None,
        endurance_tbw: None,
        setup: Some(setup),
    })
}

impl RequestKind for SniaRequest {
    const NAME: &'static str = "snia";
}

impl RunRequest for SniaRequest {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    fn run(self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        each(global, vec![*self], start)
    }
}

/// Runs them one after the other; nothing is run before all can be.
fn each(global: &Global, requests: Vec<SniaRequest>, start: Start) -> anyhow::Result<Exit> {
    let shown = Shown {
        dry: RefCell::new(DryRun::new(global)),
        refusal: RefCell::default(),
        docs: RefCell::default(),
    };
    let tests = requests.into_iter().map(|it| PreparedTest::new(it, &shown));
    let tests: anyhow::Result<Vec<_>> = tests.collect();
    let mut worst = Exit::Success;
    for test in &tests? {
        let flow = test.flow(global, start.record.clone())?;
        let ready = flow.look().map_err(failed)?;
        let exit = drive(global, ready, start.dry_run, test)?;
        if exit != Exit::Success {
            worst = exit;
        }
        if exit == Exit::Interrupted {
            break;
        }
    }
    if start.dry_run {
        return shown.dry.into_inner().end(shown.refusal.into_inner());
    }
    match (global.json, &shown.docs.into_inner()[..]) {
        (true, [only]) => out::json(only)?,
        (true, docs) => out::json(&docs)?,
        (false, _) => {}
    }
    Ok(worst)
}

/// What several devices have together.
struct Shown<'g> {
    dry: RefCell<DryRun<'g>>,
    /// The first of them, in a dry run.
    refusal: RefCell<Option<ExitError>>,
    docs: RefCell<Vec<fathom_report::snia::Document>>,
}

/// A test that fits its device.
struct PreparedTest<'s, 'g> {
    request: SniaRequest,
    script: Snia,
    command: String,
    speed: Option<Speed>,
    shown: &'s Shown<'g>,
}

impl<'s, 'g> PreparedTest<'s, 'g> {
    fn new(mut request: SniaRequest, shown: &'s Shown<'g>) -> anyhow::Result<Self> {
        let SniaRequest {
            ask,
            device,
            options,
            ..
        } = &request;
        let sim = options.is_simulated().then_some(options.sim(0));
        let script = match request.setup.clone() {
            Some(setup) => Snia::of_setup(setup, ask, device, &options.destroy),
            None => Snia::on(ask, device, sim, &options.destroy),
        };
        let script = script.map_err(failed)?;
        let said = request.write_speed.map(Speed::Said);
        let speed = said.or_else(|| Speed::of_link(&request.device));
        request.setup = Some(script.setup.clone());
        Ok(Self {
            command: format!("snia {}", script.setup.test.name()),
            request,
            script,
            speed,
            shown,
        })
    }

    fn flow(&self, global: &Global, record: Option<PathBuf>) -> anyhow::Result<Flow<'_>> {
        let mut facts = Map::new();
        facts.insert(FACTS.to_owned(), self.script.facts());
        Ok(Flow {
            script: &self.script,
            command: &self.command,
            name: &self.command,
            device: Some(self.request.device.clone()),
            work_dir: PathBuf::from("/"),
            kept: KeptPlan::Config(kept(&self.request)?),
            engine_needs: Vec::new(),
            options: self.request.options.clone(),
            interval: Duration::from_millis(self.script.setup.interval_ms),
            runs_dir: global.runs.clone(),
            record,
            ledgers: Ledgers::of_user(),
            facts,
        })
    }

    fn endurance(&self) -> Endurance {
        let ledgers = Ledgers::of_user();
        let device = &self.request.device;
        let entries = ledgers.entries(device).unwrap_or_default();
        let tbw = self.request.endurance_tbw;
        Endurance::of(&ledgers.health(device), &entries, tbw)
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
            .request
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
        if let Some(limit) = self
            .request
            .options
            .max_written
            .filter(|&limit| all > limit)
        {
            let bytes = |bytes: u64| units::bytes(bytes as f64);
            return Err(refused(format!(
                "the test writes {} at least, in all its starts, and --max-written allows {}",
                bytes(all),
                bytes(limit)
            )));
        }
        Ok(())
    }
}

impl Driven<Ready<'_>> for PreparedTest<'_, '_> {
    fn dry_run(&self, _global: &Global, ready: &Ready<'_>) -> anyhow::Result<Exit> {
        let outlook = Outlook::of(&self.script, ready.history(), self.speed);
        for line in dry::plan(&self.script, &outlook, &self.endurance()) {
            out::note(line);
        }
        let dry = &mut *self.shown.dry.borrow_mut();
        dry.document.engine = Some(ready.selected().engine().name().to_owned());
        dry.device = Some(self.request.device.clone());
        for task in &outlook.best {
            dry.task(task, ready.selected(), &dry.runs_dir().join("RUN"))?;
            if out::is_stopped() {
                break;
            }
        }
        match ready.refusal() {
            None => self.within(&outlook.least(), ready.written_bytes())?,
            Some(against) => {
                let refusal = &mut *self.shown.refusal.borrow_mut();
                refusal.get_or_insert_with(|| against.into());
            }
        }
        Ok(Exit::Success)
    }

    fn is_over(&self, ready: &Ready<'_>) -> bool {
        ready.is_closed() && Outlook::of(&self.script, ready.history(), None).is_over()
    }

    /// Tells the plan; refuses one that wants more than it may have.
    fn plan(&self, global: &Global, ready: &Ready<'_>) -> anyhow::Result<()> {
        // A refusal comes before a plan that could not be carried out.
        if ready.refusal().is_some() {
            return Ok(());
        }
        let outlook = Outlook::of(&self.script, ready.history(), self.speed);
        if !global.quiet {
            for line in dry::plan(&self.script, &outlook, &self.endurance()) {
                tell(&line);
            }
            tell_notes(ready.notes());
        }
        Ok(self.within(&outlook.least(), ready.written_bytes())?)
    }

    fn conclude(&self, global: &Global, ended: &Ended<'_>) -> anyhow::Result<Exit> {
        let doc = report::read(ended.dir)?;
        if !global.json {
            report::present(global, &doc)?;
        }
        self.shown.docs.borrow_mut().push(doc);
        Ok(ended.finish.map_or(Exit::Success, conclude))
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
