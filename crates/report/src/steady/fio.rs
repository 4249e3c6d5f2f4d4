//! fio's own verdict, computed again from the values that fio reports with it.

use fathom_analysis::steady_state::{SeriesValue, SteadyVerdict, WindowRule, judge};
use fathom_model::JobResult;
use serde::Serialize;

/// From so many intervals on, sums in fio's slope overflow 32 bits (steadystate.c).
const SLOPE_OVERFLOWS: usize = 1025;
/// fio prints its criterion with so much precision.
const PRINTED: f64 = 1e-6;

/// fio's `ss=` of a job: what fio says and what its own values say.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FioVerdict {
    /// The job.
    pub job: String,
    /// The rule as fio has it: `iops:30.000000%`.
    pub ss: String,
    /// fio: attained.
    pub attained: bool,
    /// fio: what it compared with the limit, as it prints it.
    pub criterion: String,
    /// By fio's rule and fio's values; null where fio gives no values.
    pub recomputed_attained: Option<bool>,
    /// What is compared with the limit, in its unit; null without I/O.
    pub recomputed_criterion: Option<f64>,
    /// Number of values in fio's window.
    pub n: usize,
    /// Why the two differ; null when they do not.
    pub remark: Option<String>,
    #[serde(skip)]
    mean: f64,
}

impl FioVerdict {
    /// Of a job; `None` when it has no such verdict.
    pub fn of(job: &JobResult) -> Option<Self> {
        let report = job.fio_steady_state.as_ref()?;
        let ss = report["ss"].as_str()?;
        let (what, limit) = ss.split_once(':')?;
        let (metric, slope) = match what.strip_suffix("_slope") {
            Some(metric) => (metric, true),
            None => (what, false),
        };
        let is_percent = limit.ends_with('%');
        let limit: f64 = limit.trim_end_matches('%').parse().ok()?;
        let values = report["data"][metric].as_array();
        let values: Vec<f64> = values
            .into_iter()
            .flatten()
            .filter_map(|v| v.as_f64())
            .collect();
        let duration = report["duration"].as_u64().unwrap_or(0);
        let mut found = Self {
            job: job.name.clone(),
            ss: ss.to_owned(),
            attained: report["attained"].as_u64() == Some(1),
            criterion: report["criterion"].as_str().unwrap_or("").to_owned(),
            recomputed_attained: None,
            recomputed_criterion: None,
            n: values.len(),
            remark: None,
            mean: 0.0,
        };
        if let Some(window) = whole(&values).window {
            found.mean = window.mean;
            found.recomputed_criterion = match (slope, is_percent) {
                (false, true) => window.deviation_percent,
                (true, true) => window.slope_percent,
                (false, false) => (window.mean > 0.0).then_some(window.deviation),
                (true, false) => (window.mean > 0.0).then_some(window.slope.abs()),
            };
            let full = values.len() as u64 >= duration;
            let below = found.recomputed_criterion.is_some_and(|c| c < limit);
            found.recomputed_attained = Some(full && below);
        }
        found.remark = found.remark(slope);
        Some(found)
    }

    fn remark(&self, slope: bool) -> Option<String> {
        let Some(recomputed) = self.recomputed_attained else {
            return Some("fio gives no values that it could be computed from again".to_owned());
        };
        let Some(criterion) = self.recomputed_criterion else {
            let text = "a window without I/O is never steady; fio says that it is";
            return self.attained.then(|| text.to_owned());
        };
        // fio divides its slope by the mean cut to a whole number (steadystate.c).
        let cut = if slope { 1.0 / self.mean } else { 0.0 };
        let near =
            |p: f64| (p.abs() - criterion).abs() <= PRINTED * p.abs().max(1.0) + cut * p.abs();
        let printed = self.criterion.trim_end_matches('%').parse::<f64>();
        let same = printed.is_ok_and(near);
        if recomputed == self.attained && (same || !self.attained) {
            return None;
        }
        Some(if slope && self.n >= SLOPE_OVERFLOWS {
            format!("fio's slope overflows from {SLOPE_OVERFLOWS} intervals on")
        } else {
            "fio's verdict does not follow from the values that it gives".to_owned()
        })
    }
}

/// All values as one window.
fn whole(values: &[f64]) -> SteadyVerdict {
    let rule = WindowRule::Fio {
        mean_limit_percent: None,
        slope_limit_percent: None,
        window: values.len(),
    };
    let value = |(place, &value): (u64, &f64)| SeriesValue {
        begin_ms: place * 1000,
        end_ms: place * 1000 + 1000,
        value: Some(value),
    };
    judge(rule, (0..).zip(values).map(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn verdict(ss: &str, attained: u8, criterion: &str, values: &[u64]) -> FioVerdict {
        let report: Value = json!({
            "ss": ss, "duration": values.len(), "attained": attained, "criterion": criterion,
            "data": { "iops": values },
        });
        let job = JobResult {
            fio_steady_state: Some(report),
            ..JobResult::default()
        };
        FioVerdict::of(&job).unwrap()
    }

    #[test]
    fn fios_criterion_follows_from_fios_values() {
        let values = [12_708, 12_281, 10_763];
        let found = verdict("iops:30.000000%", 1, "9.686171%", &values);
        assert_eq!(
            (found.recomputed_attained, found.remark),
            (Some(true), None)
        );
        let found = verdict("iops_slope:5.000000%", 0, "-8.160332%", &values);
        assert_eq!(
            (found.recomputed_attained, found.remark),
            (Some(false), None)
        );
        let found = verdict("iops:2000.000000", 1, "1154.333333", &values);
        assert_eq!(
            (found.recomputed_attained, found.remark),
            (Some(true), None)
        );
    }

    /// 1 of 400.5, which fio divides by 400.
    #[test]
    fn a_slope_is_divided_by_a_whole_mean() {
        let found = verdict("iops_slope:90.000000%", 1, "-0.250000%", &[401, 400]);
        assert_eq!(
            (found.recomputed_attained, found.remark),
            (Some(true), None)
        );
        let found = verdict("iops_slope:90.000000%", 1, "-0.260000%", &[401, 400]);
        assert!(found.remark.is_some());
    }

    #[test]
    fn a_stalled_job_that_fio_calls_steady_is_not() {
        let found = verdict("iops:20.000000%", 1, "-nan%", &[0, 0, 0]);
        assert_eq!(found.recomputed_attained, Some(false));
        assert!(found.remark.unwrap().contains("without I/O"));
    }

    #[test]
    fn a_slope_that_overflowed_is_told() {
        let values: Vec<u64> = (0..1100).map(|i| 1000 + i).collect();
        let found = verdict("iops_slope:1.000000%", 1, "0.000123%", &values);
        assert!(found.remark.unwrap().contains("overflows"));
    }
}
