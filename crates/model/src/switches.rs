//! How the switches of a device stood before they were touched.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Switches of priorities and duration limits, as they were found. What a device
/// does not have is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SwitchState {
    /// Whether NCQ priority was on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ncq_priority: Option<bool>,
    /// Whether Command Duration Limits were on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cdl: Option<bool>,
    /// I/O scheduler in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// Pages of limits that were about to be replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<FormerPage>,
}

/// A page of limits as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FormerPage {
    /// `T2A` or `T2B`.
    pub page: String,
    /// The mode page in hexadecimal digits (SCSI).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    /// The file that `cdladm save` wrote (ATA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// The value of an attribute that changes what is measured: of a device's queue, or of
/// the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SettingValue {
    /// The attribute: in the device's folder of sysfs, or from the root on.
    pub file: PathBuf,
    /// What is written to it.
    pub value: String,
}
