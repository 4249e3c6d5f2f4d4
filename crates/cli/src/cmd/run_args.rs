//! The options of every command that runs something.

use fathom_flow::RunOptions;
use fathom_model::Exit;

use super::ExitError;
use super::measuring::MeasuringArgs;

/// What everything that runs can be told.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub options: RunOptions,
    #[command(flatten)]
    _measuring: MeasuringArgs,
    /// Show everything that would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl RunArgs {
    /// The options of a run on one device.
    ///
    /// # Errors
    /// Options that make no sense together.
    pub fn options(&self) -> Result<RunOptions, ExitError> {
        self.options.check_one().map_err(usage)?;
        Ok(self.options.clone())
    }
}

/// Options that make no sense together.
pub fn usage(what: String) -> ExitError {
    ExitError::new(Exit::Usage, what)
}
