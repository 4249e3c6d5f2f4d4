//! The jobs of a request, for engines that read job files themselves.

use fathom_jobfile::variables::variable;
use fathom_jobfile::{JobFile, Severity, spec};
use fathom_model::{Failure, FailureKind, JobSpec};

use crate::{EngineError, Request};

/// A refusal of a job file or an option.
pub fn bad(message: String) -> EngineError {
    EngineError::Failed(Failure::new(FailureKind::BadOption, message))
}

/// The jobs of the request's file, those of its sections only.
///
/// # Errors
/// When the file cannot be read, is wrong or holds no such job, and when there
/// are options for fio's command line, which `engine` does not have.
pub fn jobs(request: &Request, engine: &str) -> Result<Vec<JobSpec>, EngineError> {
    let mut extra = request.extra_args.iter();
    if let Some(extra) = extra.find(|option| !is_read_only(option)) {
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
    if request.extra_args.iter().any(|option| is_read_only(option)) {
        read_only(&jobs).map_err(bad)?;
    }
    Ok(jobs)
}

/// The value of an option among those for fio's command line: `--name=value` or
/// `--name value`.
pub fn passed_value<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.trim_start_matches('-').split_once('=') {
            Some((option, value)) if option == name => return Some(value),
            None if arg.trim_start_matches('-') == name => return args.next().map(String::as_str),
            _ => {}
        }
    }
    None
}

/// Whether it is fio's `--readonly`, the option of its command line that other engines have.
pub fn is_read_only(option: &str) -> bool {
    option.trim_start_matches('-') == "readonly"
}

/// Whether no job writes or trims (init.c, fixup_options).
///
/// # Errors
/// The first one that does.
pub fn read_only(jobs: &[JobSpec]) -> Result<(), String> {
    let writes = |job: &&JobSpec| spec::rw(job).is_none_or(|rw| rw.writes || rw.trims);
    match jobs.iter().find(writes) {
        Some(job) => Err(format!(
            "job {}: it writes or trims, which --readonly forbids",
            job.name
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn read_only_is_told_of_the_first_job_that_writes_or_trims() {
        let of = |rw: &str| {
            let text = format!("[a]\nrw=randread\nsize=1m\n[b]\nsize=1m\nrw={rw}\n");
            let checked = JobFile::parse(&text, Path::new("a.fio"), &|_| None);
            read_only(&checked.file.jobs())
        };
        assert_eq!(of("read"), Ok(()));
        for rw in ["write", "randtrim", "randrw", "trimwrite"] {
            assert!(of(rw).unwrap_err().starts_with("job b: it writes"), "{rw}");
        }
        assert!(is_read_only("--readonly") && is_read_only("-readonly"));
        assert!(!is_read_only("--debug=io"));
    }
}
