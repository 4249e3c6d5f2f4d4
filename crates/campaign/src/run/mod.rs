//! Runs a campaign: its plan into one record, over as many starts as it takes.
//!
//! [`ready`] checks everything that can be checked before anything is opened and
//! finds out what is left to do; [`ReadyCampaign::run`] does it. A run goes on in the
//! campaign's current record, the last one that `run` made for its folder, and
//! runs what has not been measured there with the same job file on the same
//! device by the same engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_engine::existing::Owner;
use fathom_engine::{Control, Request};
use fathom_engines::select::EngineHandle;
use fathom_flow::budget::Speed;
use fathom_flow::error::RunError;
use fathom_flow::identity::UsedPaths;
use fathom_flow::ledger::Ledgers;
use fathom_flow::past::COMMAND;
use fathom_flow::wants::Wants;
use fathom_flow::{
    Case, Checked, Extras, Finish, Flow, History, KeptPlan, PastStarts, PointOutcome, RunLog, Task,
    file_names, identity, past, wants,
};
use fathom_model::environment::Target;
use fathom_model::{DevicePhase, Environment, Event};
use fathom_prepare::here;
use fathom_prepare::precondition::DeviceFacts;
use fathom_suites::snia::Snia;

use crate::plan::{CampaignStep, ResolvedCampaign};

mod guards;
mod multi_host;
pub(crate) mod planfile;
pub(crate) mod prepare;
pub(crate) mod preparing;
mod progress_log;
pub(crate) mod records;
mod script;
mod spending;

use guards::Guards;
pub use multi_host::{MultiHostCampaign, machines_of};
use progress_log::ProgressLog;
pub use records::{current, current_of, engine_of};
pub use script::CampaignScript;

/// How a run begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunStart {
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
pub struct CampaignOptions {
    /// How it begins.
    pub begin: RunStart,
    /// Points that failed are tried again.
    pub retry_failed: bool,
    /// The plan is a part of the campaign (`--only`): the logs do not say that
    /// the campaign has ended.
    pub partial: bool,
    /// The flags of the command line that made the plan: kept for `resume`.
    pub flags: serde_json::Value,
    /// The ledgers of devices.
    pub ledgers: Ledgers,
}

/// A campaign that may run: everything has been checked, nothing opened.
#[derive(Debug)]
pub struct ReadyCampaign<'p> {
    plan: &'p ResolvedCampaign,
    /// The tests after SNIA's specification.
    snia: Vec<Snia>,
    /// The campaign's folder, without links: relative names are meant from here.
    folder: PathBuf,
    /// The device (or file) under test, from the root on.
    dut: PathBuf,
    options: CampaignOptions,
    runs_dir: PathBuf,
    checked: Checked,
    /// What its jobs use.
    uses: UsedPaths,
    /// The record it goes on with.
    record: Option<PathBuf>,
    /// What is in it.
    past: PastStarts,
    /// What is known of the machine for pre-conditioning.
    here: DeviceFacts,
    /// What was found of the device's state before.
    found: BTreeMap<DevicePhase, preparing::FoundPhase>,
    /// How fast the device can be written, where its link tells.
    speed: Option<Speed>,
    /// Places of the steps to run, in the order of the plan.
    todo: Vec<usize>,
    /// Failed measurements that are left as they are.
    failed: usize,
    /// Steps before its own, as a step of a plan file; `None`: it is a run of its own.
    before: Option<u32>,
}

/// What is wrong with a plan in which there is nothing to do.
pub const EMPTY: &str =
    "the plan is empty: no test is switched on (fathom config menu), or --only names none";

/// Checks a plan and finds out what is left of it. Nothing is opened but for
/// reading.
///
/// # Errors
/// The refusal, with everything that stands against the run.
pub fn ready<'p>(
    plan: &'p ResolvedCampaign,
    runs_dir: &Path,
    options: CampaignOptions,
) -> Result<ReadyCampaign<'p>, RunError> {
    let mut ready = look(plan, runs_dir, options)?;
    match ready.checked.refusal.take() {
        Some(refusal) => Err(refusal),
        None => Ok(ready),
    }
}

