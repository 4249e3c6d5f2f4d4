//! How far a run is and what came of it, in words and as a document.

use fathom_analysis::guard::MeasurementTotals;
use fathom_analysis::rate::Rates;
use fathom_document::rfc3339;
use fathom_flow::PointOutcome;
use fathom_flow::past::COMMAND;
use fathom_flow::plan_log::Head;
use fathom_flow::progress::{PointCounts, Progress, ProgressEvent};
use fathom_model::{RunStatus, units};
use fathom_sheet::style::{Style, Tone, wrap};
use serde::Serialize;

use super::stage;
use crate::live::{aligned, bar, clock};

/// What stands beside everything that was simulated.
pub const SIMULATION: &str = "SIMULATION: no device is measured";
/// Lines of failed and of left out points; the document has them all.
const NAMED_MAX: usize = 10;

/// What happened, in a line: a mark with its tone, and the text. `room` is for
/// the point's name.
pub fn happened(what: &ProgressEvent, room: usize) -> (Tone, &'static str, String) {
    match what {
        ProgressEvent::Ended(ended) => {
            let name = match ended.repetition {
                1 => ended.id.clone(),
                n => format!("{} #{n}", ended.id),
            };
            // The end of a path tells points apart, its begin does not.
            let name = tail(&name, room);
            let (tone, mark, text) = match &ended.came {
                PointOutcome::Done(totals) => (Tone::Good, "✓", figures(totals)),
                PointOutcome::Failed(reason) => (Tone::Bad, "✗", one_line(reason).to_owned()),
                PointOutcome::Skipped(reason) | PointOutcome::Postponed(reason) => {
                    (Tone::Doubtful, "–", reason.clone())
                }
                PointOutcome::Unfinished => (Tone::Doubtful, "…", String::new()),
            };
            (tone, mark, format!("{name}  {text}"))
        }
        ProgressEvent::Skipped {
            series,
            measurements,
            reason,
        } => {
            let series = tail(series, room);
            let text = format!("{series}  {measurements} left out: {reason}");
            (Tone::Doubtful, "–", text)
        }
        ProgressEvent::Resumed(gap_ms) => {
            let text = format!("resumed after {}", clock(*gap_ms));
            (Tone::Strong, "↻", text)
        }
        ProgressEvent::StageEnded(ended) => {
            let (stage, end, took_ms) = &**ended;
            stage::ended(stage, end, *took_ms)
        }
        ProgressEvent::Note(text) => (Tone::Doubtful, "!", one_line(text).to_owned()),
    }
}

/// The first line of a reason; what to do stands in the lines below.
fn one_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The end of a name that is too long.
fn tail(name: &str, room: usize) -> String {
    let count = name.chars().count();
    if count <= room {
        return name.to_owned();
    }
    let skipped = count + 1 - room.max(2);
    let end: String = name.chars().skip(skipped).collect();
    format!("…{end}")
}

fn figures(totals: &MeasurementTotals) -> String {
    let iops = units::count(totals.iops);
    let bandwidth = units::bytes_per_second(totals.bw_bytes);
    match totals.clat_ns {
        Some(ns) => format!("{iops} IOPS  {bandwidth}  clat {}", units::latency(ns)),
        None => format!("{iops} IOPS  {bandwidth}"),
    }
}

/// The summary of a campaign's run.
pub fn text(progress: &Progress, style: Style) -> String {
    let counts = progress.counts();
    let mut lines = Vec::new();
    let head = &progress.head;
    let simulated = match head.engine.as_str() {
        "sim" => format!("  {}", style.paint(Tone::Bad, SIMULATION)),
        _ => String::new(),
    };
    lines.push(format!("run       {}{simulated}", progress.id));
    if progress.command != COMMAND {
        let what = format!("{}: {}", progress.command, progress.name);
        lines.push(format!("what      {what}"));
    }
    lines.push(format!("device    {}", device(head)));
    lines.push(format!("status    {}", status(progress, &counts, style)));
    stage::summary(progress, style, &mut lines);
    if counts.steps > 0 {
        lines.push(format!("measured  {}", measured(&counts, style)));
    }
    if let Some(current) = progress.current() {
        lines.push(format!(
            "now       {} ({})",
            current.id,
            clock(current.ran_ms)
        ));
        let width = style.width.map(|width| width.saturating_sub(10));
        let beside = Style { width, ..style };
        let rates = progress.rates().iter();
        let rates = rates.map(|(dir, rate)| aligned(beside, *dir, rate));
        lines.extend(rates.map(|text| format!("          {text}")));
    }
    named(progress, style, &mut lines);
    if let Some(hint) = hint(progress, &counts) {
        lines.push(format!("next      {hint}"));
    }
    lines.join("\n") + "\n"
}

