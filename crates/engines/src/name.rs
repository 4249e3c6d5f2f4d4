//! The engines as people name them.

use serde::{Deserialize, Serialize};

/// Which engine runs the jobs.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EngineName {
    /// fio where it is installed and has every option, else native where it has
    // Records of earlier versions have no name for it.
    #[default]
    #[serde(alias = "")]
    Auto,
    /// The fio that is installed
    Fio,
    /// Fathom's own; needs nothing installed
    Native,
    /// None: a device is simulated (see --sim), nothing is measured
    Sim,
}

impl EngineName {
    /// As the command line and plan files have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fio => "fio",
            Self::Native => "native",
            Self::Sim => "sim",
        }
    }
}