/// As [`ready`], also where the target may not be written to: what would run
/// can be shown then, with [`ReadyCampaign::refusal`], and does not run.
///
/// # Errors
/// As [`ready`], but for what stands against the target.
pub fn look<'p>(
    plan: &'p ResolvedCampaign,
    runs_dir: &Path,
    options: CampaignOptions,
) -> Result<ReadyCampaign<'p>, RunError> {
    let record = records::to_go_on_with(plan, runs_dir, options.begin)?;
    let mut ready = ReadyCampaign::of(plan, runs_dir, options, record.as_deref())?;
    let past = PastStarts::of(record.as_deref())?;
    if let Some(header) = &past.header {
        let Checked {
            selected,
            environment,
            ..
        } = &ready.checked;
        multi_host::must_be_of_one(header)?;
        let before = records::engine_of(header);
        let before = before.as_deref();
        past::must_fit(
            std::slice::from_ref(&ready.dut),
            before,
            header,
            selected,
            environment,
        )?;
        past::must_lead(header, &ready.uses)?;
        records::must_be_same_tests(header, &ready.snia)?;
        if let Some(before) = &header.environment {
            let changes = identity::changes(before, environment);
            ready.checked.notes.extend(changes);
        }
    }
    (ready.record, ready.past) = (record, past);
    ready.find_todo();
    ready.look_at_state();
    let refusal = ready.checked.refusal.take();
    ready.checked.refusal = refusal
        .or_else(|| ready.against_purge())
        .or_else(|| ready.over_budget());
    Ok(ready)
}

/// The machine with the target, and what stands against writing to that.
fn target(
    selected: &EngineHandle,
    wants: &Wants,
    dut: &Path,
    owner: Owner<'_>,
) -> (Environment, Option<RunError>) {
    if selected.is_simulated() {
        return (fathom_device::environment(&[]), None);
    }
    let refusal = wants.check_targets(owner, prepare::with_symbol).err();
    let targets = [dut.to_owned()];
    (fathom_device::environment(&targets), refusal)
}

impl<'p> ReadyCampaign<'p> {
    /// What is known of a plan before what is in its record is looked at.
    fn of(
        plan: &'p ResolvedCampaign,
        runs_dir: &Path,
        options: CampaignOptions,
        record: Option<&Path>,
    ) -> Result<Self, RunError> {
        if plan.phases().is_empty() && !plan.snia.is_something() {
            return Err(RunError::Input(EMPTY.to_owned()));
        }
        let folder = past::real(&plan.folder);
        let dut = folder.join(&plan.dut);
        let mut wants = prepare::wants(plan, &folder)?;
        let snia = preparing::snia(plan, &folder, &dut)?;
        for script in &snia {
            wants.add_flow(script, (&History::default(), Case::Best), &folder)?;
        }
        let (selected, note) = wants.engine(&plan.settings.options)?;
        let notice = (!snia.is_empty()).then(|| fathom_analysis::snia::NOTICE.to_owned());
        let known = plan.notes.iter().cloned().chain(notice);
        let owner = Owner::of(record, &plan.settings.options.destroy);
        let (environment, refusal) = target(&selected, &wants, &dut, owner);
        let uses = match selected.is_simulated() {
            true => UsedPaths::default(),
            false => UsedPaths::of(wants.paths()),
        };
        Ok(Self {
            uses,
            here: here::device_facts(&selected, &dut, &plan.preparation),
            checked: Checked {
                is_here: !selected.is_simulated(),
                selected,
                environment,
                written: wants.written().map(Path::to_owned).collect(),
                notes: known.chain(note).collect(),
                layouts: Vec::new(),
                refusal,
            },
            plan,
            snia,
            folder,
            dut,
            options,
            runs_dir: runs_dir.to_owned(),
            record: None,
            past: PastStarts::default(),
            found: BTreeMap::new(),
            speed: plan.link_speed(),
            todo: Vec::new(),
            failed: 0,
            before: None,
        })
    }

