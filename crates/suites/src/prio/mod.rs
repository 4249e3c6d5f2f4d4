//! What priorities and Command Duration Limits do, and what they cost: every workload
//! at every queue depth of one device, between its switches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_device::cdl::{CdlPage, Page, file};
use fathom_model::Point;
use serde::{Deserialize, Serialize};

pub mod device;
mod folder;
mod load;
mod ready;
mod script;

pub use folder::{ResultFolder, STATISTICS, raw_dir};
pub use load::{Depths, PrioLoad, Rw, Split, split};
pub use ready::PrioReady;
pub use script::PrioScript;

/// The command in records and ledgers.
pub const COMMAND: &str = "prio";
/// Why it is not simulated.
pub const NOT_SIMULATED: &str = "prio measures the latency of each I/O, and a simulation has none";
/// The kernel's ETIME: how an I/O that misses its limit may come back. fio knows it by
/// no name.
const ETIME: u32 = 62;

/// What is measured: names and defaults are those of cdl_bench.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrioConfig {
    /// The device.
    pub dev: PathBuf,
    /// What each measurement is.
    #[serde(flatten)]
    pub load: PrioLoad,
    /// Folder for the results, which must not exist; `None`: one in the home folder.
    pub outdir: Option<PathBuf>,
    /// In the order in which they are measured.
    pub workloads: Vec<PrioWorkload>,
    /// The text of the page with the limits of reads; `None`: the shipped one.
    pub t2a: Option<String>,
    /// The text of the page with the limits of writes; `None`: the shipped one.
    pub t2b: Option<String>,
}

/// One workload with what it needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrioWorkload {
    /// Without priorities.
    Baseline,
    /// So many percent with NCQ priority.
    Ncq(u8),
    /// So many percent with a limit.
    Single {
        /// Percent.
        percent: u8,
        /// Number of the limit.
        dld: u8,
    },
    /// With several limits.
    Multi(Split),
}

impl PrioWorkload {
    /// The name of its folder.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Ncq(_) => "ncqprio",
            Self::Single { .. } => "cdlsingle",
            Self::Multi(_) => "cdlmulti",
        }
    }

    /// The limits that its I/Os name.
    pub fn limits(&self) -> Vec<u8> {
        match self {
            Self::Baseline | Self::Ncq(_) => Vec::new(),
            Self::Single { dld, .. } => vec![*dld],
            Self::Multi(Split(list)) => list.iter().map(|&(dld, _)| dld).collect(),
        }
    }

    /// Whether it is about limits.
    pub fn is_cdl(&self) -> bool {
        matches!(self, Self::Single { .. } | Self::Multi(_))
    }

    /// fio's options for its priorities.
    fn options(&self, bs: u64) -> Vec<(&'static str, String)> {
        // Classes: include/uapi/linux/ioprio.h.
        let past_etime = [
            ("continue_on_error", "io".to_owned()),
            ("ignore_error", format!("{ETIME},{ETIME}")),
        ];
        let mut options = Vec::new();
        match self {
            Self::Baseline => {}
            Self::Ncq(percent) => {
                options.push(("cmdprio_percentage", percent.to_string()));
                options.push(("cmdprio_class", "1".to_owned()));
            }
            Self::Single { percent, dld } => {
                options.push(("cmdprio_percentage", percent.to_string()));
                options.push(("cmdprio_class", "2".to_owned()));
                options.push(("cmdprio_hint", dld.to_string()));
                options.extend(past_etime);
            }
            Self::Multi(Split(list)) => {
                let parts: Vec<String> = list
                    .iter()
                    .map(|(dld, percent)| format!("{bs}/{percent}/2/0/{dld}"))
                    .collect();
                options.push(("cmdprio_bssplit", parts.join(":")));
                options.extend(past_etime);
            }
        }
        options
    }
}

