//! What a configuration says about wear of the device and about its state.

use std::time::Duration;

use fathom_flow::budget::{NO_RATING, Over, terabytes};
use fathom_flow::error::RunError;
use fathom_kconfig::Config;
use fathom_model::units::parse_size;

use super::Overrides;
use crate::symbols::SymbolReader;

/// What is spent of the device, and when its state is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Care {
    /// What becomes of a plan that wants more (`OVER_BUDGET_REFUSE`).
    pub over: Over,
    /// Bytes that the drive is rated for (`ENDURANCE_TBW`, in terabytes).
    pub endurance_bytes: Option<u64>,
    /// How long the device is to have been powered (`ENERGIZED_TIME`); `None`: as
    /// is known of its model.
    pub energized: Option<Duration>,
    /// Idle for longer, the state of a device is stale (`STATE_IDLE_LIMIT`).
    pub idle_limit: Duration,
    /// What is done about a stale state (`STATE_STALE_REFUSE`).
    pub stale: Stale,
}

/// What is done about a device that was led to a state and not left alone since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stale {
    /// It is led there again.
    #[default]
    Redo,
    /// Nothing runs.
    Refuse,
}

/// Where nothing is said: drives tidy up while they idle, and a day is what lies
/// between the preparation of a drive and its measurement.
const IDLE_LIMIT: Duration = Duration::from_secs(24 * 3600);

impl Default for Care {
    fn default() -> Self {
        Self {
            over: Over::default(),
            endurance_bytes: None,
            energized: None,
            idle_limit: IDLE_LIMIT,
            stale: Stale::default(),
        }
    }
}

impl Care {
    pub(super) fn of(config: &Config, overrides: &Overrides) -> Result<Self, RunError> {
        let over = match config.is_on("OVER_BUDGET_REFUSE") {
            true => Over::Refuse,
            false => Over::Cut,
        };
        let stale = match config.is_on("STATE_STALE_REFUSE") {
            true => Stale::Refuse,
            false => Stale::Redo,
        };
        let read = SymbolReader(config);
        let rating = bytes(config, "ENDURANCE_TBW", NO_RATING, terabytes)?;
        Ok(Self {
            over: overrides.over.unwrap_or(over),
            endurance_bytes: overrides.endurance_bytes.or(rating),
            energized: read.time("ENERGIZED_TIME")?,
            idle_limit: read.time("STATE_IDLE_LIMIT")?.unwrap_or(IDLE_LIMIT),
            stale,
        })
    }
}

/// Most bytes that a campaign writes in all its starts (`MAX_WRITTEN`).
pub(super) fn max_written(config: &Config) -> Result<Option<u64>, RunError> {
    bytes(config, "MAX_WRITTEN", "not a size like 20T", parse_size)
}

/// A number of bytes above 0.
fn bytes(
    config: &Config,
    symbol: &str,
    wrong: &str,
    parse: impl Fn(&str) -> Option<u64>,
) -> Result<Option<u64>, RunError> {
    SymbolReader(config).value(symbol, |text| {
        let bytes = parse(text).filter(|bytes| *bytes > 0);
        bytes.ok_or_else(|| wrong.to_owned())
    })
}
