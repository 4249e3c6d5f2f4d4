//! Everything about a run of priorities that is checked before anything is touched:
//! device, kernel, privilege, pages, folder.

use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use fathom_device::cdl::{Bound, CdlPage, Page, file};
use fathom_device::command::KernelDevices;
use fathom_device::priority::{self, Info};
use fathom_device::{Sys, SysBlock};
use fathom_flow::error::RunError;
use serde_json::{Value, json};

use super::device::{self, System};
use super::script::SwitchedDisk;
use super::{PrioConfig, PrioScript, PrioWorkload, Split, absolute, default_folder, shipped};

/// A configuration whose device has been looked at.
pub struct PrioReady {
    /// As it was asked for, with the device from the root on.
    pub config: PrioConfig,
    /// What is done.
    pub script: PrioScript,
    /// Name of the run.
    pub name: String,
    /// The device.
    pub info: Info,
    /// The machine.
    pub system: System,
    /// Pages that are uploaded.
    pub pages: Vec<Page>,
    /// Folder for the results.
    pub outdir: PathBuf,
}

impl PrioReady {
    /// Checks everything; touches nothing. `resumes`: the folder of results may exist.
    ///
    /// # Errors
    /// What stands against it.
    pub fn new(mut config: PrioConfig, resumes: bool) -> Result<Self, RunError> {
        let node = disk_of(&mut config)?;
        let named = config.outdir.as_deref().map(absolute);
        let Some(outdir) = named.or_else(|| default_folder(&node.name)) else {
            return Err(RunError::Input("HOME is not set: give --outdir".to_owned()));
        };
        if outdir.exists() && !resumes {
            let what = "it exists already: results are not written over\n  to do: remove it, or give another --outdir";
            return Err(RunError::Refused(
                format!("{}: {what}", outdir.display()).into(),
            ));
        }
        config.outdir = Some(outdir.clone());
        let system = System::here();
        let disk = checked(&config, node, &system, "")?;
        Ok(Self {
            script: PrioScript::new(&config, &disk),
            name: format!("prio-{}", disk.info.name),
            config,
            info: disk.info.clone(),
            system,
            pages: disk.pages.clone(),
            outdir,
        })
    }

    /// The script of a part of something else, called `name`: its steps have the numbers
    /// from `first` on. Its results are in the record only.
    ///
    /// # Errors
    /// What stands against it.
    pub fn within(mut config: PrioConfig, name: &str, first: u32) -> Result<PrioScript, RunError> {
        let node = disk_of(&mut config)?;
        let disk = checked(&config, node, &System::here(), name)?;
        Ok(PrioScript::new(&config, &disk).within(name, first))
    }

    /// What the record tells of device, limits and workloads.
    pub fn facts(&self) -> Value {
        let (device, system) = device::facts(&self.info, &self.system);
        let config = &self.config;
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
        let workloads = config.workloads.iter();
        let workloads: Vec<Value> = workloads
            .map(|workload| json!({ "name": workload.name(), "words": self.words(workload) }))
            .collect();
        json!({
            "device": device,
            "system": system,
            "options": {
                "rw": config.load.rw.name(),
                "bs": config.load.bs,
                "ramptime_s": config.load.ramptime,
                "runtime_s": config.load.runtime,
                "iodepths": config.load.depths,
            },
            "limits": limits,
            "workloads": workloads,
            "outdir": self.outdir,
        })
    }

    /// What the I/Os of a workload ask for.
    fn words(&self, workload: &PrioWorkload) -> String {
        let rw = self.config.load.rw;
        // Of a mix there are two limits of a number.
        let kind = match (rw.reads(), rw.writes()) {
            (true, false) => Some(CdlPage::T2a),
            (false, true) => Some(CdlPage::T2b),
            _ => None,
        };
        let rw = rw.name();
        let page = self.pages.iter().find(|page| Some(page.kind) == kind);
        let limit = |dld: u8| match page.and_then(|page| page.descriptor(dld)) {
            Some(descriptor) => format!("limit {dld} ({})", descriptor.summary()),
            None => format!("limit {dld}"),
        };
        match workload {
            PrioWorkload::Baseline => format!("{rw} without priorities"),
            PrioWorkload::Ncq(percent) => format!("{rw}, {percent} % with high priority"),
            PrioWorkload::Single { percent, dld } => {
                format!("{rw}, {percent} % with {}", limit(*dld))
            }
            PrioWorkload::Multi(Split(list)) => {
                let parts = list.iter();
                let parts = parts.map(|&(dld, percent)| format!("{percent} % with {}", limit(dld)));
                format!("{rw}, {}", parts.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// The disk that is measured, by its name from the root on.
fn disk_of(config: &mut PrioConfig) -> Result<SysBlock, RunError> {
    config.dev = absolute(&config.dev);
    let dev = &config.dev;
    let Some(node) = Sys::live().by_path(dev) else {
        let what = match dev.exists() {
            true => "it is no block device",
            false => "there is no such device",
        };
        return Err(RunError::Input(format!("{}: {what}", dev.display())));
    };
    if node.is_partition() {
        let what = "it is a partition; priorities and limits belong to the whole disk";
        return Err(RunError::Input(format!("{}: {what}", dev.display())));
    }
    Ok(node)
}

/// The disk as it is switched, if it and the machine have everything.
fn checked(
    config: &PrioConfig,
    node: SysBlock,
    system: &System,
    raw: &str,
) -> Result<Rc<SwitchedDisk>, RunError> {
    let dev = &config.dev;
    let info = priority::info(&node, dev, &KernelDevices);
    if let Err(error) = fs::File::open(dev) {
        return Err(RunError::Missing(format!("{}: {error}", dev.display())));
    }
    let kinds = device::check(
        &info,
        system,
        &config.workloads,
        config.load.rw,
        &KernelDevices,
    )?;
    Ok(Rc::new(SwitchedDisk {
        node,
        info,
        pages: pages(config, &kinds)?,
        outdir: config.outdir.clone(),
        raw: PathBuf::from(raw),
    }))
}

/// The pages that are uploaded: those that were named, else the shipped ones.
fn pages(config: &PrioConfig, kinds: &[CdlPage]) -> Result<Vec<Page>, RunError> {
    let mut list = Vec::new();
    for (page, named) in shipped().into_iter().zip([&config.t2a, &config.t2b]) {
        let kind = page.kind;
        let page = match named {
            None => page,
            Some(text) => {
                let read = file::parse(text).map_err(|faults| {
                    let path = PathBuf::from(format!("page {kind}"));
                    RunError::Input(file::FileError::Faults { path, faults }.to_string())
                })?;
                if read.kind != kind {
                    let what = format!("it is page {}, not {kind}", read.kind);
                    return Err(RunError::Input(what));
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
