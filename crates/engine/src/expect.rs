//! Who has to report at the end of a run.

use std::time::Duration;

use fathom_jobfile::variables::variable;
use fathom_jobfile::{JobFile, spec};
use fathom_model::JobSpec;

use crate::Request;

/// The jobs of a request; none when its file cannot be understood here.
pub fn jobs(request: &Request) -> Vec<JobSpec> {
    let Ok(checked) = JobFile::read(&request.job_file, &variable) else {
        return Vec::new();
    };
    let mut jobs = checked.file.jobs();
    if !request.sections.is_empty() {
        jobs.retain(|job| request.sections.contains(&job.name));
    }
    jobs
}

/// Names of the entries that fio's report must have, in its order: one for
/// each of numjobs, or one a group with `group_reporting`. Empty when the job
/// file cannot be understood here: then nothing can be missed.
pub fn reporting_jobs(request: &Request) -> Vec<String> {
    entries(&jobs(request))
}

/// Longest time that the jobs can run, one group after the other; `None` when
/// one of them has no limit.
pub fn longest(jobs: &[JobSpec]) -> Option<Duration> {
    let mut groups: Vec<Duration> = Vec::new();
    for job in jobs {
        // A delay that is a range, or with a time for each clone, is not told here.
        let delay = match spec::option(job, "startdelay") {
            None => Duration::ZERO,
            Some(_) => spec::time(job, "startdelay")?,
        };
        let takes = delay + spec::ramp_time(job).unwrap_or_default() + spec::runtime(job)?;
        match groups.last_mut() {
            Some(last) if !spec::is_on(job, "stonewall") => *last = takes.max(*last),
            _ => groups.push(takes),
        }
    }
    (!groups.is_empty()).then(|| groups.iter().sum())
}

/// fio runs no more (`REAL_MAX_JOBS`, os/os.h), whatever `numjobs` says.
const MOST_JOBS: usize = 4096;

/// The rule of fio's `add_job` (init.c: groups) and `__show_run_stats`
/// (stat.c: one entry for neighbours of a group that report together).
pub fn entries(jobs: &[JobSpec]) -> Vec<String> {
    let mut entries = Vec::new();
    let mut group = 0;
    let mut in_group = 0;
    let mut last_group = None;
    for job in jobs {
        let opens_group = ["stonewall", "new_group"]
            .iter()
            .any(|name| spec::is_on(job, name));
        if opens_group && in_group > 0 {
            group += 1;
            in_group = 0;
        }
        let members = spec::numjobs(job);
        in_group = members.saturating_add(in_group);
        if spec::option(job, "stats").is_some() && !spec::is_on(job, "stats") {
            continue;
        }
        let told = match spec::is_on(job, "group_reporting") {
            true => members.min(u64::from(last_group != Some(group))),
            false => members,
        };
        if told > 0 {
            last_group = Some(group);
        }
        let room = MOST_JOBS.saturating_sub(entries.len());
        let told = usize::try_from(told).unwrap_or(room).min(room);
        entries.extend(std::iter::repeat_n(job.name.clone(), told));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn of(text: &str) -> Vec<String> {
        entries(
            &JobFile::parse(text, Path::new("test.fio"), &|_| None)
                .file
                .jobs(),
        )
    }

    #[test]
    fn jobs_that_fio_would_not_run_are_not_waited_for() {
        let of = |text: &str| of(text).len();
        assert_eq!(of("[a]\nnumjobs=4294967295\n[b]\n"), MOST_JOBS);
        assert_eq!(of("[a]\nnumjobs=4294967295\ngroup_reporting\n"), 1);
    }

    #[test]
    fn the_longest_time_adds_up_groups() {
        let of = |text: &str| {
            let file = JobFile::parse(text, Path::new("test.fio"), &|_| None).file;
            longest(&file.jobs()).map(|time| time.as_secs())
        };
        let two = "[global]\nruntime=10\n[a]\nramp_time=2\n[b]\n[c]\nstonewall\nruntime=1m\n";
        assert_eq!(of(two), Some(72));
        assert_eq!(of("[a]\nruntime=10\n[b]\nsize=1m\n"), None);
        assert_eq!(of("[a]\nruntime=10\nstartdelay=3\n"), Some(13));
        assert_eq!(of("[a]\nruntime=10\nstartdelay=3-5\n"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn each_of_numjobs_reports_unless_its_group_does() {
        assert_eq!(of("[a]\nnumjobs=2\n[b]\n"), ["a", "a", "b"]);
        let grouped =
            "[global]\ngroup_reporting\nnumjobs=3\n[a]\n[b]\n[c]\nstonewall\n[d]\nnew_group\n";
        assert_eq!(of(grouped), ["a", "c", "d"]);
        assert_eq!(of("[a]\nstats=0\n[b]\n"), ["b"]);
    }
}
