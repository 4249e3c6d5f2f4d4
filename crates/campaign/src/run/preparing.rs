//! What is done to the device before the points of a phase: the flow that leads
//! it there, whether it is there already, and how it goes.

use std::path::Path;
use std::rc::Rc;

use fathom_device::safety::Confirmations;
use fathom_engine_sim::Sim;
use fathom_flow::device_state::{Judgement, WantedState};
use fathom_flow::error::RunError;
use fathom_flow::past::COMMAND;
use fathom_flow::{Act, Case, Ending, History, Script, Task, Work, lead, outlook};
use fathom_flow::{file_names, wants};
use fathom_model::DevicePhase;
use fathom_model::environment::BlockDevice;
use fathom_model::{Stage, StageEnd, StageKind};
use fathom_prepare::acts::{Energizing, Purging};
use fathom_prepare::energized;
use fathom_prepare::here::{capacity, logical_block};
use fathom_prepare::precondition::{DeviceFacts, Precondition, jobs};
use fathom_prepare::settings::Stale;
use fathom_suites::snia::{Place, Snia};

use super::{CampaignScript, ReadyCampaign};
use crate::plan::ResolvedCampaign;

/// What was found of a phase before the run.
#[derive(Debug, Clone, Default)]
pub(super) struct FoundPhase {
    /// The least pass of its stages.
    pass: u32,
    /// Why they are needless.
    skip: Option<String>,
    /// Why they are done anew.
    stale: Option<String>,
}

impl FoundPhase {
    /// What goes on in its record does what it began.
    pub(super) fn go_on(&mut self) {
        self.skip = None;
    }
}

/// The tests after SNIA's specification, as they are run on the device under
/// test.
///
/// # Errors
/// What they cannot be on it.
pub(super) fn snia(
    plan: &ResolvedCampaign,
    folder: &Path,
    dut: &Path,
) -> Result<Vec<Snia>, RunError> {
    if !plan.snia.is_something() {
        return Ok(Vec::new());
    }
    let options = &plan.settings.options;
    let simulated = options.is_simulated();
    let capacity_bytes = match simulated {
        true => Some(
            Sim::read(options.sim(0))
                .map_err(RunError::Input)?
                .capacity_bytes(),
        ),
        false => capacity(dut),
    };
    let Some(capacity_bytes) = capacity_bytes else {
        let dut = dut.display();
        return Err(RunError::Missing(format!(
            "{dut} is not there or has no size, which the SNIA tests need"
        )));
    };
    let logs = plan.settings.progress_logs.then(|| folder.to_owned());
    let place = Place {
        dut,
        capacity_bytes,
        logical_block_bytes: logical_block(dut, simulated),
        simulated,
        destroy: &options.destroy,
        logs,
    };
    let mut tests = plan.snia.scripts(&place).map_err(RunError::Input)?;
    for test in &mut tests {
        test.setup.scope.clone_from(&plan.scope);
    }
    Ok(tests)
}

/// Makes the flows of a plan.
struct Maker<'m> {
    plan: &'m ResolvedCampaign,
    dut: &'m Path,
    device: Option<&'m BlockDevice>,
    here: DeviceFacts,
    folder: &'m Path,
}

impl Maker<'_> {
    fn script(&self, phase: DevicePhase, found: FoundPhase) -> Option<Precondition> {
        let (plan, preparation) = (self.plan, &self.plan.preparation);
        if !preparation.is_something() {
            return None;
        }
        let logs = plan.settings.progress_logs.then(|| self.folder.to_owned());
        let mut first: Vec<(Stage, Rc<dyn Act>)> = Vec::new();
        let set = plan.settings.care.energized;
        let energizing = Energizing {
            logs: logs.clone(),
            ..Energizing::new(self.dut, set, self.device)
        };
        if preparation.energize && energizing.need.is_some() {
            first.push((energized::stage(), Rc::new(energizing)));
        }
        if let Some(want) = &preparation.purge {
            let reason = "the campaign begins on a purged device";
            let purging = Purging {
                logs,
                ..Purging::new(
                    self.dut,
                    want.clone(),
                    &plan.settings.options.destroy,
                    reason,
                )
            };
            first.push((Purging::stage(), Rc::new(purging)));
        }
        Some(Precondition {
            settings: preparation.precondition.clone(),
            here: self.here,
            first,
            phase,
            pass: found.pass.max(1),
            skip: found.skip,
            scope: plan.scope.clone(),
        })
    }
}

