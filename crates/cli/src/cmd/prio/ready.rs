//! Everything about a run of `fathom prio` that is checked before anything is
//! touched: device, kernel, privilege, pages, safety, engine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fathom_device::cdl::{Bound, Kind, Page};
use fathom_device::command::Live as Devices;
use fathom_device::priority::{self, Info};
use fathom_device::safety::{Confirmations, check_write};
use fathom_device::{Node, Sys};
use fathom_engine::choice::{self, Lack};
use fathom_engine::fio::version::Program;
use fathom_engine::jobfile::JobFile;
use fathom_engine::select::Selected;
use fathom_model::{Exit, JobSpec};
use fathom_record::Header;
use serde_json::{Value, json};

use super::asked::{Depths, Options, Split, Workload};
use super::device::{self, System};
use super::run::COMMAND;
use super::{pages, shipped};
use crate::cmd::ExitError;
use crate::cmd::quick::xdg;
use crate::out;

/// Everything that is known before anything is touched.
pub struct Ready<'o> {
    pub options: &'o Options,
    pub workloads: Vec<Workload>,
    pub node: Node,
    pub info: Info,
    pub system: System,
    /// Pages that are uploaded.
    pub pages: Vec<Page>,
    pub outdir: PathBuf,
    pub runner: Selected,
    pub switches_dir: PathBuf,
}

/// An error with its exit code.
pub fn fail(exit: Exit, message: impl Into<String>) -> anyhow::Error {
    let message = message.into();
    ExitError { exit, message }.into()
}

impl<'o> Ready<'o> {
    /// Checks everything; touches nothing.
    pub fn make(options: &'o Options) -> anyhow::Result<Self> {
        let workloads = options.workloads()?;
        let dev = options.dev.clone().unwrap_or_default();
        let sys = Sys::live();
        let Some(node) = sys.by_path(&dev) else {
            let what = match dev.exists() {
                true => "it is no block device",
                false => "there is no such device",
            };
            return Err(fail(Exit::Input, format!("{}: {what}", dev.display())));
        };
        if node.is_partition() {
            let what = "it is a partition; priorities and limits belong to the whole disk";
            return Err(fail(Exit::Input, format!("{}: {what}", dev.display())));
        }
        let outdir = match &options.outdir {
            Some(dir) => std::path::absolute(dir).context("the current folder is gone")?,
            None => std::env::home_dir()
                .context("HOME is not set: give --outdir")?
                .join(format!("{}_cdl_bench", node.name.replace('/', "_"))),
        };
        if outdir.exists() {
            let what = "it exists already: results are not written over\n  to do: remove it, or give another --outdir";
            return Err(fail(Exit::Refused, format!("{}: {what}", outdir.display())));
        }
        let info = priority::info(&node, &dev, &Devices);
        let system = System::here();
        if let Err(error) = fs::File::open(&dev) {
            return Err(fail(Exit::Missing, format!("{}: {error}", dev.display())));
        }
        let kinds = device::check(&info, &system, &workloads, options.rw, &Devices)?;
        let pages = read_pages(options, &kinds)?;
        if options.rw.writes() {
            check_write(&dev, &Confirmations(options.destroy.clone()))
                .map_err(|refusal| fail(Exit::Refused, refusal.to_string()))?;
        }
        let runner = choose(options, &dev, &workloads)?;
        let switches_dir = xdg::switches_dir()
            .context("HOME is not set: there is no place to note how the switches stood")?;
        Ok(Self {
            options,
            workloads,
            node,
            info,
            system,
            pages,
            outdir,
            runner,
            switches_dir,
        })
    }

    /// The header of its record.
    pub fn header(&self) -> Header {
        let mut header = Header::new(&format!("prio-{}", self.info.name), COMMAND);
        header.environment = Some(fathom_device::environment(std::slice::from_ref(
            &self.info.path,
        )));
        let command: Vec<_> = std::env::args_os()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect();
        header.facts.insert("command".into(), json!(command));
        header.facts.insert("prio".into(), self.facts());
        header
    }

