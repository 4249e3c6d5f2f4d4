//! A job that is repeated for hours: figures of each period, and whether they drift.

use std::collections::BTreeMap;
use std::time::Duration;

use fathom_analysis::guard::MeasurementTotals;
use fathom_analysis::steady_state::{
    SNIA_DATA_PERCENT, SNIA_SLOPE_PERCENT, SeriesValue, SteadyJudge, SteadyVerdict, WindowRule,
};
use fathom_model::{JobResult, Results, RunDocument};

use fathom_flow::{JobStep, Jobs};

/// The command in records.
pub const COMMAND: &str = "soak";

/// How many equal periods of at most this length so many hours are, and how long each
/// is, in whole ms.
pub fn periods_in(hours: f64, longest: Duration) -> (u32, Duration) {
    let all = Duration::from_secs_f64(hours * 3600.0).as_millis().max(1);
    let longest = longest.as_millis().max(1);
    let periods = u32::try_from(all.div_ceil(longest)).unwrap_or(u32::MAX);
    let each = all.div_ceil(periods.into());
    (
        periods,
        Duration::from_millis(u64::try_from(each).unwrap_or(u64::MAX)),
    )
}

/// Runs the job file so often; the steps have the names of periods.
pub fn script(steps: &[JobStep], times: u32) -> Jobs {
    let Some(step) = steps.first() else {
        return Jobs(Vec::new());
    };
    let period = |number| {
        let name = period_name(number);
        JobStep {
            number,
            of: times,
            raw: name.clone().into(),
            name,
            ..step.clone()
        }
    };
    Jobs((1..=times).map(period).collect())
}

/// Name of a period's step; the first is 1.
pub fn period_name(number: u32) -> String {
    format!("period-{number:04}")
}

/// The figures of one period.
#[derive(Debug, Clone, PartialEq)]
pub struct PeriodFigures {
    /// Which one, from 1.
    pub number: u32,
    /// All jobs and directions together; `None`: nothing was moved.
    pub totals: Option<MeasurementTotals>,
}

/// The figures of all periods that have ended.
pub fn periods(document: &RunDocument) -> Vec<PeriodFigures> {
    let mut by_step: BTreeMap<String, Vec<JobResult>> = BTreeMap::new();
    for job in &document.jobs {
        // A run of one step names none.
        let step = job.step.clone().unwrap_or_else(|| period_name(1));
        by_step.entry(step).or_default().push(job.clone());
    }
    let figures = by_step.into_iter().filter_map(|(step, jobs)| {
        let number = step.strip_prefix("period-")?.parse().ok()?;
        let results = Results {
            jobs,
            ..Results::default()
        };
        let totals = MeasurementTotals::of(&results);
        Some(PeriodFigures { number, totals })
    });
    figures.collect()
}

/// Whether the IOPS of the periods drift: SNIA's criterion over all of them as one
/// window (SSS PTS 2.0.2, 2.1.29). `None`: there are fewer than two.
pub fn drift(periods: &[PeriodFigures], period_ms: u64) -> Option<SteadyVerdict> {
    if periods.len() < 2 {
        return None;
    }
    let mut judge = SteadyJudge::new(WindowRule::Snia {
        data_limit_percent: SNIA_DATA_PERCENT,
        slope_limit_percent: SNIA_SLOPE_PERCENT,
        window: periods.len(),
        max_rounds: periods.len(),
    });
    for period in periods {
        judge.take(SeriesValue {
            begin_ms: u64::from(period.number - 1) * period_ms,
            end_ms: u64::from(period.number) * period_ms,
            value: period.totals.map(|totals| totals.iops),
        });
    }
    Some(judge.verdict())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_periods_take_as_long_as_the_hours() {
        let hour = Duration::from_secs(3600);
        let of = |hours| periods_in(hours, hour);
        assert_eq!(of(24.0), (24, hour));
        assert_eq!(of(0.01), (1, Duration::from_secs(36)));
        assert_eq!(of(1.5), (2, hour * 3 / 4));
        assert_eq!(of(1.4), (2, hour * 7 / 10));
        assert_eq!(periods_in(2.0, hour / 6), (12, hour / 6));
        assert_eq!(periods_in(1e-9, hour), (1, Duration::from_millis(1)));
    }
}
