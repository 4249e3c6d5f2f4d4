//! A baseline as one side: it knows the IOPS of tests, reads and writes together.

use std::collections::BTreeMap;

use fathom_model::{DirectionResult, JobResult, Results};

use super::ComparedRun;

/// A baseline as a run of one job for each test.
pub fn of_baseline(name: &str, iops: &BTreeMap<String, u64>) -> ComparedRun {
    let tests = iops.iter().map(|(test, &iops)| {
        let of = DirectionResult {
            total_ios: iops,
            iops: iops as f64,
            ..DirectionResult::default()
        };
        job(test, of)
    });
    let mut doc = fathom_document::of_results(&Results {
        jobs: tests.collect(),
        ..Results::default()
    });
    // Its figures are those of a run that has ended.
    doc.status = fathom_model::RunStatus::Complete;
    name.clone_into(&mut doc.id);
    ComparedRun {
        doc,
        started_ms: 0,
        dir: None,
    }
}

/// A run as a baseline has it: the IOPS of each step, or of each job where it has no
/// steps.
pub fn as_baseline(run: &ComparedRun) -> ComparedRun {
    let mut tests: Vec<(String, DirectionResult, i32)> = Vec::new();
    for job in run.doc.jobs.iter().filter(|job| !job.is_sum_of_clients()) {
        let name = job.step.as_ref().unwrap_or(&job.name);
        let place = tests.iter().position(|(test, ..)| test == name);
        let place = place.unwrap_or_else(|| {
            tests.push((name.clone(), DirectionResult::default(), 0));
            tests.len() - 1
        });
        let (_, sum, error) = &mut tests[place];
        if job.has_failed() {
            *error = job.error;
        }
        for (_, result) in job.directions() {
            sum.total_ios += result.total_ios;
            sum.iops += result.iops;
            sum.told.extend(result.kinds());
        }
    }
    let jobs = tests.into_iter().map(|(name, sum, error)| JobResult {
        error,
        ..job(&name, sum)
    });
    let mut doc = run.doc.clone();
    doc.jobs = jobs.collect();
    ComparedRun {
        doc,
        started_ms: run.started_ms,
        dir: None,
    }
}

fn job(name: &str, sum: DirectionResult) -> JobResult {
    JobResult {
        name: name.to_owned(),
        step: Some(name.to_owned()),
        mixed: Some(sum),
        ..JobResult::default()
    }
}
