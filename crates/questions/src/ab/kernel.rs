//! Sides that are kernels: the run stops before each measurement until the machine has
//! booted into its kernel, and goes on there.
//!
//! Each measurement has a boot of its own, also where its neighbour is of the same kernel:
//! what one boot happens to be like must not count for one side twice (docs/METHODOLOGY.md).

use std::rc::Rc;

use fathom_flow::{Act, ActionContext, ActionResult, History, Task, Work};
use fathom_model::environment::Boot;
use fathom_model::{Event, Stage, StageEnd, StageKind};

use super::AbSide;
use super::race::{AbState, RaceNext, RaceStep};

/// What is needed before a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededBoot {
    /// The kernel of its side.
    pub kernel: String,
    /// The boot of the measurement before it, which was measured enough.
    pub used: Option<Boot>,
}

impl NeededBoot {
    /// What the next measurement needs; `None`: sides are no kernels, or nothing is left.
    pub fn of(sides: &[AbSide], state: &AbState, history: &History) -> Option<Self> {
        let RaceNext::Measure(step) = &state.next else {
            return None;
        };
        let mut measured = state.measured.iter().rev();
        let last = measured.find(|step| !step.is_warm_up);
        Some(Self {
            kernel: sides[step.side].kernel.clone()?,
            used: last.and_then(|last| history.boot_of(last.number)).cloned(),
        })
    }

    /// What is to be done first; `None`: this boot is right.
    pub fn lacks(&self, now: &Boot) -> Option<String> {
        let kernel = &self.kernel;
        if now.kernel != *kernel {
            let running = &now.kernel;
            return Some(format!("boot into {kernel} ({running} is running)"));
        }
        // Where the kernel does not tell boots apart nobody is kept waiting for ever.
        let is_used = now.boot.is_some() && self.used.as_ref() == Some(now);
        is_used.then(|| format!("boot into {kernel} anew (each measurement has a boot of its own)"))
    }

    /// What looks whether it is there.
    pub(super) fn task(self, step: RaceStep, side: &AbSide) -> Task {
        let stage = Stage {
            id: format!("{:03}-{}-boot", step.number, side.name),
            // The next start of the run may be in another.
            kind: StageKind::Switch,
            title: format!("in a boot of {}", self.kernel),
            round: None,
        };
        let work = Work::Act(Rc::new(LookAtBoot(self)));
        Task { stage, work }
    }
}

/// Looks whether the machine has booted into the right kernel.
#[derive(Debug)]
pub(super) struct LookAtBoot(pub NeededBoot);

impl Act for LookAtBoot {
    fn commands(&self) -> Vec<String> {
        vec![format!("uname -r  # {}", self.0.kernel)]
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        let now = fathom_device::booted();
        (doing.tell)(Event::Booted(now.clone()));
        let end = match self.0.lacks(&now) {
            Some(reason) => StageEnd::Waits { reason },
            None => StageEnd::Done,
        };
        ActionResult::Ended { end, deed: None }
    }
}
