//! Which of some settings is faster: measured in turn, in random order, until it is
//! clear.

use serde::{Deserialize, Serialize};

use fathom_flow::{Ending, History, JobStep, Next, Script};

mod file_system;
mod kernel;
mod knobs;
mod race;
mod setup;
mod tune;

pub use file_system::{AbFileSystem, FileSystemKind};
pub use kernel::NeededBoot;
pub use knobs::{TuneLoad, keep_taken};
pub use race::{AbFigure, AbQuestion, AbRow, AbState, Race, RaceNext, RaceStep};
pub use setup::{AbSetup, AbSide, SideFio};
pub use tune::{TUNE_COMMAND, TuneConfig, TuneKnob, TuneScript, TuneState, TuneTrial, TuneValue};

/// The command in records.
pub const COMMAND: &str = "ab";

/// What is compared, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbConfig {
    /// The sides; the others are judged against the first.
    pub sides: Vec<AbSide>,
    /// What they change.
    pub setup: AbSetup,
    /// What is asked of the figures.
    pub question: AbQuestion,
}

/// The script of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct AbScript {
    /// The job of each side.
    pub jobs: Vec<JobStep>,
    /// What is compared.
    pub config: AbConfig,
}

impl AbScript {
    /// What the history has measured, and what comes next.
    pub fn state(&self, history: &History) -> AbState {
        let race = Race {
            sides: self.config.sides.len(),
            first: 1,
            has_boots: self.config.sides.iter().any(|side| side.kernel.is_some()),
            question: &self.config.question,
        };
        race.state(history)
    }
}

impl Script for AbScript {
    fn next(&self, history: &History) -> Next {
        let state = self.state(history);
        let boot = NeededBoot::of(&self.config.sides, &state, history);
        match state.next {
            RaceNext::Measure(step) => {
                let (side, job) = (&self.config.sides[step.side], &self.jobs[step.side]);
                let first = boot.map(|boot| boot.task(step, side));
                self.config.setup.next(history, step, (side, job), first)
            }
            RaceNext::Ended => Next::End(Ending::Complete),
            RaceNext::Failed(reason) => Next::End(Ending::Failed(reason)),
        }
    }
}

#[cfg(test)]
mod tests;
