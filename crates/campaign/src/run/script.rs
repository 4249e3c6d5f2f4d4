//! What comes next in a campaign: the tests after SNIA's specification, then each step
//! that is left, on a device that was made ready for its phase.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_flow::file_names;
use fathom_flow::load::Load;
use fathom_flow::{Ending, History, JobStep, LeftOut, Next, PointOutcome, Script, Task};
use fathom_model::DevicePhase;
use fathom_model::{Failure, FailureKind, Stage};
use fathom_prepare::precondition::Precondition;
use fathom_suites::snia::Snia;

use super::ReadyCampaign;
use super::guards::Guards;
use super::preparing::not_steady;
use crate::plan::{CampaignStep, ResolvedCampaign};

/// The script of a campaign.
pub struct CampaignScript<'p> {
    plan: &'p ResolvedCampaign,
    /// Relative names are meant from here.
    folder: PathBuf,
    /// The tests that had not ended before.
    tests: Vec<Snia>,
    /// What makes the device ready for each phase of which something is left.
    preparations: Vec<(DevicePhase, Precondition)>,
    guards: Guards,
    /// Places of the steps to run, in the order of the plan.
    todo: Vec<usize>,
    /// Places among these, by point and measurement.
    turns: HashMap<(&'p str, u32), usize>,
    is_bounded: bool,
    /// Steps before its own; `None`: it is a run of its own.
    before: Option<u32>,
}

/// How far a device is for a phase.
pub(super) enum Readiness {
    /// It is ready.
    Ready,
    /// This is left to be done.
    Left(Task),
    /// It is not ready, and the points that want it are left out for this reason.
    Against(String),
    /// It is to be noted that what follows is measured although the device is not steady.
    Warned(String),
    /// It could not be made ready.
    Failed(String),
}

impl<'p> CampaignScript<'p> {
    /// That of what is left.
    pub(super) fn new(ready: &ReadyCampaign<'p>) -> Self {
        let history = ready.past.history.resumed();
        let is_left = |test: &&Snia| {
            let next = test.next(&history);
            !matches!(next, Next::End(Ending::Complete | Ending::NotAttained(_)))
        };
        let steps = &ready.plan.steps;
        let turns = ready.todo.iter().zip(0..).map(|(&place, turn)| {
            let point = &steps[place].point;
            ((point.id.as_str(), point.repetition), turn)
        });
        Self {
            plan: ready.plan,
            folder: ready.folder.clone(),
            tests: ready.snia.iter().filter(is_left).cloned().collect(),
            preparations: ready.preparations(),
            guards: Guards::after(ready.plan, &ready.past.history),
            todo: ready.todo.clone(),
            turns: turns.collect(),
            is_bounded: ready.is_bounded(),
            before: ready.before,
        }
    }

    /// How many steps it runs.
    pub(super) fn points(&self) -> usize {
        self.todo.len()
    }

    /// The test that a stage is of.
    pub(super) fn test_of(&self, stage: &str) -> Option<&Snia> {
        let mut tests = self.tests.iter();
        tests.find(|test| test.setup.part_of(stage).is_some())
    }

    /// What comes before the points; `None`: nothing.
    pub(super) fn before_points(&self, history: &History) -> Option<Next> {
        self.tests
            .iter()
            .find_map(|test| next_of(test, history))
            .or_else(
                || match self.readiness(self.plan.preparation.provision?, history) {
                    Readiness::Ready | Readiness::Against(_) => None,
                    Readiness::Left(task) => Some(Next::Do(task)),
                    Readiness::Warned(text) => Some(Next::Note(text)),
                    Readiness::Failed(what) => Some(failed(what)),
                },
            )
    }

    /// How far the device is for a phase.
    pub(super) fn readiness(&self, phase: DevicePhase, history: &History) -> Readiness {
        let mut preparations = self.preparations.iter();
        let Some((_, script)) = preparations.find(|(of, _)| *of == phase) else {
            return Readiness::Ready;
        };
        match script.next(history) {
            Next::Do(task) => {
                // The same stage may be one of two phases.
                let is_it = |stage: &&LeftOut| {
                    stage.id == task.stage.id
                        && self.phase_behind(stage).is_none_or(|it| it == phase)
                };
                match history.left_out().find(is_it) {
                    Some(stage) => Readiness::Against(stage.reason.clone()),
                    None => Readiness::Left(task),
                }
            }
            Next::End(Ending::NotAttained(_)) => Readiness::Against(not_steady(phase)),
            Next::End(Ending::Failed(reason)) => {
                Readiness::Failed(format!("the device could not be made ready: {reason}"))
            }
            _ => match script.not_attained(history) {
                // The limit of rounds was soft and was reached.
                Some(reason) => {
                    let text = format!(
                        "{phase} work is measured although the device is not steady for it: {reason}"
                    );
                    match history.has_noted(&text) {
                        true => Readiness::Ready,
                        false => Readiness::Warned(text),
                    }
                }
                None => Readiness::Ready,
            },
        }
    }

    /// The phase for which a stage was left out; `None`: there are no points.
    fn phase_behind(&self, stage: &LeftOut) -> Option<DevicePhase> {
        let turn = stage.turn.as_ref();
        let turn = turn.and_then(|(id, nth)| self.turns.get(&(id.as_str(), *nth)));
        let place = self.todo.get(turn.map_or(0, |turn| turn + 1))?;
        Some(self.plan.steps[*place].phase)
    }

    /// How it ends once every step had its turn.
    fn ending(&self, history: &History) -> Ending {
        let short = self.preparations.iter().find_map(|(phase, script)| {
            let Next::End(Ending::NotAttained(reason)) = script.next(history) else {
                return None;
            };
            // The numbers stand in the stage, and once here.
            Some(format!("{}: {reason}", not_steady(*phase)))
        });
        short.map_or(Ending::Complete, Ending::NotAttained)
    }

