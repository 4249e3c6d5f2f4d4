//! A flow with a record of its own, over as many starts as it takes.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_device::Hold;
use fathom_engine::select::Selected;
use fathom_engine::sim::SIMULATED;
use fathom_engine::{Control, Sink as _};
use fathom_fleet::TargetCheck;
use fathom_fleet::local::Session;
use fathom_model::environment::Target;
use fathom_model::{Environment, Event, Failure, FailureKind, RunStatus};
use fathom_record::{Entries, Header, RecordError, Writer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Book, Clock, Ending, History, Luck, Runner, Script, Stop, outlook};
use crate::budget::Limits;
use crate::ledger::{BytesWritten, Ledgers};
use crate::run::looks::Looks;
use crate::run::prepare::{self, Wants};
use crate::run::{RunError, identity, records};
use crate::write_budget::WriteBudget;

/// A flow on one device, and how it is run.
pub struct Flow<'f> {
    /// What is done.
    pub script: &'f dyn Script,
    /// The command, as the record's header names it: `provision`, `snia iops`.
    pub command: &'f str,
    /// Name of the run.
    pub name: &'f str,
    /// The device (or file).
    pub device: PathBuf,
    /// Words that name the device that may be destroyed.
    pub destroy: Vec<String>,
    /// `auto`, `fio`, `native` or `sim`.
    pub engine: String,
    /// The fio to use, when not the one in PATH.
    pub fio: Option<PathBuf>,
    /// The device that `sim` simulates, when not a healthy one.
    pub sim: Option<PathBuf>,
    /// Time between two samples.
    pub interval: Duration,
    /// The longest time of this start, and the most bytes of all.
    pub limits: Limits,
    /// The folder of records.
    pub runs_dir: PathBuf,
    /// The record to go on with; `None`: a new one.
    pub record: Option<PathBuf>,
    /// The ledgers of devices.
    pub ledgers: Ledgers,
    /// What the header of a new record is to hold beside: what is needed to make
    /// the same script again.
    pub facts: Map<String, Value>,
}

/// Key of the [`Facts`] in a record's header.
const FACTS: &str = "flow";

/// What a record's header says of its flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Facts {
    device: PathBuf,
    engine: String,
}

/// A flow that may run: everything has been checked, nothing opened.
pub struct Ready<'f> {
    flow: Flow<'f>,
    selected: Selected,
    environment: Environment,
    history: History,
    written_before: BytesWritten,
    notes: Vec<String>,
    written: Vec<PathBuf>,
    refusal: Option<RunError>,
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
}

impl<'f> Flow<'f> {
    /// Checks everything that can be checked before anything is opened: the job
    /// files of all stages, the engine, the device, the record to go on with.
    /// What stands against writing to the device is in [`Ready::refusal`].
    ///
    /// # Errors
    /// What else stands against it.
    pub fn look(mut self) -> Result<Ready<'f>, RunError> {
        self.device = std::path::absolute(&self.device).unwrap_or(self.device);
        let mut history = History::default();
        let mut written_before = BytesWritten::default();
        let header = match &self.record {
            Some(dir) => {
                let mut entries = Entries::open(dir)?;
                for entry in &mut entries {
                    let event = entry?.event;
                    history.take(&event);
                    written_before.take(&event);
                }
                Some(entries.header)
            }
            None => None,
        };
        let wants = self.wants(&history.resumed())?;
        let (fio, sim) = (self.fio.as_deref(), self.sim.as_deref());
        let (selected, note) = wants.engine(&self.engine, fio, sim)?;
        let (environment, refusal) = match selected.is_simulated() {
            true => (fathom_device::environment(&[]), None),
            false => (
                fathom_device::environment(std::slice::from_ref(&self.device)),
                wants.check_targets(&self.destroy).err(),
            ),
        };
        let mut notes: Vec<String> = note.into_iter().collect();
        if let Some(header) = &header {
            self.must_fit(header, &selected, &environment)?;
            let before = header.environment.as_ref();
            notes.extend(
                before
                    .into_iter()
                    .flat_map(|b| identity::changes(b, &environment)),
            );
        }
        Ok(Ready {
            written: wants.written().map(Path::to_owned).collect(),
            flow: self,
            selected,
            environment,
            history,
            written_before,
            notes,
            refusal,
        })
    }

    /// What the job files want that are left, however it goes.
    fn wants(&self, history: &History) -> Result<Wants, RunError> {
        let mut wants = Wants::default();
        let folder = self.work_dir();
        for luck in [Luck::Best, Luck::Worst] {
            for task in outlook(self.script, history, luck).0 {
                for text in task.work.job_texts() {
                    let name = Path::new(&task.stage.id);
                    let job = prepare::read(text, name).map_err(RunError::Input)?;
                    wants.add(job, folder);
                }
            }
        }
        Ok(wants)
    }

    /// Relative names are meant from here.
    fn work_dir(&self) -> &Path {
        Path::new("/")
    }

    /// Whether the flow may go on in the record with this header.
    fn must_fit(
        &self,
        header: &Header,
        selected: &Selected,
        environment: &Environment,
    ) -> Result<(), RunError> {
        let facts = header.facts.get(FACTS).cloned();
        let facts: Option<Facts> = facts.and_then(|facts| serde_json::from_value(facts).ok());
        let Some(facts) = facts.filter(|_| header.command == self.command) else {
            let what = format!("the record is none of fathom {}", self.command);
            return Err(RunError::Missing(what));
        };
        let before = Some(facts.engine.as_str());
        records::must_fit(&self.device, before, header, selected, environment)
    }
}

