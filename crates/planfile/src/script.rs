//! What a plan file has done, step by step.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use fathom_analysis::snia::Setup;
use fathom_campaign::folder::config_or_shipped;
use fathom_campaign::plan::ResolvedCampaign;
use fathom_campaign::{CampaignError, Folder, run};
use fathom_engines::EngineName;
use fathom_flow::error::RunError;
use fathom_flow::ledger::Ledgers;
use fathom_flow::{
    Ending, History, JobStep, Next, PastStarts, RunOptions, Script, ShellCommand, Task, Work, xdg,
};
use fathom_jobfile::variables::variable;
use fathom_jobfile::{JobFile, preflight};
use fathom_model::{JobSpec, Refused, Stage, StageEnd, StageKind};
use fathom_prepare::acts::Purging;
use fathom_prepare::precondition::{Precondition, PreconditionMethod};
use fathom_prepare::provision::{self, Provision, ProvisionDrive, ProvisionMethod};
use fathom_prepare::settings::{Overrides, settings};
use fathom_suites::prio::{self, PrioReady};
use fathom_suites::quick::{self, QuickRequest, SeriesFolders, SeriesGroup};
use fathom_suites::snia::Snia;

use super::{JobSource, Study, StudyAction, StudyJob, StudyPrecondition, StudyQuick, StudyStep};

impl StudyPrecondition {
    /// What brings a drive there.
    fn script(&self, device: &Path, options: &RunOptions) -> Result<Precondition, RunError> {
        let input = |error: CampaignError| RunError::Input(error.to_string());
        let folder = self.campaign.as_deref().map(Folder::open);
        let folder = folder.transpose().map_err(input)?;
        let config = config_or_shipped(folder.as_ref(), &variable).map_err(input)?;
        let overrides = Overrides {
            options: options.of_part(),
            ..Overrides::default()
        };
        let settings = settings(&config, &overrides)?;
        let how = ProvisionMethod {
            workload: self.workload,
            method: self.method.unwrap_or(PreconditionMethod::SantaClara),
            purge: self.purge.clone(),
            no_purge: self.no_purge,
            force: self.force,
            options: settings.options.clone(),
            campaign: self.campaign.clone(),
            logs: None,
        };
        let drive = match options.is_simulated() {
            true => ProvisionDrive::simulated(device),
            false => ProvisionDrive::at(device),
        };
        let options = provision::ProvisionOptions {
            runs_dir: PathBuf::new(),
            settings,
            ledgers: Ledgers::of_user(),
        };
        let provision = Provision::new(how, vec![drive], config, options);
        provision.look(0, |script, _| script.clone())
    }
}

impl StudyQuick {
    /// The same as the command line orders it.
    fn order(&self, target: Option<&Path>, options: &RunOptions) -> Result<QuickRequest, RunError> {
        if options.is_simulated() {
            return Err(not_simulated(quick::NOT_SIMULATED));
        }
        Ok(QuickRequest {
            path: self.folder.as_deref().or(target).map(Path::to_owned),
            group: SeriesGroup::find(&self.group, xdg::groups_dir().as_deref())?,
            only: self.test.clone(),
            runtime_s: self.runtime_s,
            size_bytes: self.size_bytes,
            nocow: self.nocow,
            may_install: false,
            dry_run: true,
            options: RunOptions {
                engine: options.engine,
                ..RunOptions::default()
            },
        })
    }
}

/// Time between two samples where nobody says.
const INTERVAL: Duration = Duration::from_secs(1);

/// The script of a plan file: its steps in their order.
#[derive(Default)]
pub struct StudyScript<'p> {
    parts: Vec<StudyPart<'p>>,
    setups: Vec<Setup>,
    engine_needs: Vec<String>,
    /// How many steps of jobs there are.
    of: u32,
}

