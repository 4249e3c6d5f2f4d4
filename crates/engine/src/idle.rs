//! A job that was to do I/O and did none has failed, whatever engine ran it.

use std::collections::BTreeMap;
use std::time::Duration;

use fathom_jobfile::spec;
use fathom_model::value::Amount;
use fathom_model::{Failure, FailureKind, JobOption, JobResult, JobSpec, Origin, Results};

use crate::Request;
use crate::expect;

/// Most jobs that are told of one by one.
const ONE_BY_ONE: usize = 10;

/// The jobs of a run that came to its own end which moved nothing though they were to.
/// A run that was ended by a signal, by Fathom's time limit or by an error is not asked.
pub fn idle_jobs(request: &Request, results: &Results) -> Vec<Failure> {
    let is_still =
        |job: &&JobResult| job.error == 0 && job.directions().all(|(_, dir)| dir.total_ios == 0);
    if !results.jobs.iter().any(|job| is_still(&job)) {
        return Vec::new();
    }
    // What fio reports of the options lacks flags, and some others.
    let written = expect::jobs(request);
    let spec = |job: &JobResult| {
        let named = written.iter().find(|spec| spec.name == job.name);
        named.cloned().unwrap_or_else(|| reported(results, job))
    };
    let is_idle = |job: &&JobResult| {
        let spec = spec(job);
        !wants_none(&spec) && !has_ended_early(&spec, job, &written)
    };
    let idle = results.jobs.iter().filter(is_still).filter(is_idle);
    idle.take(ONE_BY_ONE)
        .map(|job| {
            let what = "it ended without a single I/O";
            Failure::new(FailureKind::NoIo, what).about(&job.name)
        })
        .collect()
}

/// Whether it was to do none: it keeps the CPU busy, runs a program, makes or deletes
/// files, or has nothing to go over, as a job that reads zones in which nothing is written.
fn wants_none(job: &JobSpec) -> bool {
    const ENGINES: [&str; 5] = ["cpuio", "exec", "filecreate", "filestat", "filedelete"];
    let is_nothing = |name| matches!(spec::amount(job, name), Some(Amount::Number(0)));
    let zoned = spec::option(job, "zonemode").and_then(|option| option.value.as_deref());
    let reads_zones = zoned == Some("zbd") && spec::rw(job).is_some_and(|rw| rw.reads);
    reads_zones
        || ENGINES.contains(&spec::engine(job))
        || spec::is_on(job, "create_only")
        || spec::is_on(job, "verify_state_load")
        || is_nothing("size")
        || is_nothing("io_size")
}

/// Whether it was ended, as it was told to be, before its first I/O: by another job's
/// `exitall`, by a full file system, or by its time.
fn has_ended_early(job: &JobSpec, result: &JobResult, all: &[JobSpec]) -> bool {
    let exits = |job: &JobSpec| spec::is_on(job, "exitall") || spec::is_on(job, "exitall_on_error");
    let ran = Duration::from_millis(result.runtime_ms.unwrap_or(0));
    spec::is_on(job, "fill_device")
        || spec::runtime(job).is_some_and(|limit| ran >= limit)
        || all
            .iter()
            .any(|other| other.name != job.name && exits(other))
}

/// The options as the engine reported them, of a job file that is not here.
fn reported(results: &Results, job: &JobResult) -> JobSpec {
    let options = |from: &BTreeMap<String, String>| -> Vec<JobOption> {
        let of = |(name, value): (&String, &String)| JobOption {
            name: name.clone(),
            value: Some(value.clone()),
            origin: Origin::Fathom {
                reason: "reported".to_owned(),
            },
        };
        from.iter().map(of).collect()
    };
    JobSpec {
        name: job.name.clone(),
        options: [options(&results.global_options), options(&job.options)].concat(),
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::DirectionResult;

    use super::*;

    /// Jobs of a file, none of which did any I/O, and those that failed for it.
    fn idle(text: &str, runtime_ms: u64) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let job_file = dir.path().join("job.fio");
        std::fs::write(&job_file, text).unwrap();
        let request = Request {
            job_file,
            sections: Vec::new(),
            extra_args: Vec::new(),
            work_dir: dir.path().to_owned(),
            raw_dir: dir.path().to_owned(),
            interval: Duration::from_secs(1),
            deadline: None,
            fio: None,
            checked: None,
        };
        let jobs = expect::jobs(&request).into_iter().map(|job| JobResult {
            name: job.name,
            read: Some(DirectionResult::default()),
            runtime_ms: Some(runtime_ms),
            ..JobResult::default()
        });
        let results = Results {
            jobs: jobs.collect(),
            ..Results::default()
        };
        let failures = idle_jobs(&request, &results).into_iter();
        failures.filter_map(|failure| failure.subject).collect()
    }

    #[test]
    fn a_job_without_a_single_io_has_failed_unless_it_was_to_do_none() {
        for none in [
            "ioengine=cpuio",
            "ioengine=exec",
            "ioengine=filecreate",
            "ioengine=filestat",
            "ioengine=filedelete",
            "create_only",
            "create_only=1",
            "size=0",
            "io_size=0",
            "fill_device",
            "zonemode=zbd",
            "runtime=2",
        ] {
            assert_eq!(
                idle(&format!("[a]\nsize=1m\n{none}\n"), 2000),
                [""; 0],
                "{none}"
            );
        }
        for some in ["", "startdelay=5", "create_only=0", "runtime=3", "exitall"] {
            assert_eq!(
                idle(&format!("[a]\nsize=1m\n{some}\n"), 2000),
                ["a"],
                "{some}"
            );
        }
        let waits = "[a]\nsize=1m\nstartdelay=5\n[b]\nsize=1m\nexitall\n[c]\nwait_for=a\n";
        assert_eq!(
            idle(waits, 0),
            ["b"],
            "what another one ended has not failed"
        );
    }
}
