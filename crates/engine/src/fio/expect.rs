//! Who has to report at the end of a run.

use std::num::NonZeroU32;

use fathom_model::JobSpec;

use crate::Request;
use crate::jobfile::JobFile;

/// Names of the entries that fio's report must have, in its order: one for
/// each of numjobs, or one a group with `group_reporting`. Empty when the job
/// file cannot be understood here: then nothing can be missed.
pub fn reporting_jobs(request: &Request) -> Vec<String> {
    let env = |name: &str| std::env::var(name).ok();
    let Ok(checked) = JobFile::read(&request.job_file, &env) else {
        return Vec::new();
    };
    let mut jobs = checked.file.jobs();
    if !request.sections.is_empty() {
        jobs.retain(|job| request.sections.contains(&job.name));
    }
    entries(&jobs).unwrap_or_default()
}

/// The rule of fio's `add_job` (init.c: groups) and `__show_run_stats`
/// (stat.c: one entry for neighbours of a group that report together).
fn entries(jobs: &[JobSpec]) -> Option<Vec<String>> {
    let mut entries = Vec::new();
    let mut group = 0;
    let mut in_group = 0;
    let mut last_group = None;
    for job in jobs {
        let opens_group = is_set(job, "stonewall")
            || is_set(job, "wait_for_previous")
            || is_set(job, "new_group");
        if opens_group && in_group > 0 {
            group += 1;
            in_group = 0;
        }
        let members = match job.value("numjobs") {
            Some(text) => text.parse::<NonZeroU32>().ok()?.get(),
            None => 1,
        };
        in_group += members;
        if job.value("stats") == Some("0") {
            continue;
        }
        for _ in 0..members {
            if !is_set(job, "group_reporting") || last_group != Some(group) {
                last_group = Some(group);
                entries.push(job.name.clone());
            }
        }
    }
    Some(entries)
}

/// Whether an option that needs no value is on.
fn is_set(job: &JobSpec, name: &str) -> bool {
    job.option(name)
        .is_some_and(|option| option.value.as_deref() != Some("0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn of(text: &str) -> Option<Vec<String>> {
        entries(
            &JobFile::parse(text, Path::new("test.fio"), &|_| None)
                .file
                .jobs(),
        )
    }

    #[test]
    fn each_of_numjobs_reports_unless_its_group_does() {
        assert_eq!(of("[a]\nnumjobs=2\n[b]\n").unwrap(), ["a", "a", "b"]);
        let grouped =
            "[global]\ngroup_reporting\nnumjobs=3\n[a]\n[b]\n[c]\nstonewall\n[d]\nnew_group\n";
        assert_eq!(of(grouped).unwrap(), ["a", "c", "d"]);
        assert_eq!(of("[a]\nstats=0\n[b]\n").unwrap(), ["b"]);
        assert_eq!(of("[a]\nnumjobs=2*2\n"), None);
    }
}
