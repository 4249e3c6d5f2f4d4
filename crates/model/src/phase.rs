//! What a device is led to before it is measured.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Pattern;

/// The state of the device that a step wants; steps run in this order, so that
/// sequential work is not measured on a device that random writes went to.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum DevicePhase {
    /// After sequential pre-conditioning.
    Sequential,
    /// After random pre-conditioning.
    Random,
}

impl DevicePhase {
    /// The order of the writes that make a device ready for it.
    pub fn pattern(self) -> Pattern {
        match self {
            Self::Sequential => Pattern::Sequential,
            Self::Random => Pattern::Random,
        }
    }
}

impl fmt::Display for DevicePhase {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.pattern().fmt(f)
    }
}
