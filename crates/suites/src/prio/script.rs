//! What is switched and measured, one after the other.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fathom_device::cdl::{CdlPage, Page, file};
use fathom_device::command::{Issue, KernelDevices};
use fathom_device::priority::{Info, Interface};
use fathom_device::switches::{PriorityMode, SwitchError, Switches};
use fathom_device::{Sys, SysBlock};
use fathom_flow::undo::{self, Overheard};
use fathom_flow::{
    Act, ActionContext, ActionResult, Ending, History, JobStep, Next, Script, Task, Undo, Work,
};
use fathom_jobfile::JobFile;
use fathom_jobfile::variables::variable;
use fathom_model::{Event, Stage, StageEnd, StageKind};

use super::{PrioConfig, PrioWorkload};

/// The script of `fathom prio`.
pub struct PrioScript {
    /// One a measurement.
    steps: Vec<JobStep>,
    /// What is switched before the steps of each workload, in the order of the
    /// configuration; empty where the device has nothing to switch.
    switched: Vec<Vec<Task>>,
    depths: usize,
    /// The number of its first step.
    first: u32,
}

impl PrioScript {
    /// That of a configuration. `disk` is what is switched, where there is anything.
    pub fn new(config: &PrioConfig, disk: &Rc<SwitchedDisk>) -> Self {
        let all: Vec<(&PrioWorkload, u32)> = config.measurements().collect();
        let of = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let steps = (1..).zip(&all).map(|(number, (workload, depth))| {
            let text = config.job(workload, *depth);
            let jobs = JobFile::parse(&text, Path::new("prio.fio"), &variable);
            let point = config.point(workload, *depth);
            let mut step = JobStep::new((number, of), &point.id, text, &jobs.file.jobs());
            step.point = Some(point);
            step
        });
        let of_disk = disk.has_switches().then(|| {
            let workloads = config.workloads.iter();
            workloads.map(|workload| disk.tasks(workload)).collect()
        });
        Self {
            steps: steps.collect(),
            switched: of_disk.unwrap_or_default(),
            depths: config.load.depths.0.len(),
            first: 1,
        }
    }

    /// The same as a part of something else, called `name`.
    #[must_use]
    pub fn within(mut self, name: &str, first: u32) -> Self {
        self.first = first;
        for task in self.switched.iter_mut().flatten() {
            task.stage.id = format!("{name}/{}", task.stage.id);
        }
        for (number, step) in (first..).zip(&mut self.steps) {
            step.number = number;
            step.name = format!("{name}/{}", step.name);
            step.job_file = Path::new(name).join(&step.job_file);
            step.raw = Path::new(name).join(&step.raw);
        }
        self
    }

    /// How many measurements there are.
    pub fn measurements(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }
}

impl Script for PrioScript {
    fn next(&self, history: &History) -> Next {
        let left = |step: &&JobStep| history.ended_step(step.number).is_none();
        let Some(step) = self.steps.iter().find(left) else {
            return Next::End(Ending::Complete);
        };
        let workload = (step.number - self.first) as usize / self.depths.max(1);
        for task in self.switched.get(workload).into_iter().flatten() {
            match history.ended(&task.stage.id) {
                None => return Next::Do(task.clone()),
                Some(StageEnd::Failed { reason }) => {
                    return Next::End(Ending::Failed(reason.clone()));
                }
                Some(_) => {}
            }
        }
        Next::Do(step.clone().task())
    }
}

/// A disk that is switched, and the pages that are uploaded to it.
#[derive(Debug)]
pub struct SwitchedDisk {
    pub(super) node: SysBlock,
    pub(super) info: Info,
    pub(super) pages: Vec<Page>,
    /// Where the results go; `None`: into the record.
    pub(super) outdir: Option<PathBuf>,
    /// The folder of its files in the record's `raw`.
    pub(super) raw: PathBuf,
}

impl SwitchedDisk {
    /// Whether there is anything to switch: a device without these features whose
    /// scheduler is none stays as it is, unless a run that was killed has left it so.
    pub(super) fn has_switches(&self) -> bool {
        let found = self.switches(&KernelDevices).found(&[]).unwrap_or_default();
        let plain = found.ncq_priority.is_none() && found.cdl.is_none();
        let left = self.undo_file().is_some_and(|file| file.path().exists());
        left || !plain || found.scheduler.is_some_and(|name| name != "none")
    }

    fn undo_file(&self) -> Option<fathom_record::UndoFile> {
        let device = fathom_device::identity::block_device(&Sys::live(), &self.node);
        Some(fathom_record::UndoFile::of_device(
            &undo::folder()?,
            &device,
        ))
    }

    fn kinds(&self) -> Vec<CdlPage> {
        self.pages.iter().map(|page| page.kind).collect()
    }

