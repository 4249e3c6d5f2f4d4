//! The command line of `fathom prio`, checked as far as it alone can be.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fathom_model::Exit;
use fathom_suites::prio::{PrioConfig, PrioLoad, PrioWorkload, Split, split};

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
    #[command(flatten)]
    pub load: PrioLoad,
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
    #[command(flatten)]
    pub run: RunArgs,
    #[command(flatten)]
    pub hosts: HostArgs,
}

impl Options {
    /// What is to be measured.
    pub fn config(&self) -> anyhow::Result<PrioConfig> {
        Ok(PrioConfig {
            dev: self.dev.clone().unwrap_or_default(),
            load: self.load.clone(),
            outdir: self.outdir.clone(),
            workloads: self.workloads()?,
            t2a: page(self.t2a.as_deref())?,
            t2b: page(self.t2b.as_deref())?,
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
