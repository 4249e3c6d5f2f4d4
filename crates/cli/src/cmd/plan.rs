//! `fathom plan`: what a campaign will do, what it takes, what it writes.

use std::time::Duration;

use fathom_campaign::plan::{Cost, Overrides, Phase, Plan, Speed, Step};
use fathom_campaign::quick::parse_size;
use fathom_model::{Exit, units};
use fathom_report::grid::{Cell, Grid, figures, words};
use fathom_report::style::Tone;
use serde::Serialize;

use super::Global;
use super::campaign::{Which, tell_notes};
use super::job::present::count;
use crate::out;

/// A plan of more steps than this is shown by series, unless all are asked for.
const STEPS_SHOWN: usize = 40;

/// Show what a campaign will do, how long it takes, and what it writes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The steps stand in the order in which fathom run does them. Nothing is run or written.

Examples:
  fathom plan                          in the current folder
  fathom plan --steps                  every step, however many
  fathom plan --only randwrite --write-speed 900M
  DEV=/dev/loop3 fathom plan --json | jq .totals")]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Show every step of a long plan, not only its series
    #[arg(long)]
    steps: bool,
    /// Measure each point so often, instead of what the configuration says
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// How fast the device writes, per second (900M): bounds what jobs without a size write.
    /// Without it the speed of a PCIe link is taken, where there is one
    #[arg(long, value_name = "BYTES", value_parser = speed)]
    write_speed: Option<u64>,
}

fn speed(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "not a size like 900M".to_owned())
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    /// `fathom.plan/1`
    schema: &'static str,
    folder: String,
    dut: String,
    engine: &'a str,
    totals: Totals,
    notes: &'a [String],
    steps: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Totals {
    steps: usize,
    /// Of the steps whose jobs say how long they take.
    duration_ms: u64,
    endless_steps: usize,
    /// The most that is written; null when that is not known of every step.
    write_bytes: Option<u64>,
    /// What it rests on, in bytes per second; null where it is not needed.
    write_speed: Option<u64>,
    /// The device does not tell what it is rated for.
    rated_endurance_share: Option<f64>,
}

#[derive(Serialize)]
struct Entry<'a> {
    id: &'a str,
    series: &'a str,
    repetition: u32,
    job_file: String,
    phase: Phase,
    guarded: bool,
    x: &'a str,
    settings: &'a std::collections::BTreeMap<String, String>,
    duration_ms: Option<u64>,
    write_bytes: Option<u64>,
    write_share: f64,
}

/// Shows the plan.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let overrides = Overrides {
        repeat: args.repeat,
        ..Overrides::default()
    };
    let plan = args.which.plan(&overrides)?;
    let speed = args
        .write_speed
        .map(Speed::Said)
        .or_else(|| plan.link_speed());
    if global.json {
        out::json(&document(&plan, speed))?;
        return Ok(Exit::Success);
    }
    tell_notes(&plan.notes);
    if plan.steps.is_empty() {
        return Ok(Exit::Success);
    }
    let style = out::style(global.color);
    let grid = if args.steps || plan.steps.len() <= STEPS_SHOWN {
        all_steps(&plan, speed)
    } else {
        by_series(&plan, speed)
    };
    out::text(grid.render(style));
    out::line("");
    out::text(totals(&plan, speed).render(style));
    Ok(Exit::Success)
}

fn document(plan: &Plan, speed: Option<Speed>) -> Document<'_> {
    let cost = Cost::of(&plan.steps, speed);
    let needs_speed = plan.steps.iter().any(|step| step.write_bytes.is_none());
    Document {
        schema: "fathom.plan/1",
        folder: plan.folder.display().to_string(),
        dut: plan.dut.display().to_string(),
        engine: &plan.settings.engine,
        totals: Totals {
            steps: cost.steps,
            duration_ms: millis(cost.duration),
            endless_steps: cost.endless,
            write_bytes: (cost.unbounded == 0).then_some(cost.write_bytes),
            write_speed: speed.filter(|_| needs_speed).map(Speed::bytes_per_second),
            rated_endurance_share: None,
        },
        notes: &plan.notes,
        steps: plan.steps.iter().map(|step| entry(step, speed)).collect(),
    }
}

