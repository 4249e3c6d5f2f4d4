//! The results as people and programs read them.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::Lab;
use crate::agreement::Agreement;
use crate::cells::{Cell, Figures};
use crate::contenders::Contender;
use crate::machine::Machine;
use crate::start::Start;

/// Name and version of `bench/engine.json`.
const SCHEMA: &str = "fathom.bench.engine/2";

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct Results {
    pub machine: Machine,
    pub conditions: Conditions,
    pub start: Option<Vec<Start>>,
    pub agreements: Vec<Agreement>,
    pub cells: Vec<Cell>,
    /// One job on one CPU and two on two.
    pub pairs: Vec<[Cell; 2]>,
    pub rings: Vec<Cell>,
    pub latencies: Vec<Cell>,
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
            cpuset: lab.one.is_tight(),
            load: load.and_then(Result::ok).unwrap_or(f64::NAN),
            others: 0.0,
        }
    }
}

/// What is to be reached.
struct Target {
    what: String,
    limit: String,
    value: Option<f64>,
    unit: &'static str,
    met: bool,
}

fn figures_of(cell: &Cell, who: Contender) -> Option<&Figures> {
    cell.figures.iter().find(|figures| figures.contender == who)
}

impl Results {
    fn figures(&self, place: &str, engine: &str, who: Contender) -> Option<&Figures> {
        let of_cell = |cell: &&Cell| {
            let how = &cell.setting;
            cell.place == place && how.engine == engine && how.depth == 32
        };
        figures_of(self.cells.iter().find(of_cell)?, who)
    }

    fn targets(&self) -> Vec<Target> {
        let zram = |who| self.figures("zram", "io_uring", who);
        let user = |who| zram(who).map(|figures| figures.user_ns);
        let iops = |who| zram(who).map(|figures| figures.iops);
        let batched = iops(Contender::NativeBatched);
        let over = |other: Contender| Some(batched? / iops(other)?);
        let nothing = self.figures("nothing", "null", Contender::NativeBatched);
        let nothing = nothing.map(|figures| figures.iops / 1e6);
        let beside =
            |who| user(who).map_or_else(String::new, |ns| format!(" (t/io_uring: {ns:.0})"));
        let depth = zram(Contender::Native).and_then(|figures| figures.achieved_depth);
        let first = self.start.as_ref().and_then(|start| start.first());
        let first = first.map(|start| start.first_io_ms);
        let mut targets = vec![
            at_most(
                &format!(
                    "user CPU per I/O, io_uring in batches on zram, QD 32{}",
                    beside(Contender::Ring)
                ),
                user(Contender::NativeBatched),
                30.0,
                "ns",
            ),
            at_most(
                &format!("the same without batches{}", beside(Contender::RingSingle)),
                user(Contender::Native),
                90.0,
                "ns",
            ),
            at_least("its depth", depth, 31.0, "I/Os"),
            at_least("IOPS in batches over fio's", over(Contender::Fio), 1.5, "×"),
            at_least("over fio's tuned", over(Contender::FioTuned), 1.0, "×"),
            at_least("null engine, QD 32", nothing, 20.0, "M IOPS"),
        ];
        targets.extend(self.latencies.iter().map(cost_of_latencies));
        targets.extend(self.pairs.iter().filter_map(as_well_as_others));
        targets.push(at_most("start to first I/O", first, 10.0, "ms"));
        targets
    }
}

/// What the histograms add to the CPU time of an I/O that takes none.
fn cost_of_latencies(cell: &Cell) -> Target {
    let user = |who| figures_of(cell, who).map(|figures| figures.user_ns);
    let with = user(Contender::Native).zip(user(Contender::NativeBare));
    let what = format!("latency histograms, null engine, QD {}", cell.setting.depth);
    at_most(&what, with.map(|(with, without)| with - without), 2.0, "ns")
}

