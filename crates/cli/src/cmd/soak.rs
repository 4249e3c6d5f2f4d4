//! `fathom soak`: a job for hours, with figures of each, and whether they drift.

use std::path::PathBuf;
use std::time::Duration;

use fathom_analysis::steady_state::{SteadyVerdict, TermKind};
use fathom_flow::RunOptions;
use fathom_flow::options::duration;
use fathom_model::{Exit, units};
use fathom_questions::soak::{self, COMMAND, PeriodFigures};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::Tone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Global;
use super::hosts::HostArgs;
use super::job::Setting;
use super::planned::KindArgs;
use super::planned::Start;
use super::planned::{RequestKind, RunRequest, kept};
use super::run_args::RunArgs;
use crate::cmd::job::request::JobPlan;
use crate::out;

/// Run a job for hours, with figures of each hour, and say whether they drift
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The job file is run once for each period, its runtime set to that. Together the periods take as long
as --hours says. The IOPS of the periods are
judged by SNIA's criterion over all of them: largest minus smallest at most 20 % of the average, and
the slope of the fitted line over all periods at most 10 %. 'fathom resume' goes on after a kill.

Examples:
  fathom soak mix.fio --hours 24
  fathom soak mix.fio --hours 2 --period 10m
  fathom soak disk.fio --hours 72 --destroy nvme-ACME_1234
  fathom soak mix.fio --hours 24 --hosts bench1,bench2    each period on both at once")]
pub struct Args {
    /// The job file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How long all periods take together
    #[arg(long, value_name = "N", value_parser = hours)]
    hours: f64,
    /// How long each takes at most: all are equally long
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    period: Duration,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    hosts: HostArgs,
}

fn hours(text: &str) -> Result<f64, String> {
    let hours = text.parse::<f64>().ok();
    let positive = hours.filter(|hours| hours.is_finite() && *hours > 0.0 && *hours <= 1e5);
    positive.ok_or_else(|| "it is a number of hours, as in 24".to_owned())
}

/// What a record keeps of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SoakPlan {
    pub job: JobPlan,
    pub period: Duration,
    pub periods: u32,
}

impl KindArgs for Args {
    fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        run(global, self)
    }
}

/// Runs it.
fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let (periods, period) = soak::periods_in(args.hours, args.period);
    let ms = period.as_millis();
    let set = |key: &str, value: &str| Setting {
        key: key.to_owned(),
        value: Some(value.to_owned()),
    };
    let settings = [set("time_based", "1"), set("runtime", &format!("{ms}ms"))];
    let (options, elsewhere) = (args.run.options()?, args.hosts.elsewhere()?);
    let job = JobPlan::of_file(&args.file, &settings, options, elsewhere)?;
    let plan = SoakPlan {
        job,
        period,
        periods,
    };
    if !args.hosts.is_given() {
        return Box::new(plan).run(global, Start::new(args.run.dry_run));
    }
    let steps = (1..=periods).map(soak::period_name).collect();
    let what = (&plan, &plan.job);
    let ran = (args.hosts).repeated(global, what, COMMAND, steps, args.run.dry_run)?;
    ran.show(&|dir| show(global, &fathom_document::read(dir)?, period))
}

impl RequestKind for SoakPlan {
    const NAME: &'static str = "soak";
}

impl RunRequest for SoakPlan {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.job.options
    }

    fn run(mut self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        self.job = self.job.placed()?;
        let kept = kept(&*self)?;
        let (period, periods) = (self.period, self.periods);
        self.job.repeated(
            global,
            (COMMAND, kept),
            start,
            |steps| Box::new(soak::script(&steps, periods)),
            |dir, exit| show(global, &fathom_document::read(dir)?, period).map(|()| exit),
        )
    }

    fn job(&self) -> Option<&JobPlan> {
        Some(&self.job)
    }
}

/// What `--json` prints.
#[derive(Serialize, JsonSchema)]
pub struct SoakDocument<'a> {
    schema: &'static str,
    /// Name of the record.
    run: &'a str,
    /// Length of a period.
    period_ms: u64,
    periods: Vec<PeriodRow>,
    /// SNIA's criterion over all periods; null: there are fewer than two.
    drift: Option<SteadyVerdict>,
}

/// All jobs and directions of a period together; null: nothing was moved.
#[derive(Serialize, JsonSchema)]
struct PeriodRow {
    /// Which one, from 1.
    period: u32,
    iops: Option<f64>,
    bw_bytes: Option<f64>,
    /// Mean completion latency.
    clat_ns: Option<f64>,
}

impl PeriodRow {
    fn of(period: &PeriodFigures) -> Self {
        let totals = period.totals;
        Self {
            period: period.number,
            iops: totals.map(|t| t.iops),
            bw_bytes: totals.map(|t| t.bw_bytes),
            clat_ns: totals.and_then(|t| t.clat_ns),
        }
    }
}

/// The table of the periods, and whether they drift.
fn show(global: &Global, doc: &fathom_model::RunDocument, period: Duration) -> anyhow::Result<()> {
    let periods = soak::periods(doc);
    let ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
    let drift = soak::drift(&periods, ms);
    if global.json {
        return out::json(&SoakDocument {
            schema: "fathom.soak/1",
            run: &doc.id,
            period_ms: ms,
            periods: periods.iter().map(PeriodRow::of).collect(),
            drift,
        });
    }
    let mut grid = Grid::new([
        figures("period", 0),
        figures("IOPS", 0),
        figures("bandwidth", 0),
        figures("mean clat", 0),
        words("", 1),
    ]);
    for it in &periods {
        let text = |value: Option<String>| GridCell::from(value.unwrap_or_else(|| "–".to_owned()));
        grid.line([
            GridCell::from(it.number.to_string()),
            text(it.totals.map(|t| units::count(t.iops))),
            text(it.totals.map(|t| units::bytes_per_second(t.bw_bytes))),
            text(it.totals.and_then(|t| t.clat_ns).map(units::latency)),
            match it.totals {
                None => GridCell::new(Tone::Bad, "nothing was moved"),
                Some(_) => GridCell::default(),
            },
        ]);
    }
    out::text(grid.render(out::style(global.color)));
    out::line(match drift {
        None => "drift: there are fewer than two periods to compare".to_owned(),
        Some(verdict) if verdict.attained => sentence("does not drift", &verdict),
        Some(verdict) => sentence("DRIFTS", &verdict),
    });
    Ok(())
}

fn sentence(what: &str, verdict: &SteadyVerdict) -> String {
    let terms = verdict.terms.iter().map(|term| {
        let name = match term.term {
            TermKind::DataExcursion => "largest minus smallest",
            _ => "slope over all",
        };
        let percent = |p: f64| format!("{p:.1} %");
        let found = term
            .measured_percent
            .map_or_else(|| "–".to_owned(), percent);
        let allowed = term.allowed_percent;
        format!("{name} {found} of the average ({allowed} % allowed)")
    });
    let terms: Vec<String> = terms.collect();
    format!(
        "IOPS over {} periods: {what}; {}",
        verdict.rounds,
        terms.join(", ")
    )
}
