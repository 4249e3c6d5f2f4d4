//! What an engine does not take of a job, and where it was asked for.

use std::fmt;

use fathom_model::Origin;

/// An option an engine does not take, or not with this value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// The job.
    pub job: String,
    /// The option's name as written; the job's own when options do not fit together.
    pub option: String,
    /// Where it was written.
    pub origin: Option<Origin>,
    /// Why, without a full stop.
    pub reason: String,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        write!(f, "job {}: {}: {}", self.job, self.option, self.reason)
    }
}