impl PrioConfig {
    /// The job file of one measurement.
    fn job(&self, workload: &PrioWorkload, depth: u32) -> String {
        let rw = self.load.rw.name();
        let mut options = vec![
            ("filename", self.dev.display().to_string()),
            ("allow_file_create", "0".to_owned()),
            ("rw", rw.to_owned()),
            ("bs", self.load.bs.to_string()),
            ("ioengine", "libaio".to_owned()),
            ("iodepth", depth.to_string()),
            ("numjobs", "1".to_owned()),
            ("direct", "1".to_owned()),
            ("group_reporting", "1".to_owned()),
            ("random_generator", "tausworthe64".to_owned()),
            ("time_based", "1".to_owned()),
            ("ramp_time", self.load.ramptime.to_string()),
            ("runtime", self.load.runtime.to_string()),
            ("write_lat_log", format!("{rw}.log")),
            ("per_job_logs", "0".to_owned()),
            ("log_prio", "1".to_owned()),
        ];
        options.extend(workload.options(self.load.bs));
        let lines = options
            .iter()
            .map(|(name, value)| format!("{name}={value}\n"));
        format!("[{rw}]\n{}", lines.collect::<String>())
    }

    /// Job files with everything that the engine must know.
    pub fn engine_needs(&self) -> Vec<String> {
        let workloads = self.workloads.iter();
        let mut texts: Vec<String> = workloads.map(|it| self.job(it, 1)).collect();
        // A split has its hints in a text that no fio reads before it runs: one that
        // takes hints by themselves takes them there, too.
        if let Some(PrioWorkload::Multi(Split(list))) = self.workloads.last() {
            let (percent, dld) = (list[0].1, list[0].0);
            texts.push(self.job(&PrioWorkload::Single { percent, dld }, 1));
        }
        texts
    }

    /// One measurement as a point of its curve.
    pub fn point(&self, workload: &PrioWorkload, depth: u32) -> Point {
        let mut settings = BTreeMap::from([
            ("rw".to_owned(), self.load.rw.name().to_owned()),
            ("bs".to_owned(), self.load.bs.to_string()),
            ("iodepth".to_owned(), depth.to_string()),
            ("numjobs".to_owned(), "1".to_owned()),
        ]);
        let own = workload.options(self.load.bs).into_iter();
        let own = own.filter(|(name, _)| name.starts_with("cmdprio"));
        settings.extend(own.map(|(name, value)| (name.to_owned(), value)));
        Point {
            id: format!("{}/{depth}", workload.name()),
            series: workload.name().to_owned(),
            x: "iodepth".to_owned(),
            settings,
            repetition: 1,
        }
    }

    /// All measurements, in their order.
    pub fn measurements(&self) -> impl Iterator<Item = (&PrioWorkload, u32)> {
        let depths = self.load.depths.0.iter().copied();
        let workloads = self.workloads.iter();
        workloads.flat_map(move |workload| depths.clone().map(move |depth| (workload, depth)))
    }
}

/// The name of the log of a measurement, as fio names it.
pub fn log_name(rw: &str) -> String {
    format!("{rw}.log_lat.log")
}

/// The I/Os that a page limits.
pub fn of(kind: CdlPage) -> &'static str {
    match kind {
        CdlPage::T2a => "reads",
        CdlPage::T2b => "writes",
    }
}

/// The pages that are uploaded by default.
pub fn shipped() -> [Page; 2] {
    let parse = |text| file::parse(text).expect("a test reads the shipped pages");
    [T2A, T2B].map(parse)
}

const T2A: &str = include_str!("../../../../campaigns/cdl/T2A.cdl");
const T2B: &str = include_str!("../../../../campaigns/cdl/T2B.cdl");

/// Where the results of a device go when nobody says.
fn default_folder(node: &str) -> Option<PathBuf> {
    let home = std::env::home_dir()?;
    Some(home.join(format!("{}_cdl_bench", node.replace('/', "_"))))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
