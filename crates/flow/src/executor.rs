//! What runs a plan: the only owner of its record, its devices, its ledgers and of
//! what it has switched, over as many starts as it takes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_device::{Hold, usage};
use fathom_engine::existing::{self, Owner};
use fathom_engine::{Control, Sink as _};
use fathom_engine_sim::SIMULATED;
use fathom_engines::select::EngineHandle;
use fathom_fleet::TargetCheck;
use fathom_fleet::local::Session;
use fathom_jobfile::variables;
use fathom_model::environment::Target;
use fathom_model::{Environment, Event, Exit, Failure, FailureKind, RunStatus};
use fathom_record::{Entries, Header, RecordError, Writer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::followers::{Followers, RunLog};
use super::runner::Shortage;
use super::{
    Case, Ending, History, LedgerScope, Next, RunOptions, Runner, Script, Stop, Switched, Task,
    outlook,
};
use crate::budget::Speed;
use crate::device_watch::DeviceWatch;
use crate::error::RunError;
use crate::identity::{self, UsedPaths};
use crate::ledger::{BytesWritten, Ledgers};
use crate::past;
use crate::plan_log::{self, PLAN_FILE};
use crate::wants::{self, Wants};
use crate::write_budget::WriteBudget;

/// What is to be done, and how.
pub struct Flow<'f> {
    /// What is done.
    pub script: &'f dyn Script,
    /// The command, as the record's header names it: `provision`, `snia iops`.
    pub command: &'f str,
    /// Name of the run.
    pub name: &'f str,
    /// The device (or file) under test, of which the ledger is told; `None`: the jobs
    /// have targets of their own.
    pub device: Option<PathBuf>,
    /// Relative names are meant from here.
    pub work_dir: PathBuf,
    /// What every plan can be told.
    pub options: RunOptions,
    /// Job files that the engine must know, in whatever way it was chosen: what they
    /// need is asked for before anything is touched.
    pub engine_needs: Vec<String>,
    /// Time between two samples of stages.
    pub interval: Duration,
    /// The folder of records.
    pub runs_dir: PathBuf,
    /// The record to go on with; `None`: a new one.
    pub record: Option<PathBuf>,
    /// The ledgers of devices.
    pub ledgers: Ledgers,
    /// What the header of a new record is to hold beside.
    pub facts: Map<String, Value>,
    /// What the record keeps of the plan.
    pub kept: KeptPlan,
}

/// What a record keeps of its plan.
#[derive(Debug, Clone, PartialEq)]
pub enum KeptPlan {
    /// Nothing: it starts over each time.
    Nothing,
    /// Its tasks. Its command makes the same plan again by itself.
    Tasks,
    /// Its tasks, and what `fathom resume` makes the same plan of.
    Config(Value),
}

/// What was found of the engine and the targets of a plan.
#[derive(Debug)]
pub struct Checked {
    /// What runs the jobs.
    pub selected: EngineHandle,
    /// Whether they use this machine: not where fio servers run them.
    pub is_here: bool,
    /// The machine and the targets.
    pub environment: Environment,
    /// Paths that the jobs write to.
    pub written: Vec<PathBuf>,
    /// What is to be known of the run.
    pub notes: Vec<String>,
    /// What will be laid out before it is read, a sentence each.
    pub layouts: Vec<String>,
    /// What stands against writing to the targets.
    pub refusal: Option<RunError>,
}

/// Key of the [`FlowFacts`] in a record's header.
const FACTS: &str = "flow";

/// What a record's header says of its flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FlowFacts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<PathBuf>,
    engine: String,
}

/// A plan that may run: everything has been checked, nothing opened.
pub struct Ready<'f> {
    pub(crate) flow: Flow<'f>,
    checked: Checked,
    past: PastStarts,
    pub(crate) extras: Extras<'f>,
    hold: Option<Hold>,
}

/// Writes a plan into a record's folder.
pub type WritePlan<'f> = Box<dyn Fn(&Path) -> io::Result<()> + 'f>;

