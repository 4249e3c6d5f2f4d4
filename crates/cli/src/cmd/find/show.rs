//! What a search found: a document, or the answer in words with the curve behind it.

use std::path::Path;

use fathom_analysis::find::{FindAnswer, FindEnd, FindGoal, FindLoads, ProbeResult};
use fathom_flow::{History, JobStep};
use fathom_model::{FigureVerdict, VerdictLevel, units};
use fathom_questions::find::{COMMAND, FindConfig, FindScript, RowFound};
use fathom_record::Record;
use fathom_report::search::SearchGraph;
use fathom_sheet::answer::{AnswerTable, RunAnswer};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::Tone;
use schemars::JsonSchema;
use serde::Serialize;

use super::Global;
use super::emit::FindEmit;
use crate::out;

/// What `--json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FindDocument {
    /// `fathom.find/1`
    schema: &'static str,
    /// The record's folder.
    run: String,
    #[serde(flatten)]
    config: FindConfig,
    /// Of a single search; absent where it did not come to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<FindAnswer>,
    /// Of a single search: what was measured, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    probes: Option<Vec<ProbeResult>>,
    /// Of a single search: whether the figures of the answer are true.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<FigureVerdict>,
    /// Of a single search by I/Os under way with a limit of a percentile: that percentile at
    /// the answer, in ns, had the I/Os that waited for a slow one been sent in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    corrected_ns: Option<f64>,
    /// Several searches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    found: Vec<RowFound>,
}

/// What the record tells of a search.
pub fn found(record: &Record, config: &FindConfig) -> Vec<RowFound> {
    let history = History::of(&record.entries);
    let script = FindScript {
        job: JobStep::new((1, 1), COMMAND, String::new(), &[]),
        config: config.clone(),
    };
    script.state(&history).0
}

/// The answer, and the curve behind it.
pub fn show(
    global: &Global,
    (config, emit): (&FindConfig, Option<FindEmit>),
    dir: &Path,
) -> anyhow::Result<()> {
    let record = Record::open(dir)?;
    let mut found = found(&record, config);
    let judged = fathom_document::read(dir)?;
    for row in &mut found {
        row.judge(&judged);
        row.correct(config, &judged);
    }
    if global.json || emit == Some(FindEmit::Json) {
        let mut document = FindDocument {
            schema: "fathom.find/1",
            run: record.id(),
            config: config.clone(),
            answer: None,
            probes: None,
            verdict: None,
            corrected_ns: None,
            found: Vec::new(),
        };
        match config.rows.is_empty().then(|| found.pop()).flatten() {
            Some(one) => {
                (document.answer, document.probes) = (one.answer, Some(one.probes));
                (document.verdict, document.corrected_ns) = (one.verdict, one.corrected_ns);
            }
            None => document.found = found,
        }
        return out::json(&document);
    }
    if let Some(emit) = emit {
        out::text(emit.text(&found, &judged));
        return Ok(());
    }
    for row in &found {
        if found.len() == 1 {
            out::text(curve(config, row).render(out::style(global.color)));
        }
        out::line(sentence(config, row));
        row.corrected_ns
            .into_iter()
            .for_each(|ns| out::line(omitted(config, ns)));
        let against = row.verdict.iter().flat_map(FigureVerdict::against);
        against.for_each(|it| out::line(format!("  {}: {}", it.level.name(), it.sentence)));
    }
    if config.rows.len() > found.len() {
        out::line(unfinished());
    }
    Ok(())
}

/// What a closed loop does not count.
fn omitted(config: &FindConfig, corrected_ns: f64) -> String {
    format!(
        "  a closed loop sends nothing while it waits for a slow I/O; had it, the {} would be {}",
        figure(config),
        units::latency(corrected_ns)
    )
}

