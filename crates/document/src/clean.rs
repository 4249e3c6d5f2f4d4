//! Makes figures of any engine's making fit to be shown: nothing that is not a
//! number, and no zeros that stand for "not measured".

use fathom_model::result::{CpuUse, Spread};
use fathom_model::{DirectionResult, DiskUse, JobResult, Latency};

use crate::fill_percentiles;

/// Cleans every figure of a job. One that has figures has them for reads,
/// writes and trims: what it did not do is 0 I/Os, which is a fact. One that
/// has none keeps none.
pub fn job(job: &mut JobResult) {
    if job.mixed.is_none() && job.directions().next().is_some() {
        for direction in [&mut job.read, &mut job.write, &mut job.trim] {
            direction.get_or_insert_default();
        }
    }
    directions_mut(job).for_each(clean_direction);
    clean_latency(&mut job.sync);
    job.cpu = job.cpu.take().filter(is_cpu_finite);
    job.iodepth_percent
        .retain(|(_, percent)| percent.is_finite());
}

/// Cleans what a disk did.
pub fn disk(disk: &mut DiskUse) {
    if !disk.util_percent.is_finite() {
        disk.util_percent = 0.0;
    }
}

/// The directions of a job that have figures.
pub fn directions_mut(job: &mut JobResult) -> impl Iterator<Item = &mut DirectionResult> {
    [&mut job.read, &mut job.write, &mut job.trim, &mut job.mixed]
        .into_iter()
        .flatten()
}

/// All latencies of a job.
pub fn latencies_mut(job: &mut JobResult) -> impl Iterator<Item = &mut Latency> {
    let JobResult {
        read,
        write,
        trim,
        mixed,
        sync,
        ..
    } = job;
    [read, write, trim, mixed]
        .into_iter()
        .flatten()
        .flat_map(|direction| {
            let DirectionResult {
                lag,
                slat,
                clat,
                lat,
                priorities,
                ..
            } = direction;
            let priorities = priorities.iter_mut().map(|prio| &mut prio.clat);
            [lag, slat, clat, lat]
                .into_iter()
                .flatten()
                .chain(priorities)
        })
        .chain(sync.iter_mut())
}

fn clean_direction(direction: &mut DirectionResult) {
    let per_second = |count: u64| match direction.runtime_ms {
        0 => 0.0,
        ms => count as f64 * 1000.0 / ms as f64,
    };
    let (iops, bw_bytes) = (
        per_second(direction.total_ios),
        per_second(direction.io_bytes),
    );
    if !direction.iops.is_finite() {
        direction.iops = iops;
    }
    if !direction.bw_bytes.is_finite() {
        direction.bw_bytes = bw_bytes;
    }
    clean_latency(&mut direction.lag);
    clean_latency(&mut direction.slat);
    clean_latency(&mut direction.clat);
    clean_latency(&mut direction.lat);
    direction.priorities.retain_mut(|priority| {
        let mut clat = Some(std::mem::take(&mut priority.clat));
        clean_latency(&mut clat);
        clat.map(|clat| priority.clat = clat).is_some()
    });
    clean_spread(&mut direction.bw_intervals);
    clean_spread(&mut direction.iops_intervals);
}

/// fio writes zeros where it measured no latency (`disable_clat`,
/// `gtod_reduce`): no I/O takes 0 ns, so they are taken out.
fn clean_latency(place: &mut Option<Latency>) {
    let Some(latency) = place else { return };
    if !latency.mean_ns.is_finite() {
        let histogram = latency.histogram.as_ref();
        latency.mean_ns = histogram.and_then(|h| h.mean_ns()).unwrap_or(0.0);
    }
    let nothing = latency.n == Some(0) || (latency.max_ns == 0 && latency.mean_ns == 0.0);
    if nothing {
        *place = None;
        return;
    }
    latency.stddev_ns = latency.stddev_ns.filter(|stddev| stddev.is_finite());
    latency
        .percentiles_ns
        .retain(|(percent, _)| percent.is_finite());
    fill_percentiles(latency);
}

fn clean_spread(place: &mut Option<Spread>) {
    *place = place.take().filter(|spread| {
        spread.n != Some(0)
            && [spread.min, spread.max, spread.mean]
                .iter()
                .all(|v| v.is_finite())
    });
    if let Some(spread) = place {
        spread.stddev = spread.stddev.filter(|stddev| stddev.is_finite());
    }
}

fn is_cpu_finite(cpu: &CpuUse) -> bool {
    cpu.user_percent.is_finite() && cpu.system_percent.is_finite()
}