    /// The script of a campaign that is a step of a plan file, behind so many others.
    /// `begun`: what the record holds where this step is the next one; else nothing is
    /// known of the state that the device will be in then.
    ///
    /// # Errors
    /// What stands against it on this machine.
    pub fn within(
        plan: &'p ResolvedCampaign,
        options: CampaignOptions,
        before: u32,
        begun: Option<(&History, Option<&Path>)>,
    ) -> Result<(CampaignScript<'p>, Vec<Snia>), RunError> {
        let mut ready = {
            let record = begun.and_then(|(_, record)| record);
            Self::of(plan, Path::new(""), options, record)?
        };
        ready.before = Some(before);
        let all = 0..plan.steps.len();
        if let Some((history, record)) = begun {
            ready.past.history = history.clone();
            ready.record = record.map(Path::to_owned);
            let script = CampaignScript::new(&ready);
            let is_left = |place: &usize| !script.is_over(*place, history);
            ready.todo = all.clone().filter(is_left).collect();
            ready.checked.refusal = None;
            ready.look_at_state();
            if let Some(stale) = ready.checked.refusal.take() {
                return Err(stale);
            }
            if record.is_some() {
                // On its way there, as one that was not killed.
                ready
                    .found
                    .values_mut()
                    .for_each(preparing::FoundPhase::go_on);
            }
            (ready.past, ready.record) = (PastStarts::default(), None);
        }
        ready.todo = all.collect();
        Ok((CampaignScript::new(&ready), ready.snia))
    }

    /// Finds the steps that have not been measured with the text they have now.
    fn find_todo(&mut self) {
        let history = &self.past.history;
        let guards = Guards::after(self.plan, history);
        for (place, step) in self.plan.steps.iter().enumerate() {
            let same_text = || {
                let name = history.tally().job(&step.point).unwrap_or_default();
                let job = prepare::job(self.plan, step);
                job.is_ok_and(|job| records::holds(self.record.as_deref(), name, step, &job.text))
            };
            match history.tally().came_of(&step.point) {
                Some(PointOutcome::Done(_)) if same_text() => {}
                Some(PointOutcome::Failed(_)) if !self.options.retry_failed && same_text() => {
                    self.failed += 1;
                }
                // The guard's words stand in the record already.
                Some(PointOutcome::Skipped(_))
                    if guards.against(self.plan, step, history).is_some() => {}
                _ => self.todo.push(place),
            }
        }
    }

    /// Whether there is nothing left to do, not even to write down that the run has ended.
    pub fn is_done(&self) -> bool {
        self.past.is_closed && self.todo.is_empty() && self.stages(Case::Best).is_empty()
    }

    /// The steps that will run, unless the guard or a time limit leaves them
    /// out, with their places in the plan.
    pub fn todo(&self) -> impl Iterator<Item = (usize, &'p CampaignStep)> {
        self.todo
            .iter()
            .map(|&place| (place, &self.plan.steps[place]))
    }

    /// Failed measurements that stay as they are: `retry_failed` tries them again.
    pub fn failed(&self) -> usize {
        self.failed
    }

    /// The record that it goes on with; `None`: it starts a new one.
    pub fn record(&self) -> Option<&Path> {
        self.record.as_deref()
    }

