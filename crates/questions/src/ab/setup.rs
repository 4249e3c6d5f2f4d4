//! What is done before a side is measured: settings are changed, a command is run. All is
//! put back at the end.

use std::path::PathBuf;
use std::rc::Rc;

use fathom_device::Sys;
use fathom_device::command::KernelDevices;
use fathom_device::settings::Settings;
use fathom_flow::{
    Act, ActionContext, ActionResult, Ending, History, JobStep, Next, ShellCommand, Task, Undo,
    Work,
};
use fathom_model::{SettingValue, Stage, StageEnd, StageKind};
use serde::{Deserialize, Serialize};

use super::RaceStep;
use super::file_system::{AbFileSystem, MakeFileSystem, MountFileSystem};

/// Options of a mount that nobody named (mount(8)).
const MOUNT_DEFAULT: &str = "defaults";

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AbSide {
    /// `a`, `b` and so on.
    pub name: String,
    /// What it is, as somebody wrote it; empty: as it stands.
    pub label: String,
    /// What is written to attributes before it is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<SettingValue>,
    /// A command before it is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Options with which the file system is mounted before it is measured, where one is
    /// made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// The fio that runs it, where sides have different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio: Option<SideFio>,
    /// The kernel in which it is measured, where sides have different ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
}

/// The fio of a side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SideFio {
    /// The program.
    pub path: PathBuf,
    /// As it tells its version.
    pub version: String,
}

/// What the sides of a comparison change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbSetup {
    /// The device whose settings are changed.
    pub device: Option<PathBuf>,
    /// The settings that sides change: all are put back at the end.
    pub settings: Vec<String>,
    /// What takes back what the sides' commands do, at the end.
    pub undo: Option<String>,
    /// Where commands are run.
    pub folder: PathBuf,
    /// The file system that is made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_system: Option<AbFileSystem>,
}

impl AbSetup {
    /// What comes next for a measurement: what has not been done of what it needs, `first`
    /// before all, or it.
    pub(super) fn next(
        &self,
        history: &History,
        step: RaceStep,
        (side, job): (&AbSide, &JobStep),
        first: Option<Task>,
    ) -> Next {
        for task in first.into_iter().chain(self.tasks(step, side)) {
            match history.ended(&task.stage.id) {
                None => return Next::Do(task),
                Some(StageEnd::Failed { reason }) => {
                    return Next::End(Ending::Failed(reason.clone()));
                }
                Some(_) => {}
            }
        }
        let number = step.number;
        let name = match step.is_warm_up {
            true => format!("{number:03}-warm-up"),
            false => format!("{number:03}-{}", side.name),
        };
        let job = JobStep {
            number,
            of: number,
            job_file: format!("{name}.fio").into(),
            raw: name.clone().into(),
            name,
            fio: side.fio.as_ref().map(|fio| fio.path.clone()),
            ..job.clone()
        };
        Next::Do(job.task())
    }

    /// What is done before a measurement, in order.
    fn tasks(&self, step: RaceStep, side: &AbSide) -> Vec<Task> {
        let mut tasks = Vec::new();
        let mut add_as = |kind: StageKind, id: String, title: &str, act: Rc<dyn Act>| {
            let stage = Stage {
                id,
                kind,
                title: title.to_owned(),
                round: None,
            };
            let work = Work::Act(act);
            tasks.push(Task { stage, work });
        };
        if let Some(it) = &self.file_system {
            // What was made stays when the run goes on.
            let make = Rc::new(MakeFileSystem(it.clone()));
            add_as(
                StageKind::Command,
                "mkfs".to_owned(),
                "make the file system",
                make,
            );
            let what = format!("mounting {}", it.device.display());
            let noted = NotedUndo(it.shell("unmount", what, Some(it.unmount())));
            let title = "note that it is unmounted at the end";
            add_as(
                StageKind::Switch,
                "unmount".to_owned(),
                title,
                Rc::new(noted),
            );
            let options = side.mount.as_deref().unwrap_or(MOUNT_DEFAULT);
            let mount = MountFileSystem {
                file_system: it.clone(),
                options: options.to_owned(),
            };
            let id = format!("{:03}-{}-mount", step.number, side.name);
            let title = format!("mount with {options}");
            add_as(StageKind::Switch, id, &title, Rc::new(mount));
        }
        // It has been put back when the run goes on: it is done again then.
        let mut add = |id: String, title: &str, act: Rc<dyn Act>| {
            add_as(StageKind::Switch, id, title, act);
        };
        let shell = |id: &str, command: &str, undo: Option<&String>| ShellCommand {
            name: id.to_owned(),
            command: command.to_owned(),
            undo: undo.cloned(),
            timeout: None,
            folder: self.folder.clone(),
        };
        if let Some(undo) = &self.undo {
            let id = "undo".to_owned();
            let noted = NotedUndo(shell(&id, "what the sides did", Some(undo)));
            add(id, "note what takes back what the sides do", Rc::new(noted));
        }
        if !side.values.is_empty() {
            let act = SettingAct {
                setup: self.clone(),
                values: side.values.clone(),
            };
            let id = format!("{:03}-{}-set", step.number, side.name);
            add(id, &side.label, Rc::new(act));
        }
        if let Some(command) = &side.command {
            let id = format!("{:03}-{}-do", step.number, side.name);
            let act = shell(&id, command, None);
            add(id, command, Rc::new(act));
        }
        tasks
    }
}

/// Changes settings.
#[derive(Debug)]
struct SettingAct {
    setup: AbSetup,
    values: Vec<SettingValue>,
}

impl SettingAct {
    fn settings(&self) -> (Option<fathom_device::SysBlock>, Settings) {
        let sys = Sys::live();
        let device = self.setup.device.as_deref();
        let node = device.and_then(|device| sys.by_path(device));
        let settings = Settings::new(sys, node.as_ref());
        (node, settings)
    }
}

impl Act for SettingAct {
    fn commands(&self) -> Vec<String> {
        let settings = self.settings().1;
        let values = self.values.iter();
        values.map(|it| settings.command(it).to_string()).collect()
    }

    fn undo(&self) -> Result<Option<Undo>, String> {
        let (node, settings) = self.settings();
        Undo::of_settings(node.as_ref(), &settings, &self.setup.settings).map(Some)
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        let end = match doing.selected.is_simulated() {
            true => simulated(),
            false => match self.settings().1.set(&KernelDevices, &self.values) {
                Ok(()) => StageEnd::Done,
                Err(error) => StageEnd::Failed {
                    reason: error.to_string(),
                },
            },
        };
        ActionResult::Ended { end, deed: None }
    }
}

fn simulated() -> StageEnd {
    StageEnd::Skipped {
        reason: "nothing is done to the machine of a simulation".to_owned(),
    }
}

/// Does nothing, so that its undo is noted once and not before each measurement.
#[derive(Debug)]
struct NotedUndo(ShellCommand);

impl Act for NotedUndo {
    fn commands(&self) -> Vec<String> {
        let undo = self.0.undo.iter();
        undo.map(|undo| format!("# at the end: {undo}")).collect()
    }

    fn undo(&self) -> Result<Option<Undo>, String> {
        Act::undo(&self.0)
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        let end = match doing.selected.is_simulated() {
            true => simulated(),
            false => StageEnd::Done,
        };
        ActionResult::Ended { end, deed: None }
    }
}
