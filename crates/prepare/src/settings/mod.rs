//! The symbols of the menu "Running", with the command line over them.

use std::path::PathBuf;
use std::time::Duration;

use fathom_analysis::guard::GuardRule;
use fathom_engines::EngineName;
use fathom_flow::RunOptions;
use fathom_flow::budget::{Over, SpendLimits};
use fathom_flow::error::RunError;
use fathom_kconfig::Config;
use serde::{Deserialize, Serialize};

use crate::symbols::SymbolReader;

mod device_policy;

pub use device_policy::{Care, Stale};

/// How the points of a campaign are run: the menu "Running" of the
/// configuration, with the flags of the command line laid over it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSettings {
    /// What every run can be told, with the configuration below it (`ENGINE_…`,
    /// `DESTROY_CONFIRM`, `CAMPAIGN_TIMEOUT`, `MAX_WRITTEN`).
    pub options: RunOptions,
    /// Time between two samples.
    pub interval: Duration,
    /// Longest time a point may take.
    pub point_limit: Option<Duration>,
    /// Which points of a series are left out; `None`: every one is measured.
    pub guard: Option<GuardPolicy>,
    /// Whether progress logs in fio-tests' form are kept.
    pub progress_logs: bool,
    /// The menu "Budget", and what is done about the state of the device.
    pub care: Care,
}

impl RunSettings {
    /// What may be spent: the time of one start, the bytes of the whole record.
    pub fn limits(&self) -> SpendLimits {
        SpendLimits {
            over: self.care.over,
            ..self.options.limits()
        }
    }
}

/// Which points of a series are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardPolicy {
    /// Those behind so many in a row that are worse than the best (`GUARD`).
    Worse(GuardRule),
    /// Those that the search for the knee does not need (`SEARCH_KNEE`).
    NotForKnee,
}

/// What the command line says over the configuration; `None`: nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// Measurements of each point (`REPEAT`).
    pub repeat: Option<u32>,
    /// In which order they follow each other.
    pub order: Option<MeasureOrder>,
    /// Time between two samples (`INTERVAL_MS`).
    pub interval: Option<Duration>,
    /// Longest time a point may take (`POINT_TIMEOUT`).
    pub point_limit: Option<Duration>,
    /// What every run can be told.
    pub options: RunOptions,
    /// The device (or file) under test; goes before the environment's DEV.
    pub dut: Option<PathBuf>,
    /// Whether series are guarded: all of them, or none.
    pub guard: Option<bool>,
    /// What becomes of a plan that wants more than it may spend.
    pub over: Option<Over>,
    /// Bytes that the drive is rated for (`ENDURANCE_TBW`).
    pub endurance_bytes: Option<u64>,
}

/// How the measurements of a point follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
pub enum MeasureOrder {
    /// A whole series, then the series again
    Interleaved,
    /// A point as often as asked, then the next point
    InARow,
}

/// The device under test: the environment's DEV, else that of the configuration.
pub fn dut(config: &Config, env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let dev = env("DEV").filter(|dev| !dev.is_empty());
    dev.or_else(|| config.get("DUT_FILENAME").map(str::to_owned))
        .unwrap_or_default()
        .into()
}

/// The menu "Running", with the command line over it.
///
/// # Errors
/// A value that cannot be used.
pub fn settings(config: &Config, overrides: &Overrides) -> Result<RunSettings, RunError> {
    let number = |symbol: &'static str| config.get(symbol).and_then(|text| text.parse().ok());
    let engine = match () {
        () if config.is_on("ENGINE_FIO") => EngineName::Fio,
        () if config.is_on("ENGINE_NATIVE") => EngineName::Native,
        () => EngineName::Auto,
    };
    let confirmed = config.get("DESTROY_CONFIRM").unwrap_or_default();
    let confirmed = confirmed
        .split(',')
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty());
    let worse = GuardPolicy::Worse(GuardRule {
        points: number("GUARD_POINTS").unwrap_or(2),
        noise_percent: number("GUARD_NOISE_PERCENT").unwrap_or(5),
    });
    let guard = match config.is_on("SEARCH_KNEE") {
        true => GuardPolicy::NotForKnee,
        false => worse,
    };
    let is_on = config.is_on("GUARD") || guard == GuardPolicy::NotForKnee;
    let guarded = overrides.guard.unwrap_or(is_on);
    let interval = u64::from(number("INTERVAL_MS").unwrap_or(1000));
    let read = SymbolReader(config);
    let time = |symbol, own: Option<Duration>| match own {
        Some(own) => Ok(Some(own)),
        None => read.time(symbol),
    };
    let given = &overrides.options;
    let mut options = RunOptions {
        destroy: confirmed.collect(),
        engine: Some(engine),
        max_time: time("CAMPAIGN_TIMEOUT", given.max_time)?,
        max_written: device_policy::max_written(config)?,
        ..RunOptions::default()
    };
    options.over(given)?;
    Ok(RunSettings {
        options,
        interval: overrides
            .interval
            .unwrap_or(Duration::from_millis(interval)),
        point_limit: time("POINT_TIMEOUT", overrides.point_limit)?,
        guard: guarded.then_some(guard),
        progress_logs: config.get("PROGRESS_LOGS").is_none_or(|value| value == "y"),
        care: Care::of(config, overrides)?,
    })
}