    fn switches<'i>(&self, issue: &'i dyn Issue) -> Switches<'i> {
        let ata = self.info.interface == Interface::Ata;
        let folder = undo::folder().unwrap_or_default();
        Switches::new(self.node.clone(), ata, folder, issue)
    }

    /// What is switched before a workload.
    fn tasks(self: &Rc<Self>, workload: &PrioWorkload) -> Vec<Task> {
        let mut tasks = Vec::new();
        if workload.is_cdl() {
            tasks.push(self.task("upload", "upload the pages of limits", Switching::Upload));
        }
        let (id, title, mode) = match workload {
            PrioWorkload::Baseline => ("plain", "no priorities", PriorityMode::Plain),
            PrioWorkload::Ncq(_) => ("ncq-priority", "NCQ priority", PriorityMode::NcqPriority),
            PrioWorkload::Single { .. } | PrioWorkload::Multi(_) => {
                ("limits", "Command Duration Limits", PriorityMode::Limits)
            }
        };
        let switching = Switching::Mode(mode, workload.clone());
        let id = format!("{id}-{}", workload.name());
        tasks.push(self.task(&id, title, switching));
        tasks
    }

    fn task(self: &Rc<Self>, id: &str, title: &str, switching: Switching) -> Task {
        Task {
            stage: Stage {
                id: id.to_owned(),
                kind: StageKind::Switch,
                title: title.to_owned(),
                round: None,
            },
            work: Work::Act(Rc::new(DiskSwitch {
                disk: Rc::clone(self),
                switching,
            })),
        }
    }
}

/// What is switched.
#[derive(Debug, Clone)]
enum Switching {
    /// The pages are uploaded.
    Upload,
    /// What I/Os with a priority meet.
    Mode(PriorityMode, PrioWorkload),
}

/// One switch of a disk.
#[derive(Debug)]
struct DiskSwitch {
    disk: Rc<SwitchedDisk>,
    switching: Switching,
}

impl DiskSwitch {
    fn go(&self, issue: &dyn Issue, doing: &mut ActionContext<'_>) -> Result<(), String> {
        let switches = self.disk.switches(issue);
        let told = |error: SwitchError| error.to_string();
        switches.scheduler("none").map_err(told)?;
        match &self.switching {
            Switching::Upload => {
                switches.set(PriorityMode::Plain).map_err(told)?;
                self.upload(&switches, doing)
            }
            Switching::Mode(mode, workload) => {
                switches.set(*mode).map_err(told)?;
                self.keep_limits(&switches, workload, doing.record)
            }
        }
    }

    fn upload(&self, switches: &Switches<'_>, doing: &mut ActionContext<'_>) -> Result<(), String> {
        let folder = doing.record.join("raw").join(&self.disk.raw);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for page in &self.disk.pages {
            let what = format!("Uploading {} CDL page", page.kind);
            (doing.tell)(Event::Preparing { what });
            let path = folder.join(format!("{}.cdl", page.kind));
            let written = fs::write(&path, file::render(page));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
            let uploaded = switches.upload(page, &path);
            uploaded.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Keeps the limits as the disk has them now, with the results.
    fn keep_limits(
        &self,
        switches: &Switches<'_>,
        workload: &PrioWorkload,
        record: &Path,
    ) -> Result<(), String> {
        if !workload.is_cdl() {
            return Ok(());
        }
        let text = switches.show(&self.disk.kinds());
        let text = text.map_err(|error| error.to_string())?;
        let raw = || record.join("raw").join(&self.disk.raw);
        let folder = self.disk.outdir.clone().unwrap_or_else(raw);
        let folder = folder.join(workload.name());
        let path = folder.join("cdl_descriptors");
        let written =
            fs::create_dir_all(&folder).and_then(|()| super::folder::write(&path, text.as_bytes()));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Act for DiskSwitch {
    fn commands(&self) -> Vec<String> {
        let dev = self.disk.node.dev_path();
        vec![match &self.switching {
            Switching::Upload => {
                let pages = self.disk.pages.iter().map(|page| page.kind.to_string());
                let pages = pages.collect::<Vec<_>>().join(" and ");
                format!("# upload the pages {pages} to {}", dev.display())
            }
            Switching::Mode(mode, _) => {
                let mode = match mode {
                    PriorityMode::Plain => "NCQ priority and duration limits off",
                    PriorityMode::NcqPriority => "NCQ priority on, duration limits off",
                    PriorityMode::Limits => "duration limits on, NCQ priority off",
                };
                format!("# switch {}: scheduler none, {mode}", dev.display())
            }
        }]
    }

    fn undo(&self) -> Result<Option<Undo>, String> {
        let disk = &self.disk;
        let switches = disk.switches(&KernelDevices);
        Undo::of_switches(&disk.node, &disk.info.path, &switches, &disk.kinds()).map(Some)
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        let issue = Overheard::default();
        let done = self.go(&issue, doing);
        issue.notes().for_each(&mut *doing.tell);
        let end = match done {
            Ok(()) => StageEnd::Done,
            Err(reason) => StageEnd::Failed {
                reason: format!("{}: {reason}", self.disk.info.path.display()),
            },
        };
        let deed = None;
        ActionResult::Ended { end, deed }
    }
}
