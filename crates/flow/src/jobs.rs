//! The plainest scripts: job files, one after the other, and a single stage.

use fathom_model::StageEnd;

use super::{Ending, History, JobStep, Next, Script, Task};

/// Runs each job file once. One that fails does not keep the next from running.
#[derive(Debug, Clone, PartialEq)]
pub struct Jobs(pub Vec<JobStep>);

impl Script for Jobs {
    fn next(&self, history: &History) -> Next {
        let is_left = |step: &&JobStep| history.ended_step(step.number).is_none();
        match self.0.iter().find(is_left) {
            Some(step) => Next::Do(step.clone().task()),
            None => Next::End(Ending::Complete),
        }
    }
}

/// Does one stage, and fails when that does.
#[derive(Debug, Clone)]
pub struct OneStage(pub Task);

impl Script for OneStage {
    fn next(&self, history: &History) -> Next {
        match history.ended(&self.0.stage.id) {
            None => Next::Do(self.0.clone()),
            Some(StageEnd::Failed { reason }) => Next::End(Ending::Failed(reason.clone())),
            Some(_) => Next::End(Ending::Complete),
        }
    }
}
