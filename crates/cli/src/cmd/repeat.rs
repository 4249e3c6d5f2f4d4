//! `fathom repeat`: a job file several times, and how far its figures vary.

use std::path::PathBuf;

use fathom_analysis::student::quantile;
use fathom_flow::RunOptions;
use fathom_model::{Exit, RunDocument, units};
use fathom_questions::soak::{PeriodFigures, period_name, periods, script};
use fathom_sheet::grid::{Grid, GridCell, figures};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Global;
use super::hosts::HostArgs;
use super::planned::KindArgs;
use super::planned::Start;
use super::planned::{RequestKind, RunRequest, kept};
use super::run_args::RunArgs;
use crate::cmd::job::request::JobPlan;
use crate::out;

const COMMAND: &str = "repeat";

/// Run a job file several times, and say how far its figures vary
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each run is a step of one record. The mean of each figure has a 95 % interval (Student's t), which
holds for runs like these: on this device, in the state it was in. 'fathom resume' goes on after a
kill.

Examples:
  fathom repeat mix.fio --times 5
  fathom repeat mix.fio --times 10 --label before
  fathom repeat disk.fio --times 5 --destroy nvme-ACME_1234
  fathom repeat mix.fio --times 5 --hosts bench1,bench2    each run on both at once")]
pub struct Args {
    /// The job file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How often it is run
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    times: u32,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    hosts: HostArgs,
}

impl KindArgs for Args {
    fn run(&self, global: &Global) -> anyhow::Result<Exit> {
        let (options, elsewhere) = (self.run.options()?, self.hosts.elsewhere()?);
        let plan = RepeatPlan {
            job: JobPlan::of_file(&self.file, &[], options, elsewhere)?,
            times: self.times,
        };
        if !self.hosts.is_given() {
            return Box::new(plan).run(global, Start::new(self.run.dry_run));
        }
        let steps = (1..=self.times).map(period_name).collect();
        let what = (&plan, &plan.job);
        let ran = (self.hosts).repeated(global, what, COMMAND, steps, self.run.dry_run)?;
        ran.show(&|dir| show(global, &fathom_document::read(dir)?))
    }
}

/// What a record keeps of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RepeatPlan {
    pub job: JobPlan,
    pub times: u32,
}

impl RequestKind for RepeatPlan {
    const NAME: &'static str = "repeat";
}

impl RunRequest for RepeatPlan {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.job.options
    }

    fn run(mut self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        self.job = self.job.placed()?;
        let kept = kept(&*self)?;
        let times = self.times;
        self.job.repeated(
            global,
            (COMMAND, kept),
            start,
            |steps| Box::new(script(&steps, times)),
            |dir, exit| show(global, &fathom_document::read(dir)?).map(|()| exit),
        )
    }

    fn job(&self) -> Option<&JobPlan> {
        Some(&self.job)
    }
}

/// What `--json` prints.
#[derive(Serialize, JsonSchema)]
pub struct RepeatDocument<'a> {
    schema: &'static str,
    /// Name of the record.
    run: &'a str,
    /// The runs that have ended.
    runs: Vec<RepeatRow>,
    /// Absent where no run has the figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    iops: Option<Variation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bw_bytes: Option<Variation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clat_ns: Option<Variation>,
}

/// All jobs and directions of a run together; null: nothing was moved.
#[derive(Serialize, JsonSchema)]
struct RepeatRow {
    /// Which one, from 1.
    number: u32,
    iops: Option<f64>,
    bw_bytes: Option<f64>,
    /// Mean completion latency.
    clat_ns: Option<f64>,
}

/// How far a figure varies from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
struct Variation {
    /// Runs that have it.
    n: usize,
    mean: f64,
    /// Half of the 95 % interval of the mean, in percent of it; absent of a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_percent: Option<f64>,
    /// Standard deviation of the runs, in percent of the mean; absent of a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    deviation_percent: Option<f64>,
    min: f64,
    max: f64,
}