    /// What it is made of.
    pub fn plan(&self) -> &'p ResolvedCampaign {
        self.plan
    }

    /// The engine that runs the points.
    pub fn selected(&self) -> &EngineHandle {
        &self.checked.selected
    }

    /// What stands against writing to the target.
    pub fn refusal(&self) -> Option<&RunError> {
        self.checked.refusal.as_ref()
    }

    /// What is to be known of the run.
    pub fn notes(&self) -> &[String] {
        &self.checked.notes
    }

    /// The job file of a step as it would run, and the command that would be
    /// executed (none for engines inside Fathom).
    ///
    /// # Errors
    /// When fio cannot be asked for its version.
    pub fn command(&self, step: &CampaignStep) -> Result<(String, Vec<String>), RunError> {
        let job = prepare::job(self.plan, step).map_err(RunError::Input)?;
        let record = self.record.clone();
        let record = record.unwrap_or_else(|| self.runs_dir.join("RUN"));
        let step = script::job_step(self.plan, &self.folder, (0, 0), step, self.is_bounded());
        let job_file = record.join("jobs").join(&step.job_file);
        let request = step.request(job_file, record.join("raw").join(&step.name));
        Ok((job.text, self.checked.selected.command(&request)?))
    }

    /// The job files of a stage as they would run, each with the command that
    /// would be executed (none for engines inside Fathom).
    ///
    /// # Errors
    /// As [`ReadyCampaign::command`].
    pub fn stage_commands(&self, task: &Task) -> Result<Vec<(String, Vec<String>)>, RunError> {
        let record = self.record.clone();
        let record = record.unwrap_or_else(|| self.runs_dir.join("RUN"));
        let id = &task.stage.id;
        let command = |text: &str| {
            let job = wants::read(text, Path::new(id)).map_err(RunError::Input)?;
            let request = Request {
                job_file: record.join(file_names::job_path(id, file_names::JOB_ENDING)),
                sections: Vec::new(),
                extra_args: Vec::new(),
                work_dir: self.folder.clone(),
                raw_dir: record.join("raw").join(id),
                interval: self.plan.settings.interval,
                deadline: None,
                fio: None,
                checked: None,
            };
            Ok((job.text, self.checked.selected.command(&request)?))
        };
        task.work.job_texts().map(command).collect()
    }

    /// Whether points that have no limit of their own are limited by their time. Files may
    /// have to be laid out first, for which nobody knows how long it takes.
    fn is_bounded(&self) -> bool {
        let is_device = self.target().is_some_and(|target| target.device.is_some());
        is_device || self.checked.selected.is_simulated()
    }

    /// The ledgers of what is written to.
    fn ledgers(&self) -> Ledgers {
        match self.checked.selected.is_simulated() {
            true => Ledgers::none(),
            false => self.options.ledgers.clone(),
        }
    }

    /// The device (or file) under test as it was found.
    fn target(&self) -> Option<&Target> {
        identity::dut(Some(&self.checked.environment), &self.dut)
    }

    /// Runs what is left. `observer` is told every event once it is recorded;
    /// before the first it is given the record's folder.
    ///
    /// # Errors
    /// When the record cannot be written; the run was stopped then. Points that
    /// fail do not end it. When the target may not be written to.
    pub fn run(
        mut self,
        control: &Control,
        begun: &mut dyn FnMut(&Path),
        observer: &mut dyn FnMut(&Event),
    ) -> Result<Finish, RunError> {
        if let Some(refusal) = self.checked.refusal.take() {
            return Err(refusal);
        }
        let (plan, settings) = (self.plan, &self.plan.settings);
        let script = CampaignScript::new(&self);
        let planned = planfile::CampaignPlan::new(&self);
        let write_plan = move |dir: &Path| planned.write(dir);
        let mut log = ProgressLog::new(&self, &script);
        let flow = Flow {
            script: &script,
            command: COMMAND,
            name: &records::name_of(&self.folder),
            device: Some(self.dut.clone()),
            work_dir: self.folder.clone(),
            options: settings.options.clone(),
            engine_needs: Vec::new(),
            interval: settings.interval,
            runs_dir: self.runs_dir,
            record: self.record,
            ledgers: self.options.ledgers,
            facts: records::facts(plan, self.checked.selected.engine().name(), &self.snia),
            kept: KeptPlan::Nothing,
        };
        let extras = Extras {
            plan: Some(Box::new(write_plan)),
            enters_written: true,
            speed: self.speed,
            uses: self.uses,
            log: log.as_mut().map(|log| log as &mut dyn RunLog),
        };
        let ready = flow.ready(self.checked, self.past, extras);
        ready.run(control, begun, observer)
    }
}