/// What not every plan has.
#[derive(Default)]
pub struct Extras<'f> {
    /// The plan that is kept in the record; `None`: what the script will do.
    pub plan: Option<WritePlan<'f>>,
    /// The ledgers are told of what is written to: the device may be read only.
    pub enters_written: bool,
    /// How fast the device can be written.
    pub speed: Option<Speed>,
    /// What the jobs use, which is kept in the record.
    pub uses: UsedPaths,
    /// A log beside the record.
    pub log: Option<&'f mut dyn RunLog>,
}

/// How a flow ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The record.
    pub dir: PathBuf,
    /// How the record says that it ended.
    pub status: RunStatus,
    /// How the flow itself ended; `None`: it was stopped before.
    pub ending: Option<Ending>,
    /// Why it stopped before its end, when nobody stopped it.
    pub stopped: Option<String>,
    /// What somebody else is to do before it can go on.
    pub waits: Option<String>,
    /// Whether what it was to do is not allowed any more.
    pub refused: bool,
    /// How many steps and stages the limits left no room for, where the rest was done.
    pub no_room: usize,
    /// That it ended because it had written what it may, or that a limit left no room for
    /// a stage, in a sentence.
    pub spent: Option<String>,
}

impl Finish {
    /// The exit code that fits what was run.
    pub fn exit(&self) -> Exit {
        match self.status {
            RunStatus::Complete => Exit::Success,
            RunStatus::Interrupted if self.waits.is_some() => Exit::Waits,
            RunStatus::Interrupted if self.stopped.is_none() => Exit::Interrupted,
            _ => Exit::Failed,
        }
    }
}

