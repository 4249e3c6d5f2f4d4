//! What was seen beside a figure, and which limits that rules out.

use std::ops::Add as _;

use serde::Serialize;

use super::{BUSY_PERCENT, StepLimit};
use crate::verdict::JudgedFigure;
use crate::verdict::rules::{link_use, waiting_share};

/// What was seen beside a figure; null where it was not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SeenOfStep {
    /// Share of the time in which the device, the busiest of several, had a request under way.
    pub device_busy_percent: Option<f64>,
    /// Requests under way at the devices on average.
    pub device_depth: Option<f64>,
    /// I/Os under way on average, by the job's own times.
    pub job_depth: Option<f64>,
    /// User and system time of the job, of one CPU.
    pub job_cpu_percent: Option<f64>,
    /// The busiest CPU of the machine, on average.
    pub busiest_cpu_percent: Option<f64>,
    /// Time in which a thread of the job could run and had no CPU.
    pub waiting_for_cpu_percent: Option<f64>,
    /// The hottest that the device was, in °C.
    pub device_celsius: Option<f64>,
}

impl SeenOfStep {
    /// Beside a figure.
    pub fn of(figure: &JudgedFigure) -> Self {
        let evidence = figure.evidence();
        let device = evidence.and_then(|it| it.devices("target").next());
        let gauge = |name: &str| evidence?.gauge(name);
        let clat = figure.result.clat.as_ref().or(figure.result.lat.as_ref());
        Self {
            device_busy_percent: of_devices(figure, "busy_ms", f64::max)
                .map(|share| (share * 100.0).min(100.0)),
            device_depth: of_devices(figure, "queue_ms", f64::add),
            job_depth: clat.map(|clat| figure.result.iops * clat.mean_ns / 1e9),
            job_cpu_percent: (figure.job.cpu.as_ref())
                .map(|cpu| cpu.user_percent + cpu.system_percent),
            busiest_cpu_percent: gauge("cpu.busiest_percent").map(|it| it.mean),
            waiting_for_cpu_percent: evidence
                .and_then(waiting_share)
                .map(|share| (share * 100.0).min(100.0)),
            device_celsius: device
                .and_then(|device| gauge(&format!("{device}.celsius")))
                .map(|it| it.max),
        }
    }
}

/// A count of times of the targets, per time of the job's I/O; those of several taken
/// together. `None` where no target counts it.
fn of_devices(figure: &JudgedFigure, name: &str, together: fn(f64, f64) -> f64) -> Option<f64> {
    let evidence = figure.evidence()?;
    let devices = evidence.devices("target");
    let counts = devices.filter_map(|device| evidence.count(&format!("{device}.{name}")));
    let shares = counts.map(|count| count as f64 / figure.io_ms(evidence));
    shares.reduce(together)
}

/// Limits that were looked for and not reached, each with what was seen, the first cause
/// first.
pub(super) fn ruled_out(figure: &JudgedFigure, limit: StepLimit, seen: &SeenOfStep) -> Vec<String> {
    if limit == StepLimit::NoDevice {
        return Vec::new();
    }
    let evidence = figure.evidence();
    let device = evidence.and_then(|it| it.devices("target").next());
    let not_throttled = evidence
        .filter(|it| it.count("cgroup.cpu_throttled_us") == Some(0))
        .map(|_| "cgroup (no limit was reached)".to_owned());
    let link = evidence
        .zip(device)
        .and_then(|(evidence, device)| link_use(figure, evidence, device))
        .map(|(name, share)| format!("link ({name}, {:.0} % used)", share * 100.0));
    let temperature = seen
        .device_celsius
        .map(|it| format!("temperature ({it:.0} °C)"));
    let cpu = (seen.job_cpu_percent).map(|it| format!("CPU (job {it:.0} % of one core)"));
    let busy = seen.device_busy_percent.filter(|&it| it < BUSY_PERCENT);
    let busy = busy.map(|it| format!("device (busy {it:.0} % of the time)"));
    let depth = figure.wanted_depth().filter(|&wanted| wanted > 1.0);
    let depth = (depth.zip(seen.job_depth))
        .map(|(wanted, had)| format!("queue depth ({had:.1} of {wanted:.0})"));
    let all = [
        (StepLimit::ControlGroup, not_throttled),
        (StepLimit::Link, link),
        (StepLimit::Temperature, temperature),
        (StepLimit::Cpu, cpu),
        (StepLimit::Device, busy),
        (StepLimit::Depth, depth),
    ];
    let others = all.into_iter().filter(|(of, _)| *of != limit);
    // Behind another limit the queue cannot be kept full, whatever its depth.
    let told = others.filter(|(of, _)| *of != StepLimit::Depth || limit == StepLimit::Device);
    told.filter_map(|(_, text)| text).collect()
}
