//! What a campaign will do, step by step: printed by `plan`, done by `run`.

use std::path::PathBuf;
use std::time::Duration;

use fathom_model::Point;

/// A campaign, resolved: everything `run` needs to know.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The campaign's folder.
    pub folder: PathBuf,
    /// The device (or file) under test: `CONFIG_DUT_FILENAME`.
    pub dut: PathBuf,
    /// How the points are run.
    pub settings: Settings,
    /// The steps in the order in which they run; with repetitions each
    /// measurement of a point is a step of its own.
    pub steps: Vec<Step>,
}

/// How the points of a campaign are run: the menu "Running" of the
/// configuration, with the flags of the command line laid over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `auto`, `fio` or `native`.
    pub engine: String,
    /// Words that name the device that may be destroyed (`DESTROY_CONFIRM`).
    pub destroy: Vec<String>,
    /// Time between two samples.
    pub interval: Duration,
    /// Longest time a point may take.
    pub point_limit: Option<Duration>,
    /// Longest time the campaign may take.
    pub campaign_limit: Option<Duration>,
    /// Points in a row that end a series, and the noise in percent; `None`: no guard.
    pub guard: Option<Guard>,
    /// Whether progress logs in fio-tests' form are kept.
    pub progress_logs: bool,
}

/// When the guard ends a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// So many points in a row must be worse than the best before them.
    pub points: u32,
    /// A point is worse only if it is so by more than this.
    pub noise_percent: u32,
}

/// One job file to run once.
#[derive(Debug, Clone)]
pub struct Step {
    /// What it measures.
    pub point: Point,
    /// The job file, below the campaign's folder.
    pub job_file: PathBuf,
    /// Its text, as generated.
    pub job_text: String,
    /// Which state of the device it wants.
    pub phase: Phase,
    /// Whether the guard may end its series.
    pub guarded: bool,
    /// How long it takes: ramp and run time, where the job says so.
    pub duration: Option<Duration>,
    /// The most it can write to the device, in bytes, where that is known:
    /// 0 for reads.
    pub write_bytes: Option<u64>,
}

/// The state of the device that a step wants; steps run in this order, so that
/// sequential work is not measured on a device that random writes went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// After sequential pre-conditioning.
    Sequential,
    /// After random pre-conditioning.
    Random,
}
