//! The series as a part of something else: its steps, after the folder of its files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fathom_device::Hold;
use fathom_flow::{Act, ActionContext, ActionResult, JobStep, Task, Work};
use fathom_model::{Stage, StageEnd, StageKind};

use super::{LocalHost, PlannedSeries, QuickError, QuickHost as _, QuickRequest};

/// The folders that the series of one run keep from others.
pub type SeriesFolders = BTreeMap<PathBuf, Rc<RefCell<Option<Hold>>>>;

/// What a series is made of as a part called `name` of something else, whose series have
/// these folders: its tests have the numbers from `first` on.
///
/// # Errors
/// What stands against it on this machine.
pub fn tasks(
    order: &QuickRequest,
    name: &str,
    first: u32,
    folders: &mut SeriesFolders,
) -> Result<Vec<Task>, QuickError> {
    let host = order.here();
    let planned = PlannedSeries::new(&host, order, &mut |_| {})?;
    let folder = planned.facts().folder.clone();
    // A colon parts names in fio.
    let directory = folder.display().to_string().replace(':', "\\:");
    let test = |(number, step): (u32, &JobStep)| {
        let step = JobStep {
            number,
            name: format!("{name}/{}", step.name),
            text: format!("{}directory={directory}\n", step.text),
            job_file: Path::new(name).join(&step.job_file),
            raw: Path::new(name).join(&step.raw),
            ..step.clone()
        };
        step.task()
    };
    let tests = (first..).zip(&planned.script.0).map(test);
    let hold = Rc::clone(folders.entry(folder.clone()).or_default());
    let made = SeriesFolder {
        folder,
        nocow: order.nocow,
        hold,
    }
    .task(name);
    Ok(std::iter::once(made).chain(tests).collect())
}

/// Makes the folder of the test files, and keeps it from other series until this start
/// of the run ends.
#[derive(Debug)]
struct SeriesFolder {
    folder: PathBuf,
    nocow: bool,
    hold: Rc<RefCell<Option<Hold>>>,
}

impl SeriesFolder {
    fn task(self, name: &str) -> Task {
        let stage = Stage {
            id: name.to_owned(),
            // Each start holds it anew.
            kind: StageKind::Switch,
            title: "make the folder of the test files".to_owned(),
            round: None,
        };
        let work = Work::Act(Rc::new(self));
        Task { stage, work }
    }
}

impl Act for SeriesFolder {
    fn commands(&self) -> Vec<String> {
        vec![format!("# make {}, and keep it", self.folder.display())]
    }

    fn makes(&self) -> Option<&Path> {
        Some(&self.folder)
    }

    fn run(&self, _: &mut ActionContext<'_>) -> ActionResult {
        let mut hold = self.hold.borrow_mut();
        let prepared = match hold.take() {
            // Another series of this run was here.
            Some(held) => Ok(held),
            None => LocalHost::default().prepare(&self.folder, self.nocow),
        };
        let end = match prepared {
            Ok(held) => {
                *hold = Some(held);
                StageEnd::Done
            }
            Err(error) => StageEnd::Failed {
                reason: error.to_string(),
            },
        };
        ActionResult::Ended { end, deed: None }
    }
}