/// What reports and graphs of the run show first.
pub fn answer(config: &FindConfig, dir: &Path) -> anyhow::Result<RunAnswer> {
    let mut found = found(&Record::open(dir)?, config);
    let judged = fathom_document::read(dir)?;
    let mut answer = RunAnswer::default();
    for row in &mut found {
        row.judge(&judged);
        let has_load = row.answer.is_some_and(|it| it.load.is_some());
        let tone = match has_load {
            true => tone(row.verdict.as_ref()),
            false => Tone::Doubtful,
        };
        answer.say(tone, sentence(config, row));
        let probes = looked(config.goal, &row.probes);
        let probes: Vec<ProbeResult> = probes.into_iter().map(|(probe, _)| probe).collect();
        let graph = SearchGraph {
            title: title(config, row),
            over: &config.over,
            goal: config.goal,
            // It is the title of an axis.
            figure: figure(config).replacen("mean", "Mean", 1),
            probes: &probes,
            answer: row.answer,
        };
        let name = match row.row.name.as_str() {
            "" => COMMAND.to_owned(),
            name => format!("{COMMAND}-{name}"),
        };
        if let Some(chart) = graph.chart() {
            answer.draw(&name, chart);
        }
        answer.tables.push(AnswerTable {
            title: row.row.name.clone(),
            grid: curve(config, row),
        });
    }
    if config.rows.len() > found.len() {
        answer.say(Tone::Doubtful, unfinished());
    }
    Ok(answer)
}

/// How an answer is set whose figures are worth this.
pub fn tone(verdict: Option<&FigureVerdict>) -> Tone {
    match verdict.map(|verdict| verdict.level) {
        Some(VerdictLevel::Suspect | VerdictLevel::Invalid) => Tone::Doubtful,
        _ => Tone::Good,
    }
}

/// What was searched, over a graph.
fn title(config: &FindConfig, row: &RowFound) -> String {
    let what = match limit(config) {
        Some(limit) => format!("How much load keeps {limit}"),
        None => format!("Which {} is enough", config.over),
    };
    match row.row.name.as_str() {
        "" => what,
        name => format!("{what}: {name}"),
    }
}

/// The answer of one search.
fn sentence(config: &FindConfig, row: &RowFound) -> String {
    let name = match row.row.name.is_empty() {
        true => String::new(),
        false => format!("{}: ", row.row.name),
    };
    let answer = row.answer.as_ref();
    name + &answer.map_or_else(unfinished, |it| said(config, it))
}

pub fn unfinished() -> String {
    "the search did not come to its end: fathom resume goes on".to_owned()
}

fn curve(config: &FindConfig, row: &RowFound) -> Grid {
    let has_cpu = matches!(config.goal, FindGoal::Cpu { .. });
    let mut columns = vec![figures("load", 0), figures("n", 0), figures("IOPS", 0)];
    columns.push(figures(if has_cpu { "CPUs" } else { "latency" }, 0));
    columns.push(words("", 0));
    let mut grid = Grid::new(columns);
    for (probe, looks) in looked(config.goal, &row.probes) {
        let at = (probe.probe.load, probe.probe.jobs);
        let is_it = row
            .answer
            .is_some_and(|it| it.load.is_some() && (it.load, it.jobs) == at);
        let limit = config.goal.limit();
        let is_over = (limit.zip(probe.limited(config.goal))).is_some_and(|(most, it)| it > most);
        let value = match has_cpu {
            true => probe.cpu_percent.map(|percent| format!("{percent:.0} %")),
            false => probe.latency_ns.map(units::latency),
        };
        grid.line([
            GridCell::from(match probe.probe.load {
                Some(load) => of_jobs(format!("{load:.0}"), probe.probe.jobs),
                None => "no rate".to_owned(),
            }),
            GridCell::from(if looks > 1 {
                looks.to_string()
            } else {
                String::new()
            }),
            GridCell::from(units::count(probe.iops)),
            GridCell::from(value.unwrap_or_else(|| "–".to_owned())),
            match (is_it, is_over) {
                (true, _) => GridCell::new(Tone::Good, "◀"),
                (false, true) => GridCell::new(Tone::Doubtful, "too much"),
                _ => GridCell::default(),
            },
        ]);
    }
    grid
}

