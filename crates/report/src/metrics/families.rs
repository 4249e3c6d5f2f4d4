//! Which series there are, and what they mean.

use fathom_model::RunStatus;

use super::latency::LatencyCounts;
use super::text::{
    Exposition, Family,
    FamilyKind::{self, Counter, Gauge, Info},
    Labels, MetricsFormat, SeriesWriter, bound,
};
use super::{IoCounts, LEVELS, RunMetrics, word};

/// Percentiles of the last interval that are told.
const PERCENTILES: [(f64, &str); 4] = [(50.0, "50"), (99.0, "99"), (99.9, "99.9"), (100.0, "100")];
const STATUSES: [RunStatus; 4] = [
    RunStatus::Running,
    RunStatus::Complete,
    RunStatus::Interrupted,
    RunStatus::Failed,
];

/// A row of the table of families.
const fn of(
    name: &'static str,
    kind: FamilyKind,
    unit: &'static str,
    help: &'static str,
) -> Family {
    Family {
        name,
        kind,
        unit,
        help,
    }
}

/// Writes the series of a family that a run has.
type WriteSeries = fn(&RunMetrics, &Labels<'_>, &mut SeriesWriter<'_>);

/// All families, in the order in which they are told.
const FAMILIES: [(Family, WriteSeries); 23] = [
    (
        of("fathom_run", Info, "", "The run, and what measures it."),
        |run, base, series| run.describe(base, series),
    ),
    (
        of("fathom_run_tag", Info, "", "A tag of the run."),
        |run, base, series| {
            for (name, value) in run.header.tags() {
                series.value(&with(base, &[("tag", name), ("value", value)]), 1);
            }
        },
    ),
    (
        of(
            "fathom_run_status",
            Gauge,
            "",
            "1 for what the run is: running, complete, interrupted or failed.",
        ),
        |run, base, series| {
            for status in STATUSES {
                let is_it = u8::from(run.status == status);
                series.value(&with(base, &[("status", &word(&status))]), is_it);
            }
        },
    ),
    (
        of(
            "fathom_run_start_time_seconds",
            Gauge,
            "seconds",
            "When the run began, since 1970 UTC.",
        ),
        |run, base, series| {
            series.value(base, seconds(run.header.started_ms));
        },
    ),
    (
        of(
            "fathom_run_time_seconds",
            Gauge,
            "seconds",
            "End of the last interval since the run began.",
        ),
        |run, base, series| maybe(base, run.t_ms.map(seconds), series),
    ),
    (
        of("fathom_step", Info, "", "The step in progress."),
        |run, base, series| {
            if let Some((_, _, name)) = &run.step {
                series.value(&with(base, &[("step", name)]), 1);
            }
        },
    ),
    (
        of(
            "fathom_step_place",
            Gauge,
            "",
            "The place of the step in progress, from 1.",
        ),
        |run, base, series| {
            maybe(base, run.step.as_ref().map(|step| step.0), series);
        },
    ),
    (
        of(
            "fathom_steps_planned",
            Gauge,
            "",
            "How many steps the run, or its stage in progress, has.",
        ),
        |run, base, series| {
            maybe(base, run.step.as_ref().map(|step| step.1), series);
        },
    ),
    (
        of(
            "fathom_step_remaining_seconds",
            Gauge,
            "seconds",
            "Time left of the step in progress, where the engine knows.",
        ),
        |run, base, series| {
            maybe(base, run.remaining_ms.map(seconds), series);
        },
    ),
    (
        of(
            "fathom_steps_ended",
            Counter,
            "",
            "Steps that have ended, by how.",
        ),
        |run, base, series| {
            for (outcome, n) in &run.steps_ended {
                series.value(&with(base, &[("outcome", outcome)]), n);
            }
        },
    ),
    (
        of(
            "fathom_io_operations",
            Counter,
            "",
            "I/Os that were completed.",
        ),
        |run, base, series| run.counted(base, series, |io| io.ios),
    ),
    (
        of(
            "fathom_io_bytes",
            Counter,
            "bytes",
            "Bytes that I/Os moved.",
        ),
        |run, base, series| run.counted(base, series, |io| io.bytes),
    ),
    (
        of(
            "fathom_io_errors",
            Counter,
            "",
            "I/Os that failed and the job went on after, told at the end of each step; by direction where the engine counts so.",
        ),
        |run, base, series| {
            for ((name, host, dir), errors) in &run.errors {
                let dir = dir.map_or("", |dir| dir.name());
                let own = [
                    ("jobname", name.as_str()),
                    ("host", host),
                    ("direction", dir),
                ];
                series.value(&with(base, &own), errors);
            }
        },
    ),
    (
        of(
            "fathom_io_stalls",
            Counter,
            "",
            "Times in which a job did no I/O between two in which it did some.",
        ),
        |run, base, series| run.counted(base, series, |io| io.stalls),
    ),
    (
        of(
            "fathom_io_stalled_seconds",
            Counter,
            "seconds",
            "How long stalls took together.",
        ),
        |run, base, series| {
            run.each_series(base, |labels, io| {
                series.value(labels, seconds(io.stalled_ms))
            });
        },
    ),
    (
        of(
            "fathom_io_completion_latency_seconds",
            FamilyKind::Histogram,
            "seconds",
            "From the issue of an I/O to its completion.",
        ),
        |run, base, series| run.latencies(base, series, |io| io.clat.as_ref()),
    ),
    (
        of(
            "fathom_io_latency_seconds",
            FamilyKind::Histogram,
            "seconds",
            "From the intended start of an I/O to its completion, under a rate.",
        ),
        |run, base, series| run.latencies(base, series, |io| io.lat.as_ref()),
    ),
    (
        of(
            "fathom_interval_io_operations_per_second",
            Gauge,
            "",
            "I/Os per second of all jobs in the last interval.",
        ),
        |run, base, series| {
            for (dir, rate) in &run.last {
                series.value(&with(base, &[("direction", dir.name())]), rate.iops);
            }
        },
    ),
    (
        of(
            "fathom_interval_bytes_per_second",
            Gauge,
            "",
            "Bytes per second of all jobs in the last interval.",
        ),
        |run, base, series| {
            for (dir, rate) in &run.last {
                series.value(&with(base, &[("direction", dir.name())]), rate.bw_bytes);
            }
        },
    ),
    (
        of(
            "fathom_interval_completion_latency_seconds",
            Gauge,
            "seconds",
            "Percentiles of the completion latencies in the last interval.",
        ),
        |run, base, series| run.last_latencies(base, series),
    ),
    (
        of(
            "fathom_figures",
            Counter,
            "",
            "Figures of steps that have ended, by their verdict.",
        ),
        |run, base, series| {
            for (level, n) in LEVELS.iter().zip(run.verdicts) {
                series.value(&with(base, &[("verdict", level.name())]), n);
            }
        },
    ),
    (
        of(
            "fathom_figure_doubts",
            Counter,
            "",
            "Reasons against figures, by their kind.",
        ),
        |run, base, series| {
            for (kind, n) in &run.doubts {
                series.value(&with(base, &[("reason", &word(kind))]), n);
            }
        },
    ),
    (
        of(
            "fathom_failures",
            Counter,
            "",
            "What went wrong, by its kind.",
        ),
        |run, base, series| {
            for (kind, n) in &run.failures {
                series.value(&with(base, &[("kind", kind)]), n);
            }
        },
    ),
];

