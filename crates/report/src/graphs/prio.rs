//! The plots of priorities and duration limits: what each class of I/Os got at each
//! queue depth, how its latencies are spread, and how many missed their limit.

use std::collections::{BTreeMap, BTreeSet};

use fathom_analysis::latlog::{LatencyFigures, LatencyGroup, PrioritySpread, Statistics};
use fathom_analysis::priority::DurationLimits;
use fathom_model::log::class_name;
use fathom_model::{Direction, units};

use fathom_sheet::chart::palette::{CURVES, Dash, Ink, Marker, Srgb, VERMILLION, viridis};
use fathom_sheet::chart::{Chart, ChartAxis, Ends, Layer, Panel, Quantity, Scale, Shape, Size};
use fathom_sheet::graph::Graph;

/// Bins of the distribution, in ns: 2 ms as people know them, and finer ones for
/// devices whose latencies would all be in the first few.
pub const BIN_NS: u64 = 2_000_000;
/// The finer bins.
pub const FINE_BIN_NS: u64 = 20_000;
/// Bins that a distribution has at least, or finer ones are taken.
const BINS_MIN: u64 = 25;
/// And about so many of the finer ones.
const FINE_BINS: u64 = 100;
/// A distribution is drawn up to this part of the I/Os: what lies beyond could not be
/// told from zero, and one stall would press the rest against the axis.
const SHOWN: f64 = 0.995;
/// Not a class: what all I/Os got, and what they got without priorities.
const TOTAL: Srgb = Srgb(0x1f, 0x23, 0x28);
const BASELINE: Srgb = Srgb(0x80, 0x86, 0x90);

/// One queue depth.
#[derive(Debug)]
pub struct Depth {
    /// I/Os under way at once.
    pub depth: u32,
    /// All I/Os, and by priority.
    pub statistics: Statistics,
    /// By priority: bins of [`BIN_NS`], and of [`FINE_BIN_NS`].
    pub spreads: [BTreeMap<u16, PrioritySpread>; 2],
    /// By priority, of those that have a limit: I/Os that took longer.
    pub missed: BTreeMap<u16, u64>,
}

/// A way to give I/Os priorities, at several depths.
#[derive(Debug)]
pub struct PrioPlot {
    /// What its files begin with: `cdlsingle`.
    pub stem: &'static str,
    /// As titles have it: `CDL, single limit`.
    pub title: &'static str,
    /// Depths, ascending.
    pub depths: Vec<Depth>,
    /// The limits that I/Os name.
    pub limits: DurationLimits,
    /// The direction whose limits are told.
    pub dir: Direction,
}

/// A plot, and what it is called while it is made.
#[derive(Debug)]
pub struct PlotStep {
    /// `latency distribution, class NONE, level 0, hint 0`
    pub what: String,
    /// The plot.
    pub graph: Graph,
}

impl PrioPlot {
    fn is_baseline(&self) -> bool {
        self.stem == "baseline"
    }

    /// The priorities that occur, I/Os without one first.
    fn priorities(&self) -> BTreeSet<u16> {
        let depths = self.depths.iter();
        depths
            .flat_map(|depth| depth.statistics.priorities.iter().map(|&(prio, _)| prio))
            .collect()
    }

    fn limit_ns(&self, prio: u16) -> Option<u64> {
        self.limits.of(self.dir, prio)?.ns
    }

    /// What a class is called in the legend.
    fn label(&self, prio: u16) -> String {
        let (class, hint) = (prio >> 13, hint(prio));
        match (self.stem, hint, self.limit_ns(prio)) {
            ("ncqprio", ..) if class == 1 => "high priority".to_owned(),
            ("ncqprio", ..) => "low priority".to_owned(),
            (_, 0, _) if class <= 2 => "no limit".to_owned(),
            (_, 0, _) => words(prio),
            (_, number, Some(ns)) => format!("limit {number}: {}", units::latency(ns as f64)),
            (_, number, None) => format!("limit {number}"),
        }
    }

