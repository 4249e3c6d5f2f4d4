//! `fathom find`: how much load a latency allows, and how much is enough.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use fathom_analysis::find::{FindAnswer, FindEnd, FindGoal, FindLoads, ProbeResult};
use fathom_campaign::find::{COMMAND, FindConfig, FindScript, FindState};
use fathom_campaign::flow::{History, JobStep};
use fathom_model::{Exit, units};
use fathom_record::Record;
use fathom_report::grid::{Grid, GridCell, figures, words};
use fathom_report::style::Tone;
use serde::{Deserialize, Serialize};

use super::job::{Setting, duration, run as job};
use super::planned::Plan;
use super::run_args::RunArgs;
use super::{ExitError, Global};
use crate::engine::EngineOrSim;
use crate::out;

/// Find how much load a latency allows, or how much is enough
///
/// The most load whose latency keeps a limit (--p99 1ms), or the smallest that gives the throughput
/// of the best within 2 % (--knee). The file has one job; its load is what is searched.
#[derive(Debug, clap::Args)]
#[command(override_usage = "fathom find [OPTIONS] <--knee|--mean TIME|--p50 TIME|…> <FILE>")]
#[command(after_help = "\
Load is offered at a rate (rate_iops, Poisson, latency from the intended start; native engine), or
with --closed, --over or --knee by the number of I/Os under way. A probe is repeated until it is
clear on which side of the limit it lies. 'fathom resume' goes on after a kill.

Examples:
  fathom find mix.fio --p99 1ms                   the most IOPS at a p99 of 1 ms
  fathom find mix.fio --p99.9 5ms --closed        the most I/Os under way
  fathom find mix.fio --knee                      the smallest depth that is as good as the best
  fathom find mix.fio --knee --over numjobs --to 64
  fathom find mix.fio --knee --engine sim --json")]
pub struct Args {
    /// The job file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    goal: GoalArgs,
    /// The number of I/Os under way is searched instead of a rate
    #[arg(long)]
    closed: bool,
    /// What makes the load; not a rate
    #[arg(long, value_enum)]
    over: Option<FindOver>,
    /// The largest depth, or number of jobs
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65536))]
    to: u32,
    /// How long a probe takes
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    probe: Duration,
    /// How long a first look takes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    look: Duration,
    #[command(flatten)]
    run: RunArgs,
}

/// What is searched: one of these.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
struct GoalArgs {
    /// The smallest load within 2 % of the best throughput
    #[arg(long)]
    knee: bool,
    /// Limit of the mean latency
    #[arg(long, value_name = "TIME", value_parser = duration)]
    mean: Option<Duration>,
    /// Limit of the median
    #[arg(long, value_name = "TIME", value_parser = duration)]
    p50: Option<Duration>,
    /// Limit of the 90th percentile
    #[arg(long, value_name = "TIME", value_parser = duration)]
    p90: Option<Duration>,
    /// Limit of the 95th percentile
    #[arg(long, value_name = "TIME", value_parser = duration)]
    p95: Option<Duration>,
    /// Limit of the 99th percentile
    #[arg(long, value_name = "TIME", value_parser = duration)]
    p99: Option<Duration>,
    /// Limit of the 99.9th percentile
    #[arg(long = "p99.9", value_name = "TIME", value_parser = duration)]
    p999: Option<Duration>,
    /// Limit of the 99.99th percentile
    #[arg(long = "p99.99", value_name = "TIME", value_parser = duration)]
    p9999: Option<Duration>,
}

impl GoalArgs {
    /// The goal, and the percentile that its limit is about.
    fn goal(&self) -> (FindGoal, Option<f64>) {
        let limits = [
            (None, self.mean),
            (Some(50.0), self.p50),
            (Some(90.0), self.p90),
            (Some(95.0), self.p95),
            (Some(99.0), self.p99),
            (Some(99.9), self.p999),
            (Some(99.99), self.p9999),
        ];
        let given = limits
            .into_iter()
            .find_map(|(percent, limit)| Some((percent, limit?)));
        match given {
            None => (FindGoal::Knee, None),
            Some((percent, limit)) => {
                let limit_ns = limit.as_nanos() as f64;
                (FindGoal::Latency { limit_ns }, percent)
            }
        }
    }
}