/// What the metrics of runs say now, each beside the device that it is about where there
/// are several (else empty).
pub fn exposition(runs: &[(&str, &RunMetrics)], format: MetricsFormat) -> String {
    let mut page = Exposition::new(format);
    for (family, write) in &FAMILIES {
        page.family(family, |series| {
            for (device, run) in runs {
                write(run, &vec![("device", *device)], series);
            }
        });
    }
    page.end()
}

/// These labels and more.
fn with<'l>(base: &Labels<'l>, more: &[(&'static str, &'l str)]) -> Labels<'l> {
    [&base[..], more].concat()
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

fn maybe(base: &Labels<'_>, value: Option<impl std::fmt::Display>, series: &mut SeriesWriter<'_>) {
    if let Some(value) = value {
        series.value(base, value);
    }
}

impl RunMetrics {
    fn describe(&self, base: &Labels<'_>, series: &mut SeriesWriter<'_>) {
        let (engine, version) = &self.engine;
        let labels = [
            ("run", self.id.as_str()),
            ("name", &self.header.name),
            ("command", &self.header.command),
            ("engine", engine),
            ("engine_version", version.as_deref().unwrap_or_default()),
            ("fathom_version", env!("CARGO_PKG_VERSION")),
        ];
        series.value(&with(base, &labels), 1);
    }

    /// Gives the counts of each job and direction with their labels.
    fn each_series(&self, base: &Labels<'_>, mut take: impl FnMut(&Labels<'_>, &IoCounts)) {
        for ((name, host, dir), counts) in &self.counts {
            let own = [
                ("jobname", name.as_str()),
                ("host", host),
                ("direction", dir.name()),
            ];
            take(&with(base, &own), counts);
        }
    }

    fn counted(&self, base: &Labels<'_>, series: &mut SeriesWriter<'_>, of: fn(&IoCounts) -> u64) {
        self.each_series(base, |labels, io| series.value(labels, of(io)));
    }

    fn latencies(
        &self,
        base: &Labels<'_>,
        series: &mut SeriesWriter<'_>,
        of: fn(&IoCounts) -> Option<&LatencyCounts>,
    ) {
        self.each_series(base, |labels, io| {
            let Some(latencies) = of(io) else { return };
            for (upto_s, n) in latencies.cumulative() {
                series.line("_bucket", &with(labels, &[("le", &bound(upto_s))]), n);
            }
            let total = latencies.total();
            series.line("_bucket", &with(labels, &[("le", "+Inf")]), total);
            series.line("_sum", labels, latencies.sum_s());
            series.line("_count", labels, total);
        });
    }

    fn last_latencies(&self, base: &Labels<'_>, series: &mut SeriesWriter<'_>) {
        for (dir, rate) in &self.last {
            for (percent, name) in PERCENTILES {
                if let Some(ns) = rate.clat.percentile_ns(percent) {
                    let own = [("direction", dir.name()), ("percentile", name)];
                    series.value(&with(base, &own), ns as f64 / 1e9);
                }
            }
        }
    }
}
