//! The options of every command that runs something, with one meaning for all.

use std::path::PathBuf;
use std::time::Duration;

use fathom_campaign::flow::RunOptions;
use fathom_model::Exit;

use super::job::duration;
use super::measuring::MeasuringArgs;
use super::{ErrorLimit, ExitError};
use crate::engine::EngineOrSim;

/// What everything that runs can be told.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RunArgs {
    /// Confirm that a device may be overwritten: its serial number, its name in
    /// /dev/disk/by-id, or PATH=SIZE where it has neither (may be repeated)
    #[arg(long, value_name = "WORDS")]
    pub destroy: Vec<String>,
    /// Which engine runs the jobs
    #[arg(long, value_enum, default_value_t)]
    pub engine: EngineOrSim,
    /// The device that '--engine sim' simulates [default: a healthy one]
    #[arg(long, value_name = "FILE")]
    pub sim: Option<PathBuf>,
    /// The fio to use [default: $FATHOM_FIO, or the one in PATH]
    #[arg(long, value_name = "PATH")]
    pub fio: Option<PathBuf>,
    /// Longest time of this start; 'fathom resume' goes on
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_time: Option<Duration>,
    /// Most bytes written, in all starts together
    #[arg(long, value_name = "BYTES", value_parser = super::size)]
    pub max_written: Option<u64>,
    #[command(flatten)]
    pub errors: ErrorLimit,
    #[command(flatten)]
    _measuring: MeasuringArgs,
    /// Show everything that would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// A device that nobody simulates is described in vain.
pub fn check_sim(is_given: bool, engine: Option<EngineOrSim>) -> Result<(), ExitError> {
    if !is_given || engine == Some(EngineOrSim::Sim) {
        return Ok(());
    }
    let what = "--sim describes a simulated device\n  to do: add --engine sim";
    Err(ExitError::new(Exit::Usage, what))
}

impl RunArgs {
    /// As a plan has them.
    ///
    /// # Errors
    /// Options that make no sense together.
    pub fn options(&self) -> anyhow::Result<RunOptions> {
        check_sim(self.sim.is_some(), Some(self.engine))?;
        Ok(RunOptions {
            destroy: self.destroy.clone(),
            engine: self.engine.name().to_owned(),
            fio: self.fio.clone(),
            sim: self.sim.clone(),
            max_time: self.max_time,
            max_written: self.max_written,
            max_errors: self.errors.max_errors,
        })
    }
}
