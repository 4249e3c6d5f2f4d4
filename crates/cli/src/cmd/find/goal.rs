//! What a search is after, as options.

use std::time::Duration;

use fathom_analysis::find::FindGoal;
use fathom_model::value::{self, BareTimeUnit};

use super::emit::FindEmit;

/// What is searched: one of these.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
pub struct GoalArgs {
    /// The smallest load within 2 % of the best throughput
    #[arg(long)]
    knee: bool,
    /// Limit of the mean latency
    #[arg(long, value_name = "TIME", value_parser = latency)]
    mean: Option<Duration>,
    /// Limit of the median
    #[arg(long, value_name = "TIME", value_parser = latency)]
    p50: Option<Duration>,
    /// Limit of the 90th percentile
    #[arg(long, value_name = "TIME", value_parser = latency)]
    p90: Option<Duration>,
    /// Limit of the 95th percentile
    #[arg(long, value_name = "TIME", value_parser = latency)]
    p95: Option<Duration>,
    /// Limit of the 99th percentile
    #[arg(long, value_name = "TIME", value_parser = latency)]
    p99: Option<Duration>,
    /// Limit of the 99.9th percentile
    #[arg(long = "p99.9", value_name = "TIME", value_parser = latency)]
    p999: Option<Duration>,
    /// Limit of the 99.99th percentile
    #[arg(long = "p99.99", value_name = "TIME", value_parser = latency)]
    p9999: Option<Duration>,
    /// Limit of how busy the CPUs of the machine are, in percent of all of them
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    max_cpu: Option<f64>,
    /// No limit: the p99 of reads over so many steps of reads and of writes
    #[arg(long, value_name = "STEPS", num_args = 0..=1, require_equals = true, default_missing_value = "5", value_parser = clap::value_parser!(u32).range(2..=32))]
    pub map: Option<u32>,
    /// What the device can do at the depths that are enough, reads and writes, in order and
    /// at random, for another program
    #[arg(long, value_enum, value_name = "FOR")]
    pub emit: Option<FindEmit>,
}

/// Reads a latency as fio does a time, in seconds without a unit: `500us`, `1ms`.
fn latency(text: &str) -> Result<Duration, String> {
    let time_us = value::time_us(text, BareTimeUnit::Seconds).map_err(|fault| fault.to_string())?;
    match u64::try_from(time_us).map(Duration::from_micros) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("it must be at least 1us".to_owned()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse::<f64>().ok();
    let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent.ok_or_else(|| "it is a number of percent, above 0 and at most 100".to_owned())
}

impl GoalArgs {
    /// The goal, and the percentile that its limit is about.
    pub fn goal(&self) -> (FindGoal, Option<f64>) {
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
        match (given, self.max_cpu) {
            (None, None) => (FindGoal::Knee, None),
            (None, Some(limit_percent)) => (FindGoal::Cpu { limit_percent }, None),
            (Some((percent, limit)), _) => {
                let limit_ns = limit.as_nanos() as f64;
                (FindGoal::Latency { limit_ns }, percent)
            }
        }
    }
}
