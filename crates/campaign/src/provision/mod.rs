//! Many drives brought into a known state at the same time.
//!
//! Each drive has a flow, a record and a thread of its own, and its engine a
//! process of its own; one [`Control`] stops them all. [`Provision::look`]
//! checks everything for every drive before anything is touched. A drive that
//! fails does not stop the others.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_engine::Control;
use fathom_model::RunStatus;
use fathom_model::ledger::Pattern;
use serde::{Deserialize, Serialize};

use crate::flow::{self, Ending, Flow, Script};
use crate::run::RunError;

mod batch;
mod drives;
mod going;
mod logs;

pub use batch::{Batch, COMMAND, Facts, last};
pub use drives::{Drive, Found, Refused, Skipped, Workload, all, check, named};
pub use going::{Came, Told};

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
    /// The folder of the logs; `None`: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<PathBuf>,
}

/// The way to steady state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Santa Clara: fills, then the load itself until fio's rule holds.
    Sc,
    /// SNIA's way, interpreted: fills, then the rounds of the IOPS test.
    Snia,
}
