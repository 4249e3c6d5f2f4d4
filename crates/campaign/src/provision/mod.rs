//! Many drives brought into a known state at the same time.
//!
//! Each drive has a flow, a record and a thread of its own, and its engine a
//! process of its own; one [`fathom_engine::Control`] stops them all. [`Provision::look`]
//! checks everything for every drive before anything is touched. A drive that
//! fails does not stop the others.

use std::path::{Path, PathBuf};

use fathom_kconfig::Config;
use fathom_model::RunStatus;
use fathom_model::ledger::Pattern;
use serde::{Deserialize, Serialize};

use crate::flow::{Flow, Script};
use crate::ledger::Ledgers;
use crate::plan::Settings;
use crate::precondition;

mod batch;
mod cost;
mod drives;
mod going;
mod logs;
mod outcome;
mod script;

pub use batch::{Batch, COMMAND, Facts, last};
pub use cost::Planned;
pub use drives::{Drive, Found, Refused, Skipped, Workload, all, check, named};
pub use going::{Came, Told};
pub use outcome::{Outcome, outcome};

/// How drives are provisioned: the same for all of a batch, and taken over when
/// it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct How {
    /// The load.
    pub workload: Workload,
    /// The way to steady state.
    pub method: Method,
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
    /// `auto`, `fio`, `native` or `sim`.
    pub engine: String,
    /// The devices that `sim` simulates: the first for the first drive, the last
    /// for all that follow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sim: Vec<PathBuf>,
    /// The folder of the campaign whose configuration holds; `None`: the
    /// defaults of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign: Option<PathBuf>,
    /// The folder below which `logs/` are kept; `None`: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<PathBuf>,
}

/// The way to steady state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Santa Clara: fills, then the load itself until fio's rule holds.
    Sc,
    /// SNIA's way, interpreted: fills, then the load until SNIA's criterion holds.
    Snia,
}

impl From<Method> for precondition::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Sc => Self::SantaClara,
            Method::Snia => Self::Snia,
        }
    }
}

/// What is asked for beside the drives and [`How`].
#[derive(Clone)]
pub struct Options {
    /// The folder of records.
    pub runs_dir: PathBuf,
    /// Words, times and limits, as the configuration and the command line have
    /// them. Limits are those of each drive.
    pub settings: Settings,
    /// The fio to use, when not the one in PATH.
    pub fio: Option<PathBuf>,
    /// The ledgers of devices.
    pub ledgers: Ledgers,
}

/// Drives that are to be provisioned together.
pub struct Provision {
    /// How.
    pub how: How,
    /// The drives.
    pub drives: Vec<One>,
    /// The configuration that holds for all of them.
    config: Config,
    options: Options,
    batch: String,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct One {
    /// The drive.
    pub drive: Drive,
    /// The load for which it is to be steady.
    pub load: Pattern,
    /// The record it goes on with, and how that ended.
    pub record: Option<(PathBuf, RunStatus)>,
    /// Left as it is: other drives were named.
    passed_over: bool,
}

impl One {
    /// Whether it was provisioned by an earlier start.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.record, Some((_, RunStatus::Complete)))
    }
}

impl Provision {
    /// A new batch of drives.
    #[must_use]
    pub fn new(how: How, drives: Vec<Drive>, config: Config, options: Options) -> Self {
        let now_ms = fathom_record::now_ms();
        let batch = format!("{now_ms}-{}", std::process::id());
        let records = vec![None; drives.len()];
        Self::with(how, drives, records, config, options, batch)
    }

    /// A batch that goes on. `drives` are those of its facts.
    #[must_use]
    pub fn resumed(batch: Batch, drives: Vec<Drive>, config: Config, options: Options) -> Self {
        let Batch { facts, records } = batch;
        Self::with(facts.how, drives, records, config, options, facts.batch)
    }

    fn with(
        how: How,
        drives: Vec<Drive>,
        records: Vec<Option<(PathBuf, RunStatus)>>,
        config: Config,
        options: Options,
        batch: String,
    ) -> Self {
        let one = |(place, (drive, record)): (usize, (Drive, Option<_>))| One {
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
    pub fn left(&self) -> impl Iterator<Item = (usize, &One)> {
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
    #[must_use]
    pub fn flow<'f>(&'f self, place: usize, script: &'f dyn Script) -> Flow<'f> {
        let one = &self.drives[place];
        let options = &self.options;
        let paths = self.drives.iter().map(|one| one.drive.path.clone());
        let facts = Facts {
            batch: self.batch.clone(),
            drives: paths.collect(),
            place,
            how: self.how.clone(),
        };
        let sims = &self.how.sim;
        Flow {
            script,
            command: COMMAND,
            name: &one.drive.name,
            device: one.drive.path.clone(),
            destroy: options.settings.destroy.clone(),
            engine: self.how.engine.clone(),
            fio: options.fio.clone(),
            sim: sims.get(place).or(sims.last()).cloned(),
            interval: options.settings.interval,
            limits: options.settings.limits(),
            runs_dir: options.runs_dir.clone(),
            record: one.record.as_ref().map(|(dir, _)| dir.clone()),
            ledgers: options.ledgers.clone(),
            facts: facts.to_map(),
        }
    }

    /// The folder of the records.
    #[must_use]
    pub fn runs_dir(&self) -> &Path {
        &self.options.runs_dir
    }

    /// Whether nothing is measured, because the drives do not exist.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.how.engine == "sim"
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
        let left: Vec<&One> = self.left().map(|(_, one)| one).collect();
        let drives: Vec<&Drive> = left.iter().map(|one| &one.drive).collect();
        check(&drives, &self.options.settings.destroy)?;
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