    /// What the file of its distribution ends with.
    fn ending(&self, prio: u16) -> String {
        let (class, number) = (prio >> 13, hint(prio));
        let limit = |ns: u64| match ns.is_multiple_of(1_000_000) {
            true => format!("{}ms", ns / 1_000_000),
            false => format!("{}us", ns / 1000),
        };
        match (self.stem, number, self.limit_ns(prio)) {
            ("ncqprio", ..) if class == 1 => "hipri".to_owned(),
            ("ncqprio", ..) => "lopri".to_owned(),
            (_, 0, _) => "nolimit".to_owned(),
            (_, _, Some(ns)) => limit(ns),
            (_, number, None) => format!("dld{number}"),
        }
    }

    /// The endings of all, each once: of those that are alike, with the priority.
    fn endings(&self) -> Vec<(u16, String)> {
        let all: Vec<(u16, String)> = self
            .priorities()
            .into_iter()
            .map(|prio| (prio, self.ending(prio)))
            .collect();
        let mut endings = Vec::new();
        for (prio, ending) in &all {
            let alike = all.iter().filter(|(_, other)| other == ending).count();
            let ending = match alike {
                1 => ending.clone(),
                _ => format!("{ending}_{prio:04x}"),
            };
            endings.push((*prio, ending));
        }
        endings
    }

    fn graph(&self, name: &str, chart: Chart) -> Graph {
        Graph {
            path: format!("{}_{name}", self.stem),
            chart,
            size: Size {
                width: 800.0,
                height: 600.0,
            },
        }
    }

    fn chart(&self, what: &str, panel: Panel, footer: Vec<String>) -> Chart {
        Chart {
            title: format!("{what} · {}", self.title),
            panels: vec![panel],
            footer,
            ..Chart::default()
        }
    }
}

/// The number of the descriptor that a priority names.
fn hint(prio: u16) -> u16 {
    prio >> 3 & 0x3ff
}

/// `class BE, level 0, hint 1`
fn words(prio: u16) -> String {
    let class = class_name(prio >> 13).map_or_else(|| (prio >> 13).to_string(), str::to_owned);
    format!("class {class}, level {}, hint {}", prio & 7, hint(prio))
}

/// All plots of a workload, beside those of the baseline where there are.
pub fn of_workload(workload: &PrioPlot, baseline: Option<&PrioPlot>) -> Vec<PlotStep> {
    let baseline = baseline.filter(|_| !workload.is_baseline());
    let p99 = |figures: &LatencyFigures| {
        let found = figures.percentiles_ns.iter().find(|(p, _)| *p == 99.0);
        found.map(|&(_, ns)| ns as f64)
    };
    let mut steps = vec![
        against_depth(workload, baseline, "IOPS", "iops", &|f| f.iops),
        against_depth(workload, baseline, "latency average", "lat_avg", &|f| {
            Some(f.avg_ns)
        }),
        against_depth(
            workload,
            baseline,
            "latency 99th percentile",
            "lat_p99",
            &p99,
        ),
    ];
    for (prio, ending) in workload.endings() {
        let class = workload.priorities().len() > 1 || !workload.is_baseline();
        let (what, name) = match class {
            true => (
                format!("latency distribution, {}", words(prio)),
                format!("lat_pdf_{ending}"),
            ),
            false => ("latency distribution".to_owned(), "lat_pdf".to_owned()),
        };
        let chart = distribution(workload, prio, class);
        let graph = workload.graph(&name, chart);
        steps.push(PlotStep { what, graph });
    }
    steps.extend(missed(workload));
    steps
}

fn depth_axis() -> ChartAxis {
    ChartAxis {
        title: "Queue depth".to_owned(),
        quantity: Quantity::Binary,
        scale: Scale::Log2,
        ends: Ends::Values,
    }
}

