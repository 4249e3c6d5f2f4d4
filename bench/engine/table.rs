//! The results as people and programs read them.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::Lab;
use crate::agreement::Agreement;
use crate::cells::{Cell, Figures};
use crate::contenders::{ALL, Contender};
use crate::machine::Machine;
use crate::start::Start;

/// Name and version of `bench/engine.json`.
const SCHEMA: &str = "fathom.bench.engine/1";

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Results {
    pub machine: Machine,
    pub conditions: Conditions,
    pub start: Option<Vec<Start>>,
    pub agreements: Vec<Agreement>,
    pub cells: Vec<Cell>,
}

/// How it was measured.
#[derive(Debug, Serialize)]
pub struct Conditions {
    pub rounds: usize,
    pub runtime: &'static str,
    pub bytes: u64,
    /// Whether a cpuset held everything to one core.
    pub cpuset: bool,
    /// Of the last minute before, processes that ran or wanted to.
    pub load: f64,
    /// Cores that something else kept busy meanwhile, on average.
    pub others: f64,
}

impl Conditions {
    pub fn now(lab: &Lab) -> Self {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split_whitespace().next().map(str::parse);
        Self {
            rounds: lab.size.rounds,
            runtime: lab.size.runtime,
            bytes: lab.size.bytes,
            cpuset: lab.core.is_tight(),
            load: load.and_then(Result::ok).unwrap_or(f64::NAN),
            others: 0.0,
        }
    }
}

/// What is to be reached.
struct Target {
    what: &'static str,
    limit: String,
    value: Option<f64>,
    unit: &'static str,
    met: bool,
}

impl Results {
    fn figures(&self, place: &str, engine: &str, who: Contender) -> Option<&Figures> {
        let of_cell =
            |cell: &&Cell| cell.place == place && cell.engine == engine && cell.depth == 32;
        let cell = self.cells.iter().find(of_cell)?;
        cell.figures.iter().find(|figures| figures.contender == who)
    }

    fn targets(&self) -> Vec<Target> {
        let zram = |who| self.figures("zram", "io_uring", who);
        let iops = |who| zram(who).map(|figures| figures.iops);
        let batched = iops(Contender::NativeBatched);
        let over = |other: Contender| Some(batched? / iops(other)?);
        let user = zram(Contender::NativeBatched).map(|figures| figures.user_ns);
        let nothing = self.figures("nothing", "null", Contender::NativeBatched);
        let first = self.start.as_ref().and_then(|start| start.first());
        vec![
            at_most(
                "user CPU per I/O, io_uring in batches on zram, QD 32",
                user,
                60.0,
                "ns",
            ),
            at_least(
                "its IOPS over fio's by default",
                over(Contender::Fio),
                1.5,
                "×",
            ),
            at_least(
                "its IOPS over fio's tuned",
                over(Contender::FioTuned),
                1.0,
                "×",
            ),
            at_least(
                "null engine, QD 32",
                nothing.map(|f| f.iops / 1e6),
                20.0,
                "M IOPS",
            ),
            at_most(
                "start to first I/O",
                first.map(|s| s.first_io_ms),
                10.0,
                "ms",
            ),
        ]
    }
}

fn at_most(what: &'static str, value: Option<f64>, limit: f64, unit: &'static str) -> Target {
    Target {
        what,
        limit: format!("≤ {limit} {unit}"),
        value,
        unit,
        met: value.is_some_and(|value| value <= limit),
    }
}

fn at_least(what: &'static str, value: Option<f64>, limit: f64, unit: &'static str) -> Target {
    Target {
        what,
        limit: format!("≥ {limit} {unit}"),
        value,
        unit,
        met: value.is_some_and(|value| value >= limit),
    }
}

/// A cell as a row of the table.
pub fn row(cell: &Cell) -> String {
    let mut text = format!("| {} | {} | {} |", cell.place, cell.engine, cell.depth);
    for figures in &cell.figures {
        let _ = write!(
            text,
            " {:.0} k, {:.0} + {:.0}, {:.2} |",
            figures.iops / 1e3,
            figures.user_ns,
            figures.system_ns,
            figures.achieved_depth
        );
    }
    text
}