fn entry(step: &Step, speed: Option<Speed>) -> Entry<'_> {
    Entry {
        id: &step.point.id,
        series: &step.point.series,
        repetition: step.point.repetition,
        job_file: step.job_file.display().to_string(),
        phase: step.phase,
        guarded: step.guarded,
        x: &step.point.x,
        settings: &step.point.settings,
        duration_ms: step.duration.map(millis),
        write_bytes: step.write_most(speed),
        write_share: step.write_share,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn all_steps(plan: &Plan, speed: Option<Speed>) -> Grid {
    let repeats = plan.steps.iter().any(|step| step.point.repetition > 1);
    let mut grid = Grid::new([
        words("step", 0),
        figures("time", 0),
        figures("writes at most", 0),
    ]);
    let mut series = "";
    for step in &plan.steps {
        let (above, name) = step
            .point
            .id
            .rsplit_once('/')
            .unwrap_or(("", &step.point.id));
        if above != series {
            grid.heading(above);
            series = above;
        }
        let mut name = format!("  {name}");
        if repeats {
            name += &format!(" #{}", step.point.repetition);
        }
        let [time, writes] = costs(&Cost::of([step], speed));
        grid.line([Cell::from(name), time, writes]);
    }
    grid
}

fn by_series(plan: &Plan, speed: Option<Speed>) -> Grid {
    let mut grid = Grid::new([
        words("series", 0),
        figures("points", 0),
        words("over", 2),
        figures("time", 0),
        figures("writes at most", 0),
    ]);
    let mut test = "";
    for steps in plan.steps.chunk_by(|a, b| a.point.series == b.point.series) {
        let (first, last) = (&steps[0].point, &steps[steps.len() - 1].point);
        let (above, series) = first.series.split_once('/').unwrap_or(("", &first.series));
        if above != test {
            grid.heading(above);
            test = above;
        }
        let at = |point: &fathom_model::Point| point.settings.get(&point.x).cloned();
        let over = match (at(first), at(last)) {
            (Some(a), Some(b)) => format!("{} {a}–{b}", first.x),
            _ => first.x.clone(),
        };
        let [time, writes] = costs(&Cost::of(steps, speed));
        grid.line([
            Cell::from(format!("  {series}")),
            Cell::from(steps.len().to_string()),
            Cell::from(over),
            time,
            writes,
        ]);
    }
    grid
}

/// Time and bytes of a line.
fn costs(cost: &Cost) -> [Cell; 2] {
    let time = match cost.endless {
        0 => Cell::from(units::duration(millis(cost.duration))),
        _ => Cell::new(Tone::Doubtful, "unknown"),
    };
    let writes = match (cost.unbounded, cost.write_bytes) {
        (0, 0) => Cell::from("nothing"),
        (0, bytes) => Cell::from(units::bytes(bytes as f64)),
        _ => Cell::new(Tone::Doubtful, "as it takes"),
    };
    [time, writes]
}

fn totals(plan: &Plan, speed: Option<Speed>) -> Grid {
    let mut grid = Grid::new([words("", 0), words("", 0)]);
    let mut line = |name: &str, text: String| grid.line([Cell::from(name), Cell::from(text)]);
    let cost = Cost::of(&plan.steps, speed);
    let there = if plan.dut.exists() {
        ""
    } else {
        " (not there)"
    };
    line("device", format!("{}{there}", plan.dut.display()));
    line("engine", plan.settings.engine.clone());
    line("steps", cost.steps.to_string());
    let mut time = units::duration(millis(cost.duration));
    if cost.endless > 0 {
        time += &format!(" and {} without a time", count(cost.endless, "step"));
    }
    line("time", time);
    line("writes", writes(plan, &cost, speed));
    if cost.write_bytes > 0 || cost.unbounded > 0 {
        line(
            "endurance",
            "share unknown: the device does not tell what it is rated for".to_owned(),
        );
    }
    grid
}

/// What is written altogether, and what that rests on.
fn writes(plan: &Plan, cost: &Cost, speed: Option<Speed>) -> String {
    let unsized_steps = plan.steps.iter().filter(|step| step.write_bytes.is_none());
    let unsized_cost = Cost::of(unsized_steps, speed);
    let time = units::duration(millis(unsized_cost.duration));
    let most = units::bytes(cost.write_bytes as f64);
    match (unsized_cost.steps, speed) {
        (0, _) if cost.write_bytes == 0 => "nothing".to_owned(),
        (0, _) => format!("{most} at most"),
        (n, None) => format!(
            "unknown: {} for {time} as fast as the device takes it (--write-speed for a bound)",
            count_verb(n)
        ),
        (n, Some(speed)) => {
            let rate = units::bytes_per_second(speed.bytes_per_second() as f64);
            let whose = match speed {
                Speed::Said(_) => "given",
                Speed::Link(_) => "of its link",
            };
            format!(
                "{most} at most: {} for {time}, at the {rate} {whose}",
                count_verb(n)
            )
        }
    }
}

/// `1 step writes`, `2 steps write`.
fn count_verb(n: usize) -> String {
    let verb = if n == 1 { "writes" } else { "write" };
    format!("{} {verb}", count(n, "step"))
}