/// What makes the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FindOver {
    Iodepth,
    Numjobs,
}

/// What a record keeps of a search.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindPlan {
    pub job: job::JobPlan,
    pub config: FindConfig,
}

/// Runs it.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let (goal, percent) = args.goal.goal();
    let is_closed = args.closed || args.over.is_some() || goal == FindGoal::Knee;
    if !is_closed {
        check_open(args.run.engine)?;
    }
    let over = match (is_closed, args.over) {
        (false, _) => "rate_iops",
        (true, Some(FindOver::Numjobs)) => "numjobs",
        (true, _) => "iodepth",
    };
    let set = |key: &str, value: &str| Setting {
        key: key.to_owned(),
        value: Some(value.to_owned()),
    };
    let mut settings = vec![
        set("time_based", "1"),
        set("runtime", "1s"),
        set("group_reporting", "1"),
        set(over, "1"),
    ];
    if !is_closed {
        settings.push(set("rate_process", "poisson"));
    }
    let mut options = args.run.options()?;
    if !is_closed {
        // fio counts latencies under a rate from the issue.
        EngineOrSim::Native.name().clone_into(&mut options.engine);
    }
    let job = job::JobPlan::of_file(&args.file, &settings, options, None)?;
    let doublings = (0..32)
        .map(|n| 1u32 << n)
        .take_while(|&load| load < args.to);
    let loads = match is_closed {
        true => FindLoads::Whole(doublings.chain([args.to]).collect()),
        false => FindLoads::Rates {
            least: least_rate(percent, args.probe),
        },
    };
    let config = FindConfig {
        goal,
        loads,
        over: over.to_owned(),
        percent,
        look: args.look,
        probe: args.probe,
    };
    FindPlan { job, config }.run(global, None, args.run.dry_run)
}

/// I/Os that lie beyond a percentile which is told: docs/METHODOLOGY.md.
const BEYOND_LEAST: f64 = 10.0;

/// The rate at which a probe has enough I/Os for its percentile; a mean is taken for a
/// median.
fn least_rate(percent: Option<f64>, probe: Duration) -> f64 {
    let beyond = (100.0 - percent.unwrap_or(50.0)) / 100.0;
    BEYOND_LEAST / (beyond * probe.as_secs_f64()).max(f64::MIN_POSITIVE)
}

/// Only the native engine counts from the intended start.
fn check_open(engine: EngineOrSim) -> anyhow::Result<()> {
    match engine {
        EngineOrSim::Auto | EngineOrSim::Native => Ok(()),
        EngineOrSim::Fio | EngineOrSim::Sim => {
            let what = "load is offered at a rate by the native engine only: fio counts latencies from the issue, and a simulated device knows no rate\n  to do: add --closed, which searches the number of I/Os under way";
            Err(ExitError::new(Exit::Usage, what).into())
        }
    }
}

impl FindPlan {
    /// Runs it, into a new record or the one to go on with.
    pub fn run(
        mut self,
        global: &Global,
        record: Option<PathBuf>,
        dry_run: bool,
    ) -> anyhow::Result<Exit> {
        self.job = self.job.placed()?;
        let kept = Plan::Find(Box::new(self.clone())).kept()?;
        let config = self.config.clone();
        let ran = self
            .job
            .repeated(global, (COMMAND, kept), record, dry_run, &|steps| {
                Box::new(script(steps, &config))
            })?;
        match ran {
            job::Ran::Shown(exit) => Ok(exit),
            job::Ran::Ended(dir, exit) => {
                show(global, &config, &dir)?;
                Ok(exit)
            }
        }
    }
}