fn status(progress: &Progress, counts: &PointCounts, style: Style) -> String {
    let status = progress.status();
    let tone = match status {
        RunStatus::Complete => Tone::Good,
        RunStatus::Interrupted | RunStatus::Running => Tone::Doubtful,
        RunStatus::Failed => Tone::Bad,
    };
    let took = progress.last_ms().saturating_sub(progress.started_ms());
    let mut text = format!(
        "{}, {}",
        style.paint(tone, &status.to_string()),
        clock(took)
    );
    if (counts.left > 0 || progress.stage().is_some())
        && let Some(left_ms) = progress.left_ms()
    {
        text += &format!(", {} left", clock(left_ms));
    }
    text
}

fn measured(counts: &PointCounts, style: Style) -> String {
    let ended = (counts.steps - counts.left) as u64;
    let mut parts = vec![format!("{} of {}", counts.done, counts.steps)];
    if counts.failed > 0 {
        parts.push(style.paint(Tone::Bad, &format!("{} failed", counts.failed)));
    }
    if counts.skipped > 0 {
        parts.push(style.paint(Tone::Doubtful, &format!("{} left out", counts.skipped)));
    }
    if counts.left > 0 {
        parts.push(format!("{} left", counts.left));
    }
    format!(
        "{}  {}",
        bar(style, ended, counts.left as u64),
        parts.join(", ")
    )
}

/// The points that failed and those that were left out; those of one folder with the
/// same reason are told once.
fn named(progress: &Progress, style: Style, lines: &mut Vec<String>) {
    let room = usize::from(style.width.unwrap_or(u16::MAX)).saturating_sub(10);
    for word in ["failed", "left out", "left"] {
        let of_kind = progress.measurements().filter_map(|(step, came)| {
            let (kind, reason) = match came? {
                PointOutcome::Failed(reason) => ("failed", reason),
                PointOutcome::Skipped(reason) => ("left out", reason),
                PointOutcome::Postponed(reason) => ("left", reason),
                _ => return None,
            };
            (kind == word).then(|| (step.id.as_str(), one_line(reason)))
        });
        let mut groups: Vec<(&str, &str, u32)> = Vec::new();
        for (id, reason) in of_kind {
            let is_same = |(first, known, _): &&mut (&str, &str, u32)| {
                *known == reason && folder(first) == folder(id)
            };
            match groups.iter_mut().find(is_same) {
                Some((_, _, count)) => *count += 1,
                None => groups.push((id, reason, 1)),
            }
        }
        for (place, (id, reason, count)) in groups.iter().take(NAMED_MAX).enumerate() {
            let mut word = if place == 0 { word } else { "" };
            let text = match count {
                1 => format!("{id}: {reason}"),
                n => format!("{}: {n} points: {reason}", folder(id)),
            };
            for line in wrap(&text, room.max(40)) {
                lines.push(format!("{word:<9} {line}"));
                word = "";
            }
        }
        let more = groups.len().saturating_sub(NAMED_MAX);
        if more > 0 {
            lines.push(format!("          … and {more} more; --json has all"));
        }
    }
}

