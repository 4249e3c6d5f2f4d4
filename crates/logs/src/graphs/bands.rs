//! Many jobs over time: what they do together, and how far they are apart. Lines of
//! more than a few hide each other.

use std::collections::BTreeMap;

use fathom_analysis::latlog::Timeline;
use fathom_model::{Direction, LogKind, units};
use fathom_sheet::chart::palette::{Dash, Ink, Srgb, of_direction};
use fathom_sheet::chart::{Chart, Layer, Panel, Shape, Size};
use fathom_sheet::graph::Graph;

use super::lines::{COUNTED, axis, scaled};
use super::{JobLog, Logs, SIZE, graph, subtitle, time_axis, title};

/// Jobs that have a line each; of more there are sums and bands.
pub(super) const LINES_MAX: usize = 8;
/// Steps of a picture at most.
const STEPS_MAX: u64 = 500;
/// And at least.
const STEPS_MIN: u64 = 16;
/// The jobs between which a band lies, as shares of all.
const BAND: (f64, f64) = (0.1, 0.9);
/// Around the band: from the lowest to the highest value of any job.
const SHADE: Srgb = Srgb(0x80, 0x86, 0x90);

/// What the jobs did in each step: the value of every job that ran then, and the
/// lowest and highest value of any.
#[derive(Default)]
struct JobsStep {
    jobs: Vec<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// The plot of a kind.
pub(super) fn of_kind(logs: &Logs, kind: LogKind) -> Option<Graph> {
    let of: Vec<&JobLog> = logs.logs.iter().filter(|log| log.kind == kind).collect();
    let step_ms = step_ms(kind, &of);
    let mut each = Panel::new(time_axis(), axis(kind));
    let mut sums = Panel::new(time_axis(), axis(kind));
    let mut directions: Vec<Direction> = Vec::new();
    for log in &of {
        directions.extend(log.timeline.tracks().map(|track| track.dir));
    }
    directions.sort_unstable();
    directions.dedup();
    let several = directions.len() > 1;
    for dir in directions {
        let prefix = match several {
            true => format!("{} ", dir.title().to_lowercase()),
            false => String::new(),
        };
        let steps = steps(kind, &of, dir, step_ms);
        let at = |step: u64| (step * step_ms) as f64 + step_ms as f64 / 2.0;
        let ink = Ink::new(of_direction(dir));
        let sum = steps
            .iter()
            .map(|(&step, jobs)| (at(step), jobs.jobs.iter().sum()));
        sums.layers.push(Layer {
            name: several.then(|| format!("{prefix}sum")),
            shape: Shape::Line(sum.collect()),
            ink,
        });
        let around = steps
            .iter()
            .filter_map(|(&step, jobs)| Some((at(step), jobs.low?, jobs.high?)));
        let band = steps
            .iter()
            .filter_map(|(&step, jobs)| Some((at(step), jobs.share(BAND.0)?, jobs.share(BAND.1)?)));
        let median = steps
            .iter()
            .filter_map(|(&step, jobs)| Some((at(step), jobs.share(0.5)?)));
        each.layers
            .extend(layer(None, Shape::Band(around.collect()), Ink::new(SHADE)));
        each.layers
            .extend(layer(None, Shape::Band(band.collect()), ink));
        let name = format!("{prefix}median job");
        let line = Ink {
            dash: Dash::Solid,
            ..ink
        };
        each.layers
            .extend(layer(Some(name), Shape::Line(median.collect()), line));
    }
    let jobs = of.len();
    let panels = if kind.is_latency() {
        vec![each]
    } else {
        sums.y.title = format!("{}, sum of {jobs} logs", title(kind));
        each.y.title = format!("{}, each", title(kind));
        vec![sums, each]
    };
    let height = SIZE.height + 200.0 * (panels.len() - 1) as f64;
    let chart = Chart {
        title: format!("{} over time · {}", title(kind), logs.name),
        subtitle: subtitle(logs, kind),
        panels,
        footer: vec![format!(
            "each log by its mean of every {}; band: from the 10th to the 90th percentile of the logs; grey: from the lowest to the highest value; --lines draws each",
            units::duration(step_ms)
        )],
        ..Chart::default()
    };
    Some(graph(logs, kind.word(), chart, Size { height, ..SIZE }))
}

/// A step that is the same for all logs, and in which each has at least a value.
fn step_ms(kind: LogKind, of: &[&JobLog]) -> u64 {
    let mut step_ms = 1;
    for log in of {
        let timeline = &log.timeline;
        step_ms = step_ms.max(timeline.end_ms / STEPS_MAX);
        for track in timeline.tracks() {
            let enough = match !kind.is_latency() && track.single {
                true => COUNTED,
                false => 2,
            };
            let needed = enough * timeline.end_ms / track.n.max(1);
            step_ms = step_ms.max(needed.min(timeline.end_ms / STEPS_MIN));
        }
        step_ms = step_ms.max(timeline.span_ms());
    }
    step_ms.next_power_of_two()
}

fn steps(kind: LogKind, of: &[&JobLog], dir: Direction, step_ms: u64) -> BTreeMap<u64, JobsStep> {
    let mut steps: BTreeMap<u64, JobsStep> = BTreeMap::new();
    for log in of {
        let timeline = &log.timeline;
        let of_log = job_steps(kind, timeline, dir, step_ms);
        for (step, (value, low, high)) in of_log {
            let all = steps.entry(step).or_default();
            all.jobs.push(value);
            all.low = Some(all.low.map_or(low, |lowest| lowest.min(low)));
            all.high = Some(all.high.map_or(high, |highest| highest.max(high)));
        }
    }
    for step in steps.values_mut() {
        step.jobs.sort_by(f64::total_cmp);
    }
    steps
}

/// What a job did in each step: its mean, its lowest and its highest value.
fn job_steps(
    kind: LogKind,
    timeline: &Timeline,
    dir: Direction,
    step_ms: u64,
) -> BTreeMap<u64, (f64, f64, f64)> {
    let mut of_log = BTreeMap::new();
    let Some(track) = timeline.tracks().find(|track| track.dir == dir) else {
        return of_log;
    };
    let counted = !kind.is_latency() && track.single;
    let span_ms = timeline.span_ms();
    let slices = track.slices.chunks((step_ms / span_ms).max(1) as usize);
    for (step, slices) in (0u64..).zip(slices) {
        let n: u64 = slices.iter().map(|slice| slice.n).sum();
        if counted {
            let left_ms = (timeline.end_ms + 1).saturating_sub(step * step_ms);
            let there = step_ms.min(left_ms);
            // Too little of the last step is there to say its rate.
            if there * 2 >= step_ms {
                let bytes: u128 = slices.iter().map(|slice| slice.bytes).sum();
                let amount = match kind {
                    LogKind::Bandwidth => bytes as f64,
                    _ => n as f64,
                };
                let rate = amount * 1000.0 / there as f64;
                of_log.insert(step, (rate, rate, rate));
            }
        } else if n > 0 {
            let sum: u128 = slices.iter().map(|slice| slice.sum).sum();
            let low = slices.iter().map(|slice| slice.low.1).min().unwrap_or(0);
            let high = slices.iter().map(|slice| slice.high.1).max().unwrap_or(0);
            let mean = sum as f64 / n as f64;
            of_log.insert(
                step,
                (
                    scaled(kind, mean),
                    scaled(kind, low as f64),
                    scaled(kind, high as f64),
                ),
            );
        }
    }
    of_log
}

impl JobsStep {
    /// The job at a share of all, by its value.
    fn share(&self, share: f64) -> Option<f64> {
        let place = (share * self.jobs.len() as f64).ceil().max(1.0) as usize - 1;
        self.jobs.get(place).copied()
    }
}

fn layer(name: Option<String>, shape: Shape, ink: Ink) -> Option<Layer> {
    let there = match &shape {
        Shape::Band(spans) => spans.len() > 1,
        Shape::Line(points) => !points.is_empty(),
        _ => true,
    };
    there.then_some(Layer { name, shape, ink })
}
