//! What a point, or any step of a run, did from interval to interval.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_analysis::rate::Rate;
use fathom_document::attempts::Counting;
use fathom_model::{Direction, Event, Sample};
use fathom_record::{Entries, RecordError};
use fathom_sheet::chart::palette::{Dash, Ink, of_direction};
use fathom_sheet::chart::reduce::CurveReducer;
use fathom_sheet::chart::{Chart, ChartAxis, Ends, Layer, Panel, Quantity, Scale, Shape, Size};
use fathom_sheet::graph::{Graph, safe_path};

use super::hosts::Hosts;
use super::words;

/// The graphs over time of all steps that `wanted` chooses by their names (a
/// point's id), in memory that does not grow with the length of the run.
///
/// # Errors
/// When the record cannot be read; what is not damaged is drawn.
pub fn over_time(dir: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Graph>, RecordError> {
    let mut graphs = Vec::new();
    each_step(dir, wanted, &mut |step, facts| {
        graphs.extend(step.graphs(facts));
    })?;
    Ok(graphs)
}

/// The IOPS of a step over time.
#[derive(Debug)]
pub(crate) struct StepIops {
    /// The step's name, and that of the run where it has no steps.
    pub name: String,
    /// Which measurement of a point it is.
    pub repetition: u32,
    /// (ms since its begin, I/Os per second) of all jobs together.
    pub of: BTreeMap<Direction, Vec<(f64, f64)>>,
}

/// As [`over_time`], of IOPS alone and as they are.
///
/// # Errors
/// When the record cannot be read.
pub(crate) fn iops_over_time(
    dir: &Path,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<StepIops>, RecordError> {
    let mut steps = Vec::new();
    each_step(dir, wanted, &mut |mut step, _| {
        step.close();
        let of = step.curves.iter();
        let of = of.map(|(&dir, curves)| (dir, curves.iops.points()));
        let of: BTreeMap<_, _> = of.filter(|(_, points)| !points.is_empty()).collect();
        if !of.is_empty() {
            steps.push(StepIops {
                name: step.name,
                repetition: step.repetition,
                of,
            });
        }
    })?;
    Ok(steps)
}

/// Gives every step that is wanted, by the attempt that counts.
fn each_step(
    dir: &Path,
    wanted: &dyn Fn(&str) -> bool,
    give: &mut dyn FnMut(GraphStep, &RunFacts),
) -> Result<(), RecordError> {
    let mut entries = Entries::open(dir)?;
    let facts = RunFacts {
        run: entries.id(),
        device: entries.header.environment.as_ref().and_then(words::device),
        name: entries.header.name.clone(),
    };
    // A run of one job file has samples and may have no step.
    let mut counting = Counting::of(Entries::summed(dir)?);
    let mut step = wanted(&facts.name).then(|| GraphStep::new(&facts.name, 1));
    for entry in &mut entries {
        let Ok(entry) = entry else { continue };
        let counts = counting.take(&entry);
        match entry.event {
            Event::Step { name, point, .. } => {
                step.take().into_iter().for_each(|step| give(step, &facts));
                let repetition = point.map_or(1, |point| point.repetition);
                step = (counts && wanted(&name)).then(|| GraphStep::new(&name, repetition));
            }
            Event::Jobs { hosts, .. } => {
                if let Some(step) = &mut step {
                    step.hosts.begin(&hosts);
                }
            }
            Event::Sample(sample) => {
                if let Some(step) = &mut step {
                    step.add(sample);
                }
            }
            Event::Interval { .. } => {
                if let Some(step) = &mut step {
                    step.close();
                }
            }
            _ => {}
        }
    }
    step.into_iter().for_each(|step| give(step, &facts));
    Ok(())
}

/// What is said of the run.
struct RunFacts {
    run: String,
    device: Option<String>,
    name: String,
}

/// The curves of one direction.
#[derive(Default)]
struct DirectionCurves {
    iops: CurveReducer,
    bw_bytes: CurveReducer,
    mean: CurveReducer,
    p99: CurveReducer,
    max: CurveReducer,
}

/// One direction in the interval that has not been closed.
#[derive(Default)]
struct OpenDirection {
    span_ms: u64,
    t_ms: u64,
    rate: Rate,
}

/// A step while its samples are read.
struct GraphStep {
    name: String,
    repetition: u32,
    begin_ms: Option<u64>,
    open: BTreeMap<Direction, OpenDirection>,
    /// The last interval, while it is shorter than the others.
    short: BTreeMap<Direction, OpenDirection>,
    /// The longest interval, in ms.
    longest_ms: u64,
    curves: BTreeMap<Direction, DirectionCurves>,
    hosts: Hosts,
}

impl GraphStep {
    fn new(name: &str, repetition: u32) -> Self {
        Self {
            name: name.to_owned(),
            repetition,
            begin_ms: None,
            open: BTreeMap::new(),
            short: BTreeMap::new(),
            longest_ms: 0,
            curves: BTreeMap::new(),
            hosts: Hosts::default(),
        }
    }

    /// Adds one job's part of an interval to that of the others.
    fn add(&mut self, sample: Sample) {
        if sample.span_ms == 0 {
            return;
        }
        self.begin_ms
            .get_or_insert(sample.t_ms.saturating_sub(sample.span_ms));
        self.hosts.add(&sample);
        let open = self.open.entry(sample.dir).or_default();
        open.t_ms = sample.t_ms;
        open.span_ms = open.span_ms.max(sample.span_ms);
        open.rate.add(&sample);
    }

    /// Ends an interval. A short one is drawn only once another follows: a few I/Os in the
    /// 8 ms at the end of a step are a rate beyond all others.
    fn close(&mut self) {
        let begin = self.begin_ms.unwrap_or(0);
        self.hosts.close(begin);
        if self.open.is_empty() {
            return;
        }
        let short = std::mem::take(&mut self.short);
        self.draw(short, begin);
        let open = std::mem::take(&mut self.open);
        let span_ms = open.values().map(|open| open.span_ms).max().unwrap_or(0);
        self.longest_ms = self.longest_ms.max(span_ms);
        // Intervals are not exact.
        match span_ms.saturating_mul(4) < self.longest_ms.saturating_mul(3) {
            true => self.short = open,
            false => self.draw(open, begin),
        }
    }

    fn draw(&mut self, interval: BTreeMap<Direction, OpenDirection>, begin: u64) {
        for (dir, open) in interval {
            let time = open.t_ms.saturating_sub(begin) as f64;
            let curves = self.curves.entry(dir).or_default();
            curves.iops.add(time, open.rate.iops);
            curves.bw_bytes.add(time, open.rate.bw_bytes);
            if let Some(mean) = open.rate.clat.mean_ns() {
                curves.mean.add(time, mean);
            }
            for (stream, percent) in [(&mut curves.p99, 99.0), (&mut curves.max, 100.0)] {
                if let Some(ns) = open.rate.clat.percentile_ns(percent) {
                    stream.add(time, ns as f64);
                }
            }
        }
    }

    /// All machines together, and each by itself where there are several.
    fn graphs(mut self, facts: &RunFacts) -> Vec<Graph> {
        self.close();
        self.curves
            .retain(|_, curves| !curves.iops.points().is_empty());
        if self.curves.is_empty() {
            return Vec::new();
        }
        let (again, repetition) = match self.repetition {
            1 => (String::new(), String::new()),
            n => (format!("-r{n}"), format!(", repetition {n}")),
        };
        let folder = self
            .name
            .rsplit_once('/')
            .map(|(folder, _)| folder.to_owned());
        let about = [folder, facts.device.clone(), Some(facts.run.clone())];
        let about: Vec<String> = about.into_iter().flatten().collect();
        let panels = self.panels();
        let kinds = "latencies of each interval: mean (solid), p99 (dashed), maximum (dotted)";
        let has_latencies = panels
            .iter()
            .any(|panel| panel.y.quantity == Quantity::Latency);
        let path = format!("{}{again}-time", safe_path(&self.name));
        let title = format!("{} over time{repetition}", words::last(&self.name));
        let graph = |path: String, title: String, panels: Vec<Panel>, footer: Vec<String>| Graph {
            path,
            chart: Chart {
                title,
                subtitle: vec![about.join(" · ")],
                panels,
                footer,
                ..Chart::default()
            },
            size: Size {
                width: 860.0,
                height: 680.0,
            },
        };
        let by_host = self.hosts.panels();
        let footer = has_latencies.then(|| kinds.to_owned()).into_iter();
        let mut graphs = vec![graph(path.clone(), title.clone(), panels, footer.collect())];
        if !by_host.is_empty() {
            let (path, title) = (format!("{path}-hosts"), format!("{title}, by host"));
            graphs.push(graph(path, title, by_host, Vec::new()));
        }
        graphs
    }

    /// Rates and latencies below each other.
    fn panels(&self) -> Vec<Panel> {
        let line = |name: String, stream: &CurveReducer, dir, dash| Layer {
            name: Some(name),
            shape: Shape::Line(stream.points()),
            ink: Ink {
                dash,
                ..Ink::new(of_direction(dir))
            },
        };
        let mut iops = panel("IOPS", Quantity::Rate, Scale::Linear);
        let mut bw = panel("Bandwidth", Quantity::BytesPerSecond, Scale::Linear);
        let mut clat = panel("Completion latency", Quantity::Latency, Scale::Log10);
        for (&dir, curves) in &self.curves {
            let name = dir.title().to_lowercase();
            // The means have the look, and so the place in the legend, of the rates.
            for (panel, stream) in [
                (&mut iops, &curves.iops),
                (&mut bw, &curves.bw_bytes),
                (&mut clat, &curves.mean),
            ] {
                panel
                    .layers
                    .push(line(name.clone(), stream, dir, Dash::Solid));
            }
            for (what, stream, dash) in [
                ("p99", &curves.p99, Dash::Dashed),
                ("maximum", &curves.max, Dash::Dotted),
            ] {
                let name = format!("{name} {what} latency");
                clat.layers.push(line(name, stream, dir, dash));
            }
        }
        clat.layers
            .retain(|layer| !matches!(&layer.shape, Shape::Line(points) if points.is_empty()));
        let panels = [iops, bw, clat].into_iter();
        panels.filter(|panel| !panel.layers.is_empty()).collect()
    }
}

pub(super) fn panel(title: &str, quantity: Quantity, scale: Scale) -> Panel {
    let time = ChartAxis {
        title: "Time".to_owned(),
        quantity: Quantity::Time,
        scale: Scale::Time,
        ends: Ends::Values,
    };
    let y = ChartAxis {
        title: title.to_owned(),
        quantity,
        scale,
        ends: Ends::Ticks,
    };
    Panel::new(time, y)
}
