//! What is done to the device before it is measured.

use std::path::Path;

use fathom_device::purge::PurgeSettings;
use fathom_flow::error::RunError;
use fathom_kconfig::Config;
use fathom_model::DevicePhase;

use crate::precondition::{PreconditionMethod, PreconditionSettings};
use crate::purge;

/// What leads the device to the state in which it is measured.
#[derive(Debug, Clone, Default)]
pub struct Preparation {
    /// `STEADY_STATE_PROVISIONING`: points count as provisioned.
    pub on: bool,
    /// Whether it is waited until the device is energized.
    pub energize: bool,
    /// How it is purged; `None`: it is not.
    pub purge: Option<PurgeSettings>,
    /// How it is pre-conditioned; `None`: it is not.
    pub precondition: Option<PreconditionSettings>,
    /// Whether that is done also where it is needless.
    pub force: bool,
    /// The work for which the device is made ready when there is nothing to
    /// measure; `None`: there is.
    pub provision: Option<DevicePhase>,
}

impl Preparation {
    /// What the configuration asks for.
    ///
    /// # Errors
    /// Values that cannot be used.
    pub fn of(config: &Config, dut: &Path, nothing_on: bool) -> Result<Self, RunError> {
        if !config.is_on("STEADY_STATE_PROVISIONING") {
            return Ok(Self::default());
        }
        let precondition = PreconditionSettings::of(config, dut)?;
        let only_ready = nothing_on && !config.is_on("SNIA_TESTS");
        let provision = precondition.as_ref().and_then(|settings| {
            let phase = match config.is_on("PROVISION_SC_SEQUENTIAL") {
                true => DevicePhase::Sequential,
                false => DevicePhase::Random,
            };
            let wanted = match settings.method {
                PreconditionMethod::SantaClara => config.is_on("PRECONDITION_PROVISION_SC"),
                PreconditionMethod::Snia => true,
            };
            (only_ready && wanted).then_some(phase)
        });
        Ok(Self {
            on: true,
            energize: config.is_on("ENERGIZED_STEADY_STATE"),
            purge: purge::wanted(config)?,
            precondition,
            force: config.is_on("FORCE_PRECONDITION"),
            provision,
        })
    }

    /// Whether anything is done before points are measured.
    pub fn is_something(&self) -> bool {
        self.energize || self.purge.is_some() || self.precondition.is_some()
    }
}
