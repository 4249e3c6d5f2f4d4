//! `fathom find`: how much load a latency allows, and how much is enough.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use fathom_analysis::find::{FindGoal, FindLoads, WholeLoad};
use fathom_engines::EngineName;
use fathom_flow::JobStep;
use fathom_flow::RunOptions;
use fathom_flow::options::duration;
use fathom_model::io_engine::{DEFAULT_IO_ENGINE, IoEngineRow, io_engine};
use fathom_model::{Direction, Exit};
use fathom_questions::find::{COMMAND, FindConfig, FindRow, FindScript, is_mixed};
use fathom_sheet::answer::RunAnswer;
use serde::{Deserialize, Serialize};

use super::hosts::{HostArgs, SharedHosts};
use super::job::Setting;
use super::planned::KindArgs;
use super::planned::Start;
use super::planned::{RequestKind, RunRequest, kept};
use super::run_args::RunArgs;
use super::{ExitError, Global};
use crate::cmd::job::request::JobPlan;
use crate::out;

mod emit;
mod goal;
pub mod map;
pub mod show;

use emit::FindEmit;
use goal::GoalArgs;
use map::MapPlan;

/// Find how much load a latency allows, or how much is enough
///
/// The most load whose latency keeps a limit (--p99 1ms), or the smallest that gives the throughput
/// of the best within 2 % (--knee). The file has one job; its load is what is searched.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "fathom find [OPTIONS] <--p99 TIME|--knee|--max-cpu PERCENT|--map|--emit FOR|…> <FILE>"
)]
#[command(after_help = "\
Load is offered at a rate (rate_iops, Poisson, latency from the intended start; native engine), or
with --closed, --knee or --over iodepth by the number of I/Os under way. A probe ends as soon as it is
clear on which side of the limit it lies, else it is repeated. 'fathom resume' goes on after a kill.

Examples:
  fathom find mix.fio --p99 1ms                   the most IOPS at a p99 of 1 ms
  fathom find mix.fio --p99.9 5ms --closed        the most I/Os under way
  fathom find mix.fio --knee                      the smallest depth that is as good as the best
  fathom find mix.fio --knee --over iodepth,numjobs --to 64
  fathom find mix.fio --p99 1ms --of read --over rwmixread    for each of five mixes
  fathom find mix.fio --max-cpu 50                the most IOPS that half of the CPUs can do
  fathom find disk.fio --emit iocost --destroy nvme-ACME_1234   for the kernel's I/O controller
  fathom find mix.fio --map --svg map.svg         the p99 of reads beside writes
  fathom find mix.fio --p99 1ms --hosts bench1,bench2   of both together
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
    /// What makes the load instead of a rate (iodepth, numjobs, or both), and what the search
    /// is made for each of: bs (4k to 1m), rwmixread (0 to 100 %)
    #[arg(long, value_enum, value_name = "OPTION,…", value_delimiter = ',')]
    over: Vec<FindOver>,
    /// Latencies of these only; all I/Os make the load
    #[arg(long, value_enum, value_name = "DIRECTION")]
    of: Option<FindOf>,
    /// The largest depth or number of jobs; of both together their product
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=65536))]
    to: u32,
    /// How long a probe takes
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    probe: Duration,
    /// How long a first look takes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    look: Duration,
    /// Write the map as a graph to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    hosts: HostArgs,
}

/// What is gone over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FindOver {
    Iodepth,
    Numjobs,
    Bs,
    Rwmixread,
}

impl FindOver {
    /// The option, and the values for each of which a search is made.
    fn each(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::Iodepth | Self::Numjobs => None,
            Self::Bs => Some(("bs", &["4k", "16k", "64k", "256k", "1m"])),
            Self::Rwmixread => Some(("rwmixread", &["0", "25", "50", "75", "100"])),
        }
    }
}

/// Whose latencies have the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FindOf {
    Read,
    Write,
}

impl FindOf {
    fn dir(self) -> Direction {
        match self {
            Self::Read => Direction::Read,
            Self::Write => Direction::Write,
        }
    }
}

