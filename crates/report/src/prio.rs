//! What priorities and limits did, workload by workload and depth by depth: the
//! table and the document `fathom.prio/1`.

use fathom_analysis::priority::{DepthFigures, IoShare, PriorityClass};
use fathom_model::{Direction, units};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};

/// The document's name and version.
pub const SCHEMA: &str = "fathom.prio/1";

/// What a run of `fathom prio` measured.
#[derive(Debug, Clone)]
pub struct Prio {
    /// Name of the record's folder.
    pub run: String,
    /// `complete`, `interrupted`, `failed`.
    pub status: String,
    /// What the record's header says of device, limits and options.
    pub facts: Value,
    /// In the order in which they were measured.
    pub workloads: Vec<PrioCurve>,
}

/// One workload.
#[derive(Debug, Clone)]
pub struct PrioCurve {
    /// `baseline`, `ncqprio`, `cdlsingle`, `cdlmulti`.
    pub name: String,
    /// What its I/Os asked for, in words.
    pub words: String,
    /// In the order in which they were measured.
    pub points: Vec<DepthPoint>,
}

/// One workload at one depth.
#[derive(Debug, Clone)]
pub struct DepthPoint {
    /// Queue depth.
    pub depth: u64,
    /// What was measured; `None` of a failed one, and where no I/O was logged.
    pub measured: Option<DepthFigures>,
    /// What went wrong.
    pub failure: Option<String>,
    /// It was stopped before its time was over: its figures are of what was
    /// measured until then.
    pub interrupted: bool,
    /// IOPS more (or, negative, less) than the baseline at this depth, in percent.
    pub against_percent: Option<f64>,
}

/// Puts every point beside the baseline of its depth; not what was interrupted.
pub fn compare(workloads: &mut [PrioCurve]) {
    let baseline = workloads.iter().find(|w| w.name == "baseline");
    let Some(mut baseline) = baseline.map(|baseline| baseline.points.clone()) else {
        return;
    };
    baseline.retain(|point| !point.interrupted);
    let others = workloads.iter_mut().filter(|w| w.name != "baseline");
    let points = others.flat_map(|workload| &mut workload.points);
    for point in points.filter(|point| !point.interrupted) {
        let same = baseline.iter().find(|base| base.depth == point.depth);
        let base = same.and_then(|base| base.measured.as_ref());
        let both = point.measured.as_ref().zip(base);
        point.against_percent = both.and_then(|(one, base)| one.iops_against_percent(base));
    }
}

/// The table of all workloads.
pub fn text(prio: &Prio, style: Style) -> String {
    let mut text = String::new();
    for workload in &prio.workloads {
        if !text.is_empty() {
            text.push('\n');
        }
        let title = format!("{}: {}", workload.name, workload.words);
        text += &style.paint(Tone::Strong, &title);
        text.push('\n');
        text += &grid(workload).render(style);
        for point in workload.points.iter().filter(|point| point.interrupted) {
            let until = match &point.measured {
                Some(measured) => format!(
                    "its figures are of the {} until then",
                    units::duration(measured.runtime_ms)
                ),
                None => "nothing is known of it".to_owned(),
            };
            let told = format!("! QD {} was interrupted: {until}", point.depth);
            text += &style.paint(Tone::Doubtful, &told);
            text.push('\n');
        }
    }
    text
}

/// The column of what the host and the disk count, where the disk says anything.
const DISK: usize = 8;

fn grid(workload: &PrioCurve) -> Grid {
    let classes = workload
        .points
        .iter()
        .filter_map(|point| point.measured.as_ref());
    let mut classes = classes.flat_map(|measured| &measured.classes);
    let disk_says = classes.any(|class| class.disk_over.is_some());
    let mut columns = vec![
        figures("QD", 0),
        words("I/Os", 0),
        figures("number", 4),
        figures("share", 3),
        figures("IOPS", 0),
        figures("mean", 2),
        figures("p99", 1),
        figures("over limit", 0),
        figures("host/disk", 0),
        figures("aborted", 0),
        figures("against baseline", 0),
    ];
    if !disk_says {
        columns.remove(DISK);
    }
    let width = columns.len();
    let mut grid = Grid::new(columns).continued(2);
    for point in &workload.points {
        let depth = point.depth.to_string();
        let Some(measured) = &point.measured else {
            let why = match (&point.failure, point.interrupted) {
                (Some(failure), _) => failure,
                (None, true) => "interrupted",
                (None, false) => "no I/O came back",
            };
            let mut line: Vec<GridCell> = vec![depth.into(), GridCell::new(Tone::Bad, why)];
            line.resize_with(width, GridCell::default);
            grid.line(line);
            continue;
        };
        let several = measured.classes.len() > 1 || measured.aborted.is_some_and(|n| n > 0);
        let mut depth = Some(depth);
        for class in &measured.classes {
            let against = match several {
                true => String::new(),
                false => against(point),
            };
            let mut line = vec![
                depth.take().unwrap_or_default().into(),
                who(workload, measured, class).into(),
                class.n.to_string().into(),
                percent(class.n as f64 * 100.0 / measured.n as f64).into(),
                rate(class.iops).into(),
                units::latency(class.avg_ns).into(),
                units::latency(class.p99_ns as f64).into(),
                class
                    .over
                    .map_or_else(String::new, |_| share(class.over_share()))
                    .into(),
                counts(class).into(),
                aborted(class).into(),
                against.into(),
            ];
            if !disk_says {
                line.remove(DISK);
            }
            grid.line(line);
        }
        if several {
            grid.line(all_line(point, measured, disk_says));
        }
    }
    grid
}

