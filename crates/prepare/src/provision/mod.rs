//! Many drives brought into a known state at the same time.
//!
//! Each drive has a flow, a record and a thread of its own, and its engine a
//! process of its own; one [`fathom_engine::Control`] stops them all. [`Provision::look`]
//! checks everything for every drive before anything is touched. A drive that
//! fails does not stop the others.

use std::path::{Path, PathBuf};

use fathom_flow::ledger::Ledgers;
use fathom_flow::{Flow, KeptPlan, RunOptions, Script};
use fathom_kconfig::Config;
use fathom_model::RunStatus;
use fathom_model::ledger::Pattern;
use serde::{Deserialize, Serialize};

use crate::precondition::PreconditionMethod;
use crate::settings::RunSettings;

mod batch;
mod cost;
mod drives;
mod logs;
mod outcome;
mod script;
mod threads;

pub use batch::{Batch, BatchFacts, COMMAND, last};
pub use cost::DriveCost;
pub use drives::{FoundDrives, ProvisionDrive, Refused, Skipped, SteadyFor, all, check, named};
pub use outcome::{DriveRecord, outcome};
pub use threads::{DriveEvent, DriveOutcome};

/// How drives are provisioned: the same for all of a batch, and taken over when
/// it is resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProvisionMethod {
    /// The load.
    pub workload: SteadyFor,
    /// The way to steady state.
    pub method: PreconditionMethod,
    /// How they are purged first (a name of `fathom_device::purge`, or `auto`);
    /// `None`: as the campaign says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge: Option<String>,
    /// That they are not purged, whatever the campaign says.
    #[serde(default)]
    pub no_purge: bool,
    /// Also what is in the wanted state already.
    #[serde(default)]
    pub force: bool,
    /// What every run can be told, of each drive; the devices that are simulated are those
    /// of the drives in their order.
    #[serde(flatten)]
    pub options: RunOptions,
    /// The folder of the campaign whose configuration holds; `None`: the
    /// defaults of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign: Option<PathBuf>,
    /// The folder below which `logs/` are kept; `None`: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<PathBuf>,
}

/// What is asked for beside the drives and [`ProvisionMethod`].
#[derive(Clone)]
pub struct ProvisionOptions {
    /// The folder of records.
    pub runs_dir: PathBuf,
    /// Words, times and limits, as the configuration and the command line have
    /// them. Limits are those of each drive.
    pub settings: RunSettings,
    /// The ledgers of devices.
    pub ledgers: Ledgers,
}

/// Drives that are to be provisioned together.
pub struct Provision {
    /// How.
    pub how: ProvisionMethod,
    /// The drives.
    pub drives: Vec<DriveJob>,
    /// The configuration that holds for all of them.
    config: Config,
    options: ProvisionOptions,
    batch: String,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct DriveJob {
    /// The drive.
    pub drive: ProvisionDrive,
    /// The load for which it is to be steady.
    pub load: Pattern,
    /// The record it goes on with, and how that ended.
    pub record: Option<(PathBuf, RunStatus)>,
    /// Left as it is: other drives were named.
    passed_over: bool,
}

impl DriveJob {
    /// Whether it was provisioned by an earlier start.
    pub fn is_done(&self) -> bool {
        matches!(self.record, Some((_, RunStatus::Complete)))
    }
}

impl Provision {
    /// A new batch of drives.
    pub fn new(
        how: ProvisionMethod,
        drives: Vec<ProvisionDrive>,
        config: Config,
        options: ProvisionOptions,
    ) -> Self {
        let now_ms = fathom_record::now_ms();
        let batch = format!("{now_ms}-{}", std::process::id());
        let records = vec![None; drives.len()];
        Self::with(how, drives, records, config, options, batch)
    }

    /// A batch that goes on. `drives` are those of its facts.
    pub fn resumed(
        batch: Batch,
        drives: Vec<ProvisionDrive>,
        config: Config,
        options: ProvisionOptions,
    ) -> Self {
        let Batch { facts, records } = batch;
        Self::with(facts.how, drives, records, config, options, facts.batch)
    }

    fn with(
        how: ProvisionMethod,
        drives: Vec<ProvisionDrive>,
        records: Vec<Option<(PathBuf, RunStatus)>>,
        config: Config,
        options: ProvisionOptions,
        batch: String,
    ) -> Self {
        let one = |(place, (drive, record)): (usize, (ProvisionDrive, Option<_>))| DriveJob {
            load: how.workload.of(&drive.path, place),
            drive,
            record,
            passed_over: false,
        };
        let drives = drives.into_iter().zip(records).enumerate();
        Self {
            drives: drives.map(one).collect(),
            how,
            config,
            options,
            batch,
        }
    }

    /// The drives that are left, with their places.
    pub fn left(&self) -> impl Iterator<Item = (usize, &DriveJob)> {
        let all = self.drives.iter().enumerate();
        all.filter(|(_, one)| !one.is_done() && !one.passed_over)
    }

    /// Leaves all drives as they are but those at these paths.
    pub fn restrict(&mut self, paths: &[PathBuf]) {
        for one in &mut self.drives {
            one.passed_over = !paths.contains(&one.drive.path);
        }
    }

    /// The flow of one drive, led by its script.
    pub fn flow<'f>(&'f self, place: usize, script: &'f dyn Script) -> Flow<'f> {
        let one = &self.drives[place];
        let options = &self.options;
        let paths = self.drives.iter().map(|one| one.drive.path.clone());
        let facts = BatchFacts {
            batch: self.batch.clone(),
            drives: paths.collect(),
            place,
            how: self.how.clone(),
        };
        Flow {
            script,
            command: COMMAND,
            name: &one.drive.name,
            device: Some(one.drive.path.clone()),
            work_dir: PathBuf::from("/"),
            kept: KeptPlan::Tasks,
            engine_needs: Vec::new(),
            options: options.settings.options.of_device(place),
            interval: options.settings.interval,
            runs_dir: options.runs_dir.clone(),
            record: one.record.as_ref().map(|(dir, _)| dir.clone()),
            ledgers: options.ledgers.clone(),
            facts: facts.to_map(),
        }
    }

    /// The folder of the records.
    pub fn runs_dir(&self) -> &Path {
        &self.options.runs_dir
    }

    /// Whether nothing is measured, because the drives do not exist.
    pub fn is_simulated(&self) -> bool {
        self.how.options.is_simulated()
    }

    /// Whether all that are left may be written to, and can be purged as is
    /// wanted.
    ///
    /// # Errors
    /// What stands against each of them, all told at once; nothing was touched.
    pub fn check(&self) -> Result<(), Refused> {
        if self.is_simulated() {
            return Ok(());
        }
        let left: Vec<&DriveJob> = self.left().map(|(_, one)| one).collect();
        let drives: Vec<&ProvisionDrive> = left.iter().map(|one| &one.drive).collect();
        check(&drives, &self.options.settings.options.destroy)?;
        let reasons: Vec<String> = left
            .iter()
            .filter_map(|one| self.against_purge(one))
            .collect();
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(Refused {
                reasons,
                ..Refused::default()
            }),
        }
    }
}

#[cfg(test)]
mod tests;
