//! Runs a campaign: its plan into one record, over as many starts as it takes.
//!
//! [`ready`] checks everything that can be checked before anything is opened and
//! finds out what is left to do; [`Ready::run`] does it. A run goes on in the
//! campaign's current record, the last one that `run` made for its folder, and
//! runs what has not been measured there with the same job file on the same
//! device by the same engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_engine::choice::NoEngine;
use fathom_engine::select::Selected;
use fathom_engine::{EngineError, Request};
use fathom_fleet::local::FleetError;
use fathom_model::environment::Target;
use fathom_model::{Environment, Exit, FailureKind};
use fathom_record::{Entries, Header, RecordError};

use crate::flow::{History, Luck, Task};
use crate::ledger::{BytesWritten, Ledgers};
use crate::plan::{Phase, Plan, Speed, Step};
use crate::precondition::Here;
use crate::snia::Snia;

mod going;
mod guards;
pub(crate) mod identity;
pub(crate) mod logs;
pub(crate) mod looks;
mod planfile;
pub(crate) mod prepare;
pub(crate) mod preparing;
mod progress;
pub(crate) mod records;
mod spending;
mod stages;
mod tally;
mod together;

pub use going::Finish;
use guards::Guards;
use looks::Looks;
pub use planfile::{Head, PLAN_FILE, Planned, PlannedStage};
use prepare::Wants;
pub use progress::{Counts, Current, Progress, Recent, What};
pub use records::{COMMAND, current, engine_of};
pub use stages::{Stages, Standing};
pub use tally::{Came, Ended, Tally};
pub use together::{Together, machines_of};

/// How a run begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Begin {
    /// Goes on with the current record, or starts one when there is none.
    #[default]
    Run,
    /// Goes on with the current record, or refuses.
    Resume,
    /// Starts a new record.
    Again,
}

/// What is asked for beside the plan.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How it begins.
    pub begin: Begin,
    /// Points that failed are tried again.
    pub retry_failed: bool,
    /// The plan is a part of the campaign (`--only`): the logs do not say that
    /// the campaign has ended.
    pub partial: bool,
    /// The flags of the command line that made the plan: kept for `resume`.
    pub flags: serde_json::Value,
    /// The fio to use, when not the one in PATH.
    pub fio: Option<PathBuf>,
    /// The device that the engine `sim` simulates, when not a healthy one.
    pub sim: Option<PathBuf>,
    /// The ledgers of devices.
    pub ledgers: Ledgers,
}

/// Why a campaign does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A job file or a setting is wrong.
    #[error("{0}")]
    Input(String),
    /// Refused so that no data is lost and no figure misleads.
    #[error("{0}")]
    Refused(String),
    /// Something needed is not there: a record, a device.
    #[error("{0}")]
    Missing(String),
    /// No engine runs the points.
    #[error("{0}\n  to do: {advice}", advice = .0.kind().advice())]
    Engine(NoEngine),
    /// The engine could not be asked for its command.
    #[error(transparent)]
    Command(#[from] EngineError),
    /// It was stopped before anything was done.
    #[error("interrupted before anything was done")]
    Interrupted,
    /// The record could not be written or read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The run was stopped because its record could not be written.
    #[error(transparent)]
    Run(#[from] FleetError),
}

impl RunError {
    /// The exit code that fits.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Input(_) => Exit::Input,
            Self::Interrupted => Exit::Interrupted,
            Self::Refused(_) | Self::Record(RecordError::Busy { .. }) => Exit::Refused,
            Self::Missing(_) | Self::Command(_) => Exit::Missing,
            Self::Engine(none) => match none.kind() {
                FailureKind::FioMissing | FailureKind::EngineMissing => Exit::Missing,
                _ => Exit::Input,
            },
            Self::Record(_) | Self::Run(_) => Exit::Record,
        }
    }
}

/// A campaign that may run: everything has been checked, nothing opened.
#[derive(Debug)]
pub struct Ready<'p> {
    plan: &'p Plan,
    /// The tests after SNIA's specification.
    snia: Vec<Snia>,
    /// The campaign's folder, without links: relative names are meant from here.
    folder: PathBuf,
    /// The device (or file) under test, from the root on.
    dut: PathBuf,
    options: Options,
    runs_dir: PathBuf,
    selected: Selected,
    /// Paths that the jobs write to: looked at again before every point.
    written: Vec<PathBuf>,
    environment: Environment,
    /// The record it goes on with.
    record: Option<PathBuf>,
    tally: Tally,
    /// What was done to the device.
    history: History,
    /// What is known of the machine for pre-conditioning.
    here: Here,
    /// What was found of the device's state before.
    found: BTreeMap<Phase, preparing::Found>,
    /// What the starts before have written.
    written_before: BytesWritten,
    /// How fast the device can be written, where its link tells.
    speed: Option<Speed>,
    guards: Guards,
    /// Places of the steps to run, in the order of the plan.
    todo: Vec<usize>,
    /// Failed measurements that are left as they are.
    failed: usize,
    notes: Vec<String>,
    /// What stands against writing to the target: nothing runs then.
    refusal: Option<RunError>,
}

