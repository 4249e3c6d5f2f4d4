//! `fathom plan`: what a campaign will do, what it takes, what it writes.

use std::collections::BTreeSet;
use std::time::Duration;

use fathom_campaign::plan::{CampaignStep, ResolvedCampaign};
use fathom_flow::RunOptions;
use fathom_flow::budget::{Cost, Endurance, Over, Speed};
use fathom_flow::ledger::Ledgers;
use fathom_flow::options::size;
use fathom_model::{DevicePhase, Exit, units};
use fathom_prepare::settings::Overrides;
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::Tone;
use serde::Serialize;

use super::Global;
use super::campaign::{Budget, CampaignArgs, tell_notes};
use crate::out;

mod stages;

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
  fathom plan --max-time 8h --max-written 2T --endurance-tbw 600
  DEV=/dev/loop3 fathom plan --json | jq .totals
  fathom plan study.toml               what a plan file will do")]
pub struct Args {
    /// A plan file instead of the campaign of a folder
    #[arg(value_name = "FILE.toml")]
    file: Option<std::path::PathBuf>,
    #[command(flatten)]
    which: CampaignArgs,
    /// Show every step of a long plan, not only its series
    #[arg(long)]
    steps: bool,
    /// Measure each point so often, instead of what the configuration says
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// How fast the device writes, per second (900M): bounds what jobs without a size write.
    /// Without it the speed of a PCIe link is taken, where there is one
    #[arg(long, value_name = "BYTES", value_parser = size)]
    write_speed: Option<u64>,
    #[command(flatten)]
    options: RunOptions,
    #[command(flatten)]
    budget: Budget,
}

/// What `--json` prints.
#[derive(Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document<'a> {
    /// `fathom.plan/1`
    schema: &'static str,
    folder: String,
    dut: String,
    engine: &'a str,
    totals: PlanTotals,
    notes: &'a [String],
    /// What makes the device ready, in order, if all goes well.
    stages: Vec<stages::StageRow>,
    steps: Vec<PlannedPoint<'a>>,
}

#[derive(Serialize, schemars::JsonSchema)]
struct PlanTotals {
    steps: usize,
    stages: usize,
    /// Of the stages, if all goes well, and of the steps whose jobs say how long
    /// they take.
    duration_ms: u64,
    /// If the device is never steady before its limit.
    duration_most_ms: u64,
    /// Steps and stages of which nobody knows how long they take: a fill of a
    /// device whose speed is unknown.
    endless_steps: usize,
    /// The most that is written; null when that is not known of every step.
    write_bytes: Option<u64>,
    /// What it rests on, in bytes per second; null where it is not needed.
    write_speed: Option<u64>,
    /// Of all that may be written to the drive in its life, 1 for all of it; null
    /// where it is not known.
    rated_endurance_share: Option<f64>,
    /// Bounds of it, where a drive counts in whole percents.
    rated_endurance_share_least: Option<f64>,
    rated_endurance_share_most: Option<f64>,
    /// Steps that do not fit into the budget; the other totals are without them.
    left_out: usize,
}

#[derive(Serialize, schemars::JsonSchema)]
struct PlannedPoint<'a> {
    id: &'a str,
    series: &'a str,
    repetition: u32,
    job_file: String,
    phase: DevicePhase,
    guarded: bool,
    x: &'a str,
    settings: &'a std::collections::BTreeMap<String, String>,
    duration_ms: Option<u64>,
    write_bytes: Option<u64>,
    write_share: f64,
    /// It does not fit into the budget.
    left_out: bool,
}

/// Shows the plan.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if let Some(file) = &args.file {
        global
            .given
            .must_be_of("plan FILE.toml", "the plan of a plan file")?;
        return super::study::plan(global, file);
    }
    let overrides = args.budget.over(Overrides {
        options: args.options.clone(),
        repeat: args.repeat,
        ..Overrides::default()
    });
    let mut plan = args.which.plan(&overrides)?;
    plan.notes.extend(plan.snia_left_out());
    let speed = args
        .write_speed
        .map(Speed::Said)
        .or_else(|| plan.link_speed());
    let means = Means::of(&plan, speed);
    if global.json {
        out::json(&document(&plan, &means))?;
        return Ok(means.exit(&plan));
    }
    tell_notes(&plan.notes);
    let style = out::style(global.color);
    if !means.stages.is_empty() {
        out::text(stages::grid(&means.stages).render(style));
        out::line("");
    }
    if plan.steps.is_empty() {
        if !means.stages.is_empty() {
            out::text(totals(&plan, &means).render(style));
        }
        return Ok(means.exit(&plan));
    }
    let grid = if args.steps || plan.steps.len() <= STEPS_SHOWN {
        all_steps(&plan, &means)
    } else {
        by_series(&plan, &means)
    };
    out::text(grid.render(style));
    out::line("");
    out::text(totals(&plan, &means).render(style));
    Ok(means.exit(&plan))
}