/// The line of all I/Os of a depth.
fn all_line(point: &DepthPoint, measured: &DepthFigures, disk_says: bool) -> Vec<GridCell> {
    let all = |text: String| GridCell::new(Tone::Strong, text);
    let mut line = vec![
        GridCell::default(),
        all("all".to_owned()),
        all(measured.n.to_string()),
        GridCell::default(),
        all(rate(measured.iops)),
    ];
    line.resize_with(if disk_says { DISK + 1 } else { DISK }, GridCell::default);
    let aborted = measured.aborted;
    let aborted = aborted.map_or_else(String::new, |n| share(IoShare::of(n, measured.n + n)));
    line.extend([all(aborted), all(against(point))]);
    line
}

/// What tells the I/Os of a class from others.
fn who(workload: &PrioCurve, measured: &DepthFigures, class: &PriorityClass) -> String {
    let cdl = workload.name.starts_with("cdl");
    let name = match (class.limit, class.prio >> 13) {
        (Some(limit), _) => {
            let ns = limit
                .ns
                .map(|ns| format!(" ({})", units::latency(ns as f64)));
            format!("limit {}{}", limit.number, ns.unwrap_or_default())
        }
        (None, 1) => "high priority".to_owned(),
        (None, _) if class.prio >> 3 & 0x3ff != 0 => {
            format!("limit {}", class.prio >> 3 & 0x3ff)
        }
        (None, _) if cdl => "no limit".to_owned(),
        (None, _) => "no priority".to_owned(),
    };
    let mixed = measured.classes.iter().any(|other| other.dir != class.dir);
    match (mixed, class.dir) {
        (false, _) => name,
        (true, Direction::Read) => format!("reads, {name}"),
        (true, _) => format!("writes, {name}"),
    }
}

fn rate(iops: Option<f64>) -> String {
    match iops {
        None => "–".to_owned(),
        Some(iops) if iops < 100.0 => format!("{iops:.1}"),
        Some(iops) => format!("{iops:.0}"),
    }
}

/// Two digits where they say something.
fn percent(value: f64) -> String {
    match value.abs() {
        ..10.0 => format!("{value:.2} %"),
        _ => format!("{value:.1} %"),
    }
}

fn share(share: Option<IoShare>) -> String {
    match share {
        None => "–".to_owned(),
        Some(IoShare { percent: 0.0, .. }) => "0 %".to_owned(),
        // 95 % of the normal distribution, as everywhere behind a ±.
        Some(share) => format!("{:.2} ± {:.2} %", share.percent, 1.96 * share.error_percent),
    }
}

/// How many missed their limit by the host's clock, and how many by the disk's own count;
/// empty where the disk does not say.
fn counts(class: &PriorityClass) -> String {
    let both = class.over.zip(class.disk_over);
    both.map_or_else(String::new, |(host, disk)| format!("{host}/{disk}"))
}

/// Nobody can say: `?`. Nothing could be: empty.
fn aborted(class: &PriorityClass) -> String {
    match (class.limit, class.aborted) {
        (None, _) => String::new(),
        (Some(_), None) => "?".to_owned(),
        (Some(_), Some(_)) => share(class.aborted_share()),
    }
}

fn against(point: &DepthPoint) -> String {
    point
        .against_percent
        .map_or_else(String::new, |percent| format!("{percent:+.1} %"))
}