impl<'f> Flow<'f> {
    /// Checks everything that can be checked before anything is opened: the job
    /// files of all stages, the engine, the device, the record to go on with.
    /// What stands against writing to the device is in [`Ready::refusal`].
    ///
    /// # Errors
    /// What else stands against it.
    pub fn look(self) -> Result<Ready<'f>, RunError> {
        let past = PastStarts::of(self.record.as_deref())?;
        let checked = self.check(&past.history.resumed())?;
        self.with(checked, past)
    }

    /// As [`Flow::look`], with checks of the caller's own.
    ///
    /// # Errors
    /// Why it cannot go on in its record.
    pub fn checked(self, checked: Checked) -> Result<Ready<'f>, RunError> {
        let past = PastStarts::of(self.record.as_deref())?;
        self.with(checked, past)
    }

    fn check(&self, left: &History) -> Result<Checked, RunError> {
        let wants = self.wants(left)?;
        let (selected, note) = wants.engine(&self.options)?;
        if let (EngineHandle::Fio(_), false) = (&selected, self.engine_needs.is_empty()) {
            wants.must_run_by_fio(self.options.fio.as_deref())?;
        }
        let simulated = selected.is_simulated();
        let targets: Vec<PathBuf> = self.device.iter().filter(|_| !simulated).cloned().collect();
        let refusal = match simulated {
            true => None,
            false => {
                let owner = Owner::of(self.record.as_deref(), &self.options.destroy);
                wants.check_targets(owner, ToString::to_string).err()
            }
        };
        Ok(Checked {
            selected,
            is_here: !simulated,
            environment: fathom_device::environment(&targets),
            written: wants.written().map(Path::to_owned).collect(),
            notes: note.into_iter().collect(),
            layouts: Vec::new(),
            refusal,
        })
    }

    fn with(self, mut checked: Checked, past: PastStarts) -> Result<Ready<'f>, RunError> {
        let uses = match checked.is_here && !checked.selected.is_simulated() {
            true => wants::used_paths(self.script, &past.history.resumed(), &self.work_dir)?,
            false => UsedPaths::default(),
        };
        if let Some(header) = &past.header {
            self.must_fit(header, &checked.selected, &checked.environment)?;
            past::must_lead(header, &uses)?;
            let before = header.environment.iter();
            let changes = before.flat_map(|b| identity::changes(b, &checked.environment));
            checked.notes.extend(changes.collect::<Vec<_>>());
        }
        let extras = Extras {
            uses,
            ..Extras::default()
        };
        Ok(self.ready(checked, past, extras))
    }

    /// As it is, with checks of the caller's own, of the record too.
    pub fn ready(self, checked: Checked, past: PastStarts, extras: Extras<'f>) -> Ready<'f> {
        Ready {
            flow: self,
            checked,
            past,
            extras,
            hold: None,
        }
    }

    /// What the job files want that are left, however it goes.
    fn wants(&self, history: &History) -> Result<Wants, RunError> {
        let mut wants = Wants::default();
        for case in [Case::Best, Case::Worst] {
            wants.add_flow(self.script, (history, case), &self.work_dir)?;
        }
        for text in &self.engine_needs {
            let job = wants::read(text, Path::new("job")).map_err(RunError::Input)?;
            wants.add(job, &self.work_dir);
        }
        Ok(wants)
    }

    /// Whether the flow may go on in the record with this header.
    fn must_fit(
        &self,
        header: &Header,
        selected: &EngineHandle,
        environment: &Environment,
    ) -> Result<(), RunError> {
        if header.command != self.command {
            let what = format!("the record is not one of fathom {}", self.command);
            return Err(RunError::Missing(what));
        }
        let facts = header.facts.get(FACTS).cloned();
        let facts: Option<FlowFacts> = facts.and_then(|facts| serde_json::from_value(facts).ok());
        let planned = match &self.record {
            Some(dir) => plan_log::Head::read(dir)?,
            None => None,
        };
        let before = facts.map(|facts| facts.engine);
        let before = before.or_else(|| Some(planned?.engine));
        let before = before.as_deref();
        // Names of devices change from boot to boot.
        let known =
            |target: &&Target| identity::dut(header.environment.as_ref(), &target.path).is_some();
        let own = environment.targets.iter().filter(known);
        let targets = match &self.device {
            Some(device) => vec![device.clone()],
            None => own.map(|target| target.path.clone()).collect(),
        };
        past::must_fit(&targets, before, header, selected, environment)
    }
}

/// What a record holds that a plan goes on with.
#[derive(Debug, Default)]
pub struct PastStarts {
    /// The record's header; `None` before there is a record.
    pub header: Option<Header>,
    /// What has been done.
    pub history: History,
    /// What was written to its devices.
    pub written: BytesWritten,
    /// Whether it has ended otherwise than by an interruption. One whose last step has
    /// ended need not have: then the end alone is missing.
    pub is_closed: bool,
}

impl PastStarts {
    /// Those of a record; `None`: there were none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(record: Option<&Path>) -> Result<Self, RunError> {
        let mut past = Self::default();
        let Some(dir) = record else { return Ok(past) };
        let mut entries = Entries::open(dir)?;
        for entry in &mut entries {
            let event = entry?.event;
            past.history.take(&event);
            past.written.take(&event);
        }
        let closed = |status| status != RunStatus::Interrupted;
        past.is_closed = entries.status.is_some_and(closed);
        past.header = Some(entries.header);
        Ok(past)
    }
}

impl<'f> Ready<'f> {
    /// The engine that runs the jobs.
    pub fn selected(&self) -> &EngineHandle {
        &self.checked.selected
    }

    /// The machine and the device.
    pub fn environment(&self) -> &Environment {
        &self.checked.environment
    }

    /// The record that it goes on with.
    pub fn record(&self) -> Option<&Path> {
        self.flow.record.as_deref()
    }

    /// What has been done in the record that it goes on with.
    pub fn history(&self) -> &History {
        &self.past.history
    }

    /// What is to be known of the run.
    pub fn notes(&self) -> &[String] {
        &self.checked.notes
    }