/// A step of a plan file, as it is run.
enum StudyPart<'p> {
    /// One stage or step.
    One(Task),
    /// What has a script of its own, by the step's name: its stages begin with that.
    Whole(String, Box<dyn Script + 'p>),
    /// The same of a test: that steady state was not attained is a result.
    Test(String, Box<dyn Script + 'p>),
}

impl<'p> StudyScript<'p> {
    /// That of a plan file, whose campaigns come to these plans ([`Study::campaigns`]);
    /// `record`: the one to go on with.
    ///
    /// # Errors
    /// A step that cannot be run from a plan file, a job file that has changed since it
    /// was read, a device that is not there.
    pub fn new(
        study: &Study,
        campaigns: &'p [ResolvedCampaign],
        options: &RunOptions,
        record: Option<&Path>,
    ) -> Result<Self, RunError> {
        let mut assembly = Assembly {
            study,
            options,
            campaigns: campaigns.iter(),
            record,
            past: PastStarts::of(record)?.history.resumed(),
            is_first: true,
            folders: SeriesFolders::new(),
            script: Self::default(),
        };
        for step in &study.steps {
            assembly.add(step).map_err(|error| step.said(error))?;
            assembly.is_first &= matches!(step.action, StudyAction::Command(_));
        }
        Ok(assembly.script)
    }

    /// The set-ups of the tests after SNIA's specification in it.
    pub fn snia_setups(&self) -> &[Setup] {
        &self.setups
    }

    /// Job files that the engine must know, in whatever way it was chosen.
    pub fn engine_needs(&self) -> &[String] {
        &self.engine_needs
    }

    /// The scripts of steps that have one, by their names.
    fn scripts(&self) -> impl Iterator<Item = (&str, &dyn Script)> {
        self.parts.iter().filter_map(|part| match part {
            StudyPart::One(_) => None,
            StudyPart::Whole(name, script) | StudyPart::Test(name, script) => {
                Some((name.as_str(), script.as_ref()))
            }
        })
    }

    fn one(&mut self, task: Task) {
        self.of += u32::from(matches!(task.work, Work::Job(_)));
        self.parts.push(StudyPart::One(task));
    }

    fn whole(&mut self, name: &str, script: impl Script + 'p) {
        let part = StudyPart::Whole(name.to_owned(), Box::new(script));
        self.parts.push(part);
    }
}

/// Puts a script together, step by step.
struct Assembly<'s, 'p> {
    study: &'s Study,
    options: &'s RunOptions,
    campaigns: std::slice::Iter<'p, ResolvedCampaign>,
    record: Option<&'s Path>,
    past: History,
    /// Whether nothing was done to the target before.
    is_first: bool,
    folders: SeriesFolders,
    script: StudyScript<'p>,
}

impl Assembly<'_, '_> {
    fn add(&mut self, step: &StudyStep) -> Result<(), RunError> {
        let (study, options) = (self.study, self.options);
        let target = study.targets.path.as_deref();
        let device = target.unwrap_or(Path::new(""));
        let name = &step.name;
        let scope = format!("{name}/");
        let first = self.script.of + 1;
        match &step.action {
            StudyAction::Job(job) => self.script.one(study.job(step, job, first)?.task()),
            StudyAction::Quick(series) => {
                let order = series.order(target, options)?;
                let tasks = quick::tasks(&order, name, first, &mut self.folders)?;
                tasks.into_iter().for_each(|task| self.script.one(task));
            }
            StudyAction::Command(command) => {
                let command = ShellCommand {
                    name: name.clone(),
                    command: command.command.clone(),
                    undo: command.undo.clone(),
                    timeout: command.timeout,
                    folder: study.folder.clone(),
                };
                self.script.one(command.task());
            }
            StudyAction::Purge(purge) => {
                let act = Purging::new(device, purge.want()?, &options.destroy, &purge.reason);
                let stage = Stage {
                    id: name.clone(),
                    ..Purging::stage()
                };
                let work = Work::Act(Rc::new(act));
                self.script.one(Task { stage, work });
            }
            StudyAction::Snia(ask) => {
                let simulated = options.is_simulated().then_some(options.sim(0));
                let mut script = Snia::on(ask, device, simulated, &options.destroy)?;
                script.setup.scope = scope;
                self.script.setups.push(script.setup.clone());
                let part = StudyPart::Test(name.clone(), Box::new(script));
                self.script.parts.push(part);
            }
            StudyAction::Precondition(wanted) => {
                let mut script = wanted.script(device, options)?;
                script.scope = scope;
                // What was found of the device now holds for what comes first only.
                let is_known = self.is_first && self.record.is_none();
                script.skip = script.skip.filter(|_| is_known);
                self.script.whole(name, script);
            }
            StudyAction::Prio(config) => {
                if options.is_simulated() {
                    return Err(not_simulated(prio::NOT_SIMULATED));
                }
                let script = PrioReady::within(config.as_ref().clone(), name, first)?;
                self.script.of += script.measurements();
                self.script.engine_needs.extend(config.engine_needs());
                self.script.whole(name, script);
            }
            StudyAction::Campaign(_) => self.campaign(name)?,
        }
        Ok(())
    }

    fn campaign(&mut self, name: &str) -> Result<(), RunError> {
        let Some(plan) = self.campaigns.next() else {
            return Err(RunError::Input(run::EMPTY.to_owned()));
        };
        let before = self.script.of;
        let points = u32::try_from(plan.steps.len()).unwrap_or(u32::MAX);
        let has_begun = || {
            let mut stages = self.past.stages().iter();
            let mut steps = before + 1..=before + points;
            stages.any(|past| past.stage.id.starts_with(&plan.scope))
                || steps.any(|number| self.past.ended_step(number).is_some())
        };
        let is_next = match self.record {
            None => self.is_first,
            Some(_) => has_begun(),
        };
        let options = run::CampaignOptions {
            ledgers: Ledgers::of_user(),
            ..run::CampaignOptions::default()
        };
        let known = is_next.then_some((&self.past, self.record));
        let (script, tests) = run::ReadyCampaign::within(plan, options, before, known)?;
        let setups = tests.into_iter().map(|test| test.setup);
        self.script.setups.extend(setups);
        self.script.of += points;
        self.script.whole(name, script);
        Ok(())
    }
}

fn not_simulated(why: &str) -> RunError {
    RunError::Input(format!(
        "{why}\n  to do: leave the step out, or run with another engine"
    ))
}

impl StudyScript<'_> {
    /// The first thing that is left to do, of whatever step.
    fn left(&self, history: &History) -> Next {
        let mut switches = None;
        for part in &self.parts {
            let next = match part {
                StudyPart::One(task) => match history.ended(&task.stage.id) {
                    Some(StageEnd::Failed { reason }) => {
                        let reason = format!("{}: {reason}", task.stage.id);
                        return Next::End(Ending::Failed(reason));
                    }
                    _ if task.has_ended(history) => continue,
                    // What is switched is switched for what comes behind it.
                    _ if task.stage.kind == StageKind::Switch => {
                        switches = switches.or(Some(task));
                        continue;
                    }
                    _ => Next::Do(task.clone()),
                },
                StudyPart::Whole(name, script) | StudyPart::Test(name, script) => {
                    match script.next(history) {
                        Next::End(Ending::Complete) => continue,
                        Next::End(Ending::NotAttained(reason)) => {
                            let text = format!("{name}: {reason}");
                            match part {
                                StudyPart::Test(..) if history.has_noted(&text) => continue,
                                StudyPart::Test(..) => Next::Note(text),
                                _ => return Next::End(Ending::NotAttained(text)),
                            }
                        }
                        Next::End(Ending::Failed(reason)) => {
                            return Next::End(Ending::Failed(format!("{name}: {reason}")));
                        }
                        next => next,
                    }
                }
            };
            return match (next, switches) {
                (Next::Do(_) | Next::Prepare(..), Some(switch)) => Next::Do(switch.clone()),
                (next, _) => next,
            };
        }
        Next::End(Ending::Complete)
    }
}