impl ResolvedCampaign {
    /// The stages that make the device ready, of a campaign that begins, each
    /// with its phase, if it goes so. The device need not be there.
    pub fn stages(&self, case: Case) -> Vec<(DevicePhase, Task)> {
        let dut = self.folder.join(&self.dut);
        let environment = fathom_device::environment(std::slice::from_ref(&dut));
        let target = environment.targets.first();
        let maker = Maker {
            plan: self,
            dut: &dut,
            device: target.and_then(|target| target.device.as_ref()),
            here: DeviceFacts {
                capacity_bytes: capacity(&dut),
                has_sprandom: false,
            },
            folder: &self.folder,
        };
        // Of a device that is not there nothing is known: `snia_left_out` says so.
        let tests = snia(self, &self.folder, &dut).unwrap_or_default();
        let phases = self.phases().into_iter();
        let preparations: Vec<_> = phases
            .filter_map(|phase| Some((phase, maker.script(phase, FoundPhase::default())?)))
            .collect();
        all_stages(&tests, &preparations, History::default(), case)
    }

    /// Why the SNIA tests that the configuration asks for are not among the
    /// stages of the plan; `None`: they are, or there are none.
    pub fn snia_left_out(&self) -> Option<String> {
        let dut = self.folder.join(&self.dut);
        let error = snia(self, &self.folder, &dut).err()?;
        let tests = self.snia.tests.iter();
        let tests: Vec<&str> = tests.map(|(test, ..)| test.name()).collect();
        Some(format!(
            "the SNIA tests ({}) are not in this plan: {error}",
            tests.join(", ")
        ))
    }
}

/// The stages of tests and preparations behind this history, if it goes so.
fn all_stages(
    tests: &[Snia],
    preparations: &[(DevicePhase, Precondition)],
    mut history: History,
    case: Case,
) -> Vec<(DevicePhase, Task)> {
    let tests = tests
        .iter()
        .map(|test| (DevicePhase::Random, test as &dyn Script));
    let preparations = preparations.iter();
    let scripts = tests.chain(preparations.map(|(phase, it)| (*phase, it as &dyn Script)));
    let mut all = Vec::new();
    for (phase, script) in scripts {
        let (tasks, _) = lead(script, &mut history, case);
        all.extend(tasks.into_iter().map(|task| (phase, task)));
    }
    all
}

/// Why points are left out that need a steady device.
pub(super) fn not_steady(phase: DevicePhase) -> String {
    format!("the device did not become steady for {phase} work")
}