/// The probes by their load, and how many each line is of. Of a knee those of a load are
/// one line, their means; beside a limit each stands by itself, because percentiles have no
/// mean.
fn looked(goal: FindGoal, probes: &[ProbeResult]) -> Vec<(ProbeResult, usize)> {
    let load = |it: &ProbeResult| it.probe.load.unwrap_or(f64::INFINITY);
    let order = |it: &ProbeResult| load(it) * f64::from(it.probe.jobs.unwrap_or(1));
    let mut sorted = probes.to_vec();
    sorted.sort_by(|a, b| {
        let by_jobs = || a.probe.jobs.cmp(&b.probe.jobs);
        order(a).total_cmp(&order(b)).then_with(by_jobs)
    });
    let is_one = |a: &ProbeResult, b: &ProbeResult| {
        goal == FindGoal::Knee && (a.probe.load, a.probe.jobs) == (b.probe.load, b.probe.jobs)
    };
    let lines = sorted.chunk_by(is_one).map(|same| {
        let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
        let latencies: Vec<f64> = same.iter().filter_map(|it| it.latency_ns).collect();
        let line = ProbeResult {
            iops: mean(same.iter().map(|it| it.iops).collect()),
            latency_ns: (!latencies.is_empty()).then(|| mean(latencies)),
            ..same[0]
        };
        (line, same.len())
    });
    lines.collect()
}

/// How far a figure may be off. It is never off by nothing.
pub fn error_percent(error: f64) -> String {
    format!("{:.1} %", (100.0 * error).max(0.1))
}

fn of_jobs(load: String, jobs: Option<u32>) -> String {
    match jobs {
        Some(1) => format!("{load} × 1 job"),
        Some(jobs) => format!("{load} × {jobs} jobs"),
        None => load,
    }
}

/// Whose load it is, where several machines make it.
fn on_hosts(config: &FindConfig) -> String {
    match (config.hosts, &config.loads) {
        (None, _) => String::new(),
        (Some(n), FindLoads::Rates { .. }) => format!(" of all {n} machines together"),
        (Some(n), FindLoads::Whole(_)) => format!(" on each of {n} machines"),
    }
}

/// The answer in words.
fn said(config: &FindConfig, answer: &FindAnswer) -> String {
    let sure = answer
        .iops_error
        .map_or_else(String::new, |error| format!(" ± {}", error_percent(error)));
    let iops = format!("{}{sure} IOPS", units::count(answer.iops));
    let over = &config.over;
    let Some(load) = answer.load else {
        let least = answer.too_much.map_or_else(String::new, |load| {
            format!(", not even at {over}={load:.0}")
        });
        return format!("the limit is not kept{least}");
    };
    let load = of_jobs(format!("{over}={load:.0}"), answer.jobs) + &on_hosts(config);
    let Some(limit) = limit(config) else {
        return match answer.ended_by {
            FindEnd::Range => format!(
                "{load} is the best so far, with {iops}: it is the last that was tried; --to goes further"
            ),
            _ => format!("{load} is enough: {iops}, within 2 % of the best"),
        };
    };
    let most = match answer.too_much {
        Some(too_much) => format!("{load}, and {too_much:.0} is too much"),
        None => load,
    };
    let end = match answer.ended_by {
        FindEnd::Objective => "the limit ended the search",
        FindEnd::Device => "the device ended the search: it does no more",
        _ => "the last load that was tried keeps the limit",
    };
    format!("{limit}: {iops} at {most}; {end}")
}

/// `p99 of reads ≤ 1 ms`; none of a knee.
fn limit(config: &FindConfig) -> Option<String> {
    let limit = config.goal.limit()?;
    if let FindGoal::Cpu { .. } = config.goal {
        return Some(format!("CPUs ≤ {limit} %"));
    }
    Some(format!("{} ≤ {}", figure(config), units::latency(limit)))
}

/// What has the limit: `p99 of reads`.
fn figure(config: &FindConfig) -> String {
    if let FindGoal::Cpu { .. } = config.goal {
        return "CPUs".to_owned();
    }
    let figure = match config.percent {
        Some(percent) => format!("p{percent}"),
        None => "mean latency".to_owned(),
    };
    let of = config.of.map(|dir| format!(" of {}s", dir.name()));
    figure + &of.unwrap_or_default()
}