impl Script for StudyScript<'_> {
    fn next(&self, history: &History) -> Next {
        let mut next = self.left(history);
        if let Next::Do(task) = &mut next
            && let Work::Job(step) = &mut task.work
        {
            step.of = self.of;
        }
        next
    }

    fn has_failed(&self, history: &History) -> bool {
        let mut scripts = self.scripts();
        history.has_failed_steps() || scripts.any(|(_, script)| script.has_failed(history))
    }

    fn interval_of(&self, stage: &Stage) -> Option<Duration> {
        let (step, _) = stage.id.split_once('/')?;
        let (_, script) = self.scripts().find(|(name, _)| *name == step)?;
        script.interval_of(stage)
    }
}

impl StudyStep {
    /// With the place of the step, where it is about that.
    pub(super) fn said(&self, error: RunError) -> RunError {
        let said = |what: String| format!("{}: {}: {what}", self.at, self.name);
        match error {
            RunError::Input(what) => RunError::Input(said(what)),
            RunError::Refused(what) => RunError::Refused(Refused {
                text: said(what.text),
                ..what
            }),
            RunError::Missing(what) => RunError::Missing(said(what)),
            other => other,
        }
    }
}

impl Study {
    /// The plans of its campaigns, in the order of their steps.
    ///
    /// # Errors
    /// A campaign that has changed since the plan file was read, or wants an engine of
    /// its own.
    pub fn campaigns(&self, options: &RunOptions) -> Result<Vec<ResolvedCampaign>, RunError> {
        let overrides = Overrides {
            options: RunOptions {
                destroy: Vec::new(),
                ..options.of_part()
            },
            interval: self.options.interval,
            dut: self.targets.path.clone(),
            ..Overrides::default()
        };
        let mut plans = Vec::new();
        for step in &self.steps {
            let StudyAction::Campaign(campaign) = &step.action else {
                continue;
            };
            let refused = |what| Err(step.said(RunError::Input(what)));
            let mut plan = match campaign.plan(overrides.clone(), &variable) {
                Ok(plan) => plan,
                Err(error) => return refused(error.to_string()),
            };
            let folder = campaign.folder.display();
            if campaign.digest != super::campaign::digest(&plan) {
                return refused(format!(
                    "the campaign in {folder} has changed since the plan file was read\n  to do: fathom run the plan file again"
                ));
            }
            let own = plan.settings.options.engine();
            if options.engine.is_none() && own != EngineName::Auto {
                let own = own.name();
                return refused(format!(
                    "{folder} is configured with ENGINE_{}, and one engine runs all steps\n  to do: engine = \"{own}\" in the plan file",
                    own.to_uppercase()
                ));
            }
            plan.settings.options.destroy.clone_from(&options.destroy);
            plans.push(plan.within(&step.name));
        }
        Ok(plans)
    }