    /// What the record tells of device, limits and workloads.
    fn facts(&self) -> Value {
        let (device, system) = device::facts(&self.info, &self.system);
        let Depths(depths) = &self.options.qds;
        let mut limits = Vec::new();
        for page in &self.pages {
            for (number, descriptor) in (1..).zip(&page.descriptors) {
                limits.push(json!({
                    "page": page.kind.name(),
                    "number": number,
                    "limit_ns": descriptor.whole_ns(),
                    "may_fail": descriptor.may_fail(),
                    "max_inactive": descriptor.told(Bound::Inactive),
                    "max_active": descriptor.told(Bound::Active),
                    "duration_guideline": descriptor.told(Bound::Duration),
                }));
            }
        }
        let workloads: Vec<Value> = self
            .workloads
            .iter()
            .map(|workload| json!({ "name": workload.name(), "words": self.words(workload) }))
            .collect();
        json!({
            "device": device,
            "system": system,
            "options": {
                "rw": self.options.rw.name(),
                "bs": self.options.bs,
                "ramptime_s": self.options.ramptime,
                "runtime_s": self.options.runtime,
                "iodepths": depths,
            },
            "limits": limits,
            "workloads": workloads,
            "outdir": self.outdir,
        })
    }

    /// What the I/Os of a workload ask for.
    fn words(&self, workload: &Workload) -> String {
        let rw = self.options.rw.name();
        // Of a mix there are two limits of a number.
        let kind = match (self.options.rw.reads(), self.options.rw.writes()) {
            (true, false) => Some(Kind::T2a),
            (false, true) => Some(Kind::T2b),
            _ => None,
        };
        let page = self.pages.iter().find(|page| Some(page.kind) == kind);
        let limit = |dld: u8| match page.and_then(|page| page.descriptor(dld)) {
            Some(descriptor) => format!("limit {dld} ({})", descriptor.summary()),
            None => format!("limit {dld}"),
        };
        match workload {
            Workload::Baseline => format!("{rw} without priorities"),
            Workload::Ncq(percent) => format!("{rw}, {percent} % with high priority"),
            Workload::Single { percent, dld } => {
                format!("{rw}, {percent} % with {}", limit(*dld))
            }
            Workload::Multi(Split(list)) => {
                let parts = list.iter();
                let parts = parts.map(|&(dld, percent)| format!("{percent} % with {}", limit(dld)));
                format!("{rw}, {}", parts.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// The pages that are uploaded: those that were named, else the shipped ones.
fn read_pages(options: &Options, kinds: &[Kind]) -> anyhow::Result<Vec<Page>> {
    let mut list = Vec::new();
    for (page, file) in shipped().into_iter().zip([&options.t2a, &options.t2b]) {
        let kind = page.kind;
        let page = match file {
            None => page,
            Some(path) => {
                let read = pages::read(path)?;
                if read.kind != kind {
                    let what = format!("{}: it is page {}, not {kind}", path.display(), read.kind);
                    return Err(fail(Exit::Input, what));
                }
                read
            }
        };
        if kinds.contains(&kind) {
            list.push(page);
        }
    }
    Ok(list)
}

/// The engine; fio is asked for what the workloads need also where no other
/// would do.
fn choose(options: &Options, dev: &Path, workloads: &[Workload]) -> anyhow::Result<Selected> {
    let mut texts: Vec<String> = workloads
        .iter()
        .map(|workload| options.job(dev, workload, 1))
        .collect();
    // A split has its hints in a text that no fio reads before it runs: one that
    // takes hints by themselves takes them there, too.
    if let Some(Workload::Multi(Split(list))) = workloads.last() {
        let (percent, dld) = (list[0].1, list[0].0);
        texts.push(options.job(dev, &Workload::Single { percent, dld }, 1));
    }
    let jobs: Vec<(String, Vec<JobSpec>)> = texts
        .into_iter()
        .map(|text| {
            let jobs = JobFile::parse(&text, Path::new("prio.fio"), &|_| None)
                .file
                .jobs();
            (text, jobs)
        })
        .collect();
    let fio_runs = |program: &Program| -> Result<(), Lack> {
        jobs.iter()
            .try_for_each(|(text, jobs)| choice::fio_runs(program, jobs, text, &[]))
    };
    let native_runs = || {
        jobs.iter()
            .try_for_each(|(_, jobs)| choice::native_runs(jobs))
    };
    let refused = |none: choice::NoEngine| fail(Exit::Missing, format!("{none}"));
    let wish = options.engine.into();
    let (selected, passed_over) =
        Selected::choose(wish, options.fio.as_deref(), fio_runs, native_runs).map_err(refused)?;
    if let (Selected::Fio(_), choice::Wish::Fio) = (&selected, wish) {
        let program = Program::find(options.fio.as_deref()).map_err(Lack::from);
        let lacks = program.and_then(|program| fio_runs(&program));
        lacks.map_err(|lack| refused(choice::NoEngine(vec![("fio", lack)])))?;
    }
    if let Some(lack) = passed_over {
        out::note(format_args!("- {lack}; the native engine runs the jobs"));
    }
    Ok(selected)
}