/// How many times the IOPS of one job on one CPU two on two have.
fn factor(pair: &[Cell; 2], who: Contender) -> Option<f64> {
    let [one, two] = pair;
    Some(figures_of(two, who)?.iops / figures_of(one, who)?.iops)
}

/// Two jobs on two CPUs gain as much as the others' do; what differs by less than this
/// differs from run to run.
fn as_well_as_others(pair: &[Cell; 2]) -> Option<Target> {
    const AS_WELL: f64 = 0.95;
    let others = [Contender::FioTuned, Contender::Ring];
    let best = others.iter().filter_map(|&who| factor(pair, who));
    let best = best.reduce(f64::max)?;
    let what = format!(
        "two jobs on two CPUs, {}: as fio tuned and t/io_uring, {best:.2} ×, within 5 %",
        pair[0].place
    );
    let own = factor(pair, Contender::NativeBatched);
    let limit = (best * AS_WELL * 100.0).round() / 100.0;
    Some(at_least(&what, own, limit, "×"))
}

fn at_most(what: &str, value: Option<f64>, limit: f64, unit: &'static str) -> Target {
    Target {
        what: what.to_owned(),
        limit: format!("≤ {limit} {unit}"),
        value,
        unit,
        met: value.is_some_and(|value| value <= limit),
    }
}

fn at_least(what: &str, value: Option<f64>, limit: f64, unit: &'static str) -> Target {
    Target {
        what: what.to_owned(),
        limit: format!("≥ {limit} {unit}"),
        value,
        unit,
        met: value.is_some_and(|value| value >= limit),
    }
}

/// A cell as a row of its table.
pub fn row(cell: &Cell) -> String {
    let how = &cell.setting;
    let jobs = match (how.jobs, how.cpus) {
        (1, 1) => String::new(),
        (1, cpus) => format!("{cpus} CPUs"),
        (jobs, cpus) => format!("{jobs} jobs, {cpus} CPUs"),
    };
    let more = match (jobs.as_str(), how.more) {
        ("", more) => more.to_owned(),
        (_, "") => jobs,
        (_, more) => format!("{jobs}, {more}"),
    };
    let mut text = format!(
        "| {} | {} | {} | {more} |",
        cell.place, how.engine, how.depth
    );
    for figures in &cell.figures {
        let _ = write!(
            text,
            " {:.0} k, {:.0} + {:.0}, {} |",
            figures.iops / 1e3,
            figures.user_ns,
            figures.system_ns,
            figures
                .achieved_depth
                .map_or_else(|| "–".to_owned(), |depth| format!("{depth:.2}"))
        );
    }
    text
}

/// Cells below each other, under the names of who took part in any.
fn table<'a>(text: &mut String, cells: impl Iterator<Item = &'a Cell> + Clone) {
    let widest = cells.clone().max_by_key(|cell| cell.figures.len());
    let Some(widest) = widest else { return };
    *text += "| target | engine | QD | |";
    for figures in &widest.figures {
        let _ = write!(text, " {} |", figures.contender.name());
    }
    *text += "\n|---|---|---:|---|";
    *text += &"---:|".repeat(widest.figures.len());
    *text += "\n";
    for cell in cells {
        let missing = widest.figures.len() - cell.figures.len();
        let _ = writeln!(text, "{}{}", row(cell), " – |".repeat(missing));
    }
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
    text += "\nIOPS, ns of CPU per I/O (user + system), and the depth that was achieved (IOPS × mean latency; – where latencies are not measured):\n\n";
    table(&mut text, results.cells.iter());
    if !results.pairs.is_empty() {
        text += "\nOne job on one CPU, and two on two:\n\n";
        table(&mut text, results.pairs.iter().flatten());
    }
    if !results.rings.is_empty() {
        text += "\nOther ways to the kernel:\n\n";
        table(&mut text, results.rings.iter());
    }
    if !results.latencies.is_empty() {
        text += "\nWith the latencies of every I/O and without:\n\n";
        table(&mut text, results.latencies.iter());
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
