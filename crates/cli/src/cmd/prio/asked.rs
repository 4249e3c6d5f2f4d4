//! What the command line of `fathom prio` asks for, checked as far as it alone
//! can be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fathom_engine::jobfile::value::{self, Base};
use fathom_model::{Exit, Point};

use crate::cmd::ExitError;
use crate::cmd::hosts::HostArgs;
use crate::engine::EngineName;

/// Options of a run, under the names of cdl_bench.sh.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The device
    #[arg(long, value_name = "FILE", required = true)]
    pub dev: Option<PathBuf>,
    /// Size of an I/O
    #[arg(long, value_name = "SIZE", default_value = "131072", value_parser = block_size)]
    pub bs: u64,
    /// Ramp time of each measurement, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub ramptime: u32,
    /// Run time of each measurement, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub runtime: u32,
    /// Queue depths
    #[arg(long, value_name = "LIST", default_value = "1 2 4 8 16 24 32", value_parser = depths)]
    pub qds: Depths,
    /// Folder for the results, which must not exist
    /// [default: ~/DEVICE_cdl_bench]
    #[arg(long, value_name = "DIR")]
    pub outdir: Option<PathBuf>,
    /// Measure without priorities, for comparison
    #[arg(long)]
    pub baseline: bool,
    /// Measure with NCQ priority
    #[arg(long, visible_alias = "ncqprio", requires = "percentage")]
    pub ncq_prio: bool,
    /// Measure with one limit
    #[arg(long, requires_all = ["percentage", "dld"])]
    pub cdl_single: bool,
    /// Measure with several limits
    #[arg(long, requires = "dldsplit")]
    pub cdl_multi: bool,
    /// Share of I/Os with a high priority or a limit, in percent
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub percentage: Option<u8>,
    /// Number of the limit of --cdl-single, 1 to 7
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=7))]
    pub dld: Option<u8>,
    /// Limits of --cdl-multi with their shares: 1/10,2/20 gives 10 % of the I/Os
    /// limit 1, 20 % limit 2, and the others none
    #[arg(long, value_name = "LIST", value_parser = split)]
    pub dldsplit: Option<Split>,
    /// Page with the limits of reads [default: as 'fathom prio pages' shows]
    #[arg(long, value_name = "FILE")]
    pub t2a: Option<PathBuf>,
    /// Page with the limits of writes [default: as 'fathom prio pages' shows]
    #[arg(long, value_name = "FILE")]
    pub t2b: Option<PathBuf>,
    /// What the I/Os are; all but reads need --destroy
    #[arg(long, value_enum, value_name = "RW", default_value_t)]
    pub rw: Rw,
    /// Confirm that the device may be overwritten: its serial number, its name in
    /// /dev/disk/by-id, or PATH=SIZE where it has neither (may be repeated)
    #[arg(long, value_name = "WORDS")]
    pub destroy: Vec<String>,
    /// Engine that does the I/O
    #[arg(long, value_enum, default_value_t)]
    pub engine: EngineName,
    /// The fio to use [default: $FATHOM_FIO, or the one in PATH]
    #[arg(long, value_name = "PATH")]
    pub fio: Option<PathBuf>,
    #[command(flatten)]
    pub hosts: HostArgs,
}

/// What the I/Os are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Rw {
    /// Reads at random
    #[default]
    Randread,
    /// Reads in order
    Read,
    /// Writes at random
    Randwrite,
    /// Writes in order
    Write,
    /// Half of each, at random
    Randrw,
    /// Half of each, in order
    #[value(name = "rw")]
    Seqrw,
}

impl Rw {
    /// fio's word, which is also the job's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Randread => "randread",
            Self::Read => "read",
            Self::Randwrite => "randwrite",
            Self::Write => "write",
            Self::Randrw => "randrw",
            Self::Seqrw => "rw",
        }
    }

    /// Whether there are reads.
    pub fn reads(self) -> bool {
        !matches!(self, Self::Randwrite | Self::Write)
    }

    /// Whether there are writes.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Randread | Self::Read)
    }
}

/// Queue depths, in the order in which they are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depths(pub Vec<u32>);

/// Numbers of limits with the percentage of I/Os that name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split(pub Vec<(u8, u8)>);

fn block_size(text: &str) -> Result<u64, String> {
    let bytes = value::size(text, Base::Binary).map_err(|fault| fault.to_string())?;
    match u64::try_from(bytes) {
        Ok(bytes) if bytes > 0 && bytes.is_multiple_of(512) => Ok(bytes),
        _ => Err("it must be a multiple of 512 bytes".to_owned()),
    }
}

fn depths(text: &str) -> Result<Depths, String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let mut list = Vec::new();
    for word in words {
        let depth = word
            .parse()
            .ok()
            .filter(|depth| (1..=65_535).contains(depth));
        let depth = depth.ok_or_else(|| format!("'{word}' is no queue depth"))?;
        if list.contains(&depth) {
            return Err(format!("{depth} stands there twice"));
        }
        list.push(depth);
    }
    match list.is_empty() {
        true => Err("there is no depth in it".to_owned()),
        false => Ok(Depths(list)),
    }
}

