//! The command line of `fathom prio`, checked as far as it alone can be.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fathom_campaign::prio::{PrioConfig, PrioWorkload, Rw, Split};
use fathom_jobfile::value::{self, Base};
use fathom_model::Exit;

use super::pages;
use crate::cmd::ExitError;
use crate::cmd::hosts::HostArgs;
use crate::cmd::run_args::RunArgs;

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
    pub rw: RwName,
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub hosts: HostArgs,
}

/// What the I/Os are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum RwName {
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

impl From<RwName> for Rw {
    fn from(name: RwName) -> Self {
        match name {
            RwName::Randread => Self::RandRead,
            RwName::Read => Self::Read,
            RwName::Randwrite => Self::RandWrite,
            RwName::Write => Self::Write,
            RwName::Randrw => Self::RandMix,
            RwName::Seqrw => Self::Mix,
        }
    }
}

/// Queue depths, in the order in which they are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depths(pub Vec<u32>);

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
            return Err(format!("{depth} is given twice"));
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
            return Err(format!("limit {dld} is given twice"));
        }
        list.push((dld, percent));
    }
    let sum: u32 = list.iter().map(|&(_, percent)| u32::from(percent)).sum();
    match sum > 100 {
        true => Err(format!("the shares add up to {sum} percent")),
        false => Ok(Split(list)),
    }
}

impl Options {
    /// What is to be measured.
    pub fn config(&self) -> anyhow::Result<PrioConfig> {
        let Depths(depths) = &self.qds;
        Ok(PrioConfig {
            dev: self.dev.clone().unwrap_or_default(),
            bs: self.bs,
            ramptime: self.ramptime,
            runtime: self.runtime,
            depths: depths.clone(),
            outdir: self.outdir.clone(),
            workloads: self.workloads()?,
            t2a: page(self.t2a.as_deref())?,
            t2b: page(self.t2b.as_deref())?,
            rw: self.rw.into(),
        })
    }

    /// The workloads, in the order in which they are measured.
    fn workloads(&self) -> anyhow::Result<Vec<PrioWorkload>> {
        let mut list = Vec::new();
        if self.baseline {
            list.push(PrioWorkload::Baseline);
        }
        // clap has seen to it that what they need is there.
        if let (true, Some(percent)) = (self.ncq_prio, self.percentage) {
            list.push(PrioWorkload::Ncq(percent));
        }
        if let (true, Some(percent), Some(dld)) = (self.cdl_single, self.percentage, self.dld) {
            list.push(PrioWorkload::Single { percent, dld });
        }
        if let (true, Some(split)) = (self.cdl_multi, &self.dldsplit) {
            list.push(PrioWorkload::Multi(split.clone()));
        }
        if list.is_empty() {
            let message = "nothing to measure: give one or more of --baseline, --ncq-prio, \
                           --cdl-single, --cdl-multi"
                .to_owned();
            return Err(ExitError::new(Exit::Usage, message).into());
        }
        self.check_used()?;
        Ok(list)
    }

    /// Refuses what none of the workloads uses.
    fn check_used(&self) -> Result<(), ExitError> {
        let has_share = self.ncq_prio || self.cdl_single;
        let unused = [
            (
                self.percentage.is_some() && !has_share,
                "--percentage is for --ncq-prio and --cdl-single",
            ),
            (
                self.dld.is_some() && !self.cdl_single,
                "--dld is for --cdl-single",
            ),
            (
                self.dldsplit.is_some() && !self.cdl_multi,
                "--dldsplit is for --cdl-multi",
            ),
        ];
        match unused.iter().find(|(is_unused, _)| *is_unused) {
            Some((_, message)) => Err(ExitError::new(Exit::Usage, *message)),
            None => Ok(()),
        }
    }
}

/// The text of a page file. What is wrong with it is told with its name.
fn page(path: Option<&Path>) -> anyhow::Result<Option<String>> {
    let Some(path) = path else { return Ok(None) };
    pages::read(path)?;
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(Some(text))
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