impl Variation {
    fn of(values: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        let values: Vec<f64> = values.flatten().collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (n - 1.0)).sqrt();
        let is_known = values.len() > 1 && mean > 0.0;
        let percent = |part: f64| is_known.then(|| 100.0 * part / mean);
        Some(Self {
            n: values.len(),
            mean,
            error_percent: percent(quantile(0.05, n - 1.0) * deviation / n.sqrt()),
            deviation_percent: percent(deviation),
            min: values.iter().copied().reduce(f64::min)?,
            max: values.iter().copied().reduce(f64::max)?,
        })
    }

    /// `71.7k ± 1.2 % (95 %, n = 5), from 70.9k to 72.4k, deviation 0.9 %`.
    fn sentence(&self, text: fn(f64) -> String) -> String {
        let mut words = text(self.mean);
        if let (Some(error), Some(deviation)) = (self.error_percent, self.deviation_percent) {
            let (low, high) = (text(self.min), text(self.max));
            words += &format!(
                " ± {error:.1} % (95 %, n = {}), from {low} to {high}, deviation {deviation:.1} %",
                self.n
            );
        }
        words
    }
}

fn show(global: &Global, doc: &RunDocument) -> anyhow::Result<()> {
    let runs = periods(doc);
    let figure = |of: fn(&PeriodFigures) -> Option<f64>| Variation::of(runs.iter().map(of));
    let iops = figure(|run| Some(run.totals?.iops));
    let bw_bytes = figure(|run| Some(run.totals?.bw_bytes));
    let clat_ns = figure(|run| run.totals?.clat_ns);
    if global.json {
        let row = |run: &PeriodFigures| RepeatRow {
            number: run.number,
            iops: run.totals.map(|it| it.iops),
            bw_bytes: run.totals.map(|it| it.bw_bytes),
            clat_ns: run.totals.and_then(|it| it.clat_ns),
        };
        return out::json(&RepeatDocument {
            schema: "fathom.repeat/1",
            run: &doc.id,
            runs: runs.iter().map(row).collect(),
            iops,
            bw_bytes,
            clat_ns,
        });
    }
    let heads = ["run", "IOPS", "bandwidth", "mean clat"];
    let mut grid = Grid::new(heads.map(|head| figures(head, 0)));
    for run in &runs {
        let text = |value: Option<String>| GridCell::from(value.unwrap_or_else(|| "–".to_owned()));
        grid.line([
            GridCell::from(run.number.to_string()),
            text(run.totals.map(|it| units::count(it.iops))),
            text(run.totals.map(|it| units::bytes_per_second(it.bw_bytes))),
            text(run.totals.and_then(|it| it.clat_ns).map(units::latency)),
        ]);
    }
    out::text(grid.render(out::style(global.color)));
    let sentence = |variation: Option<Variation>, text| Some(variation?.sentence(text));
    for (name, sentence) in [
        ("IOPS", sentence(iops, units::count)),
        ("bandwidth", sentence(bw_bytes, units::bytes_per_second)),
        ("mean clat", sentence(clat_ns, units::latency)),
    ] {
        if let Some(sentence) = sentence {
            out::line(format_args!("{name}: {sentence}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's t of 97.5 % with 4 degrees of freedom is 2.776445 (tables), and that times
    /// the deviation 1.581139 over the root of 5 is 1.963243.
    #[test]
    fn the_interval_is_that_of_students_t() {
        let of = |values: &[f64]| Variation::of(values.iter().copied().map(Some)).unwrap();
        let five = of(&[10.0, 12.0, 11.0, 9.0, 13.0]);
        assert_eq!(
            (five.n, five.mean, five.min, five.max),
            (5, 11.0, 9.0, 13.0)
        );
        assert!((five.error_percent.unwrap() - 100.0 * 1.963_243 / 11.0).abs() < 1e-4);
        assert!((five.deviation_percent.unwrap() - 100.0 * 1.581_139 / 11.0).abs() < 1e-4);
        let one = of(&[4.0]);
        assert_eq!((one.n, one.error_percent), (1, None));
        assert_eq!(Variation::of(std::iter::once(None)), None);
    }
}
