//! The engines as the command line names them.

use fathom_engines::choice::Wish;
use serde::{Deserialize, Serialize};

/// Which engine runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum EngineName {
    /// fio where it is installed and has every option, else native where it has
    #[default]
    Auto,
    /// The fio that is installed
    Fio,
    /// Fathom's own; needs nothing installed
    Native,
}

impl EngineName {
    /// The name, as the command line has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fio => "fio",
            Self::Native => "native",
        }
    }
}

impl From<EngineName> for Wish {
    fn from(name: EngineName) -> Self {
        match name {
            EngineName::Auto => Self::Auto,
            EngineName::Fio => Self::Fio,
            EngineName::Native => Self::Native,
        }
    }
}

/// Which engine runs, where a simulation makes sense.
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
pub enum EngineOrSim {
    /// fio where it is installed and has every option, else native where it has
    #[default]
    Auto,
    /// The fio that is installed
    Fio,
    /// Fathom's own; needs nothing installed
    Native,
    /// None: a device is simulated (see --sim), nothing is measured
    Sim,
}

impl EngineOrSim {
    /// The one of this name, in whatever case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        clap::ValueEnum::from_str(name, true).ok()
    }

    /// The name, as a campaign's settings have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fio => "fio",
            Self::Native => "native",
            Self::Sim => "sim",
        }
    }
}