/// What a record keeps of a search.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FindPlan {
    pub job: JobPlan,
    pub config: FindConfig,
    /// What is printed instead of an answer.
    pub emit: Option<FindEmit>,
    /// A map, and no search.
    pub map: Option<MapPlan>,
}

impl KindArgs for Args {
    fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        run(global, self)
    }
}

/// Runs it.
fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let (goal, percent) = args.goal.goal();
    let has = |over| args.over.contains(&over);
    let (has_depth, has_jobs) = (has(FindOver::Iodepth), has(FindOver::Numjobs));
    let is_closed = args.closed
        || has_depth
        || has_jobs
        || (goal == FindGoal::Knee && args.goal.map.is_none())
        || closed_for_fio(args)?;
    if matches!(goal, FindGoal::Cpu { .. }) && args.run.options.is_simulated() {
        return Err(usage(
            "a simulated device keeps no CPU busy\n  to do: leave out --engine sim",
        ));
    }
    let over = match (is_closed, has_jobs && !has_depth) {
        (false, _) => "rate_iops",
        (true, true) => "numjobs",
        (true, false) => "iodepth",
    };
    let each: Vec<_> = args.over.iter().filter_map(|over| over.each()).collect();
    let settings = settings(args, (over, is_closed), &each);
    let mut options = args.run.options()?;
    if !is_closed && !options.is_simulated() {
        // fio counts latencies under a rate from the issue.
        options.engine = Some(EngineName::Native);
    }
    let hosts = SharedHosts::of(&args.hosts, &options)?;
    if hosts.is_some() && args.goal.emit.is_some() {
        return Err(usage(
            "--emit is for one machine: other programs want to know what its device can do",
        ));
    }
    let machines = hosts.as_ref().map(SharedHosts::count);
    let elsewhere = hosts.as_ref().map(|hosts| hosts.variables.clone());
    let job = JobPlan::of_file(&args.file, &settings, options, elsewhere)?.on(hosts)?;
    let text = job.files.first().map_or("", |file| file.text.as_str());
    check_job(text, args, is_closed)?;
    if over == "iodepth" {
        check_depth(text, args.run.options.engine())?;
    }
    let config = FindConfig {
        goal,
        loads: match is_closed {
            true if has_depth && has_jobs => FindLoads::Whole(both(args.to)),
            true => FindLoads::whole(doublings(args.to)),
            false => FindLoads::Rates {
                // A rate of 0 would be none.
                least: least_rate(percent, args.probe).max(f64::from(machines.unwrap_or(1))),
            },
        },
        over: over.to_owned(),
        percent,
        of: args.of.map(FindOf::dir),
        hosts: machines,
        rows: (args.goal.emit).map_or_else(|| rows(&each, args.of), FindEmit::rows),
        look: args.look,
        probe: args.probe,
    };
    let emit = args.goal.emit;
    let map = MapPlan::of(args, machines)?;
    Box::new(FindPlan {
        job,
        config,
        emit,
        map,
    })
    .run(global, Start::new(args.run.dry_run))
}

/// What the job is set to, for its probes to have other values of.
fn settings(
    args: &Args,
    (over, is_closed): (&str, bool),
    each: &[(&str, &[&str])],
) -> Vec<Setting> {
    let has_both = [FindOver::Iodepth, FindOver::Numjobs]
        .iter()
        .all(|over| args.over.contains(over));
    let mut settings = vec![
        ("time_based", "1"),
        ("runtime", "1s"),
        ("group_reporting", "1"),
        (over, "1"),
    ];
    settings.extend(has_both.then_some(("numjobs", "1")));
    settings.extend((!is_closed).then_some(("rate_process", "poisson")));
    settings.extend(each.iter().map(|(key, values)| (*key, values[0])));
    // Whether it may be written to is judged by the job: it has to write.
    let emit_as = [("rw", "randrw"), ("bs", "4k")];
    settings.extend(args.goal.emit.iter().flat_map(|_| emit_as));
    settings.extend(args.goal.map.map(|_| ("rwmixread", "50")));
    settings.into_iter().map(set).collect()
}

