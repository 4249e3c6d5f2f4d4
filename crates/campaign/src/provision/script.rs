//! The script of one drive, from the configuration that holds for all.

use super::{One, Provision};
use crate::flow::Script;
use crate::run::RunError;

impl Provision {
    /// What is done to one drive.
    ///
    /// # Errors
    /// A setting that makes no sense.
    pub fn script(&self, one: &One) -> Result<Box<dyn Script>, RunError> {
        let _ = (one, &self.config);
        Err(RunError::Input("not yet".to_owned()))
    }
}
