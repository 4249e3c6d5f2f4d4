//! What a purge did, and what was found of the data afterwards.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::document::RunStatus;
use crate::environment::BlockDevice;

/// Name and version of [`PurgeDocument`].
pub const PURGE_SCHEMA: &str = "fathom.purge/1";

/// All of a purge, whether it went well or not: what `fathom purge --json`
/// prints and its record keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PurgeDocument {
    /// [`PURGE_SCHEMA`].
    pub schema: String,
    /// How it ended.
    pub status: RunStatus,
    /// The path as it was given.
    pub path: PathBuf,
    /// The device as it was before.
    pub device: BlockDevice,
    /// Why it was done.
    pub reason: String,
    /// How: `nvme-format`, `nvme-sanitize-block`, `blkdiscard`, `overwrite`, …
    pub method: String,
    /// Other namespaces of the drive whose data went with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<PathBuf>,
    /// Ways that would have come before and were passed over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
    /// Capacity of the drive that the purge did not reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<HiddenCapacity>,
    /// Everything that was given to the device, in order.
    pub commands: Vec<Issued>,
    /// What was found afterwards; absent where it did not come so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purged: Option<Purged>,
    /// What went wrong, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Capacity of a drive that the device does not show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HiddenCapacity {
    /// What hides it.
    pub what: String,
    /// How much it is, in bytes.
    pub bytes: u64,
}

/// A way that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PassedOver {
    /// Its name.
    pub method: String,
    /// Why.
    pub reason: String,
}

/// What a purge that was carried out came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Purged {
    /// How: `nvme-format`, `nvme-sanitize-block`, `blkdiscard`, `overwrite`, …
    pub method: String,
    /// Time from the first command to the last answer, in ms; without the
    /// samples before and after.
    pub took_ms: u64,
    /// Size of the device before, in bytes.
    pub bytes_before: u64,
    /// Size of the device afterwards, in bytes: another LBA format may change it.
    pub bytes_after: u64,
    /// Bytes that Fathom itself wrote: samples, and the data of an overwrite.
    pub bytes_written: u64,
    /// What reading back has shown.
    pub verification: Verification,
    /// Ways that were tried before and changed nothing, each with what the device said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<PassedOver>,
}

/// One command of a purge and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Issued {
    /// What a person would type for the same.
    pub command: String,
    /// The bytes that were issued; absent where Fathom wrote blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued: Option<String>,
    /// What came of it.
    pub answer: String,
    /// 0 when the device said that it did it: what fio-tests' log has as the
    /// exit code.
    pub status: u32,
}

/// What the purge promised of a block that is read afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedContent {
    /// Nothing of the data; what is read instead is the device's own business.
    Gone,
    /// Zeros.
    Zeros,
    /// The bytes that Fathom wrote over them.
    Written,
}

/// Samples that were written before a purge and looked for afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Verification {
    /// What was promised.
    pub promise: ExpectedContent,
    /// The number from which the places of the samples follow.
    pub seed: u64,
    /// Size of a sample in bytes.
    pub sample_bytes: u32,
    /// How many were written, and read back right then.
    pub samples: u64,
    /// Of these: read as zeros afterwards.
    pub zeros: u64,
    /// Read as FFh.
    pub ones: u64,
    /// Read as what Fathom wrote over them.
    pub written: u64,
    /// Read as something else.
    pub other: u64,
    /// Still there, at least in part: the purge did not do what it promised.
    pub kept: u64,
    /// Could not be read.
    pub unreadable: u64,
    /// Lie beyond the end of the device, which has become smaller.
    pub beyond: u64,
    /// Places of the first samples that broke the promise, in bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken_at: Vec<u64>,
    /// The share of the device that the samples are, in percent.
    pub seen_percent: f64,
    /// A connected stretch left over that is as long as this, in bytes, or
    /// longer, holds a sample for certain.
    pub stretch_bytes: u64,
    /// A left-over, scattered anyhow, that is this share of the device or more,
    /// in percent, is missed with a probability of 1 % at the most.
    pub scattered_percent: f64,
}

impl Verification {
    /// Whether the purge did what it promised, as far as the samples tell.
    pub fn held(&self) -> bool {
        let lost = self.kept + self.unreadable;
        let wrong = match self.promise {
            ExpectedContent::Gone => 0,
            ExpectedContent::Zeros => self.ones + self.written + self.other,
            ExpectedContent::Written => self.zeros + self.ones + self.other,
        };
        self.samples > self.beyond && lost + wrong == 0
    }
}
