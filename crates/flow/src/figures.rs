//! What a step outside of stages has measured, for scripts that decide by it.

use std::collections::BTreeSet;

use fathom_analysis::guard::MeasurementTotals;
use fathom_analysis::rate::PERCENTILES;
use fathom_model::{
    Direction, DirectionResult, EvidenceSum, Histogram, JobResult, Latency, Results,
};

/// The figures of a step outside of stages, all jobs together.
#[derive(Debug, Clone, PartialEq)]
pub struct StepFigures {
    /// Rates and mean latency, all directions together.
    pub totals: MeasurementTotals,
    /// Of all directions, then of each.
    pub latencies: Vec<LatencyFigures>,
    /// Longest run time of a direction, in ms.
    pub runtime_ms: u64,
    /// How busy the CPUs of the machine were, in percent of all of them; `None`: that
    /// could not be read.
    pub cpu_percent: Option<f64>,
}

/// Latencies, from the intended start under a rate.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyFigures {
    /// `None`: all directions together.
    pub dir: Option<Direction>,
    /// I/Os per second.
    pub iops: f64,
    /// Arithmetic mean, in ns.
    pub mean_ns: f64,
    /// (percent, ns), of the percentiles that engines report.
    pub percentiles_ns: Vec<(f64, u64)>,
}

impl LatencyFigures {
    fn of(dir: Option<Direction>, moved: &[(Direction, &DirectionResult)]) -> Option<Self> {
        let moved = moved
            .iter()
            .filter(|(of, _)| dir.is_none_or(|dir| dir == *of));
        let latencies: Vec<(u64, &Latency)> = moved
            .clone()
            .filter_map(|(_, result)| {
                let latency = match result.lag {
                    Some(_) => result.lat.as_ref(),
                    None => result.clat.as_ref().or(result.lat.as_ref()),
                };
                Some((result.total_ios, latency?))
            })
            .collect();
        let ios: u64 = latencies.iter().map(|(ios, _)| ios).sum();
        let waited: f64 = (latencies.iter())
            .map(|(ios, latency)| *ios as f64 * latency.mean_ns)
            .sum();
        let histograms: Option<Vec<_>> = latencies
            .iter()
            .map(|(_, it)| it.histogram.as_ref())
            .collect();
        let mut all = Histogram::new();
        histograms.iter().flatten().for_each(|one| all.merge(one));
        let percentile = |percent: f64| match &latencies[..] {
            [(_, one)] => one.percentile_ns(percent),
            _ if !all.is_empty() => all.percentile_ns(percent),
            // The slowest of them, where they cannot be merged.
            several => several
                .iter()
                .filter_map(|(_, it)| it.percentile_ns(percent))
                .max(),
        };
        let each = PERCENTILES.into_iter();
        (ios > 0).then(|| Self {
            dir,
            iops: moved.clone().map(|(_, result)| result.iops).sum(),
            mean_ns: waited / ios as f64,
            percentiles_ns: each
                .filter_map(|percent| Some((percent, percentile(percent)?)))
                .collect(),
        })
    }
}

impl StepFigures {
    pub(crate) fn of(results: &Results, evidence: &EvidenceSum) -> Option<Self> {
        let jobs = results.jobs.iter().filter(|job| !job.is_sum_of_clients());
        let moved: Vec<(Direction, &DirectionResult)> = jobs
            .flat_map(JobResult::directions)
            .filter(|(_, result)| result.total_ios > 0)
            .collect();
        let dirs: BTreeSet<Direction> = moved.iter().map(|(dir, _)| *dir).collect();
        let of = std::iter::once(None).chain(dirs.into_iter().map(Some));
        Some(Self {
            totals: MeasurementTotals::of(results)?,
            latencies: of
                .filter_map(|dir| LatencyFigures::of(dir, &moved))
                .collect(),
            runtime_ms: moved.iter().map(|(_, it)| it.runtime_ms).max().unwrap_or(0),
            cpu_percent: cpu_percent(evidence),
        })
    }

    /// I/Os per second of a direction whose latencies are known.
    pub fn iops_of(&self, dir: Direction) -> Option<f64> {
        let of = self.latencies.iter().find(|of| of.dir == Some(dir))?;
        Some(of.iops)
    }

    /// A latency of all directions, or of one, in ns: one of the percentiles that engines
    /// report, or the mean.
    pub fn latency_ns(&self, dir: Option<Direction>, percent: Option<f64>) -> Option<f64> {
        let of = self.latencies.iter().find(|of| of.dir == dir)?;
        let Some(percent) = percent else {
            return Some(of.mean_ns);
        };
        let mut all = of.percentiles_ns.iter();
        let found = all.find(|(known, _)| (known - percent).abs() < 1e-9)?;
        Some(found.1 as f64)
    }
}

/// How busy the CPUs were, by the times that the kernel counts (proc_stat(5)).
fn cpu_percent(evidence: &EvidenceSum) -> Option<f64> {
    let sum = |names: &[&str]| -> u64 {
        let counts = names.iter().map(|name| format!("cpu.{name}_ms"));
        counts.filter_map(|name| evidence.count(&name)).sum()
    };
    let idle = sum(&["idle", "iowait"]);
    let busy = sum(&["user", "nice", "system", "irq", "softirq", "steal"]);
    let all = idle + busy;
    (all > 0).then(|| 100.0 * busy as f64 / all as f64)
}
