//! fio's own steady-state rule (`ss=`), under fio's name: a job ends when the
//! last `ss_dur` seconds stay within a limit (steadystate.c). One value is
//! taken each second; a window without I/O is never steady, although fio says so.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};

use super::clock::Clock;
use super::members::{Member, Unit};

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    Iops,
    Bw,
}

/// The rule as a job asks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rule {
    pub(super) metric: Metric,
    /// By the least-squares slope of the window, else by the largest deviation
    /// from its mean.
    pub(super) slope: bool,
    pub(super) limit: f64,
    /// The limit is in percent of the mean.
    pub(super) percent: bool,
}

/// What a window of one unit says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Steady {
    rule: Rule,
    seconds: usize,
    window: VecDeque<(u64, u64)>,
    attained: bool,
    deviation: f64,
    slope: f64,
    criterion: f64,
}

impl Steady {
    pub(super) fn new(rule: Rule, seconds: usize) -> Self {
        Self {
            rule,
            seconds: seconds.max(1),
            window: VecDeque::new(),
            attained: false,
            deviation: 0.0,
            slope: 0.0,
            criterion: 0.0,
        }
    }

    /// Takes a second's IOPS and bytes; true when the window is steady now.
    pub(super) fn second(&mut self, iops: u64, bw_bytes: u64) -> bool {
        if self.attained {
            return true;
        }
        self.window.push_back((iops, bw_bytes));
        if self.window.len() > self.seconds {
            self.window.pop_front();
        }
        if self.window.len() < self.seconds {
            return false;
        }
        self.judge();
        self.attained
    }

    fn judge(&mut self) {
        let values: Vec<f64> = self
            .window
            .iter()
            .map(|&(iops, bw)| if self.rule.metric == Metric::Iops { iops } else { bw } as f64)
            .collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        self.deviation = values
            .iter()
            .map(|value| (value - mean).abs())
            .fold(0.0, f64::max);
        self.slope = slope(&values, mean);
        let measure = if self.rule.slope {
            self.slope.abs()
        } else {
            self.deviation
        };
        self.criterion = if self.rule.percent {
            100.0 * measure / mean
        } else {
            measure
        };
        // Every comparison with the NaN of an empty window is false.
        self.attained = mean > 0.0 && self.criterion < self.rule.limit;
    }

    /// The verdict as fio's JSON has it.
    pub(super) fn report(&self) -> Value {
        let sign = if self.rule.percent { "%" } else { "" };
        let metric = match self.rule.metric {
            Metric::Iops => "iops",
            Metric::Bw => "bw",
        };
        let kind = if self.rule.slope { "_slope" } else { "" };
        let of = |pick: fn(&(u64, u64)) -> u64| self.window.iter().map(pick).collect::<Vec<_>>();
        let (iops, bw) = (of(|second| second.0), of(|second| second.1));
        let mean = |values: &[u64]| values.iter().sum::<u64>() / (values.len() as u64).max(1);
        json!({
            "ss": format!("{metric}{kind}:{:.6}{sign}", self.rule.limit),
            "duration": self.seconds,
            "attained": u8::from(self.attained),
            "criterion": format!("{:.6}{sign}", self.criterion),
            "max_deviation": self.deviation,
            "slope": self.slope,
            "data": { "bw_mean": mean(&bw), "iops_mean": mean(&iops), "iops": iops, "bw": bw },
        })
    }
}

/// A unit whose jobs end when they are steady.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) steady: Steady,
    ramp_ns: u64,
    /// Ticks of the last value, I/Os and bytes at that time.
    last: Option<(u64, u64, u64)>,
}

impl Watched {
    /// `None` when the unit's jobs have no such rule.
    pub(super) fn of(unit: &Unit, members: &[Member]) -> Option<Self> {
        let job = &members[unit.members[0]].job;
        Some(Self {
            steady: Steady::new(job.steady?, usize::try_from(job.steady_seconds).ok()?),
            ramp_ns: u64::try_from(job.steady_ramp.as_nanos()).unwrap_or(u64::MAX),
            last: None,
        })
    }