/// The folder of a point.
fn folder(id: &str) -> &str {
    id.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// What is measured, and by what.
pub fn device(head: &Head) -> String {
    let parts = [head.dut.display().to_string(), head.engine.clone()];
    let known: Vec<String> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    known.join(", ")
}

fn hint(progress: &Progress, counts: &PointCounts) -> Option<String> {
    let status = progress.status();
    let is_campaign = progress.command == COMMAND;
    if let Some(reason) = progress.waits() {
        return Some(format!("{reason}, then: fathom resume {}", progress.id));
    }
    match status {
        RunStatus::Running => Some("fathom watch follows it".to_owned()),
        RunStatus::Interrupted if progress.command.starts_with("snia") => {
            Some("fathom snia resume continues".to_owned())
        }
        RunStatus::Interrupted if progress.command == "provision" => {
            Some("fathom provision --resume continues".to_owned())
        }
        RunStatus::Interrupted | RunStatus::Failed if !is_campaign => {
            Some("fathom show tells what was measured".to_owned())
        }
        RunStatus::Interrupted => Some("fathom resume continues".to_owned()),
        RunStatus::Failed if counts.left > 0 => {
            Some("fathom resume continues, after fixing the cause".to_owned())
        }
        // A stage has, which is tried again in any case.
        RunStatus::Failed if counts.failed == 0 => Some("fathom resume tries again".to_owned()),
        RunStatus::Failed => Some(format!(
            "fathom resume --retry-failed tries {} again",
            units::count(counts.failed as f64)
        )),
        RunStatus::Complete => None,
    }
}

/// What `fathom status --json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Document {
    /// `fathom.status/1`
    schema: &'static str,
    id: String,
    folder: String,
    dut: String,
    engine: String,
    simulated: bool,
    status: RunStatus,
    /// RFC 3339 UTC: when it began or went on, and its last event.
    started: String,
    updated: String,
    steps: usize,
    done: usize,
    failed: usize,
    skipped: usize,
    left: usize,
    /// Null where the plan does not tell how long its steps take.
    left_ms: Option<u64>,
    current: Option<Now>,
    /// What somebody else is to do before it goes on; absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
    /// The stage in progress that makes the device ready.
    stage: Option<stage::Now>,
    /// Every such stage that has begun.
    stages: Vec<stage::Row>,
    /// The last measurement that was done.
    last: Option<Last>,
    failures: Vec<Row>,
    /// Points that this record does without.
    skips: Vec<Row>,
    /// Points that this start had no room for, among those that are left.
    postponed: Vec<Row>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Now {
    id: String,
    repetition: u32,
    step: u32,
    ran_ms: u64,
    remaining_ms: Option<u64>,
    rates: Vec<Interval>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Interval {
    dir: &'static str,
    iops: f64,
    bw_bytes: f64,
    clat_mean_ns: Option<f64>,
    clat_p99_ns: Option<f64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Last {
    id: String,
    repetition: u32,
    iops: f64,
    bw_bytes: f64,
    clat_mean_ns: Option<f64>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Row {
    id: String,
    repetition: u32,
    reason: String,
}

fn intervals(rates: &Rates) -> Vec<Interval> {
    let interval = |(dir, rate): (&fathom_model::Direction, &fathom_analysis::rate::Rate)| {
        let latencies = rate.latencies_ns();
        Interval {
            dir: dir.name(),
            iops: rate.iops,
            bw_bytes: rate.bw_bytes,
            clat_mean_ns: latencies.map(|(mean, _)| mean),
            clat_p99_ns: latencies.map(|(_, p99)| p99),
        }
    };
    rates.iter().map(interval).collect()
}

/// The document of a campaign's run.
pub fn document(progress: &Progress) -> Document {
    let counts = progress.counts();
    let head = &progress.head;
    let rows = |wanted: fn(&PointOutcome) -> Option<&String>| -> Vec<Row> {
        let row = |(step, came): (&fathom_flow::plan_log::PlannedStep, Option<&PointOutcome>)| {
            Some(Row {
                id: step.id.clone(),
                repetition: step.repetition,
                reason: wanted(came?)?.clone(),
            })
        };
        progress.measurements().filter_map(row).collect()
    };
    Document {
        schema: "fathom.status/1",
        id: progress.id.clone(),
        folder: head.folder.display().to_string(),
        dut: head.dut.display().to_string(),
        engine: head.engine.clone(),
        simulated: head.engine == "sim",
        status: progress.status(),
        started: rfc3339(progress.started_ms()),
        updated: rfc3339(progress.last_ms()),
        steps: counts.steps,
        done: counts.done,
        failed: counts.failed,
        skipped: counts.skipped,
        left: counts.left,
        left_ms: progress.left_ms(),
        current: progress.current().map(|current| Now {
            id: current.id.clone(),
            repetition: current.repetition,
            step: current.step,
            ran_ms: current.ran_ms,
            remaining_ms: current.remaining_ms,
            rates: intervals(progress.rates()),
        }),
        waits: progress.waits().map(str::to_owned),
        stage: stage::now(progress),
        stages: stage::rows(progress),
        last: progress.last_done().map(|(id, repetition, totals)| Last {
            id: id.to_owned(),
            repetition,
            iops: totals.iops,
            bw_bytes: totals.bw_bytes,
            clat_mean_ns: totals.clat_ns,
        }),
        failures: rows(|came| match came {
            PointOutcome::Failed(reason) => Some(reason),
            _ => None,
        }),
        skips: rows(|came| match came {
            PointOutcome::Skipped(reason) => Some(reason),
            _ => None,
        }),
        postponed: rows(|came| match came {
            PointOutcome::Postponed(reason) => Some(reason),
            _ => None,
        }),
    }
}