impl ReadyCampaign<'_> {
    /// The phases for which something is left to do.
    pub(super) fn phases_left(&self) -> Vec<DevicePhase> {
        let steps = &self.plan.steps;
        let mut phases: Vec<DevicePhase> = self.todo.iter().map(|&at| steps[at].phase).collect();
        phases.extend(self.plan.preparation.provision);
        phases.sort_unstable();
        phases.dedup();
        phases
    }

    /// The flow that makes the device ready for a phase; `None`: nothing is done.
    pub(super) fn script(&self, phase: DevicePhase) -> Option<Precondition> {
        let maker = Maker {
            plan: self.plan,
            dut: &self.dut,
            device: self.target().and_then(|target| target.device.as_ref()),
            here: self.here,
            folder: &self.folder,
        };
        let found = self.found.get(&phase).cloned().unwrap_or_default();
        maker.script(phase, found)
    }

    /// The flows for all phases for which something is left to do.
    pub(super) fn preparations(&self) -> Vec<(DevicePhase, Precondition)> {
        let phases = self.phases_left().into_iter();
        let scripts = phases.filter_map(|phase| Some((phase, self.script(phase)?)));
        scripts.collect()
    }

    /// The stages that will be done before the points that are left, each with
    /// its phase, if it goes so: those of the SNIA tests, which purge, come first.
    pub fn stages(&self, case: Case) -> Vec<(DevicePhase, Task)> {
        let history = self.past.history.resumed();
        all_stages(&self.snia, &self.preparations(), history, case)
    }

    /// Why nothing more can be measured: the device was led to what is left and
    /// did not become steady for it, which is a result and is kept. The reason,
    /// with its numbers; `None`: something is left that can be done.
    pub fn not_steady(&self) -> Option<String> {
        let script = CampaignScript::new(self);
        match outlook(&script, &self.past.history.resumed(), Case::Best) {
            (left, Ending::NotAttained(reason)) if left.is_empty() => Some(reason),
            _ => None,
        }
    }

    /// Looks whether the device is in the state that is wanted already, or was
    /// led there in this record and has been disturbed since.
    pub(super) fn look_at_state(&mut self) {
        let Some(settings) = self.plan.preparation.precondition.clone() else {
            return;
        };
        for phase in self.phases_left() {
            if let Some(found) = self.changed(phase) {
                self.checked.notes.extend(found.stale.clone());
                self.found.insert(phase, found);
            }
        }
        let care = self.plan.settings.care;
        let ledgers = self.ledgers();
        let own = self.record.as_deref();
        // Without a ledger nothing is known: the record alone tells.
        let Ok(state) = ledgers.state(&self.dut, own) else {
            return;
        };
        if state.made.is_none() {
            return;
        }
        let now_ms = fathom_record::now_ms();
        for phase in self.phases_left() {
            if self.found.contains_key(&phase) {
                continue;
            }
            let rule = settings.rule_text(phase);
            let judgement = state.judge(
                &WantedState {
                    pattern: phase.pattern(),
                    bs_bytes: settings.bs_of(phase),
                    range_percent: settings.range.percent(self.here.capacity_bytes),
                    rule: &rule,
                },
                care.idle_limit,
                now_ms,
            );
            let reason = judgement.reason().to_owned();
            let found = self.found(phase, judgement);
            if found.stale.is_some() && care.stale == Stale::Refuse {
                let what = format!(
                    "the device is not as it was left for {phase} work: {reason}\n  to do: \
                     STATE_STALE_REDO in the configuration makes it ready anew"
                );
                self.checked
                    .refusal
                    .get_or_insert(RunError::Refused(what.into()));
            }
            self.checked.notes.extend(found.stale.clone());
            self.found.insert(phase, found);
        }
    }

    /// Whether the device was made ready in this record by other settings.
    fn changed(&self, phase: DevicePhase) -> Option<FoundPhase> {
        let script = self.script(phase)?;
        let pass = script.led(&self.past.history)?;
        let goal = script.stages(pass).pop()?;
        let past = self.past.history.past(&goal.stage.id)?;
        let (Work::Settle(_) | Work::Fill(_), Some(StageEnd::Done)) = (&goal.work, &past.end)
        else {
            return None;
        };
        let text = goal.work.job_texts().next()?;
        let text = wants::read(text, Path::new(&goal.stage.id)).ok()?.text;
        let job = file_names::job_path(past.job.as_deref()?, file_names::JOB_ENDING);
        let kept = std::fs::read_to_string(self.record.as_ref()?.join(job)).ok()?;
        // An older Fathom wrote the same data each time: the load is the same.
        let older = text.replace(jobs::NEW_DATA, "");
        (kept != text && kept != older).then(|| FoundPhase {
            pass: pass + 1,
            skip: None,
            stale: Some(format!(
                "the device is made ready for {phase} work again: the configuration has changed"
            )),
        })
    }

    fn found(&self, phase: DevicePhase, judgement: Judgement) -> FoundPhase {
        let mut found = FoundPhase::default();
        let Some(script) = self.script(phase) else {
            return found;
        };
        let led = script.led(&self.past.history);
        let anew =
            |reason: &str| format!("the device is made ready for {phase} work again: {reason}");
        match judgement {
            Judgement::Holds(reason) if led.is_none() && !self.plan.preparation.force => {
                found.skip = Some(reason);
            }
            // It stands where this record has left it.
            Judgement::Holds(_) => {}
            // It was led there by this record or another one.
            Judgement::Stale(reason) => {
                found.pass = led.map_or(1, |pass| pass + 1);
                found.stale = Some(anew(&reason));
            }
            Judgement::Lacks(reason) => {
                if let Some(pass) = led {
                    found.pass = pass + 1;
                    found.stale = Some(anew(&reason));
                }
            }
        }
        found
    }

    /// What stands against the purge that is about to be done, if one is.
    pub(super) fn against_purge(&self) -> Option<RunError> {
        let stages = self.stages(Case::Best);
        let purges = |(_, task): &(DevicePhase, Task)| task.stage.kind == StageKind::Purge;
        let want = self.plan.preparation.purge.clone()?;
        if self.checked.selected.is_simulated() || !stages.iter().any(purges) {
            return None;
        }
        let destroy = &self.plan.settings.options.destroy;
        let purging = Purging::new(&self.dut, want, destroy, COMMAND);
        let checked = purging.find().and_then(|purge| {
            let confirmed = Confirmations(destroy.clone());
            Ok(purge.check(&confirmed)?)
        });
        let error = checked.err()?;
        let hint = "\n  the purge is PURGING in the configuration";
        Some(match error.exit() {
            fathom_model::Exit::Missing => RunError::Missing(format!("{error}{hint}")),
            fathom_model::Exit::Input => RunError::Input(format!("{error}{hint}")),
            _ => RunError::Refused(format!("{error}{hint}").into()),
        })
    }
}
