//! The figures of the jobs: rates, and latencies.

use fathom_model::histogram::FIO_SATURATION_NS;
use fathom_model::{DirectionResult, Host, JobResult, Latency, ReasonKind, RunDocument, units};

use super::Marks;
use fathom_document::certainty;
use fathom_sheet::grid::{Column, Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone, wrap};

/// Options that say what a job did, in the order in which people say it.
pub(super) const TELLING: [&str; 24] = [
    "rw",
    "readwrite",
    "rwmixread",
    "rwmixwrite",
    "bs",
    "blocksize",
    "bsrange",
    "bssplit",
    "ioengine",
    "iodepth",
    "numjobs",
    "direct",
    "sync",
    "fsync",
    "fdatasync",
    "end_fsync",
    "size",
    "runtime",
    "ramp_time",
    "rate",
    "rate_iops",
    "thinktime",
    "filename",
    "directory",
];
/// Percentiles with a column.
const PERCENTS: [(f64, &str, u8); 5] = [
    (50.0, "p50", 0),
    (90.0, "p90", 2),
    (99.0, "p99", 0),
    (99.9, "p99.9", 0),
    (99.99, "p99.99", 1),
];

/// A block for each job.
pub fn blocks(doc: &RunDocument, marks: &Marks, style: Style) -> String {
    let mut step = None;
    let mut blocks = Vec::new();
    for job in &doc.jobs {
        let mut text = String::new();
        if job.step != step {
            step.clone_from(&job.step);
            let title = format!("── {} ──", step.as_deref().unwrap_or_default());
            text += &format!("{}\n", style.paint(Tone::Faint, &title));
        }
        text += &format!("{}\n", style.paint(Tone::Strong, &title(job, &doc.hosts)));
        for line in wrap(&settings(job), style.columns().saturating_sub(2)) {
            text += &format!("  {}\n", style.paint(Tone::Faint, &line));
        }
        let mut rates = Grid::new(rate_columns(""));
        rate_lines(&mut rates, job, "", marks);
        text += &rates.render(style);
        let mut latencies = Grid::new(latency_columns("", ""));
        for (name, latency, doubts) in every_latency(job) {
            let unit = LatencyUnit::fitting([latency]);
            // As a mark: a name that is cut keeps it.
            let label = GridCell::from(name).marked(Tone::Plain, format!(", {}", unit.name));
            latencies.line(latency_cells(label, "", latency, doubts, marks, unit));
        }
        text += &latencies.render(style);
        blocks.push(text);
    }
    blocks.join("\n")
}

/// A line for each job and direction: first the rates of all, then the latencies.
pub fn lines(doc: &RunDocument, marks: &Marks, style: Style) -> String {
    let mut rates = Grid::new(rate_columns("job"));
    let shown = || {
        doc.jobs
            .iter()
            .flat_map(|job| main_latency(job).map(move |l| (job, l)))
    };
    let unit = LatencyUnit::fitting(shown().map(|(_, (_, latency, _))| latency));
    let title = match unit.name {
        "ns" => "latency, ns",
        "µs" => "latency, µs",
        "ms" => "latency, ms",
        _ => "latency, s",
    };
    let mut latencies = Grid::new(latency_columns(title, " "));
    let mut step = None;
    for job in &doc.jobs {
        if job.step != step {
            step.clone_from(&job.step);
            rates.heading(step.as_deref().unwrap_or_default());
            latencies.heading(step.as_deref().unwrap_or_default());
        }
        let name = job.title(&doc.hosts);
        rate_lines(&mut rates, job, &name, marks);
        for (dir, latency, doubts) in main_latency(job) {
            latencies.line(latency_cells(
                GridCell::from(name.as_str()),
                &dir,
                latency,
                doubts,
                marks,
                unit,
            ));
        }
    }
    if shown().next().is_none() {
        return rates.render(style);
    }
    format!("{}\n{}", rates.render(style), latencies.render(style))
}

/// Name, host and description of a job.
fn title(job: &JobResult, hosts: &[Host]) -> String {
    let mut title = job.title(hosts);
    if let Some(description) = &job.description {
        title += &format!(" ({description})");
    }
    title
}

/// The telling options of a job, as a job file has them.
fn settings(job: &JobResult) -> String {
    let told = TELLING.iter().filter_map(|&name| {
        let value = job.options.get(name)?;
        Some(if value.is_empty() {
            name.to_owned()
        } else {
            format!("{name}={value}")
        })
    });
    told.collect::<Vec<_>>().join(" ")
}

/// The telling options that all jobs share.
pub fn shared_settings(jobs: &[JobResult]) -> String {
    let Some((first, others)) = jobs.split_first() else {
        return String::new();
    };
    let mut common = JobResult {
        options: first.options.clone(),
        ..JobResult::default()
    };
    common.options.retain(|name, value| {
        others
            .iter()
            .all(|job| job.options.get(name) == Some(value))
    });
    settings(&common)
}

