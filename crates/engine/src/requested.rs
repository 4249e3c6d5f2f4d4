//! The jobs of a request, for engines that read job files themselves.

use fathom_model::{Failure, FailureKind, JobSpec};

use crate::jobfile::{JobFile, Severity, variable};
use crate::{EngineError, Request};

/// A refusal of a job file or an option.
pub(crate) fn bad(message: String) -> EngineError {
    EngineError::Failed(Failure::new(FailureKind::BadOption, message))
}

/// The jobs of the request's file, those of its sections only.
///
/// # Errors
/// When the file cannot be read, is wrong or holds no such job, and when there
/// are options for fio's command line, which `engine` does not have.
pub(crate) fn jobs(request: &Request, engine: &str) -> Result<Vec<JobSpec>, EngineError> {
    if let Some(extra) = request.extra_args.first() {
        return Err(bad(format!(
            "'{extra}' is for fio's command line; the {engine} engine has none"
        )));
    }
    let checked =
        JobFile::read(&request.job_file, &variable).map_err(|source| EngineError::File {
            path: request.job_file.clone(),
            source,
        })?;
    if let Some(error) = checked
        .diagnostics
        .iter()
        .find(|d| d.severity == Severity::Error)
    {
        return Err(bad(error.to_string()));
    }
    let mut jobs = checked.file.jobs();
    if !request.sections.is_empty() {
        jobs.retain(|job| request.sections.contains(&job.name));
    }
    if jobs.is_empty() {
        return Err(bad(format!(
            "{} has no job to run",
            request.job_file.display()
        )));
    }
    Ok(jobs)
}
