//! One kind of log over time, a line for each job.

use std::collections::BTreeSet;

use fathom_analysis::latlog::{DirectionTrack, Timeline, TimelineSlice};
use fathom_model::{Direction, LogKind, units};
use fathom_sheet::chart::palette::{CURVES, Dash, Ink, Srgb, of_direction};
use fathom_sheet::chart::{Chart, ChartAxis, Ends, Layer, Panel, Quantity, Scale, Shape};
use fathom_sheet::graph::Graph;

use super::{JobLog, Logs, SIZE, graph, latency_axis, middle, subtitle, time_axis, title};

/// Points of all lines together: beyond, the picture would grow and not what is seen.
const POINTS_MAX: usize = 40_000;
/// Means of one line, and of each of several: between more, lines hide each other.
const MEANS_MAX: usize = 500;
const MEANS_OF_SEVERAL: usize = 200;
/// Slices whose extremes make the shade: more than there are columns of pixels.
const SHADE_MAX: usize = 1024;
/// Lines with a shade of their own each.
const SHADES_MAX: usize = 3;
/// Lines with a name in the legend; more would fill the picture.
const NAMES_MAX: usize = 30;
/// I/Os that a slice is to have on average where they are counted: with n, the
/// count of a steady rate varies by 1/√n.
pub(super) const COUNTED: u64 = 25;
/// Around the shade that all lines have together.
const SHADE: Srgb = Srgb(0x80, 0x86, 0x90);

/// A line.
struct LogLine<'l> {
    log: &'l JobLog,
    track: &'l DirectionTrack,
    name: String,
    ink: Ink,
}

/// What a line shows.
struct Drawn {
    points: Vec<(f64, f64)>,
    /// From the lowest to the highest value.
    shade: Vec<(f64, f64, f64)>,
    /// How long a slice is; `None` where every line of the log is a point.
    span_ms: Option<u64>,
}

/// The plot of a kind; `None` without logs of it that say anything.
pub(super) fn of_kind(logs: &Logs, kind: LogKind) -> Option<Graph> {
    let lines = lines(logs, kind);
    if lines.is_empty() {
        return None;
    }
    // A bandwidth or rate of a single I/O says nothing: those are counted.
    let counted = |line: &LogLine| !kind.is_latency() && line.track.single;
    let room = POINTS_MAX / lines.len();
    let means = match lines.len() {
        1 => MEANS_MAX,
        _ => MEANS_OF_SEVERAL,
    };
    let means = means.min(room).max(16);
    let drawn: Vec<Drawn> = lines
        .iter()
        .map(|line| match counted(line) {
            true => count(kind, &line.log.timeline, line.track, means),
            false => values(kind, &line.log.timeline, line.track, room, means),
        })
        .collect();
    let mut panel = Panel::new(time_axis(), axis(kind));
    let (of_ios, of_windows) = lines
        .iter()
        .zip(&drawn)
        .partition::<Vec<_>, _>(|(line, _)| counted(line));
    let footer = [(true, of_ios), (false, of_windows)]
        .into_iter()
        .filter_map(|(counted, drawn)| told(kind, counted, drawn.into_iter().map(|(_, d)| d)))
        .collect();
    if lines.len() <= SHADES_MAX {
        for (line, drawn) in lines.iter().zip(&drawn) {
            panel.layers.extend(shade(drawn.shade.clone(), line.ink));
        }
    } else {
        panel.layers.extend(shade(around(&drawn), Ink::new(SHADE)));
    }
    let named = lines.len() > 1 && lines.len() <= NAMES_MAX;
    for (line, drawn) in lines.into_iter().zip(drawn) {
        panel.layers.push(Layer {
            name: named.then_some(line.name),
            shape: Shape::Line(drawn.points),
            ink: line.ink,
        });
    }
    let chart = Chart {
        title: format!("{} over time · {}", title(kind), logs.name),
        subtitle: subtitle(logs, kind),
        panels: vec![panel],
        footer,
        ..Chart::default()
    };
    Some(graph(logs, kind.word(), chart, SIZE))
}

/// The lines: jobs, and directions where there are several.
fn lines(logs: &Logs, kind: LogKind) -> Vec<LogLine<'_>> {
    let of: Vec<&JobLog> = logs.logs.iter().filter(|log| log.kind == kind).collect();
    let mut pairs: Vec<(&JobLog, &DirectionTrack)> = Vec::new();
    for &log in &of {
        pairs.extend(log.timeline.tracks().map(|track| (log, track)));
    }
    let first: Option<Direction> = pairs.first().map(|(_, track)| track.dir);
    let mixed = pairs.iter().any(|(_, track)| Some(track.dir) != first);
    let several = of.len() > 1;
    pairs
        .into_iter()
        .enumerate()
        .map(|(place, (log, track))| {
            let dir = track.dir.title().to_lowercase();
            let name = match (several, mixed) {
                (false, _) => dir,
                (true, false) => log.job.clone(),
                (true, true) => format!("{} {dir}", log.job),
            };
            let ink = match several {
                true => ink(place, &of, log, mixed.then_some(track.dir)),
                false => Ink::new(of_direction(track.dir)),
            };
            LogLine {
                log,
                track,
                name,
                ink,
            }
        })
        .collect()
}

/// Jobs differ by colour and, when there are both, writes from reads by dashes; of
/// more jobs than colours, each line is as different as can be.
fn ink(place: usize, jobs: &[&JobLog], log: &JobLog, dir: Option<Direction>) -> Ink {
    let job = jobs.iter().position(|&other| std::ptr::eq(other, log));
    let job = job.unwrap_or(0);
    match dir {
        _ if jobs.len() > CURVES.len() => Ink::of_place(place),
        Some(Direction::Read) | None => Ink::new(CURVES[job]),
        Some(_) => Ink {
            dash: Dash::Dashed,
            ..Ink::new(CURVES[job])
        },
    }
}