/// What `--json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PrioDocument<'p> {
    /// [`SCHEMA`]
    schema: &'static str,
    /// Name of the record.
    run: &'p str,
    status: &'p str,
    /// What the run says of the device; of the other four likewise.
    device: Option<&'p Value>,
    system: Option<&'p Value>,
    options: Option<&'p Value>,
    limits: Option<&'p Value>,
    outdir: Option<&'p Value>,
    workloads: Vec<WorkloadDocument<'p>>,
}

/// A workload at its depths.
#[derive(Debug, Serialize, JsonSchema)]
struct WorkloadDocument<'p> {
    /// `baseline`, `ncqprio`, `cdlsingle`, `cdlmulti`
    name: &'p str,
    words: &'p str,
    points: Vec<PointDocument<'p>>,
}

/// A workload at one depth; null: not measured, or not to be had.
#[derive(Debug, Serialize, JsonSchema)]
struct PointDocument<'p> {
    iodepth: u64,
    failure: Option<&'p str>,
    /// Its figures are of the time until then.
    interrupted: bool,
    runtime_ms: Option<u64>,
    n: Option<u64>,
    iops: Option<f64>,
    iops_against_baseline_percent: Option<f64>,
    aborted: Option<u64>,
    percentiles_exact: Option<bool>,
    classes: Vec<ClassDocument>,
}

/// The I/Os of one priority.
#[derive(Debug, Serialize, JsonSchema)]
struct ClassDocument {
    direction: Direction,
    /// As ioprio_set(2) has it.
    prio: u16,
    class: Option<&'static str>,
    level: u16,
    hint: u16,
    limit_ns: Option<u64>,
    n: u64,
    iops: Option<f64>,
    lat_avg_ns: f64,
    lat_p99_ns: u64,
    lat_max_ns: u64,
    /// Later than their limit.
    over: Option<u64>,
    over_percent: Option<f64>,
    /// Of a 95 % interval, the half.
    over_percent_error: Option<f64>,
    /// What the disk itself counts of I/Os that missed this limit, the ramp among them;
    /// null where it does not say.
    disk_over: Option<u64>,
    aborted: Option<u64>,
    aborted_percent: Option<f64>,
    aborted_percent_error: Option<f64>,
}

/// The document of a run.
pub fn document(prio: &Prio) -> PrioDocument<'_> {
    let fact = |name: &str| prio.facts.get(name);
    PrioDocument {
        schema: SCHEMA,
        run: &prio.run,
        status: &prio.status,
        device: fact("device"),
        system: fact("system"),
        options: fact("options"),
        limits: fact("limits"),
        outdir: fact("outdir"),
        workloads: (prio.workloads.iter())
            .map(|workload| WorkloadDocument {
                name: &workload.name,
                words: &workload.words,
                points: workload.points.iter().map(PointDocument::of).collect(),
            })
            .collect(),
    }
}

impl<'p> PointDocument<'p> {
    fn of(point: &'p DepthPoint) -> Self {
        let measured = point.measured.as_ref();
        Self {
            iodepth: point.depth,
            failure: point.failure.as_deref(),
            interrupted: point.interrupted,
            runtime_ms: measured.map(|m| m.runtime_ms),
            n: measured.map(|m| m.n),
            iops: measured.and_then(|m| m.iops),
            iops_against_baseline_percent: point.against_percent,
            aborted: measured.and_then(|m| m.aborted),
            percentiles_exact: measured.map(|m| m.exact),
            classes: (measured.iter())
                .flat_map(|m| m.classes.iter().map(ClassDocument::of))
                .collect(),
        }
    }
}

impl ClassDocument {
    fn of(class: &PriorityClass) -> Self {
        let percent = |share: Option<IoShare>| share.map(|share| share.percent);
        let error = |share: Option<IoShare>| share.map(|share| share.error_percent);
        let (over, aborted) = (class.over_share(), class.aborted_share());
        Self {
            direction: class.dir,
            prio: class.prio,
            class: fathom_model::log::class_name(class.prio >> 13),
            level: class.prio & 7,
            hint: class.prio >> 3 & 0x3ff,
            limit_ns: class.limit.and_then(|limit| limit.ns),
            n: class.n,
            iops: class.iops,
            lat_avg_ns: class.avg_ns,
            lat_p99_ns: class.p99_ns,
            lat_max_ns: class.max_ns,
            over: class.over,
            over_percent: percent(over),
            over_percent_error: error(over),
            disk_over: class.disk_over,
            aborted: class.aborted,
            aborted_percent: percent(aborted),
            aborted_percent_error: error(aborted),
        }
    }
}