    /// A point that was not left out had its device ready.
    fn is_prepared(&self, step: &CampaignStep, history: &History) -> bool {
        let last = history.last_step();
        let last = last.and_then(|number| number.checked_sub(1 + self.before.unwrap_or(0)));
        let last = last.and_then(|place| self.plan.steps.get(place as usize));
        last.is_some_and(|last| last.phase == step.phase)
    }

    /// The number of the step at this place.
    fn number(&self, place: usize) -> u32 {
        let own = u32::try_from(place + 1).unwrap_or(u32::MAX);
        own.saturating_add(self.before.unwrap_or(0))
    }

    /// Whether a step is not run as a part of something else, whose history says what is
    /// left: what was left of a run of its own was found before.
    pub(super) fn is_over(&self, place: usize, history: &History) -> bool {
        if self.before.is_none() {
            return false;
        }
        let step = &self.plan.steps[place];
        let is_skipped = || {
            let came = history.tally().came_of(&step.point);
            matches!(came, Some(PointOutcome::Skipped(_)))
        };
        // The guard's words stand in the record already.
        let is_guarded = || self.guards.against(self.plan, step, history).is_some();
        history.ended_step(self.number(place)).is_some()
            || history.had_turn(&step.point)
            || is_skipped() && is_guarded()
    }
}

impl Script for CampaignScript<'_> {
    fn next(&self, history: &History) -> Next {
        let turn = history.turn().and_then(|turn| self.turns.get(&turn));
        if let (None, Some(next)) = (turn, self.before_points(history)) {
            return next;
        }
        let last = history.last_step().filter(|_| turn.is_some());
        if last.is_some_and(|number| history.ended_step(number).is_some_and(|it| it.refused)) {
            let what = "a target may not be written to any more";
            return Next::End(Ending::Failed(what.to_owned()));
        }
        let mut left = self.todo.iter().skip(turn.map_or(0, |turn| turn + 1));
        let Some(&place) = left.find(|place| !self.is_over(**place, history)) else {
            return Next::End(self.ending(history));
        };
        let step = &self.plan.steps[place];
        if let Some(reason) = self.guards.against(self.plan, step, history) {
            return Next::LeaveOut(Box::new(step.point.clone()), reason);
        }
        let of = u32::try_from(self.plan.steps.len()).unwrap_or(u32::MAX);
        let number = (self.number(place), of);
        let task = job_step(self.plan, &self.folder, number, step, self.is_bounded).task();
        if self.is_prepared(step, history) {
            return Next::Do(task);
        }
        match self.readiness(step.phase, history) {
            Readiness::Ready => Next::Do(task),
            Readiness::Left(stage) => Next::Prepare(stage, Box::new(task)),
            Readiness::Against(reason) => Next::Unready(Box::new(task), reason),
            Readiness::Warned(text) => Next::Note(text),
            Readiness::Failed(what) => failed(what),
        }
    }

    fn leaves_out(&self) -> bool {
        true
    }

    fn has_failed(&self, history: &History) -> bool {
        let mut points = self.plan.steps.iter().map(|step| &step.point);
        points.any(|point| {
            matches!(
                history.tally().came_of(point),
                Some(PointOutcome::Failed(_))
            )
        })
    }

    fn interval_of(&self, stage: &Stage) -> Option<Duration> {
        let own = self.plan.settings.interval;
        match self.test_of(&stage.id) {
            Some(test) => Some(own.min(Duration::from_millis(test.setup.interval_ms))),
            None => self.before.map(|_| own),
        }
    }
}

/// What is left of a test; `None`: nothing, or nothing that there is room for.
fn next_of(test: &Snia, history: &History) -> Option<Next> {
    let name = test.setup.test.name();
    match test.next(history) {
        Next::Do(task) if history.left_out().any(|stage| stage.id == task.stage.id) => None,
        Next::End(Ending::Complete) => None,
        Next::End(Ending::NotAttained(reason)) => {
            let text = format!("the SNIA {name} test: {reason}");
            (!history.has_noted(&text)).then_some(Next::Note(text))
        }
        Next::End(Ending::Failed(reason)) => {
            Some(failed(format!("the SNIA {name} test failed: {reason}")))
        }
        next => Some(next),
    }
}

fn failed(what: String) -> Next {
    Next::Fail(Failure::new(FailureKind::Other, what))
}

/// A step of the plan as it is run; `is_bounded`: one that has no limit of its own has one
/// by its time.
pub(super) fn job_step(
    plan: &ResolvedCampaign,
    folder: &Path,
    number: (u32, u32),
    step: &CampaignStep,
    is_bounded: bool,
) -> JobStep {
    /// Beyond twice its time, so that a device that does not answer does not hold up the
    /// campaign for ever.
    const MARGIN: Duration = Duration::from_secs(60);
    let id = &step.point.id;
    let ending = file_names::ending(&step.job_file);
    let usual = step.duration.filter(|_| is_bounded);
    JobStep {
        point: Some(step.point.clone()),
        job_file: PathBuf::from(format!("{id}.{ending}")),
        raw: file_names::raw_name(&step.point),
        work_dir: Some(folder.to_owned()),
        interval: plan.settings.interval,
        deadline: plan
            .settings
            .point_limit
            .or_else(|| Some(usual? * 2 + MARGIN)),
        load: Load {
            duration: step.duration,
            write_bytes: step.write_bytes,
            write_share: step.write_share,
        },
        keeps_versions: true,
        ..JobStep::new(number, id, step.job_text.clone(), &[])
    }
}