    /// What will be laid out before it is read, a sentence each.
    pub fn layouts(&self) -> &[String] {
        &self.checked.layouts
    }

    /// Bytes that its earlier starts have written.
    pub fn written_bytes(&self) -> u64 {
        self.past.written.bytes()
    }

    /// What stands against writing to the device: it does not run then.
    pub fn refusal(&self) -> Option<&RunError> {
        self.checked.refusal.as_ref()
    }

    /// What is left to do.
    pub fn left(&self, case: Case) -> Vec<Task> {
        outlook(self.flow.script, &self.past.history.resumed(), case).0
    }

    /// Whether nothing is left to do, not even to write down that the run has ended.
    pub fn is_done(&self) -> bool {
        self.ending().is_some() && self.is_closed()
    }

    /// Whether the run has ended otherwise than by an interruption.
    pub fn is_closed(&self) -> bool {
        self.past.is_closed
    }

    /// How it ends where nothing is left to do.
    pub fn ending(&self) -> Option<Ending> {
        match self.flow.script.next(&self.past.history.resumed()) {
            Next::End(ending) => Some(ending),
            _ => None,
        }
    }

    /// Paths of this machine that are written to, and perhaps its device.
    fn used(&self, with_device: bool) -> impl Iterator<Item = &Path> {
        let device = self.flow.device.iter().filter(move |_| with_device);
        let paths = self.checked.written.iter().chain(device);
        let is_here = self.checked.is_here;
        paths.filter(move |_| is_here).map(PathBuf::as_path)
    }

    fn budget(&mut self) -> WriteBudget {
        let before = std::mem::take(&mut self.past.written);
        let limits = self.flow.options.limits();
        // All processes are looked at for files: only where somebody wants a limit kept.
        let is_counted = self.flow.device.is_some() || limits.bytes.is_some();
        let used = self.used(!self.extras.enters_written);
        WriteBudget::new(before, used.filter(|_| is_counted), limits)
    }

    /// The new record, or that to go on with.
    fn writer(&self) -> Result<Writer, RunError> {
        let flow = &self.flow;
        if let Some(dir) = &flow.record {
            return Ok(Writer::reopen(dir)?);
        }
        let mark = match self.checked.selected.is_simulated() {
            true => SIMULATED,
            false => "",
        };
        let mut header = Header::new(&format!("{}{mark}", flow.name), flow.command);
        header.label.clone_from(&flow.options.label);
        header.environment = Some(self.checked.environment.clone());
        header.variables = variables::read();
        header.targets = self.extras.uses.kept();
        header.facts = flow.facts.clone();
        if usage::are_unseen_exports_ignored() {
            header
                .facts
                .insert("no_export_check".to_owned(), json!(true));
        }
        // What keeps its configuration has it in its plan.
        if flow.kept == KeptPlan::Tasks {
            let facts = FlowFacts {
                device: flow.device.clone(),
                engine: self.checked.selected.engine().name().to_owned(),
            };
            header.facts.insert(FACTS.to_owned(), json!(facts));
        }
        Ok(Writer::create(&flow.runs_dir, &header)?)
    }

    /// Keeps the devices to itself, and waits until every machine does so where there
    /// are several.
    ///
    /// # Errors
    /// When another program keeps one, or the run ends before it begins.
    pub fn hold(&mut self, control: &Control) -> Result<(), RunError> {
        if self.hold.is_none() {
            let hold = Hold::of(self.used(true));
            let hold = hold.map_err(|refusal| RunError::Refused(refusal.to_string().into()))?;
            if !control.all_are_ready() {
                return Err(RunError::Interrupted);
            }
            self.hold = Some(hold);
        }
        Ok(())
    }