/// A figure of baseline, total and each class against the depth.
fn against_depth(
    workload: &PrioPlot,
    baseline: Option<&PrioPlot>,
    what: &str,
    name: &str,
    value: &dyn Fn(&LatencyFigures) -> Option<f64>,
) -> PlotStep {
    let title = match name {
        "iops" => "IOPS",
        "lat_avg" => "Mean latency",
        _ => "99th percentile of the latency",
    };
    let rates = name == "iops";
    let mut panel = Panel::new(
        depth_axis(),
        ChartAxis {
            title: title.to_owned(),
            quantity: if rates {
                Quantity::Rate
            } else {
                Quantity::Latency
            },
            // Latencies grow with the depth, by powers as it does.
            scale: if rates { Scale::Linear } else { Scale::Log10 },
            ends: Ends::Ticks,
        },
    );
    let of = |workload: &PrioPlot, group: &dyn Fn(&Statistics) -> Option<LatencyGroup>| {
        let depths = workload.depths.iter();
        depths
            .map(|depth| {
                let group = group(&depth.statistics);
                let y = group.and_then(|group| value(group.figures.as_ref()?));
                (f64::from(depth.depth), y.unwrap_or(f64::NAN))
            })
            .collect::<Vec<(f64, f64)>>()
    };
    let all = |statistics: &Statistics| Some(statistics.all.clone());
    let priorities = workload.priorities();
    if let Some(baseline) = baseline {
        let ink = Ink {
            dash: Dash::Dashed,
            ..Ink::new(BASELINE)
        };
        panel
            .layers
            .push(curve("baseline", of(baseline, &all), ink));
    }
    let total = match workload.is_baseline() {
        true => "baseline",
        false => "total",
    };
    let ink = Ink {
        marker: Marker::Square,
        ..Ink::new(TOTAL)
    };
    panel.layers.push(curve(total, of(workload, &all), ink));
    if priorities.len() > 1 {
        for (place, &prio) in priorities.iter().enumerate() {
            let group = |statistics: &Statistics| {
                let found = statistics.priorities.iter().find(|(p, _)| *p == prio);
                found.map(|(_, group)| group.clone())
            };
            let points = of(workload, &group);
            panel
                .layers
                .push(curve(&workload.label(prio), points, class_ink(place)));
        }
    }
    PlotStep {
        what: what.to_owned(),
        graph: workload.graph(name, workload.chart(title, panel, Vec::new())),
    }
}

fn curve(name: &str, points: Vec<(f64, f64)>, ink: Ink) -> Layer {
    Layer {
        name: Some(name.to_owned()),
        shape: Shape::Curve(points),
        ink,
    }
}

/// Solid lines: what is dashed is the baseline.
fn class_ink(place: usize) -> Ink {
    Ink {
        dash: Dash::Solid,
        color: CURVES[place % CURVES.len()],
        ..Ink::of_place(place)
    }
}

/// The share of I/Os that took longer than their limit; `None` where none has one.
fn missed(workload: &PrioPlot) -> Option<PlotStep> {
    let mut panel = Panel::new(
        depth_axis(),
        ChartAxis {
            title: "I/Os over their limit".to_owned(),
            quantity: Quantity::Percent,
            scale: Scale::Linear,
            ends: Ends::Ticks,
        },
    );
    for (place, prio) in workload.priorities().into_iter().enumerate() {
        if workload.limit_ns(prio).is_none() {
            continue;
        }
        let (mut points, mut bars) = (Vec::new(), Vec::new());
        for depth in &workload.depths {
            let found = depth.statistics.priorities.iter().find(|(p, _)| *p == prio);
            let n = found.map_or(0, |(_, group)| group.n) as f64;
            let Some(&missed) = depth.missed.get(&prio).filter(|_| n > 0.0) else {
                continue;
            };
            let share = missed as f64 / n;
            // The 95 % interval of a share of independent I/Os.
            let half = 1.96 * (share * (1.0 - share) / n).sqrt();
            let x = f64::from(depth.depth);
            points.push((x, share * 100.0));
            bars.push((
                x,
                (share - half).max(0.0) * 100.0,
                (share + half).min(1.0) * 100.0,
            ));
        }
        let ink = class_ink(place);
        panel.layers.push(Layer {
            name: None,
            shape: Shape::ErrorBars(bars),
            ink,
        });
        panel.layers.push(curve(&workload.label(prio), points, ink));
    }
    if panel.layers.is_empty() {
        return None;
    }
    let footer = "bars: 95 % confidence, as if I/Os missed their limit independently of each other";
    let chart = workload.chart("Miss rate", panel, vec![footer.to_owned()]);
    Some(PlotStep {
        what: "miss rate".to_owned(),
        graph: workload.graph("miss_rate", chart),
    })
}

