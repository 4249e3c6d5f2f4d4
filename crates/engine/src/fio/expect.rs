//! Who has to report at the end of a run.

use fathom_model::JobSpec;

use crate::Request;
use crate::jobfile::{JobFile, spec};

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
    entries(&jobs)
}

/// The rule of fio's `add_job` (init.c: groups) and `__show_run_stats`
/// (stat.c: one entry for neighbours of a group that report together).
fn entries(jobs: &[JobSpec]) -> Vec<String> {
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
        in_group += members;
        if spec::option(job, "stats").is_some() && !spec::is_on(job, "stats") {
            continue;
        }
        for _ in 0..members {
            if !spec::is_on(job, "group_reporting") || last_group != Some(group) {
                last_group = Some(group);
                entries.push(job.name.clone());
            }
        }
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
    fn each_of_numjobs_reports_unless_its_group_does() {
        assert_eq!(of("[a]\nnumjobs=2\n[b]\n"), ["a", "a", "b"]);
        let grouped =
            "[global]\ngroup_reporting\nnumjobs=3\n[a]\n[b]\n[c]\nstonewall\n[d]\nnew_group\n";
        assert_eq!(of(grouped), ["a", "c", "d"]);
        assert_eq!(of("[a]\nstats=0\n[b]\n"), ["b"]);
    }
}