/// What there is to spend, and what it leaves out.
struct Means {
    speed: Option<Speed>,
    endurance: Endurance,
    /// Places of the steps that do not fit.
    left_out: BTreeSet<usize>,
    /// The limits do not even leave room for the stages, at the least.
    stages_beyond: bool,
    /// What those that fit cost, the stages included, if all goes well.
    cost: Cost,
    /// What makes the device ready.
    stages: Vec<stages::StageRow>,
}

impl Means {
    fn of(plan: &ResolvedCampaign, speed: Option<Speed>) -> Self {
        let stages = stages::entries(plan, speed);
        let before = Cost::of_parts(stages.iter().map(stages::StageRow::part));
        let parts = plan.steps.iter();
        let parts = parts.map(|step| (step.duration, step.write_most(speed)));
        let mut limits = plan.settings.limits();
        let sure = Cost::of_parts(
            stages::entries(plan, None)
                .iter()
                .map(stages::StageRow::part),
        );
        let stages_beyond = limits.time.is_some_and(|limit| before.duration > limit)
            || limits.is_over(0, sure.write_bytes);
        let left = |limit: Duration| limit.saturating_sub(before.duration);
        limits.time = limits.time.map(left);
        let left_out = limits.left_out(parts, before.write_bytes);
        let left_out: BTreeSet<usize> = left_out.into_iter().collect();
        let fits = plan.steps.iter().enumerate();
        let fits = fits.filter(|(place, _)| !left_out.contains(place));
        let fits = fits.map(|(_, step)| (step.duration, step.write_most(speed)));
        let cost = Cost::of_parts(stages.iter().map(stages::StageRow::part).chain(fits));
        let said = plan.settings.care.endurance_bytes;
        let endurance = match (cost.write_bytes, cost.unbounded) {
            // The device is not asked for nothing.
            (0, 0) => Endurance::default(),
            _ => {
                let ledgers = Ledgers::of_user();
                let entries = ledgers.entries(&plan.dut).unwrap_or_default();
                Endurance::of(&ledgers.health(&plan.dut), &entries, said)
            }
        };
        Self {
            speed,
            endurance,
            left_out,
            stages_beyond,
            cost,
            stages,
        }
    }

    /// The most time, if the device is never steady before its limit.
    fn most(&self) -> Duration {
        let more = self.stages.iter().map(stages::StageRow::more);
        self.cost.duration + more.sum::<Duration>()
    }

    fn exit(&self, plan: &ResolvedCampaign) -> Exit {
        match plan.settings.care.over {
            Over::Refuse if self.stages_beyond || !self.left_out.is_empty() => Exit::Refused,
            _ => Exit::Success,
        }
    }
}

fn document<'p>(plan: &'p ResolvedCampaign, means: &Means) -> Document<'p> {
    let (cost, speed) = (&means.cost, means.speed);
    let bytes = (cost.unbounded == 0).then_some(cost.write_bytes);
    let share = bytes.and_then(|bytes| means.endurance.share(bytes));
    let needs_speed = plan.steps.iter().any(|step| step.write_bytes.is_none());
    Document {
        schema: "fathom.plan/1",
        folder: plan.folder.display().to_string(),
        dut: plan.dut.display().to_string(),
        engine: plan.settings.options.engine().name(),
        totals: PlanTotals {
            steps: plan.steps.len() - means.left_out.len(),
            stages: means.stages.len(),
            duration_ms: millis(cost.duration),
            duration_most_ms: millis(means.most()),
            endless_steps: cost.endless,
            write_bytes: bytes,
            write_speed: speed.filter(|_| needs_speed).map(Speed::bytes_per_second),
            rated_endurance_share: share.and_then(|share| share.share),
            rated_endurance_share_least: share.map(|share| share.least),
            rated_endurance_share_most: share.map(|share| share.most),
            left_out: means.left_out.len(),
        },
        notes: &plan.notes,
        stages: means.stages.clone(),
        steps: plan
            .steps
            .iter()
            .enumerate()
            .map(|(place, step)| entry(step, speed, means.left_out.contains(&place)))
            .collect(),
    }
}

