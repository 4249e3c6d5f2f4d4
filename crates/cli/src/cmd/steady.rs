//! `fathom steady`: whether and when a recorded run was steady.

use std::time::Duration;

use fathom_analysis::steady_state::{
    Ask, Metric, RoundSpan, SNIA_DATA_PERCENT, SNIA_MAX_ROUNDS, SNIA_SLOPE_PERCENT, SNIA_WINDOW,
    WindowRule,
};
use fathom_model::{Direction, Exit};
use fathom_report::steady::{self, Length, Question, RecordVerdicts};

use super::{ExitError, Global, show};
use crate::out;
use fathom_flow::options::duration;

/// Window of fio's rule: what a campaign's pre-conditioning takes
/// (campaigns/kconfig/steady-state.kconfig, IOPS_WD_SS_MEAN_LIMIT_DUR), as do
/// the limits, which are the same numbers as SNIA's.
const FIO_WINDOW_MS: u64 = 15 * 60 * 1000;
/// Length of a round: that of a cell of SNIA's IOPS test and of a sample of its
/// write saturation.
const ROUND_MS: u64 = 60_000;

/// Say whether and when a recorded run was in steady state
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Two rules, which do not say the same (docs/METHODOLOGY.md):
  snia  SNIA's criterion, interpreted: in the last 5 rounds the range is at most 20 % of the
        average, and the best linear fit changes by at most 10 % of it over the whole window;
        within 25 rounds
  fio   fio's rule (ss=): in the window no sample is as far as the limit from the mean, and the
        slope per sample is below its limit
Several metrics are judged on the same run of I/O. Each step of a run is judged by itself. \"Not
attained\" is a result: the exit code is 0.

Examples:
  fathom steady                                     the last run, IOPS, rounds of a minute
  fathom steady 2026 --metric iops --metric p99     two metrics
  fathom steady --round 10s --limit 15              shorter rounds, a stricter limit
  fathom steady --rule fio --window 60s --limit 5   no second 5 % from the mean
  fathom steady --round point                       rounds are the repetitions of each point
  fathom steady --json | jq '.verdicts[] | {metric, outcome, at: .window.last}'")]
pub struct Args {
    /// A record folder, or its name or a part of it; without, the last run
    run: Option<String>,
    /// The rule
    #[arg(long, value_enum, default_value_t)]
    rule: RuleName,
    /// iops, bw, lat (mean clat), or a percentile of clat as in p99.9 (may be
    /// repeated, or separated by commas)
    #[arg(
        long,
        value_name = "METRIC",
        value_delimiter = ',',
        default_value = "iops"
    )]
    metric: Vec<Metric>,
    /// Limit of the range (snia) or of the distance from the mean (fio), in
    /// percent of the mean [default: 20]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    limit: Option<f64>,
    /// Limit of the fit's change over the window (snia) or of the slope per
    /// sample (fio), in percent of the mean [default: 10]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    slope: Option<f64>,
    /// Rounds or samples of the window, or its time [default: 5 rounds; 15m by
    /// fio's rule]
    #[arg(long, value_name = "N|TIME", value_parser = length)]
    window: Option<Length>,
    /// What a round is: a time, 'interval' (each sample), or 'point' (each
    /// repetition of a campaign's point) [default: 1m; interval by fio's rule]
    #[arg(long, value_name = "TIME|interval|point", value_parser = span)]
    round: Option<RoundSpan>,
    /// Rounds in which steady state has to be attained (snia)
    #[arg(long, value_name = "N", default_value_t = SNIA_MAX_ROUNDS)]
    max_rounds: usize,
    /// Only this job
    #[arg(long, value_name = "NAME")]
    job: Option<String>,
    /// Only this direction
    #[arg(long, value_enum)]
    dir: Option<Dir>,
    /// Only the steps or points whose names begin so
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum RuleName {
    /// SNIA's criterion, as interpreted here
    #[default]
    Snia,
    /// fio's, of its option ss=
    Fio,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Dir {
    Read,
    Write,
    Trim,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let positive = number.filter(|percent| percent.is_finite() && *percent >= 0.0);
    positive.ok_or_else(|| "it is a number of percent, as in 20".to_owned())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn length(text: &str) -> Result<Length, String> {
    let length = match text.parse::<usize>() {
        Ok(values) => Length::Values(values),
        Err(_) => Length::Time(millis(duration(text)?)),
    };
    match length {
        Length::Values(0 | 1) => Err("a window has 2 rounds at least".to_owned()),
        length => Ok(length),
    }
}

fn span(text: &str) -> Result<RoundSpan, String> {
    match text {
        "interval" => Ok(RoundSpan::Interval),
        "point" => Ok(RoundSpan::Point),
        _ => Ok(RoundSpan::Time(millis(duration(text)?))),
    }
}

impl Args {
    fn question(&self) -> Question {
        let (rule, window, default_span) = match self.rule {
            RuleName::Snia => {
                let rule = WindowRule::Snia {
                    data_limit_percent: self.limit.unwrap_or(SNIA_DATA_PERCENT),
                    slope_limit_percent: self.slope.unwrap_or(SNIA_SLOPE_PERCENT),
                    window: SNIA_WINDOW,
                    max_rounds: self.max_rounds,
                };
                (rule, self.window, RoundSpan::Time(ROUND_MS))
            }
            RuleName::Fio => {
                // A limit that is given alone is judged alone, as in a job file.
                let none = self.limit.is_none() && self.slope.is_none();
                let rule = WindowRule::Fio {
                    mean_limit_percent: self.limit.or(none.then_some(SNIA_DATA_PERCENT)),
                    slope_limit_percent: self.slope.or(none.then_some(SNIA_SLOPE_PERCENT)),
                    window: 2,
                };
                let window = self.window.unwrap_or(Length::Time(FIO_WINDOW_MS));
                (rule, Some(window), RoundSpan::Interval)
            }
        };
        Question {
            rule,
            window,
            ask: Ask {
                metrics: self.metric.clone(),
                span: self.round.unwrap_or(default_span),
                job: self.job.clone(),
                dir: self.dir.map(|dir| match dir {
                    Dir::Read => Direction::Read,
                    Dir::Write => Direction::Write,
                    Dir::Trim => Direction::Trim,
                }),
            },
            step: self.step.clone(),
        }
    }
}

/// Judges one run.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let dir = show::find(global, args.run.as_deref())?;
    let found = steady::read(&dir, &args.question())?;
    if found.verdicts.is_empty() {
        return Err(nothing(&found, args).into());
    }
    if global.json {
        out::json(&found)?;
    } else {
        out::text(steady::text(&found, out::style(global.color)));
    }
    Ok(Exit::Success)
}

/// Why there is nothing to judge.
fn nothing(found: &RecordVerdicts, args: &Args) -> ExitError {
    let what = match (&args.job, &args.step) {
        (Some(job), _) if !found.jobs.contains(job) => {
            let jobs: Vec<&str> = found.jobs.iter().map(String::as_str).collect();
            format!("it has no job {job}; its jobs: {}", jobs.join(", "))
        }
        _ if args.round == Some(RoundSpan::Point) => {
            "it has no measured points: it is no campaign, or none has ended".to_owned()
        }
        (_, Some(step)) => format!("no step whose name begins with {step} has samples"),
        _ => "it has no samples of such I/O (imported results have none at all)".to_owned(),
    };
    ExitError::new(
        Exit::Missing,
        format!("nothing to judge in {}: {what}", found.run),
    )
}