fn rate_columns(label: &'static str) -> [Column; 8] {
    [
        words(label, 0),
        words("", 0),
        figures("IOPS", 0),
        figures("bandwidth", 0),
        figures("moved", 3),
        figures("run time", 2),
        figures("CPU usr+sys", 1),
        figures("errors", 0),
    ]
}

fn rate_lines(grid: &mut Grid, job: &JobResult, label: &str, marks: &Marks) {
    let mut cpu = job.cpu.as_ref().map_or_else(GridCell::default, |cpu| {
        format!("{:.1} + {:.1} %", cpu.user_percent, cpu.system_percent).into()
    });
    let mut active = active(job).peekable();
    if active.peek().is_none() {
        let known = job.directions().next().is_some();
        let word = if known { "no I/O" } else { "no figures" };
        let word = GridCell::new(Tone::Bad, word);
        let mut cells = match label {
            "" => vec![word, GridCell::default()],
            _ => vec![GridCell::from(label), word],
        };
        cells.resize_with(6, GridCell::default);
        cells.extend([cpu, errors(job)]);
        grid.line(cells);
        return;
    }
    let mut errors = errors(job);
    for (dir, result) in active {
        let rate_doubts: Vec<ReasonKind> = result
            .kinds()
            .into_iter()
            .filter(|&doubt| doubt != ReasonKind::SaturatedPercentiles)
            .collect();
        let signs = marks.signs(&rate_doubts);
        let iops = if result.is(ReasonKind::UnknownCounts) {
            GridCell::from("–")
        } else {
            GridCell::new(Tone::Strong, units::count(result.iops))
        };
        let (tone, sure) = match signs.is_empty() {
            true => (Tone::Plain, result.certainty.map(|rates| rates.iops)),
            // A figure that is doubtful for another reason has no ±.
            false => (Tone::Doubtful, None),
        };
        let sure = certainty::share(result.iops, sure);
        let (label, dir) = if label.is_empty() {
            (dir, "")
        } else {
            (label, dir)
        };
        grid.line([
            GridCell::from(label),
            GridCell::from(dir),
            iops.marked(tone, format!("{sure}{signs}")),
            GridCell::from(units::bytes_per_second(result.bw_bytes)).marked(Tone::Doubtful, signs),
            GridCell::from(units::bytes(result.io_bytes as f64)),
            GridCell::from(units::duration(result.runtime_ms)),
            std::mem::take(&mut cpu),
            std::mem::take(&mut errors),
        ]);
    }
}

/// The directions that did something.
pub fn active(job: &JobResult) -> impl Iterator<Item = (&'static str, &DirectionResult)> {
    job.directions()
        .filter(|(_, result)| result.total_ios > 0 || result.io_bytes > 0)
        .map(|(dir, result)| (dir.name(), result))
}

/// How many I/Os failed, where that is known; else the error that ended the job.
/// Samples tell of no errors: that there were none is not known then.
fn errors(job: &JobResult) -> GridCell {
    let sampled = |(_, r): (_, &DirectionResult)| r.is(ReasonKind::FromSamples);
    let unknown = job.directions().next().is_none() || job.directions().any(sampled);
    match (job.total_errors, job.error) {
        (None, 0) if unknown => GridCell::default(),
        (None | Some(0), 0) => GridCell::from("0"),
        (None | Some(0), errno) => GridCell::new(Tone::Bad, format!("errno {errno}")),
        (Some(count), _) => GridCell::new(Tone::Bad, count.to_string()),
    }
}

/// Names of the latencies of a job under a rate.
const FROM_ISSUE: &str = "clat from issue";
const FROM_START: &str = "lat from intended start";

/// Name, latency and doubts.
pub(crate) type LatencyRow<'j> = (String, &'j Latency, Vec<ReasonKind>);

/// Every latency of a job with its name.
pub(crate) fn every_latency(job: &JobResult) -> Vec<LatencyRow<'_>> {
    let mut rows: Vec<LatencyRow> = Vec::new();
    for (dir, result) in active(job) {
        // Under a rate the two are told apart where they are read.
        let (clat, lat) = match result.lag {
            Some(_) => (FROM_ISSUE, FROM_START),
            None => ("clat", "lat"),
        };
        for (kind, latency) in [
            ("lag", &result.lag),
            ("slat", &result.slat),
            (clat, &result.clat),
            (lat, &result.lat),
        ] {
            if let Some(latency) = latency {
                rows.push((format!("{dir} {kind}"), latency, result.kinds()));
            }
        }
        for priority in &result.priorities {
            let name = format!("{dir} clat {}", priority_name(priority.value));
            rows.push((name, &priority.clat, result.kinds()));
        }
    }
    if let Some(sync) = &job.sync {
        rows.push(("sync".into(), sync, Vec::new()));
    }
    rows
}

