//! fio's own steady-state rule (`ss=`), under fio's name: a job ends when the
//! last `ss_dur` seconds stay within a limit (steadystate.c). One value is
//! taken each second; a window without I/O is never steady, although fio says so.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};

use super::clock::TickClock;
use super::job::{SteadyMetric, SteadyRule};
use super::members::{Member, ReportUnit};

/// A second of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Second {
    pub(super) iops: u64,
    pub(super) bw_bytes: u64,
    pub(super) clat_ns: u64,
}

/// What a window of one unit says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SteadyWindow {
    rule: SteadyRule,
    seconds: usize,
    window: VecDeque<Second>,
    attained: bool,
    deviation: f64,
    slope: f64,
    criterion: f64,
}

impl SteadyWindow {
    pub(super) fn new(rule: SteadyRule, seconds: usize) -> Self {
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

    /// Takes a second; true when the window is steady now.
    pub(super) fn second(&mut self, second: Second) -> bool {
        if self.attained {
            return true;
        }
        self.window.push_back(second);
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
            .map(|second| match self.rule.metric {
                SteadyMetric::Iops => second.iops as f64,
                SteadyMetric::Bw => second.bw_bytes as f64,
                SteadyMetric::Lat => second.clat_ns as f64,
            })
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
        // Every comparison with the NaN of an empty window is false; a latency
        // of a second without I/O is none.
        let idle = self.rule.metric == SteadyMetric::Lat && self.window.iter().any(|s| s.iops == 0);
        self.attained = mean > 0.0 && !idle && self.criterion < self.rule.limit;
    }

    /// The verdict as fio's JSON has it.
    pub(super) fn report(&self) -> Value {
        let sign = if self.rule.percent { "%" } else { "" };
        let metric = match self.rule.metric {
            SteadyMetric::Iops => "iops",
            SteadyMetric::Bw => "bw",
            SteadyMetric::Lat => "lat",
        };
        let kind = if self.rule.slope { "_slope" } else { "" };
        // As in fio there are zeros for the seconds that a window is short of, and they
        // count in the means (steadystate.c).
        let of = |pick: fn(&Second) -> u64| {
            let mut values: Vec<u64> = self.window.iter().map(pick).collect();
            // No more than a day of them.
            values.resize(self.seconds.min(86_400).max(values.len()), 0);
            values
        };
        let (iops, bw, lat) = (of(|s| s.iops), of(|s| s.bw_bytes), of(|s| s.clat_ns));
        let mean = |values: &[u64]| values.iter().sum::<u64>() / (values.len() as u64).max(1);
        let mut report = json!({
            "ss": format!("{metric}{kind}:{:.6}{sign}", self.rule.limit),
            "duration": self.seconds,
            "attained": u8::from(self.attained),
            "criterion": format!("{:.6}{sign}", self.criterion),
            "max_deviation": self.deviation,
            "slope": self.slope,
            "data": { "bw_mean": mean(&bw), "iops_mean": mean(&iops), "iops": iops, "bw": bw },
        });
        // As fio has it from 3.42 on.
        if self.rule.metric == SteadyMetric::Lat {
            report["data"]["lat_mean"] = mean(&lat).into();
            report["data"]["lat"] = lat.into();
        }
        report
    }
}

/// A unit whose jobs end when they are steady.
#[derive(Debug)]
pub(super) struct WatchedUnit {
    pub(super) steady: SteadyWindow,
    ramp_ns: u64,
    /// Ticks of the last value; I/Os, bytes and the sum of all clat at that time.
    last: Option<(u64, [u64; 3])>,
}

impl WatchedUnit {
    /// `None` when the unit's jobs have no such rule.
    pub(super) fn of(unit: &ReportUnit, members: &[Member]) -> Option<Self> {
        let job = &members[unit.members[0]].job;
        Some(Self {
            steady: SteadyWindow::new(job.steady?, usize::try_from(job.steady_seconds).ok()?),
            ramp_ns: u64::try_from(job.steady_ramp.as_nanos()).unwrap_or(u64::MAX),
            last: None,
        })
    }

    /// Takes a value when a second is over; true once the unit is steady.
    pub(super) fn look(
        &mut self,
        unit: &ReportUnit,
        members: &[Member],
        clock: &TickClock,
    ) -> bool {
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
        let (mut ios, mut clat_ns) = (0, 0u64);
        for stats in dirs() {
            let clat = stats.clat();
            ios += clat.histogram.total();
            clat_ns = clat_ns.saturating_add(clat.sum_ns as u64);
        }
        let bytes: u64 = dirs().map(|stats| stats.bytes.load(Relaxed)).sum();
        let before = self.last.replace((now, [ios, bytes, clat_ns]));
        let (Some((_, before)), Some(ns)) = (before, since_ns) else {
            return false;
        };
        let rate = |count: u64| (u128::from(count) * 1_000_000_000 / u128::from(ns)) as u64;
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        let [ios, bytes, clat_ns] = [
            since(ios, before[0]),
            since(bytes, before[1]),
            since(clat_ns, before[2]),
        ];
        self.steady.second(Second {
            iops: rate(ios),
            bw_bytes: rate(bytes),
            clat_ns: clat_ns.checked_div(ios).unwrap_or(0),
        })
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

    fn rule(slope: bool, limit: f64, percent: bool) -> SteadyRule {
        SteadyRule {
            metric: SteadyMetric::Iops,
            slope,
            limit,
            percent,
        }
    }

    fn second(iops: u64) -> Second {
        Second {
            iops,
            bw_bytes: iops * 4096,
            clat_ns: 1_000_000_000 / iops.max(1),
        }
    }

    fn attained(rule: SteadyRule, values: &[u64]) -> Option<usize> {
        let mut steady = SteadyWindow::new(rule, 4);
        values
            .iter()
            .position(|&value| steady.second(second(value)))
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
    fn latencies_are_steady_by_themselves_and_not_without_io() {
        let lat = SteadyRule {
            metric: SteadyMetric::Lat,
            ..rule(false, 10.0, true)
        };
        assert_eq!(attained(lat, &[1000, 1010, 990, 1000]), Some(3));
        assert_eq!(attained(lat, &[1000, 1010, 0, 1000]), None);
        let mut steady = SteadyWindow::new(lat, 1);
        steady.second(second(1000));
        let data = &steady.report()["data"];
        assert_eq!(
            (&data["lat_mean"], &data["lat"]),
            (&1_000_000.into(), &vec![1_000_000].into())
        );
    }

    #[test]
    fn the_report_has_fios_members() {
        let mut steady = SteadyWindow::new(rule(false, 30.0, true), 3);
        for iops in [12_708, 12_281, 10_763] {
            steady.second(second(iops));
        }
        let report = steady.report();
        assert_eq!(report["ss"], "iops:30.000000%");
        assert_eq!(report["criterion"], "9.686171%");
        assert_eq!(report["data"]["iops_mean"], 11_917);
        assert_eq!(report["attained"], 1);
    }
}