impl Ready<'_> {
    /// The engine that runs the jobs.
    #[must_use]
    pub fn selected(&self) -> &Selected {
        &self.selected
    }

    /// The machine and the device.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// What has been done in the record that it goes on with.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What is to be known of the run.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What stands against writing to the device: it does not run then.
    #[must_use]
    pub fn refusal(&self) -> Option<&RunError> {
        self.refusal.as_ref()
    }

    fn target(&self) -> Option<&Target> {
        identity::dut(Some(&self.environment), &self.flow.device)
    }

    fn budget(&mut self) -> WriteBudget {
        let simulated = self.selected.is_simulated();
        let written = self.written.iter().chain([&self.flow.device]);
        let written = written.filter(|_| !simulated).map(PathBuf::as_path);
        let before = std::mem::take(&mut self.written_before);
        WriteBudget::new(before, written, self.flow.limits)
    }

    /// The new record, or that to go on with.
    fn writer(&self) -> Result<Writer, RunError> {
        let flow = &self.flow;
        if let Some(dir) = &flow.record {
            return Ok(Writer::reopen(dir)?);
        }
        let mark = match self.selected.is_simulated() {
            true => SIMULATED,
            false => "",
        };
        let mut header = Header::new(&format!("{}{mark}", flow.name), flow.command);
        header.environment = Some(self.environment.clone());
        header.facts = flow.facts.clone();
        let facts = Facts {
            device: flow.device.clone(),
            engine: self.selected.engine().name().to_owned(),
        };
        header.facts.insert(FACTS.to_owned(), json!(facts));
        Ok(Writer::create(&flow.runs_dir, &header)?)
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
        if let Some(refusal) = self.refusal.take() {
            return Err(refusal);
        }
        let simulated = self.selected.is_simulated();
        let _hold = match simulated {
            true => Hold::default(),
            false => Hold::of(
                self.written
                    .iter()
                    .chain([&self.flow.device])
                    .map(PathBuf::as_path),
            )
            .map_err(|refusal| RunError::Refused(refusal.to_string()))?,
        };
        let ledgers = match simulated {
            true => Ledgers::none(),
            false => self.flow.ledgers.clone(),
        };
        // What an earlier start has written that was killed. What cannot be had is
        // told by `fathom ledger`.
        let _ = ledgers.catch_up();
        let writer = self.writer()?;
        let dir = writer.dir().to_owned();
        begun(&dir);
        let device = self.target().and_then(|target| target.device.as_ref());
        let (book, notes) = Book::open(&ledgers, &self.flow.device, self.flow.command, &dir);
        let looks = Looks {
            dut: self.flow.device.clone(),
            written: self.written.clone(),
            simulated,
            was_device: device.is_some(),
            gone: std::cell::Cell::new(false),
        };
        let t_ms = self.history.t_ms();
        let mut history = std::mem::take(&mut self.history);
        if let Some(resumed) = writer.resumed() {
            history.take(resumed);
        }
        let history = RefCell::new(history);
        let budget = self.budget();
        let mut observe = |event: &Event| {
            looks.see(event);
            history.borrow_mut().take(event);
            budget.take(event);
            observer(event);
        };
        let targets = (!simulated).then(|| TargetCheck::new(&self.flow.destroy));
        let mut session = Session::new(writer, targets, control, &mut observe, t_ms);
        for text in self.notes.iter().chain(&notes) {
            session.event(Event::Note { text: text.clone() });
        }
        let stop = Runner {
            session: &mut session,
            selected: &self.selected,
            control,
            clock: Clock {
                began: self.selected.engine().now(),
                t_ms,
            },
            history: &history,
            looks: &looks,
            work_dir: self.flow.work_dir(),
            interval: self.flow.interval,
            budget: &budget,
            book: &book,
        }
        .run(self.flow.script);
        let told = book.close(budget.of_jobs()).into_iter();
        for text in told.chain(budget.difference()) {
            session.event(Event::Note { text });
        }
        close(session, stop)
    }
}

/// Closes the record as the flow stopped.
fn close(mut session: Session<'_>, stop: Stop) -> Result<Finish, RunError> {
    let (status, ending, stopped, unwritten) = match stop {
        Stop::Ended(ending) => {
            let status = match &ending {
                Ending::Complete | Ending::NotAttained(_) => RunStatus::Complete,
                Ending::Failed(_) => RunStatus::Failed,
            };
            (status, Some(ending), None, None)
        }
        Stop::Interrupted | Stop::Record => (RunStatus::Interrupted, None, None, None),
        Stop::NoRoom(reason) => {
            let text = format!("the run stopped: {reason}");
            session.event(Event::Note { text });
            (RunStatus::Interrupted, None, Some(reason), None)
        }
        Stop::Device(failure) => {
            let message = failure.message.clone();
            session.event(Event::Failure(failure));
            (RunStatus::Failed, None, Some(message), None)
        }
        Stop::Unwritten(path, source) => {
            let what = format!("the record could not be written: {source}");
            let failure = Failure::new(FailureKind::Record, what).about(path.display().to_string());
            session.event(Event::Failure(failure));
            let error = RunError::Record(RecordError::File { path, source });
            (RunStatus::Failed, None, None, Some(error))
        }
    };
    let (dir, status) = session.close(status)?;
    match unwritten {
        Some(error) => Err(error),
        None => Ok(Finish {
            dir,
            status,
            ending,
            stopped,
        }),
    }
}
