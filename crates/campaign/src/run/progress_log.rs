//! The progress logs of a campaign, from its events.

use std::io;

use fathom_flow::{Ending, History, Next, PointOutcome, RunLog, Script as _};
use fathom_model::DevicePhase;
use fathom_model::{Event, Outcome, RunStatus, StageEnd, StageKind};
use fathom_prepare::logs::Logs;
use fathom_prepare::precondition::PreconditionMethod;
use fathom_suites::snia::TestLog;

use super::ReadyCampaign;
use super::script::{CampaignScript, Readiness};
use crate::plan::ResolvedCampaign;

/// Writes them.
pub(super) struct ProgressLog<'s> {
    logs: Logs,
    plan: &'s ResolvedCampaign,
    script: &'s CampaignScript<'s>,
    goes_on: bool,
    /// The plan is a part of the campaign.
    partial: bool,
    /// The test after SNIA's specification that runs.
    test: Option<TestLog>,
    /// The point that is measured, and which measurement of it.
    point: Option<(String, u32)>,
    /// The points have begun.
    evaluates: bool,
}

impl<'s> ProgressLog<'s> {
    /// Those of a run; `None`: there are to be none.
    pub(super) fn new(ready: &ReadyCampaign<'s>, script: &'s CampaignScript<'s>) -> Option<Self> {
        let plan = ready.plan;
        let logs = Logs::new(&ready.folder, &plan.dut).provisioned(plan.preparation.on);
        plan.settings.progress_logs.then_some(Self {
            logs,
            plan,
            script,
            goes_on: ready.record.is_some(),
            partial: ready.options.partial,
            test: None,
            point: None,
            evaluates: false,
        })
    }

    /// How the device is made ready where nothing is measured.
    fn provisioning(&self) -> Option<(DevicePhase, PreconditionMethod)> {
        let preparation = &self.plan.preparation;
        let settings = preparation.precondition.as_ref()?;
        Some((preparation.provision?, settings.method))
    }

    fn end_test(&mut self, came: &str) -> io::Result<()> {
        self.test.take().map_or(Ok(()), |log| log.finish(came))
    }

    fn begin_evaluation(&mut self) -> io::Result<()> {
        self.end_test("stopped")?;
        let points = self.script.points();
        match points > 0 && !std::mem::replace(&mut self.evaluates, true) {
            true => self.logs.start_evaluation(points),
            false => Ok(()),
        }
    }

    /// An event of a stage.
    fn take_of_stage(&mut self, event: &Event, id: &str, history: &History) -> io::Result<()> {
        let Some(test) = self.script.test_of(id) else {
            return Ok(());
        };
        let is_new = |log: &TestLog| log.test != test.setup.test;
        if self.test.as_ref().is_none_or(is_new) {
            self.end_test("stopped")?;
            self.test = Some(TestLog::begin(self.logs.clone(), test.setup.test)?);
        }
        self.test.as_mut().map_or(Ok(()), |log| log.take(event))?;
        match test.next(history) {
            Next::End(Ending::Complete) => self.end_test("OK"),
            Next::End(Ending::NotAttained(reason) | Ending::Failed(reason)) => {
                self.end_test(&reason)
            }
            _ => Ok(()),
        }
    }
}

impl RunLog for ProgressLog<'_> {
    fn begin(&mut self) -> io::Result<()> {
        self.logs.start(self.goes_on)?;
        self.logs.skip_preconditioning(None)?;
        match self.provisioning() {
            Some((_, method)) => self.logs.start_provisioning(method),
            None => Ok(()),
        }
    }

    fn take(&mut self, event: &Event, history: &History) -> io::Result<()> {
        match event {
            Event::Stage { stage } => {
                if self.script.test_of(&stage.id).is_none() {
                    self.begin_evaluation()?;
                }
                self.take_of_stage(event, &stage.id, history)
            }
            // What is noted behind it says so.
            Event::StageEnded {
                end: StageEnd::Interrupted { .. },
                ..
            } => Ok(()),
            Event::StageEnded { id, end } => {
                let past = history.past(id).map(|past| past.stage.kind);
                if let (Some(StageKind::Fill | StageKind::Settle), StageEnd::Skipped { reason }) =
                    (past, end)
                {
                    self.logs.skip_preconditioning(Some(reason))?;
                }
                self.take_of_stage(event, id, history)
            }
            Event::Step {
                point: Some(point), ..
            } if !history.is_in_stage() => {
                self.begin_evaluation()?;
                self.point = Some((point.id.clone(), point.repetition));
                self.logs.start_point(&point.id)
            }
            Event::StepEnded { outcome } => match self.point.take() {
                Some((id, repetition)) if *outcome != Outcome::Interrupted => {
                    let came = match history.tally().came(&id, repetition) {
                        Some(PointOutcome::Failed(reason)) => reason,
                        _ => "OK",
                    };
                    self.logs.finish_point(&id, came)
                }
                _ => Ok(()),
            },
            // There is no room for a test, or for more of it.
            Event::Note { text } => match history.left_out().next() {
                Some(stage) if stage.reason == *text => {
                    self.take_of_stage(event, &stage.id, history)?;
                    self.end_test("stopped")
                }
                _ => Ok(()),
            },
            Event::Skipped { point, reason, .. } => {
                self.begin_evaluation()?;
                self.logs.skip_point(&point.id, reason)
            }
            _ => Ok(()),
        }
    }

    fn end(
        &mut self,
        history: &History,
        ending: Option<&Ending>,
        status: RunStatus,
    ) -> io::Result<()> {
        self.end_test("stopped")?;
        if let Some((phase, method)) = self.provisioning() {
            let came = match self.script.readiness(phase, history) {
                Readiness::Ready => "OK".to_owned(),
                Readiness::Against(reason) => reason,
                _ => "stopped".to_owned(),
            };
            self.logs.finish_provisioning(method, &came)?;
        }
        if self.script.before_points(history).is_none() {
            self.begin_evaluation()?;
        }
        if self.evaluates {
            self.logs.finish_evaluation(self.script.points())?;
        }
        let broken = !matches!(ending, Some(Ending::Complete | Ending::NotAttained(_)));
        let whole = !broken && status != RunStatus::Interrupted && !self.partial;
        self.logs.finish(whole, &status.to_string())
    }
}