    /// One step of jobs, as it is run.
    fn job(&self, step: &StudyStep, job: &StudyJob, number: u32) -> Result<JobStep, RunError> {
        let checked = match &job.source {
            JobSource::File(path) => JobFile::read(path, &variable)
                .map_err(|error| RunError::Input(format!("{}: {error}", path.display())))?,
            JobSource::Text(text) => JobFile::parse(text, &self.folder.join("job"), &variable),
        };
        if checked.has_errors() {
            let first = checked.diagnostics.first().map(ToString::to_string);
            return Err(RunError::Input(first.unwrap_or_default()));
        }
        let mut file = checked.file;
        file.keep_sections(&job.sections);
        for (key, value) in &job.set {
            file.set(key, Some(value));
        }
        self.aim(&mut file)?;
        preflight::forbid_creation(&mut file);
        let jobs = file.jobs();
        Ok(JobStep {
            work_dir: Some(self.folder.clone()),
            interval: self.options.interval.unwrap_or(INTERVAL),
            deadline: job.timeout,
            ..JobStep::new((number, number), &step.name, file.render(), &jobs)
        })
    }

    /// Jobs that name no file run on the target.
    fn aim(&self, file: &mut JobFile) -> Result<(), RunError> {
        let names_file = |job: &JobSpec| {
            let moves = !matches!(job.value("ioengine"), Some("null" | "cpuio"));
            !moves
                || ["filename", "directory", "read_iolog"]
                    .iter()
                    .any(|name| job.value(name).is_some())
        };
        let Some(target) = &self.targets.path else {
            return Ok(());
        };
        let jobs = file.jobs();
        match jobs.iter().filter(|job| names_file(job)).count() {
            0 => {
                let key = match target.is_dir() {
                    true => "directory",
                    false => "filename",
                };
                let path = target.display().to_string();
                // A colon parts names in fio.
                file.set(key, Some(&path.replace(':', "\\:")));
                Ok(())
            }
            named if named == jobs.len() => Ok(()),
            _ => Err(RunError::Input(
                "some of its jobs name a file and some do not\n  to do: name one in all of them, or in none to run on the target"
                    .to_owned(),
            )),
        }
    }
}