    /// Takes a value when a second is over; true once the unit is steady.
    pub(super) fn look(&mut self, unit: &Unit, members: &[Member], clock: &Clock) -> bool {
        let of_unit = || unit.members.iter().map(|&place| &members[place]);
        let begun = of_unit()
            .map(|member| member.stats.began.load(Relaxed))
            .max()
            .unwrap_or(0);
        let now = clock.now();
        if begun == 0 || clock.ns(now.saturating_sub(begun)) < self.ramp_ns {
            return false;
        }
        let since_ns = self.last.map(|last| clock.ns(now.saturating_sub(last.0)));
        if since_ns.is_some_and(|ns| ns < 1_000_000_000) {
            return false;
        }
        let dirs = || of_unit().flat_map(|member| member.stats.dirs.iter().flatten());
        let ios: u64 = dirs().map(|stats| stats.clat().histogram.total()).sum();
        let bytes: u64 = dirs().map(|stats| stats.bytes.load(Relaxed)).sum();
        let before = self.last.replace((now, ios, bytes));
        let (Some((_, ios_before, bytes_before)), Some(ns)) = (before, since_ns) else {
            return false;
        };
        let rate = |count: u64| (u128::from(count) * 1_000_000_000 / u128::from(ns)) as u64;
        self.steady
            .second(rate(ios - ios_before), rate(bytes - bytes_before))
    }
}

/// Least squares over the seconds 0, 1, 2 …; per second.
fn slope(values: &[f64], mean: f64) -> f64 {
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let (mut above, mut below) = (0.0, 0.0);
    for (second, value) in values.iter().enumerate() {
        let x = second as f64 - middle;
        above += x * (value - mean);
        below += x * x;
    }
    if below > 0.0 { above / below } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(slope: bool, limit: f64, percent: bool) -> Rule {
        Rule {
            metric: Metric::Iops,
            slope,
            limit,
            percent,
        }
    }

    fn attained(rule: Rule, values: &[u64]) -> Option<usize> {
        let mut steady = Steady::new(rule, 4);
        values
            .iter()
            .position(|&value| steady.second(value, value * 4096))
    }

    #[test]
    fn a_window_is_steady_strictly_below_its_limit() {
        // Deviation 10 of a mean of 100.
        let values = [500, 90, 110, 100, 100];
        assert_eq!(attained(rule(false, 10.0, true), &values), None);
        assert_eq!(attained(rule(false, 10.1, true), &values), Some(4));
        assert_eq!(attained(rule(false, 10.5, false), &values), Some(4));
    }

    #[test]
    fn a_slope_is_taken_per_second() {
        // 2 a second on a mean of 103: 1.94 %.
        let values = [100, 102, 104, 106];
        assert_eq!(attained(rule(true, 1.9, true), &values), None);
        assert_eq!(attained(rule(true, 2.0, true), &values), Some(3));
        assert_eq!(attained(rule(true, 2.0, false), &values), None);
    }

    #[test]
    fn a_stalled_job_is_never_steady() {
        assert_eq!(attained(rule(false, 5.0, true), &[0; 10]), None);
        assert_eq!(attained(rule(true, 5.0, false), &[0; 10]), None);
    }

    #[test]
    fn the_report_has_fios_members() {
        let mut steady = Steady::new(rule(false, 30.0, true), 3);
        for iops in [12_708, 12_281, 10_763] {
            steady.second(iops, iops * 4096);
        }
        let report = steady.report();
        assert_eq!(report["ss"], "iops:30.000000%");
        assert_eq!(report["criterion"], "9.686171%");
        assert_eq!(report["data"]["iops_mean"], 11_917);
        assert_eq!(report["attained"], 1);
    }
}