fn script(mut steps: Vec<JobStep>, config: &FindConfig) -> FindScript {
    FindScript {
        // A plan has one file.
        job: steps.swap_remove(0),
        config: config.clone(),
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct FindDocument<'f> {
    /// `fathom.find/1`
    schema: &'static str,
    run: String,
    #[serde(flatten)]
    config: &'f FindConfig,
    /// Absent where the search did not come to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<FindAnswer>,
    probes: Vec<ProbeResult>,
}

/// The answer, and the curve behind it.
fn show(global: &Global, config: &FindConfig, dir: &Path) -> anyhow::Result<()> {
    let record = Record::open(dir)?;
    let mut history = History::default();
    for entry in &record.entries {
        history.take(&entry.event);
    }
    let blank = JobStep::new((1, 1), COMMAND, String::new(), &[]);
    let (probes, state) = script(vec![blank], config).state(&history);
    let answer = match state {
        FindState::Found(answer) => Some(answer),
        _ => None,
    };
    if global.json {
        return out::json(&FindDocument {
            schema: "fathom.find/1",
            run: record.id(),
            config,
            answer,
            probes,
        });
    }
    out::text(curve(global, config, &probes, answer));
    out::line(match answer {
        Some(answer) => said(config, &answer),
        None => "the search did not come to its end: fathom resume goes on".to_owned(),
    });
    Ok(())
}

fn curve(
    global: &Global,
    config: &FindConfig,
    probes: &[ProbeResult],
    answer: Option<FindAnswer>,
) -> String {
    let mut grid = Grid::new([
        figures("load", 0),
        figures("IOPS", 0),
        figures("latency", 0),
        words("", 0),
    ]);
    let mut probes: Vec<&ProbeResult> = probes.iter().collect();
    let load = |probe: &ProbeResult| probe.probe.load.unwrap_or(f64::INFINITY);
    probes.sort_by(|a, b| load(a).total_cmp(&load(b)));
    for probe in probes {
        let is_it = answer.is_some_and(|answer| answer.load == probe.probe.load);
        let is_over = match (config.goal, probe.latency_ns) {
            (FindGoal::Latency { limit_ns }, Some(ns)) => ns > limit_ns,
            _ => false,
        };
        grid.line([
            GridCell::from(match probe.probe.load {
                Some(load) => format!("{load:.0}"),
                None => "no rate".to_owned(),
            }),
            GridCell::from(units::count(probe.iops)),
            GridCell::from(probe.latency_ns.map_or("–".to_owned(), units::latency)),
            match (is_it, is_over) {
                (true, _) => GridCell::new(Tone::Good, "◀"),
                (false, true) => GridCell::new(Tone::Doubtful, "too slow"),
                _ => GridCell::default(),
            },
        ]);
    }
    grid.render(out::style(global.color))
}

/// The answer in words.
fn said(config: &FindConfig, answer: &FindAnswer) -> String {
    let sure = answer
        .iops_error
        .map_or_else(String::new, |error| format!(" ± {:.1} %", 100.0 * error));
    let iops = format!("{}{sure} IOPS", units::count(answer.iops));
    let over = &config.over;
    let Some(load) = answer.load else {
        let least = answer.too_much.map_or_else(String::new, |load| {
            format!(", not even at {over}={load:.0}")
        });
        return format!("the limit is not kept{least}");
    };
    let (name, FindGoal::Latency { limit_ns }) = (figure(config), config.goal) else {
        return match answer.ended_by {
            FindEnd::Range => format!(
                "{over}={load:.0} is the best so far, with {iops}: it is the last that was tried; --to goes further"
            ),
            _ => format!("{over}={load:.0} is enough: {iops}, within 2 % of the best"),
        };
    };
    let limit = units::latency(limit_ns);
    let most = match answer.too_much {
        Some(too_much) => format!("{over}={load:.0}, and {too_much:.0} is too much"),
        None => format!("{over}={load:.0}"),
    };
    let end = match answer.ended_by {
        FindEnd::Objective => "the limit ended the search",
        FindEnd::Device => "the device ended the search: it does no more",
        _ => "the last load that was tried keeps the limit",
    };
    format!("{name} ≤ {limit}: {iops} at {most}; {end}")
}

fn figure(config: &FindConfig) -> String {
    match config.percent {
        Some(percent) => format!("p{percent}"),
        None => "mean latency".to_owned(),
    }
}