/// Checks a plan and finds out what is left of it. Nothing is opened but for
/// reading.
///
/// # Errors
/// The refusal, with everything that stands against the run.
pub fn ready<'p>(plan: &'p Plan, runs_dir: &Path, options: Options) -> Result<Ready<'p>, RunError> {
    let mut ready = look(plan, runs_dir, options)?;
    match ready.refusal.take() {
        Some(refusal) => Err(refusal),
        None => Ok(ready),
    }
}

/// As [`ready`], also where the target may not be written to: what would run
/// can be shown then, with [`Ready::refusal`], and does not run.
///
/// # Errors
/// As [`ready`], but for what stands against the target.
pub fn look<'p>(plan: &'p Plan, runs_dir: &Path, options: Options) -> Result<Ready<'p>, RunError> {
    if plan.phases().is_empty() && !plan.snia.is_something() {
        let what =
            "the plan is empty: no test is switched on (fathom config menu), or --only names none";
        return Err(RunError::Input(what.to_owned()));
    }
    let folder = records::real(&plan.folder);
    let dut = folder.join(&plan.dut);
    let sim = options.sim.as_deref();
    let mut wants = Wants::of(plan, &folder)?;
    let snia = preparing::snia(plan, &folder, &dut, sim)?;
    for script in &snia {
        wants.add_flow(script, &folder)?;
    }
    let (selected, note) = wants.engine(&plan.settings.engine, options.fio.as_deref(), sim)?;
    let notice = (!snia.is_empty()).then(|| fathom_analysis::snia::NOTICE.to_owned());
    let known = plan.notes.iter().cloned().chain(notice);
    let mut notes: Vec<String> = known.chain(note).collect();
    let (environment, refusal) = target(&selected, &wants, &dut, &plan.settings.destroy);
    let record = records::to_go_on_with(plan, runs_dir, options.begin)?;
    let mut known = Known::default();
    if let Some(dir) = &record {
        let header = known.read(dir)?;
        together::must_be_of_one(&header)?;
        let before = records::engine_of(&header);
        records::must_fit(&dut, before.as_deref(), &header, &selected, &environment)?;
        records::must_be_same_tests(&header, &snia)?;
        if let Some(before) = &header.environment {
            notes.extend(identity::changes(before, &environment));
        }
    }
    let guards = Guards::after(plan, &known.tally);
    let here = preparing::here(&selected, &dut, &plan.preparation);
    let mut ready = Ready {
        plan,
        snia,
        folder,
        here,
        history: known.history,
        found: BTreeMap::new(),
        dut,
        runs_dir: runs_dir.to_owned(),
        selected,
        written: wants.written().map(Path::to_owned).collect(),
        environment,
        record,
        tally: known.tally,
        written_before: known.written_before,
        speed: plan.link_speed(),
        guards,
        todo: Vec::new(),
        failed: 0,
        notes,
        refusal,
        options,
    };
    ready.find_todo();
    ready.look_at_state();
    ready.refusal = ready
        .refusal
        .take()
        .or_else(|| ready.against_purge())
        .or_else(|| ready.over_budget());
    Ok(ready)
}

/// The machine with the target, and what stands against writing to that.
fn target(
    selected: &Selected,
    wants: &Wants,
    dut: &Path,
    destroy: &[String],
) -> (Environment, Option<RunError>) {
    if selected.is_simulated() {
        return (fathom_device::environment(&[]), None);
    }
    let refusal = wants.check_targets(destroy).err();
    let targets = [dut.to_owned()];
    (fathom_device::environment(&targets), refusal)
}

/// What is known of the starts before.
#[derive(Default)]
struct Known {
    tally: Tally,
    written_before: BytesWritten,
    history: History,
}

impl Known {
    /// Reads a record; gives its header.
    fn read(&mut self, dir: &Path) -> Result<Header, RunError> {
        let mut entries = Entries::open(dir)?;
        for entry in &mut entries {
            let event = entry?.event;
            self.tally.take(&event);
            self.written_before.take(&event);
            self.history.take(&event);
        }
        // A run that was killed leaves its last step open, and so it stays.
        self.tally = std::mem::take(&mut self.tally).closed();
        Ok(entries.header)
    }
}