    /// What is to be done, for those who only read the record.
    fn write_plan(&self, dir: &Path) -> Result<(), RunError> {
        let written = match (&self.extras.plan, &self.flow.kept) {
            (Some(write), _) => write(dir),
            (None, KeptPlan::Nothing) => Ok(()),
            (None, kept) => {
                let device = self.flow.device.as_deref().unwrap_or(Path::new(""));
                let engine = self.checked.selected.engine().name();
                let config = match kept {
                    KeptPlan::Config(config) => config.clone(),
                    _ => Value::Null,
                };
                let head = plan_log::Head::of_flow(device, engine, config);
                plan_log::write_flow(dir, &head, &self.past.history, self.flow.script)
            }
        };
        written.map_err(|source| {
            let path = dir.join(PLAN_FILE);
            RunError::Record(RecordError::File { path, source })
        })
    }

    /// What is looked at between two steps, where there is a device under test.
    fn looks(&self) -> Option<DeviceWatch> {
        let device = self.flow.device.as_deref()?;
        let target = identity::dut(Some(&self.checked.environment), device);
        Some(DeviceWatch {
            dut: device.to_owned(),
            written: self.checked.written.clone(),
            simulated: !self.checked.is_here,
            was_device: target.is_some_and(|target| target.device.is_some()),
            gone: std::cell::Cell::new(false),
        })
    }

    /// The devices whose ledgers are told of the run.
    fn entered(&self) -> &[PathBuf] {
        match &self.flow.device {
            Some(device) if !self.extras.enters_written => std::slice::from_ref(device),
            _ => &self.checked.written,
        }
    }

    /// Runs what is left. `observer` is told every event once it is recorded;
    /// before the first, `begun` is given the record's folder.
    ///
    /// # Errors
    /// The refusal; when the record cannot be written: the run was stopped then.
    pub fn run(
        mut self,
        control: &Control,
        begun: &mut dyn FnMut(&Path),
        observer: &mut dyn FnMut(&Event),
    ) -> Result<Finish, RunError> {
        if let Some(refusal) = self.checked.refusal.take() {
            return Err(refusal);
        }
        self.hold(control)?;
        let ledgers = match self.checked.is_here {
            true => self.flow.ledgers.clone(),
            false => Ledgers::none(),
        };
        // What an earlier start has written that was killed. What cannot be had is
        // told by `fathom ledger`.
        let _ = ledgers.catch_up();
        past::restore(&self.checked.selected, self.flow.record.as_deref())?;
        let writer = self.writer()?;
        let dir = writer.dir().to_owned();
        self.write_plan(&dir)?;
        begun(&dir);
        let entered = self.entered();
        let device = self.flow.device.as_ref().or(entered.first());
        let device = device.map_or(Path::new(""), PathBuf::as_path);
        let unknown = entered
            .iter()
            .filter_map(|path| ledgers.without_history(path, &dir))
            .collect();
        let (book, notes) = LedgerScope::open(&ledgers, entered, device, self.flow.command, &dir);
        let t_ms = self.past.history.t_ms();
        let followers = self.followers(&writer);
        let mut observe = |event: &Event| {
            followers.take(event);
            observer(event);
        };
        let is_here = self.checked.is_here;
        let began = existing::began(&dir);
        let targets = is_here.then(|| TargetCheck::new(&self.flow.options.destroy, began));
        let mut session = Session::new(writer, targets, control, &mut observe, t_ms);
        session.limit_errors(self.flow.options.max_errors);
        session.without_history(unknown);
        followers.write_log(|log, _| log.begin());
        for text in self.checked.notes.iter().chain(&notes) {
            let _ = session.event(Event::Note { text: text.clone() });
        }
        let mut switched = Switched::default();
        let mut runner = Runner {
            ready: &self,
            session: &mut session,
            control,
            began: (self.checked.selected.engine().now(), t_ms),
            followers: &followers,
            book: &book,
            switched: &mut switched,
            short: Shortage::default(),
        };
        let stop = runner.run();
        let short = runner.short;
        let failed = self.flow.script.has_failed(&followers.history.borrow());
        let mut end = RunEnd::of(session, stop, failed, short);
        end.put_back(&mut switched);
        end.close(control, book, &followers)
    }