fn set((key, value): (&str, &str)) -> Setting {
    Setting {
        key: key.to_owned(),
        value: Some(value.to_owned()),
    }
}

fn usage(what: impl Into<String>) -> anyhow::Error {
    ExitError::new(Exit::Usage, what.into()).into()
}

/// 1, 2, 4 … and the last.
fn doublings(to: u32) -> impl Iterator<Item = u32> {
    let each = (0..32).map(|n| 1u32 << n);
    each.take_while(move |&load| load < to).chain([to])
}

/// Depths and numbers of jobs with at most so many I/Os under way, fewest first; of equals
/// that with the fewest jobs.
fn both(to: u32) -> Vec<WholeLoad> {
    let pairs = doublings(to).flat_map(|jobs| {
        let loads = doublings(to / jobs).filter(move |load| load.is_power_of_two() || jobs == 1);
        loads.map(move |load| WholeLoad {
            load,
            jobs: Some(jobs),
        })
    });
    let mut pairs: Vec<WholeLoad> = pairs.collect();
    pairs.sort_by_key(|it| {
        (
            u64::from(it.load) * u64::from(it.jobs.unwrap_or(1)),
            it.jobs,
        )
    });
    pairs
}

/// Every combination of the values; a mix without the I/Os that have the limit is none.
fn rows(each: &[(&str, &[&str])], of: Option<FindOf>) -> Vec<FindRow> {
    let mut rows: Vec<FindRow> = Vec::new();
    for (key, values) in each {
        let before = match rows.is_empty() {
            true => vec![FindRow::default()],
            false => std::mem::take(&mut rows),
        };
        for row in before {
            for value in *values {
                let is_empty = match of {
                    Some(FindOf::Read) => *value == "0",
                    Some(FindOf::Write) => *value == "100",
                    None => false,
                };
                if *key == "rwmixread" && is_empty {
                    continue;
                }
                let mut row = row.clone();
                row.name += if row.name.is_empty() { "" } else { "-" };
                row.name += &format!("{key}-{value}");
                row.options.push(((*key).to_owned(), (*value).to_owned()));
                rows.push(row);
            }
        }
    }
    rows
}

/// Refuses a job for which the search means something else than what is asked.
fn check_job(text: &str, args: &Args, is_closed: bool) -> anyhow::Result<()> {
    let last = |keys: &[&str]| last(text, keys);
    let rw = last(&["rw", "readwrite"]).unwrap_or("read");
    if args.svg.is_some() && args.goal.map.is_none() {
        return Err(usage("--svg draws a map\n  to do: add --map"));
    }
    if args.goal.map.is_some() && (is_closed || !args.over.is_empty()) {
        return Err(usage(
            "--map has rates of reads and of writes: --closed and --over are not for it",
        ));
    }
    let wants_mix = args.over.contains(&FindOver::Rwmixread) || args.goal.map.is_some();
    if wants_mix && !is_mixed(rw) {
        let what = format!("rw={rw} has no mix to go over\n  to do: rw=randrw or rw=rw in the job");
        return Err(usage(what));
    }
    let splits = ["bssplit", "bsrange", "blocksize_range"];
    let has_sizes = args.goal.emit.is_some() || args.over.contains(&FindOver::Bs);
    if args.goal.emit.is_some() && args.over.iter().any(|over| over.each().is_some()) {
        return Err(usage(
            "--emit has block sizes and mixes of its own: --over iodepth,numjobs at the most",
        ));
    }
    if has_sizes && last(&splits).is_some() {
        return Err(usage(
            "the job has several block sizes itself (bssplit, bsrange)",
        ));
    }
    if let Some(of) = args.of {
        let name = of.dir().name();
        if !matches!(args.goal.goal().0, FindGoal::Latency { .. }) {
            return Err(usage(
                "--of says whose latencies have the limit, and there is none of a latency",
            ));
        }
        if !is_mixed(rw) && !rw.contains(name) {
            return Err(usage(format!("rw={rw} has no {name}s for --of {name}")));
        }
    }
    let sections = text
        .lines()
        .filter(|line| line.starts_with('[') && *line != "[global]");
    let jobs = last(&["numjobs"]).filter(|jobs| *jobs != "1");
    if !is_closed && (sections.count() > 1 || jobs.is_some()) {
        let what = "a rate is that of each job, and there are several in the file\n  to do: leave one with numjobs=1, and give it the iodepth of all; or add --closed";
        return Err(usage(what));
    }
    Ok(())
}