/// What was to be reached; a short trial is not judged.
fn judged(results: &Results) -> String {
    if results.conditions.rounds == 1 {
        return String::new();
    }
    let mut text = "| to reach | | measured | |\n|---|---:|---:|---|\n".to_owned();
    for target in results.targets() {
        let value = target
            .value
            .map_or_else(|| "–".to_owned(), |v| format!("{v:.2} {}", target.unit));
        let met = match (target.value, target.met) {
            (None, _) => "not measured",
            (_, true) => "met",
            (_, false) => "**missed**",
        };
        let _ = writeln!(
            text,
            "| {} | {} | {value} | {met} |",
            target.what, target.limit
        );
    }
    text
}

pub fn markdown(results: &Results) -> String {
    let how = &results.conditions;
    let mut text = format!(
        "{}\n\n{} rounds of {}, {} MiB a target; load before: {:.2}; other processes kept {:.2} cores busy meanwhile; {}.\n\n",
        results.machine,
        how.rounds,
        how.runtime,
        how.bytes >> 20,
        how.load,
        how.others,
        if how.cpuset {
            "a cpuset holds all threads to one core"
        } else {
            "one core by affinity, which kernel workers may leave"
        },
    );
    text += &judged(results);
    text += "\nIOPS, ns of CPU per I/O (user + system), and the depth that was kept (IOPS × mean latency; NaN where latencies are not measured):\n\n| target | engine | QD |";
    let shown = results.cells.first().map_or(&[][..], |cell| &cell.figures);
    let columns = ALL
        .iter()
        .filter(|who| shown.iter().any(|f| f.contender == **who));
    for who in columns.clone() {
        let _ = write!(text, " {} |", who.name());
    }
    text += "\n|---|---|---:|";
    columns.for_each(|_| text += "---:|");
    text += "\n";
    for cell in &results.cells {
        let _ = writeln!(text, "{}", row(cell));
    }
    if let Some(start) = &results.start {
        text += "\n| one read | to the read | to the end | rounds |\n|---|---:|---:|---:|\n";
        for start in start {
            let _ = writeln!(
                text,
                "| {} | {:.1} ms | {:.1} ms | {} |",
                start.contender.name(),
                start.first_io_ms,
                start.whole_ms,
                start.rounds
            );
        }
    }
    text += &agreed(results);
    text
}

/// What both engines find of devices that take their own time.
fn agreed(results: &Results) -> String {
    if results.agreements.is_empty() {
        return String::new();
    }
    let mut text =
        "\n| where | job | IOPS of fio | native | ratio | mean latency of fio | native | ratio | |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---|\n"
            .to_owned();
    for one in &results.agreements {
        let (fio, native) = (&one.fio, &one.native);
        let met = match (results.conditions.rounds, one.is_met()) {
            (1, _) => "",
            (_, true) => "agree",
            (_, false) => "**do not agree**",
        };
        let _ = writeln!(
            text,
            "| {} | {} | {:.0} | {:.0} | {:.3} | {:.3} ms | {:.3} ms | {:.3} | {met} |",
            one.place,
            one.job,
            fio.iops,
            native.iops,
            native.iops / fio.iops,
            fio.mean_latency_ms,
            native.mean_latency_ms,
            native.mean_latency_ms / fio.mean_latency_ms
        );
    }
    text
}

pub fn write(dir: &Path, results: &Results) -> io::Result<()> {
    fs::write(dir.join("engine.md"), markdown(results))?;
    let mut document = serde_json::json!({ "schema": SCHEMA });
    if let (Some(document), Ok(serde_json::Value::Object(rest))) =
        (document.as_object_mut(), serde_json::to_value(results))
    {
        document.extend(rest);
    }
    fs::write(dir.join("engine.json"), format!("{document:#}\n"))
}
