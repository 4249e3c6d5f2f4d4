//! What priorities and limits did, workload by workload and depth by depth: the
//! table and the document `fathom.prio/1`.

use fathom_analysis::priority::{DepthFigures, IoShare, PriorityClass};
use fathom_model::{Direction, units};
use serde_json::{Value, json};

use crate::grid::{Grid, GridCell, figures, words};
use crate::style::{Style, Tone};

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
#[must_use]
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

fn grid(workload: &PrioCurve) -> Grid {
    let mut grid = Grid::new([
        figures("QD", 0),
        words("I/Os", 0),
        figures("number", 4),
        figures("share", 3),
        figures("IOPS", 0),
        figures("mean", 2),
        figures("p99", 1),
        figures("over limit", 0),
        figures("aborted", 0),
        figures("against baseline", 0),
    ])
    .continued(2);
    for point in &workload.points {
        let depth = point.depth.to_string();
        let Some(measured) = &point.measured else {
            let why = match (&point.failure, point.interrupted) {
                (Some(failure), _) => failure,
                (None, true) => "interrupted",
                (None, false) => "no I/O came back",
            };
            let mut line: Vec<GridCell> = vec![depth.into(), GridCell::new(Tone::Bad, why)];
            line.resize_with(10, GridCell::default);
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
            grid.line([
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
                aborted(class).into(),
                against.into(),
            ]);
        }
        if several {
            let all = |text: String| GridCell::new(Tone::Strong, text);
            grid.line([
                GridCell::default(),
                all("all".to_owned()),
                all(measured.n.to_string()),
                GridCell::default(),
                all(rate(measured.iops)),
                GridCell::default(),
                GridCell::default(),
                GridCell::default(),
                all(measured
                    .aborted
                    .map_or_else(String::new, |n| share(IoShare::of(n, measured.n + n)))),
                all(against(point)),
            ]);
        }
    }
    grid
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

/// The document of a run.
#[must_use]
pub fn document(prio: &Prio) -> Value {
    let workloads: Vec<Value> = prio.workloads.iter().map(workload_document).collect();
    json!({
        "schema": SCHEMA,
        "run": prio.run,
        "status": prio.status,
        "device": prio.facts.get("device"),
        "system": prio.facts.get("system"),
        "options": prio.facts.get("options"),
        "limits": prio.facts.get("limits"),
        "outdir": prio.facts.get("outdir"),
        "workloads": workloads,
    })
}

fn workload_document(workload: &PrioCurve) -> Value {
    let points: Vec<Value> = workload.points.iter().map(point_document).collect();
    json!({ "name": workload.name, "words": workload.words, "points": points })
}

fn point_document(point: &DepthPoint) -> Value {
    let measured = point.measured.as_ref();
    let classes = measured.map(|m| m.classes.iter().map(class_document).collect::<Vec<_>>());
    json!({
        "iodepth": point.depth,
        "failure": point.failure,
        "interrupted": point.interrupted,
        "runtime_ms": measured.map(|m| m.runtime_ms),
        "n": measured.map(|m| m.n),
        "iops": measured.and_then(|m| m.iops),
        "iops_against_baseline_percent": point.against_percent,
        "aborted": measured.and_then(|m| m.aborted),
        "percentiles_exact": measured.map(|m| m.exact),
        "classes": classes.unwrap_or_default(),
    })
}

fn class_document(class: &PriorityClass) -> Value {
    let percent = |share: Option<IoShare>| share.map(|share| share.percent);
    let error = |share: Option<IoShare>| share.map(|share| share.error_percent);
    let (over, aborted) = (class.over_share(), class.aborted_share());
    json!({
        "direction": class.dir,
        "prio": class.prio,
        "class": fathom_model::log::class_name(class.prio >> 13),
        "level": class.prio & 7,
        "hint": class.prio >> 3 & 0x3ff,
        "limit_ns": class.limit.and_then(|limit| limit.ns),
        "n": class.n,
        "iops": class.iops,
        "lat_avg_ns": class.avg_ns,
        "lat_p99_ns": class.p99_ns,
        "lat_max_ns": class.max_ns,
        "over": class.over,
        "over_percent": percent(over),
        "over_percent_error": error(over),
        "aborted": class.aborted,
        "aborted_percent": percent(aborted),
        "aborted_percent_error": error(aborted),
    })
}