fn split(text: &str) -> Result<Split, String> {
    let mut list: Vec<(u8, u8)> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let pair = part.split_once('/');
        let number = |text: &str| text.trim().parse::<u8>().ok();
        let pair = pair.and_then(|(dld, percent)| Some((number(dld)?, number(percent)?)));
        let Some((dld, percent)) = pair else {
            return Err(format!("'{part}' is not LIMIT/PERCENT, as in 1/10"));
        };
        if !(1..=7).contains(&dld) {
            return Err(format!("there is no limit {dld}: they are 1 to 7"));
        }
        if !(1..=100).contains(&percent) {
            return Err(format!(
                "{percent} percent in '{part}' is not within 1 to 100"
            ));
        }
        if list.iter().any(|&(before, _)| before == dld) {
            return Err(format!("limit {dld} stands there twice"));
        }
        list.push((dld, percent));
    }
    let sum: u32 = list.iter().map(|&(_, percent)| u32::from(percent)).sum();
    match sum > 100 {
        true => Err(format!("the shares add up to {sum} percent")),
        false => Ok(Split(list)),
    }
}

/// One workload with what it needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workload {
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

impl Workload {
    /// The name of its folder.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Ncq(_) => "ncqprio",
            Self::Single { .. } => "cdlsingle",
            Self::Multi(_) => "cdlmulti",
        }
    }

    /// What is said when it begins.
    pub fn title(&self) -> &'static str {
        match self {
            Self::Baseline => "Running baseline workload",
            Self::Ncq(_) => "Running NCQ priority workload",
            Self::Single { .. } => "Running CDL workload, single limit",
            Self::Multi(_) => "Running CDL workload, multiple limits",
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
        // Classes: include/uapi/linux/ioprio.h. An I/O that misses a limit may
        // come back as ETIME, which is 62 and has to be given as a number: fio
        // knows it by no name.
        let past_etime = [
            ("continue_on_error", "io".to_owned()),
            ("ignore_error", "62,62".to_owned()),
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

impl Options {
    /// The workloads, in the order in which they are measured.
    pub fn workloads(&self) -> anyhow::Result<Vec<Workload>> {
        let mut list = Vec::new();
        if self.baseline {
            list.push(Workload::Baseline);
        }
        // clap has seen to it that what they need is there.
        if let (true, Some(percent)) = (self.ncq_prio, self.percentage) {
            list.push(Workload::Ncq(percent));
        }
        if let (true, Some(percent), Some(dld)) = (self.cdl_single, self.percentage, self.dld) {
            list.push(Workload::Single { percent, dld });
        }
        if let (true, Some(split)) = (self.cdl_multi, &self.dldsplit) {
            list.push(Workload::Multi(split.clone()));
        }
        if list.is_empty() {
            let message = "nothing to measure: give one or more of --baseline, --ncq-prio, \
                           --cdl-single, --cdl-multi"
                .to_owned();
            let exit = Exit::Usage;
            return Err(ExitError { exit, message }.into());
        }
        Ok(list)
    }

    /// The options of one measurement, as a job file has them.
    fn job_options(
        &self,
        dev: &std::path::Path,
        workload: &Workload,
        depth: u32,
    ) -> Vec<(&'static str, String)> {
        let rw = self.rw.name();
        let mut options = vec![
            ("filename", dev.display().to_string()),
            ("allow_file_create", "0".to_owned()),
            ("rw", rw.to_owned()),
            ("bs", self.bs.to_string()),
            ("ioengine", "libaio".to_owned()),
            ("iodepth", depth.to_string()),
            ("numjobs", "1".to_owned()),
            ("direct", "1".to_owned()),
            ("group_reporting", "1".to_owned()),
            ("random_generator", "tausworthe64".to_owned()),
            ("time_based", "1".to_owned()),
            ("ramp_time", self.ramptime.to_string()),
            ("runtime", self.runtime.to_string()),
            ("write_lat_log", format!("{rw}.log")),
            ("per_job_logs", "0".to_owned()),
            ("log_prio", "1".to_owned()),
        ];
        options.extend(workload.options(self.bs));
        options
    }

    /// The job file of one measurement.
    pub fn job(&self, dev: &std::path::Path, workload: &Workload, depth: u32) -> String {
        let mut text = format!("[{}]\n", self.rw.name());
        for (name, value) in self.job_options(dev, workload, depth) {
            text += &format!("{name}={value}\n");
        }
        text
    }

    /// One measurement as a point of its curve.
    pub fn point(&self, workload: &Workload, depth: u32) -> Point {
        let mut settings = BTreeMap::from([
            ("rw".to_owned(), self.rw.name().to_owned()),
            ("bs".to_owned(), self.bs.to_string()),
            ("iodepth".to_owned(), depth.to_string()),
            ("numjobs".to_owned(), "1".to_owned()),
        ]);
        let own = workload.options(self.bs).into_iter();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_checked() {
        assert_eq!(split("2/10,4/20").unwrap().0, [(2, 10), (4, 20)]);
        for (text, said) in [
            ("8/10", "no limit 8"),
            ("0/10", "no limit 0"),
            ("1/0", "not within 1 to 100"),
            ("1/60,2/50", "110 percent"),
            ("1/10,1/20", "twice"),
            ("1", "as in 1/10"),
            ("", "as in 1/10"),
        ] {
            let fault = split(text).unwrap_err();
            assert!(fault.contains(said), "{text}: {fault}");
        }
    }

    #[test]
    fn depths_stand_between_blanks_or_commas() {
        assert_eq!(depths("1 2,4  8").unwrap().0, [1, 2, 4, 8]);
        assert!(depths("1 0").is_err() && depths("").is_err() && depths("2 2").is_err());
    }
}
