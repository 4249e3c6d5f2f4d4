//! The options of every command that runs something, with one meaning for all.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use fathom_flow::RunOptions;
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
    #[arg(long, value_name = "FILE", value_parser = from_here)]
    pub sim: Option<PathBuf>,
    /// The fio to use [default: $FATHOM_FIO, or the one in PATH]
    #[arg(long, value_name = "PATH", value_parser = program)]
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

/// A file by a name that holds from everywhere: a run may go on from another folder.
///
/// # Errors
/// When the name is empty, or the current folder has disappeared.
pub fn from_here(text: &str) -> io::Result<PathBuf> {
    std::path::absolute(text)
}

/// The same of a program, but for a bare name, which is looked for in `PATH`.
///
/// # Errors
/// As [`from_here`].
pub fn program(text: &str) -> io::Result<PathBuf> {
    match text.contains('/') {
        true => from_here(text),
        false => Ok(PathBuf::from(text)),
    }
}

/// Refuses a file that describes a simulated device, and the path of a fio, where the
/// engine that was asked for uses neither.
pub fn check_engine(
    engine: Option<EngineOrSim>,
    has_sim: bool,
    has_fio: bool,
) -> Result<(), ExitError> {
    let engine = engine.unwrap_or_default();
    let what = match engine {
        EngineOrSim::Sim | EngineOrSim::Native if has_fio => format!(
            "--fio names the fio that runs the jobs, and the engine {} runs none\n  to do: leave out --fio, or use --engine fio",
            engine.name()
        ),
        EngineOrSim::Auto | EngineOrSim::Fio | EngineOrSim::Native if has_sim => {
            "--sim describes a simulated device\n  to do: add --engine sim".to_owned()
        }
        _ => return Ok(()),
    };
    Err(ExitError::new(Exit::Usage, what))
}

impl RunArgs {
    /// As a plan has them.
    ///
    /// # Errors
    /// Options that make no sense together.
    pub fn options(&self) -> anyhow::Result<RunOptions> {
        check_engine(Some(self.engine), self.sim.is_some(), self.fio.is_some())?;
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
