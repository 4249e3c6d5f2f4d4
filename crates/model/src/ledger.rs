//! What was done to one device over its life, as far as Fathom knows.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One line of a device's ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LedgerEntry {
    /// When it ended, ms since 1970 UTC.
    pub at_ms: u64,
    /// The command that did it: `purge`, `provision`, `run`, `snia iops`.
    pub command: String,
    /// The record that tells all of it, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<std::path::PathBuf>,
    /// What was done.
    #[serde(flatten)]
    pub deed: LedgerEvent,
    /// What the device held then at places by chance: the offset of a block of 4 KiB in
    /// bytes, and its CRC-32 (that of zlib). None where that was not looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<(u64, u32)>,
}

/// Something that was done to a device, or was seen of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "deed", rename_all = "snake_case")]
pub enum LedgerEvent {
    /// All data were taken away.
    Purged {
        /// How: `nvme-format`, `blkdiscard`, `overwrite`, …
        method: String,
        /// Whether reading back showed that the data were gone.
        verified: bool,
        /// Why it was done.
        reason: String,
    },
    /// Data were written over a range a whole number of times.
    Filled {
        /// What was written, and how.
        pattern: Pattern,
        /// Size of one write in bytes.
        bs_bytes: u64,
        /// The part of the device that was filled, in percent.
        range_percent: f64,
        /// Bytes written.
        bytes: u64,
    },
    /// It was written to until a rule of steady state held, or did not.
    Settled {
        /// The load.
        pattern: Pattern,
        /// Size of one write in bytes.
        bs_bytes: u64,
        /// The part of the device that was written to, in percent.
        range_percent: f64,
        /// Bytes written.
        bytes: u64,
        /// The rule by its name.
        rule: String,
        /// Whether it held at the end.
        attained: bool,
    },
    /// Something that takes away what was there, and was stopped or killed before
    /// its end: what the device holds now nobody knows.
    Interrupted {
        /// What: `purge`, where it is known with its method, `purge (overwrite)`.
        what: String,
    },
    /// Another drive with the same identifier was seen: what the ledger says may be of
    /// either.
    Duplicate,
    /// Anything else that wrote to it: its state is not what it was before.
    Written {
        /// Bytes written.
        bytes: u64,
    },
    /// What the device said of itself.
    Seen {
        /// Bytes that hosts have written to it in all its life.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host_written_bytes: Option<u64>,
        /// Share of its rated endurance that is used, in percent; may exceed 100.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        used_percent: Option<f64>,
        /// Time it has been powered, in hours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        power_on_hours: Option<u64>,
        /// Bytes that the kernel has written to it since it found it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kernel_written_bytes: Option<u64>,
        /// Which boot of the machine that kernel is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
    },
}

/// The order in which a range is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One address after the other.
    Sequential,
    /// Addresses at random.
    Random,
    /// Both, or reads among writes.
    Mixed,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
            Self::Mixed => "mixed",
        })
    }
}

impl LedgerEvent {
    /// Whether the command that it names is over: its bytes are told at its end.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Written { .. })
    }

    /// Bytes that it wrote to the device, where it is known to have written.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Self::Filled { bytes, .. } | Self::Settled { bytes, .. } | Self::Written { bytes } => {
                Some(*bytes)
            }
            Self::Purged { .. }
            | Self::Interrupted { .. }
            | Self::Duplicate
            | Self::Seen { .. } => None,
        }
    }
}
