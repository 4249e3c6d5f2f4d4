//! The plots of fio's logs: each kind over time with a line for each job, the
//! percentiles of latencies over time, a heat map of them and their distribution;
//! of many jobs sums and bands, of several priorities each.
//!
//! What is drawn does not grow with the logs: a [`Timeline`] has as many slices as
//! a plot has columns, and every extreme stays in the shade from the lowest to the
//! highest value of each slice.

mod bands;
mod classes;
mod distribution;
mod heat;
mod lines;
mod percentiles;
#[cfg(test)]
mod tests;

use fathom_analysis::latlog::{DirectionTrack, Timeline};
use fathom_model::{Direction, LogKind, PrioColumn, units};

use fathom_sheet::chart::{Chart, ChartAxis, Ends, Panel, Quantity, Scale, Size};
use fathom_sheet::graph::{Graph, safe_path};

/// Size of these plots: what fio's own have on paper.
const SIZE: Size = Size {
    width: 900.0,
    height: 520.0,
};

/// A log of one job.
#[derive(Debug)]
pub struct JobLog {
    /// Name of its line: `job 1`.
    pub job: String,
    /// What it is a log of.
    pub kind: LogKind,
    /// What it says.
    pub timeline: Timeline,
    /// The same by the value of its priorities, where it has several.
    pub classes: Vec<(u16, Timeline)>,
    /// What those values are.
    pub prio: PrioColumn,
}

/// Logs that belong together.
#[derive(Debug)]
pub struct Logs {
    /// What the user called them; files are named after it.
    pub name: String,
    /// The logs, in the order of their jobs.
    pub logs: Vec<JobLog>,
    /// How far a value of the histogram logs may be from its bin's middle, in percent.
    pub bin_error_percent: Option<f64>,
    /// Draw a line for each job, however many there are.
    pub lines: bool,
}

/// All plots of some logs, in the order in which they are read.
pub fn of_logs(logs: &Logs) -> Vec<Graph> {
    let mut graphs = Vec::new();
    for kind in LogKind::ALL {
        if kind != LogKind::ClatHistograms {
            let jobs = logs.logs.iter().filter(|log| log.kind == kind).count();
            graphs.extend(match jobs > bands::LINES_MAX && !logs.lines {
                true => bands::of_kind(logs, kind),
                false => lines::of_kind(logs, kind),
            });
        }
    }
    for kind in distributed(logs) {
        // Slices are put together for these: all jobs are one.
        let of = logs.logs.iter().filter(|log| log.kind == kind);
        let timelines = of.map(|log| log.timeline.coarser(u64::MAX)).collect();
        let all = Timeline::of(timelines);
        graphs.extend(percentiles::of(logs, kind, &all));
        graphs.extend(heat::of(logs, kind, &all));
        graphs.extend(distribution::of(logs, kind, &all));
        graphs.extend(classes::of(logs, kind));
    }
    graphs
}

/// The kinds of which there are latencies of single I/Os: the whole ones, and those
/// of completions where there are histograms of them, or nothing else.
fn distributed(logs: &Logs) -> Vec<LogKind> {
    let is_there = |kind: LogKind| {
        logs.logs.iter().any(|log| {
            let mut tracks = log.timeline.tracks();
            log.kind == kind && tracks.any(|track| has_distribution(kind, track))
        })
    };
    let mut kinds = Vec::new();
    if is_there(LogKind::Lat) {
        kinds.push(LogKind::Lat);
    }
    if is_there(LogKind::ClatHistograms) {
        kinds.push(LogKind::ClatHistograms);
    } else if kinds.is_empty() && is_there(LogKind::Clat) {
        kinds.push(LogKind::Clat);
    }
    kinds
}

/// Means over windows have no distribution.
fn has_distribution(kind: LogKind, track: &DirectionTrack) -> bool {
    kind == LogKind::ClatHistograms || track.single
}

/// What a kind is called, in titles.
fn title(kind: LogKind) -> &'static str {
    match kind {
        LogKind::Bandwidth => "Bandwidth",
        LogKind::Iops => "IOPS",
        LogKind::Lat => "Latency",
        LogKind::Slat => "Submission latency",
        LogKind::Clat | LogKind::ClatHistograms => "Completion latency",
    }
}

fn graph(logs: &Logs, what: &str, chart: Chart, size: Size) -> Graph {
    Graph {
        path: format!("{}-{what}", safe_path(&logs.name)),
        chart,
        size,
    }
}

fn time_axis() -> ChartAxis {
    ChartAxis {
        title: "Time".to_owned(),
        quantity: Quantity::Time,
        scale: Scale::Time,
        ends: Ends::Values,
    }
}

fn latency_axis(title: &str) -> ChartAxis {
    ChartAxis {
        title: title.to_owned(),
        quantity: Quantity::Latency,
        // What matters of latencies is how many times as long they take.
        scale: Scale::Log10,
        ends: Ends::Ticks,
    }
}

/// The panels of a chart below each other, one for each direction, and its size.
fn by_direction(panels: Vec<(Direction, Panel)>, title: &str) -> (Vec<Panel>, Size) {
    let several = panels.len() > 1;
    let height = SIZE.height + 260.0 * panels.len().saturating_sub(1) as f64;
    let panels = panels.into_iter().map(|(dir, mut panel)| {
        if several {
            let dir = dir.title();
            panel.y.title = format!("{dir} {}", title.to_lowercase());
        }
        panel
    });
    (panels.collect(), Size { height, ..SIZE })
}

/// The jobs and I/Os that a plot is of: `3 jobs · 12.3M I/Os`.
fn subtitle(logs: &Logs, kind: LogKind) -> Vec<String> {
    let of: Vec<&JobLog> = logs.logs.iter().filter(|log| log.kind == kind).collect();
    let n: u64 = of
        .iter()
        .flat_map(|log| log.timeline.tracks().map(|track| track.n))
        .sum();
    let single = of
        .iter()
        .any(|log| log.timeline.tracks().any(|t| has_distribution(kind, t)));
    let what = if single { "I/Os" } else { "values" };
    let jobs = match of.len() {
        1 => String::new(),
        n => format!("{n} logs · "),
    };
    vec![format!("{jobs}{} {what}", units::count(n as f64))]
}

/// The middle of a slice in ms; of the last one, of what there is of it.
fn middle(timeline: &Timeline, place: usize) -> f64 {
    let span = timeline.span_ms();
    let begin = place as u64 * span;
    let end = (begin + span).min(timeline.end_ms.max(begin + 1));
    (begin + end) as f64 / 2.0
}