/// How the latencies of a class are spread, a line for each depth.
fn distribution(workload: &PrioPlot, prio: u16, class: bool) -> Chart {
    let shown = |fine: usize, bin_ns: u64| {
        let spreads = workload.depths.iter();
        let ends = spreads.filter_map(|depth| shown_bins(depth.spreads[fine].get(&prio)?));
        ends.max().unwrap_or(0) as u64 * bin_ns
    };
    let end_ns = shown(0, BIN_NS);
    let (fine, bin_ns, step) = match end_ns >= BINS_MIN * BIN_NS {
        true => (0, BIN_NS, 1),
        false => {
            let bins = (shown(1, FINE_BIN_NS) / FINE_BIN_NS).max(1);
            (1, FINE_BIN_NS, nice(bins.div_ceil(FINE_BINS)))
        }
    };
    let width_ns = bin_ns * step;
    let end_ns = shown(fine, bin_ns).max(width_ns);
    let mut panel = Panel::new(
        ChartAxis {
            title: "Latency".to_owned(),
            quantity: Quantity::Latency,
            scale: Scale::Linear,
            ends: Ends::Values,
        },
        ChartAxis {
            title: "Share of the I/Os".to_owned(),
            quantity: Quantity::Percent,
            scale: Scale::Linear,
            ends: Ends::Ticks,
        },
    );
    for (place, depth) in workload.depths.iter().enumerate() {
        let Some(spread) = depth.spreads[fine].get(&prio) else {
            continue;
        };
        let bins = spread.bins.chunks(step as usize);
        // A depth that ends earlier comes down to zero, its line does not end in the air.
        let bins = bins.map(|counts| counts.iter().sum::<u64>()).chain([0]);
        let bins = bins.take(end_ns.div_ceil(width_ns) as usize).enumerate();
        let points = bins.map(|(bin, count)| {
            let middle = (bin as f64 + 0.5) * width_ns as f64;
            (middle, count as f64 * 100.0 / spread.n as f64)
        });
        panel.layers.push(Layer {
            name: Some(format!("QD={}", depth.depth)),
            shape: Shape::Line(points.collect()),
            ink: depth_ink(place, workload.depths.len()),
        });
    }
    panel.layers.extend(limit(workload, prio, &panel, end_ns));
    let width = units::latency(width_ns as f64);
    let footer = format!(
        "in bins of {width}; at each depth at most {} % of the I/Os took longer than is shown",
        fathom_sheet::chart::quantity::plain((1.0 - SHOWN) * 100.0, 2)
    );
    let mut chart = workload.chart("Latency distribution", panel, vec![footer]);
    if class {
        chart.subtitle = vec![format!("{} ({})", workload.label(prio), words(prio))];
    }
    chart
}

/// Depths have an order: the deeper, the lighter. The lightest colours would not
/// stand out from white.
fn depth_ink(place: usize, of: usize) -> Ink {
    const LIGHTEST: f64 = 0.88;
    Ink::new(viridis(
        LIGHTEST * place as f64 / of.saturating_sub(1).max(1) as f64,
    ))
}

/// An upright line at the limit of a class, where it is in the picture or near it.
fn limit(workload: &PrioPlot, prio: u16, panel: &Panel, end_ns: u64) -> Option<Layer> {
    let ns = workload.limit_ns(prio).filter(|&ns| ns <= end_ns * 3 / 2)? as f64;
    let lines = panel.layers.iter().flat_map(|layer| match &layer.shape {
        Shape::Line(points) => points.as_slice(),
        _ => &[],
    });
    let top = lines.map(|point| point.1).fold(0.0, f64::max);
    Some(Layer {
        name: Some("the limit".to_owned()),
        shape: Shape::Line(vec![(ns, 0.0), (ns, top)]),
        ink: Ink {
            dash: Dash::Dashed,
            ..Ink::new(VERMILLION)
        },
    })
}

/// Bins that hold what is shown.
fn shown_bins(spread: &PrioritySpread) -> Option<usize> {
    let wanted = (spread.n as f64 * SHOWN).ceil() as u64;
    let mut seen = 0;
    for (bin, count) in spread.bins.iter().enumerate() {
        seen += count;
        if seen >= wanted {
            return Some(bin + 1);
        }
    }
    Some(spread.bins.len()).filter(|&len| len > 0)
}

/// The next 1, 2 or 5 times a power of ten.
fn nice(at_least: u64) -> u64 {
    let mut power = 1;
    loop {
        for digit in [1, 2, 5] {
            if digit * power >= at_least {
                return digit * power;
            }
        }
        power *= 10;
    }
}