/// Refuses to search a depth that changes nothing.
fn check_depth(text: &str, engine: EngineName) -> anyhow::Result<()> {
    let ioengine = last(text, &["ioengine"]).unwrap_or(DEFAULT_IO_ENGINE);
    let waits = io_engine(ioengine).is_some_and(IoEngineRow::is_one_at_a_time);
    let is_offloaded = last(text, &["io_submit_mode"]) == Some("offload");
    if engine == EngineName::Sim || is_offloaded || !waits {
        return Ok(());
    }
    Err(usage(format!(
        "ioengine={ioengine} does one I/O at a time, whatever iodepth is\n  to do: ioengine=io_uring or libaio in the job, or --over numjobs"
    )))
}

/// The value of an option that counts.
fn last<'t>(text: &'t str, keys: &[&str]) -> Option<&'t str> {
    let mut lines = text.lines().rev().filter_map(|line| line.split_once('='));
    lines.find_map(|(key, value)| keys.contains(&key.trim()).then_some(value.trim()))
}

/// I/Os that lie beyond a percentile which is told: docs/METHODOLOGY.md.
const BEYOND_LEAST: f64 = 10.0;

/// The rate at which a probe has enough I/Os for its percentile; a mean is taken for a
/// median.
fn least_rate(percent: Option<f64>, probe: Duration) -> f64 {
    let beyond = (100.0 - percent.unwrap_or(50.0)) / 100.0;
    BEYOND_LEAST / (beyond * probe.as_secs_f64()).max(f64::MIN_POSITIVE)
}

/// Whether I/Os under way are searched because of the engine: fio counts latencies under a
/// rate from the issue.
fn closed_for_fio(args: &Args) -> anyhow::Result<bool> {
    if args.run.options.engine() != EngineName::Fio {
        return Ok(false);
    }
    if args.goal.map.is_some() {
        return Err(usage(
            "--map offers load at rates, and fio counts latencies under a rate from the issue\n  to do: leave out --engine fio",
        ));
    }
    out::note(
        "fathom: fio counts latencies under a rate from the issue: as with --closed the number of I/Os under way is searched",
    );
    Ok(true)
}

impl RequestKind for FindPlan {
    const NAME: &'static str = "find";
}

impl RunRequest for FindPlan {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.job.options
    }

    fn run(mut self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        self.job = self.job.placed()?;
        let kept = kept(&*self)?;
        let (config, emit, map) = (self.config.clone(), self.emit, self.map.clone());
        self.job.repeated(
            global,
            (COMMAND, kept),
            start,
            |steps| {
                let script = script(steps, &config);
                match &map {
                    Some(map) => Box::new(map.script(script.job)),
                    None => Box::new(script),
                }
            },
            |dir, exit| {
                match &map {
                    Some(map) => map.show(global, dir)?,
                    None => show::show(global, (&config, emit), dir)?,
                }
                Ok(exit)
            },
        )
    }

    fn job(&self) -> Option<&JobPlan> {
        Some(&self.job)
    }

    fn answer(&self, record: &Path) -> Option<RunAnswer> {
        Self::answer(self, record).ok()
    }
}

impl FindPlan {
    /// What reports and graphs of its run show first.
    pub fn answer(&self, dir: &Path) -> anyhow::Result<RunAnswer> {
        match &self.map {
            Some(map) => map.answer(dir),
            None => show::answer(&self.config, dir),
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