impl<'p> Ready<'p> {
    /// Finds the steps that have not been measured with the text they have now.
    fn find_todo(&mut self) {
        let mut texts = records::Texts::of(self.record.as_deref());
        for (place, step) in self.plan.steps.iter().enumerate() {
            let same_text = |texts: &mut records::Texts| {
                let Ok(job) = prepare::job(self.plan, step) else {
                    return false;
                };
                let name = self.tally.job(&step.point).unwrap_or_default();
                texts.is(name, step, &job.text)
            };
            match self.tally.came_of(&step.point) {
                Some(Came::Done(_)) if same_text(&mut texts) => {}
                Some(Came::Failed(_)) if !self.options.retry_failed && same_text(&mut texts) => {
                    self.failed += 1;
                }
                // The guard's words stand in the record already.
                Some(Came::Skipped(_)) if self.guards.against(step).is_some() => {}
                _ => self.todo.push(place),
            }
        }
    }

    /// Whether there is nothing left to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.todo.is_empty() && self.stages(Luck::Best).is_empty()
    }

    /// The steps that will run, unless the guard or a time limit leaves them
    /// out, with their places in the plan.
    pub fn todo(&self) -> impl Iterator<Item = (usize, &'p Step)> {
        self.todo
            .iter()
            .map(|&place| (place, &self.plan.steps[place]))
    }

    /// Failed measurements that stay as they are: `retry_failed` tries them again.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// The record that it goes on with; `None`: it starts a new one.
    #[must_use]
    pub fn record(&self) -> Option<&Path> {
        self.record.as_deref()
    }

    /// The engine that runs the points.
    #[must_use]
    pub fn selected(&self) -> &Selected {
        &self.selected
    }

    /// What stands against writing to the target.
    #[must_use]
    pub fn refusal(self) -> Option<RunError> {
        self.refusal
    }

    /// What is to be known of the run.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The job file of a step as it would run, and the command that would be
    /// executed (none for engines inside Fathom).
    ///
    /// # Errors
    /// When fio cannot be asked for its version.
    pub fn command(&self, step: &Step) -> Result<(String, Vec<String>), RunError> {
        let job = prepare::job(self.plan, step).map_err(RunError::Input)?;
        let record = self.record.clone();
        let record = record.unwrap_or_else(|| self.runs_dir.join("RUN"));
        let job_file = record.join(records::job_path(&step.point.id, records::ending(step)));
        let request = self.request(step, job_file, record.join("raw").join(&step.point.id));
        Ok((job.text, self.selected.command(&request)?))
    }

    /// The job files of a stage as they would run, each with the command that
    /// would be executed (none for engines inside Fathom).
    ///
    /// # Errors
    /// As [`Ready::command`].
    pub fn stage_commands(&self, task: &Task) -> Result<Vec<(String, Vec<String>)>, RunError> {
        let record = self.record.clone();
        let record = record.unwrap_or_else(|| self.runs_dir.join("RUN"));
        let id = &task.stage.id;
        let command = |text: &str| {
            let job = prepare::read(text, Path::new(id)).map_err(RunError::Input)?;
            let request = Request {
                job_file: record.join(records::job_path(id, records::JOB_ENDING)),
                sections: Vec::new(),
                extra_args: Vec::new(),
                work_dir: self.folder.clone(),
                raw_dir: record.join("raw").join(id),
                interval: self.plan.settings.interval,
                deadline: None,
            };
            Ok((job.text, self.selected.command(&request)?))
        };
        task.work.job_texts().map(command).collect()
    }

    /// What the engine is asked for in one step.
    fn request(&self, step: &Step, job_file: PathBuf, raw_dir: PathBuf) -> Request {
        Request {
            job_file,
            sections: Vec::new(),
            extra_args: Vec::new(),
            work_dir: self.folder.clone(),
            raw_dir,
            interval: self.plan.settings.interval,
            deadline: self
                .plan
                .settings
                .point_limit
                .or_else(|| self.usual_limit(step)),
        }
    }

    /// The limit of a point that has none of its own: twice its time and a
    /// minute, so that a device that does not answer does not hold up the
    /// campaign for ever. Files may have to be laid out first, for which nobody
    /// knows how long it takes: they have no limit.
    fn usual_limit(&self, step: &Step) -> Option<Duration> {
        const MARGIN: Duration = Duration::from_secs(60);
        let is_device = self.target().is_some_and(|target| target.device.is_some());
        let duration = step.duration?;
        (is_device || self.selected.is_simulated()).then(|| duration * 2 + MARGIN)
    }

    /// The ledgers of what is written to.
    fn ledgers(&self) -> Ledgers {
        match self.selected.is_simulated() {
            true => Ledgers::none(),
            false => self.options.ledgers.clone(),
        }
    }

    /// What is looked at between two points.
    fn looks(&self) -> Looks {
        Looks {
            dut: self.dut.clone(),
            written: self.written.clone(),
            simulated: self.selected.is_simulated(),
            was_device: self.target().is_some_and(|target| target.device.is_some()),
            gone: std::cell::Cell::new(false),
        }
    }

    /// The device (or file) under test as it was found.
    fn target(&self) -> Option<&Target> {
        identity::dut(Some(&self.environment), &self.dut)
    }
}