pub(super) fn axis(kind: LogKind) -> ChartAxis {
    let quantity = match kind {
        LogKind::Bandwidth => Quantity::BytesPerSecond,
        LogKind::Iops => Quantity::Rate,
        _ => return latency_axis(title(kind)),
    };
    ChartAxis {
        title: title(kind).to_owned(),
        quantity,
        scale: Scale::Linear,
        ends: Ends::Ticks,
    }
}

/// Logs of bandwidth are in KiB/s.
pub(super) fn scaled(kind: LogKind, value: f64) -> f64 {
    match kind {
        LogKind::Bandwidth => value * 1024.0,
        _ => value,
    }
}

/// The values as they are, or the mean and the extremes of each slice.
fn values(
    kind: LogKind,
    timeline: &Timeline,
    track: &DirectionTrack,
    room: usize,
    means: usize,
) -> Drawn {
    if !track.points.is_empty() && track.points.len() <= room {
        let point = |&(ms, value): &(u64, u64)| (ms as f64, scaled(kind, value as f64));
        return Drawn {
            points: track.points.iter().map(point).collect(),
            shade: Vec::new(),
            span_ms: None,
        };
    }
    let coarse = timeline.coarser(means as u64);
    let fine = timeline.coarser(room.clamp(16, SHADE_MAX) as u64);
    let mean = |x: f64, slice: &TimelineSlice| Some((x, scaled(kind, slice.mean()?)));
    let extremes = |x: f64, slice: &TimelineSlice| {
        let (low, high) = (slice.low.1 as f64, slice.high.1 as f64);
        (slice.n > 0).then(|| (x, scaled(kind, low), scaled(kind, high)))
    };
    Drawn {
        points: over_time(&coarse, track.dir, mean),
        shade: over_time(&fine, track.dir, extremes),
        span_ms: Some(coarse.span_ms()),
    }
}

/// What each slice of a direction says, at its middle.
fn over_time<T>(
    timeline: &Timeline,
    dir: Direction,
    says: impl Fn(f64, &TimelineSlice) -> Option<T>,
) -> Vec<T> {
    let track = timeline.tracks().find(|track| track.dir == dir);
    let slices = track.map_or(&[][..], |track| &track.slices);
    let slices = slices.iter().enumerate();
    slices
        .filter_map(|(place, slice)| says(middle(timeline, place), slice))
        .collect()
}

/// I/Os or bytes per second, counted in slices that have enough of them.
fn count(kind: LogKind, timeline: &Timeline, track: &DirectionTrack, means: usize) -> Drawn {
    let wanted = (track.n / COUNTED).clamp(16, means as u64);
    let coarse = timeline.coarser(wanted);
    let found = coarse.tracks().find(|coarse| coarse.dir == track.dir);
    let slices = found.map_or(&[][..], |track| &track.slices);
    let span = coarse.span_ms();
    let rate = |(place, slice): (usize, &TimelineSlice)| {
        let begin = place as u64 * span;
        let there = span.min(timeline.end_ms.saturating_sub(begin));
        // Too little of the last slice is there to say its rate.
        if there * 2 < span {
            return None;
        }
        let amount = match kind {
            LogKind::Bandwidth => slice.bytes as f64,
            _ => slice.n as f64,
        };
        Some((middle(&coarse, place), amount * 1000.0 / there as f64))
    };
    Drawn {
        points: slices.iter().enumerate().filter_map(rate).collect(),
        shade: Vec::new(),
        span_ms: Some(span),
    }
}

fn shade(spans: Vec<(f64, f64, f64)>, ink: Ink) -> Option<Layer> {
    (spans.len() > 1).then_some(Layer {
        name: None,
        shape: Shape::Band(spans),
        ink,
    })
}

/// The lowest and the highest of all lines: of slices of the same time, which they
/// are when all are reduced alike; else of neighbours.
fn around(drawn: &[Drawn]) -> Vec<(f64, f64, f64)> {
    let mut all: Vec<(f64, f64, f64)> = drawn
        .iter()
        .flat_map(|drawn| drawn.shade.iter().copied())
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let span = drawn.iter().filter_map(|drawn| drawn.span_ms).max();
    let span = span.unwrap_or(1) as f64;
    let mut joined: Vec<(f64, f64, f64)> = Vec::new();
    for (x, low, high) in all {
        match joined.last_mut() {
            Some(last) if (last.0 / span).floor() == (x / span).floor() => {
                *last = (last.0, last.1.min(low), last.2.max(high));
            }
            _ => joined.push((x, low, high)),
        }
    }
    joined
}

/// What a point of these lines is; `None` where each is a line of the log.
fn told<'d>(
    kind: LogKind,
    counted: bool,
    drawn: impl Iterator<Item = &'d Drawn>,
) -> Option<String> {
    let spans: BTreeSet<u64> = drawn.filter_map(|drawn| drawn.span_ms).collect();
    let (shortest, longest) = (spans.first()?, spans.last()?);
    let mut span = units::duration(*longest);
    if shortest < longest {
        span = format!(
            "{} to {span}, as there are I/Os",
            units::duration(*shortest)
        );
    }
    Some(match (counted, kind) {
        (true, LogKind::Bandwidth) => format!("counted: the bytes of the I/Os of each {span}"),
        (true, _) => format!("counted: the I/Os of each {span}"),
        (false, _) => format!("line: mean of each {span}; shade: from the lowest to the highest"),
    })
}