fn entry(step: &CampaignStep, speed: Option<Speed>, left_out: bool) -> PlannedPoint<'_> {
    PlannedPoint {
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
        left_out,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn all_steps(plan: &ResolvedCampaign, means: &Means) -> Grid {
    let repeats = plan.steps.iter().any(|step| step.point.repetition > 1);
    let mut grid = Grid::new([
        words("step", 0),
        figures("time", 0),
        figures("writes at most", 0),
    ]);
    let mut series = "";
    for (place, step) in plan.steps.iter().enumerate() {
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
        let [time, writes] = costs(&CampaignStep::cost([step], means.speed));
        let name = match means.left_out.contains(&place) {
            true => GridCell::new(Tone::Faint, name).marked(Tone::Doubtful, " left out"),
            false => GridCell::from(name),
        };
        grid.line([name, time, writes]);
    }
    grid
}

fn by_series(plan: &ResolvedCampaign, means: &Means) -> Grid {
    let mut grid = Grid::new([
        words("series", 0),
        figures("points", 0),
        words("over", 2),
        figures("time", 0),
        figures("writes at most", 0),
    ]);
    let mut test = "";
    let mut place = 0;
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
        let left_out = means.left_out.range(place..place + steps.len()).count();
        place += steps.len();
        let [time, writes] = costs(&CampaignStep::cost(steps, means.speed));
        let series = GridCell::from(format!("  {series}"));
        let series = match left_out {
            0 => series,
            n => series.marked(Tone::Doubtful, format!(" {n} left out")),
        };
        grid.line([
            series,
            GridCell::from(steps.len().to_string()),
            GridCell::from(over),
            time,
            writes,
        ]);
    }
    grid
}

/// Time and bytes of a line.
fn costs(cost: &Cost) -> [GridCell; 2] {
    let time = match cost.endless {
        0 => GridCell::from(units::duration(millis(cost.duration))),
        _ => GridCell::new(Tone::Doubtful, "unknown"),
    };
    let writes = match (cost.unbounded, cost.write_bytes) {
        (0, 0) => GridCell::from("nothing"),
        (0, bytes) => GridCell::from(units::bytes(bytes as f64)),
        _ => GridCell::new(Tone::Doubtful, "as it takes"),
    };
    [time, writes]
}

fn totals(plan: &ResolvedCampaign, means: &Means) -> Grid {
    let mut grid = Grid::new([words("", 0), words("", 0)]);
    let mut line =
        |name: &str, text: String| grid.line([GridCell::from(name), GridCell::from(text)]);
    let cost = means.cost;
    let there = if plan.dut.exists() {
        ""
    } else {
        " (not there)"
    };
    line("device", format!("{}{there}", plan.dut.display()));
    line("engine", plan.settings.options.engine().name().to_owned());
    if !means.stages.is_empty() {
        line("stages", means.stages.len().to_string());
    }
    line("steps", plan.steps.len().to_string());
    let mut time = units::duration(millis(cost.duration));
    if means.most() > cost.duration {
        time += &format!(" to {}", units::duration(millis(means.most())));
    }
    if cost.endless > 0 {
        time += &format!(
            " and {} without a time",
            units::counted(cost.endless, "step")
        );
    }
    line("time", time);
    line("writes", writes(plan, means));
    match (cost.unbounded, cost.write_bytes) {
        (0, 0) => {}
        (0, bytes) => line("endurance", means.endurance.text(bytes)),
        _ => {
            let unknown = "share unknown, because it is unknown what is written";
            line("endurance", unknown.to_owned());
        }
    }
    if let (Some(limits), true) = (plan.settings.limits().text(), means.stages_beyond) {
        let what = match plan.settings.care.over {
            Over::Cut => "fathom run ends before the device is ready",
            Over::Refuse => "fathom run refuses",
        };
        let what = format!("the stages do not fit into {limits}: {what}");
        grid.line([
            GridCell::from("limits"),
            GridCell::new(Tone::Doubtful, what),
        ]);
    }
    if let (Some(limits), n @ 1..) = (plan.settings.limits().text(), means.left_out.len()) {
        let what = format!(
            "{} do not fit into {limits}, and count above as nothing",
            units::counted(n, "step")
        );
        let what = match plan.settings.care.over {
            Over::Cut => what,
            Over::Refuse => format!("{what}: fathom run refuses"),
        };
        grid.line([
            GridCell::from("left out"),
            GridCell::new(Tone::Doubtful, what),
        ]);
    }
    grid
}

/// What is written altogether, and what that rests on.
fn writes(plan: &ResolvedCampaign, means: &Means) -> String {
    let (cost, speed) = (means.cost, means.speed);
    let fits = plan.steps.iter().enumerate();
    let fits = fits.filter(|(place, _)| !means.left_out.contains(place));
    let unsized_steps = fits
        .map(|(_, step)| step)
        .filter(|step| step.write_bytes.is_none());
    let unsized_steps = unsized_steps.map(|step| (step.duration, step.write_most(speed)));
    let stages = means.stages.iter().filter(|stage| stage.is_load());
    let unsized_cost = Cost::of_parts(stages.map(stages::StageRow::part).chain(unsized_steps));
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
    format!("{} {verb}", units::counted(n, "step"))
}
