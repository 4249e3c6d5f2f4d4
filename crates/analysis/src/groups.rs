//! Aggregates per reporting group: fio's "Run status group" lines.

use std::collections::BTreeMap;

use fathom_model::{Direction, DirectionResult, GroupResult, JobResult};

/// One entry per step, group and direction that moved data, in that order.
///
/// As fio computes them (`stat.c`, `__show_run_stats`): the aggregate is the
/// group's bytes over its longest run time, so it is lower than the sum of the
/// jobs' bandwidths when they did not run side by side for all of the time.
pub fn groups<'j>(jobs: impl IntoIterator<Item = &'j JobResult>) -> Vec<GroupResult> {
    let mut steps: Vec<Option<&str>> = Vec::new();
    let mut found: BTreeMap<(usize, u32, Direction), GroupResult> = BTreeMap::new();
    for job in jobs {
        if job.is_sum_of_clients() {
            continue;
        }
        let step = job.step.as_deref();
        let place = steps.iter().position(|s| *s == step).unwrap_or_else(|| {
            steps.push(step);
            steps.len() - 1
        });
        for (dir, result) in job.directions() {
            if result.runtime_ms == 0 {
                continue;
            }
            found
                .entry((place, job.group, dir))
                .and_modify(|group| add(group, result))
                .or_insert_with(|| first(job, dir, result));
        }
    }
    let mut groups: Vec<_> = found.into_values().collect();
    for group in &mut groups {
        let seconds = group.runtime_ms_max as f64 / 1000.0;
        group.iops = group.total_ios as f64 / seconds;
        group.bw_bytes = group.io_bytes as f64 / seconds;
    }
    groups
}

fn first(job: &JobResult, dir: Direction, result: &DirectionResult) -> GroupResult {
    GroupResult {
        step: job.step.clone(),
        group: job.group,
        dir,
        total_ios: result.total_ios,
        iops: 0.0,
        io_bytes: result.io_bytes,
        bw_bytes: 0.0,
        bw_bytes_min: result.bw_bytes,
        bw_bytes_max: result.bw_bytes,
        runtime_ms_min: result.runtime_ms,
        runtime_ms_max: result.runtime_ms,
    }
}

fn add(group: &mut GroupResult, result: &DirectionResult) {
    group.total_ios = group.total_ios.saturating_add(result.total_ios);
    group.io_bytes = group.io_bytes.saturating_add(result.io_bytes);
    group.bw_bytes_min = group.bw_bytes_min.min(result.bw_bytes);
    group.bw_bytes_max = group.bw_bytes_max.max(result.bw_bytes);
    group.runtime_ms_min = group.runtime_ms_min.min(result.runtime_ms);
    group.runtime_ms_max = group.runtime_ms_max.max(result.runtime_ms);
}