/// The completion latency of each direction, else the total one; under a rate
/// both, each with its name.
fn main_latency(job: &JobResult) -> impl Iterator<Item = LatencyRow<'_>> {
    active(job).flat_map(|(dir, result)| {
        let kinds = match (&result.clat, &result.lat) {
            (clat, lat) if result.lag.is_some() => {
                let name = |kind| format!("{dir} {kind}");
                [
                    (name(FROM_START), lat.as_ref()),
                    (name(FROM_ISSUE), clat.as_ref()),
                ]
            }
            (clat, lat) => [
                (dir.to_owned(), clat.as_ref().or(lat.as_ref())),
                (String::new(), None),
            ],
        };
        let shown = kinds.into_iter();
        shown.filter_map(|(name, latency)| Some((name, latency?, result.kinds())))
    })
}

/// Class and level of an I/O priority (`ioprio_get(2)`): `rt/0`, `be/4`, `idle`.
fn priority_name(value: u16) -> String {
    let hint = match (value >> 3) & 0x3ff {
        0 => String::new(),
        hint => format!(" hint {hint}"),
    };
    let level = value & 7;
    match value >> 13 {
        0 => format!("none{hint}"),
        1 => format!("rt/{level}{hint}"),
        2 => format!("be/{level}{hint}"),
        _ => format!("idle{hint}"),
    }
}

fn latency_columns(label: &'static str, dir: &'static str) -> Vec<Column> {
    let mut columns = vec![words(label, 0), words(dir, 0), figures("mean ± 95 %", 0)];
    columns.extend([figures("stddev", 4), figures("min", 5)]);
    columns.extend(PERCENTS.map(|(_, title, spare)| figures(title, spare)));
    columns.push(figures("max", 0));
    columns
}

fn latency_cells(
    label: GridCell,
    dir: &str,
    latency: &Latency,
    doubts: Vec<ReasonKind>,
    marks: &Marks,
    unit: LatencyUnit,
) -> Vec<GridCell> {
    let saturated = doubts.contains(&ReasonKind::SaturatedPercentiles);
    let figure = |ns: f64| GridCell::from(unit.figure(ns));
    let (mean, error) = unit.mean(latency);
    let error = format!("{error}{}", marks.signs(&doubts));
    let mut cells = vec![
        label,
        GridCell::from(dir),
        GridCell::new(Tone::Strong, mean).marked(Tone::Plain, error),
        latency.stddev_ns.map_or_else(GridCell::default, figure),
        figure(latency.min_ns as f64),
    ];
    cells.extend(PERCENTS.map(|(percent, ..)| {
        let Some(ns) = latency.percentile_ns(percent) else {
            return GridCell::default();
        };
        // The last bucket of fio's histogram begins here (`stat.h`).
        let bound = saturated && ns >= FIO_SATURATION_NS - (FIO_SATURATION_NS >> 7);
        let sign = if bound { "≥" } else { "" };
        GridCell::from(format!("{sign}{}", unit.figure(ns as f64)))
    }));
    cells.push(figure(latency.max_ns as f64));
    cells
}

/// The unit of a line of latencies: one for all of its figures, so that they
/// compare at a glance.
#[derive(Debug, Clone, Copy)]
struct LatencyUnit {
    ns: f64,
    name: &'static str,
}

impl LatencyUnit {
    const ALL: [Self; 4] = [
        Self { ns: 1e9, name: "s" },
        Self {
            ns: 1e6,
            name: "ms",
        },
        Self {
            ns: 1e3,
            name: "µs",
        },
        Self {
            ns: 1.0,
            name: "ns",
        },
    ];

    /// The largest unit in which the smallest of the means is at least 1.
    fn fitting<'l>(latencies: impl IntoIterator<Item = &'l Latency>) -> Self {
        let means = latencies.into_iter().map(|latency| latency.mean_ns);
        let least = means.fold(f64::INFINITY, f64::min);
        let fits = |unit: &&Self| least.is_finite() && least >= unit.ns;
        *Self::ALL.iter().find(fits).unwrap_or(&Self::ALL[3])
    }

    /// About three digits.
    fn figure(self, ns: f64) -> String {
        let value = ns / self.ns;
        let decimals = match value {
            _ if self.ns <= 1.0 || value >= 99.95 => 0,
            v if v >= 9.995 => 1,
            _ => 2,
        };
        format!("{value:.decimals$}")
    }

    /// The mean, and ` ± ` half of its 95 % interval rounded up to one digit, where one
    /// is told.
    fn mean(self, latency: &Latency) -> (String, String) {
        let value = latency.mean_ns / self.ns;
        let certainty = latency.certainty.as_ref();
        let Some(error) = certainty
            .and_then(|certainty| certainty.mean_ns.half_width())
            .filter(|error| error.is_finite())
        else {
            return (self.figure(latency.mean_ns), String::new());
        };
        let error = error / self.ns;
        let decimals = (0..3).find(|&d| error >= 10f64.powi(-d)).unwrap_or(3);
        let scale = 10f64.powi(decimals);
        let error = ((error * scale).ceil().max(1.0)) / scale;
        let decimals = usize::try_from(decimals).unwrap_or(0);
        (
            format!("{value:.decimals$}"),
            format!(" ± {error:.decimals$}"),
        )
    }
}