    /// Those who follow the run, from what was before it on.
    fn followers(&mut self, writer: &Writer) -> Followers<'f> {
        let mut history = std::mem::take(&mut self.past.history);
        if let Some(resumed) = writer.resumed() {
            history.take(resumed);
        }
        let log = self.extras.log.take();
        Followers::new(self.looks(), history, self.budget(), log)
    }
}

/// A run that has stopped, and is about to be closed.
struct RunEnd<'o> {
    session: Session<'o>,
    finish: Finish,
    unwritten: Option<RunError>,
}

impl<'o> RunEnd<'o> {
    /// As it stopped; what is to be known of that is put into the record. `failed`:
    /// steps have failed.
    fn of(session: Session<'o>, stop: Stop, failed: bool, short: Shortage) -> Self {
        let finish = Finish {
            dir: PathBuf::new(),
            status: RunStatus::Failed,
            ending: None,
            stopped: None,
            waits: None,
            refused: false,
            no_room: short.tasks,
            spent: short.reason,
        };
        let mut end = Self {
            session,
            finish,
            unwritten: None,
        };
        match stop {
            Stop::Ended(ending) => {
                end.finish.status = match &ending {
                    Ending::Failed(_) => RunStatus::Failed,
                    _ if short.tasks > 0 => RunStatus::Interrupted,
                    _ if failed => RunStatus::Failed,
                    Ending::Complete | Ending::NotAttained(_) => RunStatus::Complete,
                };
                end.finish.ending = Some(ending);
            }
            Stop::Interrupted | Stop::Record | Stop::Spent => {
                end.finish.status = RunStatus::Interrupted;
            }
            Stop::Waits(reason) => {
                end.finish.waits = Some(reason);
                end.finish.status = RunStatus::Interrupted;
            }
            Stop::NoRoom(reason) => {
                let text = format!("the run stopped: {reason}");
                let _ = end.session.event(Event::Note { text });
                end.finish.stopped = Some(reason);
                end.finish.status = RunStatus::Interrupted;
            }
            Stop::Failed(failure) => {
                end.finish.stopped = Some(failure.message.clone());
                let _ = end.session.event(Event::Failure(failure));
            }
            Stop::Unwritten(path, source) => {
                let what = format!("the record could not be written: {source}");
                let failure = Failure::new(FailureKind::Record, what);
                let failure = failure.about(path.display().to_string());
                let _ = end.session.event(Event::Failure(failure));
                let error = RecordError::File { path, source };
                end.unwritten = Some(RunError::Record(error));
            }
        }
        end
    }

    /// Puts back what was switched.
    fn put_back(&mut self, switched: &mut Switched) {
        let session = &mut self.session;
        let not_back = switched.put_back(&mut |event| {
            let _ = session.event(event);
        });
        for failure in not_back {
            let stopped = &mut self.finish.stopped;
            stopped.get_or_insert_with(|| failure.sentence());
            self.finish.status = RunStatus::Failed;
            let _ = session.event(Event::Failure(failure));
        }
    }

    /// Tells the ledger and the log, and closes the record.
    fn close(
        mut self,
        control: &Control,
        book: LedgerScope,
        followers: &Followers<'_>,
    ) -> Result<Finish, RunError> {
        let budget = &followers.budget;
        let told = book.close(budget.of_jobs()).into_iter();
        for text in told.chain(budget.difference()) {
            let _ = self.session.event(Event::Note { text });
        }
        let (ending, status) = (self.finish.ending.as_ref(), self.finish.status);
        followers.write_log(|log, history| log.end(history, ending, status));
        if let Some(text) = followers.log_loss() {
            let _ = self.session.event(Event::Note { text });
        }
        let (dir, status) = self.session.close(status)?;
        (self.finish.dir, self.finish.status) = (dir, status);
        self.finish.refused = control.is_refused();
        self.unwritten.map_or(Ok(self.finish), Err)
    }
}
