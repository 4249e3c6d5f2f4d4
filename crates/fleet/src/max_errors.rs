//! How many failed I/Os of a job that goes past them are too many.

use std::fmt;
use std::str::FromStr;

use fathom_model::{Failure, FailureKind, JobResult, Results};
use serde::{Deserialize, Serialize};

/// Most failed I/Os of a job; more make it a failed one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum MaxErrors {
    /// So many.
    Count(u64),
    /// Such a share of its I/Os.
    Percent(f64),
}

impl FromStr for MaxErrors {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let not = || format!("'{text}' is no number of I/Os like 10, nor a share like 0.1%");
        let Some(percent) = text.strip_suffix('%') else {
            return text.parse().map(Self::Count).map_err(|_| not());
        };
        match percent.trim().parse() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(Self::Percent(percent)),
            _ => Err(not()),
        }
    }
}

impl fmt::Display for MaxErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl From<MaxErrors> for String {
    fn from(most: MaxErrors) -> Self {
        most.to_string()
    }
}

impl TryFrom<String> for MaxErrors {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl MaxErrors {
    /// The jobs that had more. `failed_are_done`: the engine counts an I/O that
    /// failed among those it has done, as fio does.
    pub(crate) fn exceeded(self, results: &Results, failed_are_done: bool) -> Vec<Failure> {
        let jobs = results.jobs.iter().filter(|job| !job.is_sum_of_clients());
        jobs.filter_map(|job| self.judge(job, failed_are_done))
            .collect()
    }

    fn judge(self, job: &JobResult, failed_are_done: bool) -> Option<Failure> {
        let errors = job.total_errors.filter(|&errors| errors > 0)?;
        let done: u64 = job.directions().map(|(_, dir)| dir.total_ios).sum();
        let all = match failed_are_done {
            // What failed in a ramp is counted without its I/O.
            true => done.max(errors),
            false => done.saturating_add(errors),
        };
        let most = match self {
            Self::Count(most) => most as f64,
            Self::Percent(percent) => all as f64 * percent / 100.0,
        };
        (errors as f64 > most).then(|| {
            let what = format!("{errors} of {all} I/Os failed; --max-errors allows {self}");
            Failure::new(FailureKind::Io, what)
                .about(&job.name)
                .with_errno(job.error)
        })
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::DirectionResult;

    use super::*;

    #[test]
    fn a_limit_is_a_number_or_a_share_and_nothing_else() {
        for (text, limit) in [
            ("0", MaxErrors::Count(0)),
            ("12", MaxErrors::Count(12)),
            ("0.5%", MaxErrors::Percent(0.5)),
            ("100%", MaxErrors::Percent(100.0)),
        ] {
            assert_eq!(text.parse(), Ok(limit));
            assert_eq!(limit.to_string(), text);
        }
        for wrong in ["", "%", "-1", "1.5", "101%", "-1%", "nan%", "1k", "inf%"] {
            assert!(wrong.parse::<MaxErrors>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_error_more_than_allowed_is_too_many_by_each_engines_own_count() {
        let results = |total_ios| Results {
            jobs: vec![JobResult {
                name: "a".into(),
                error: 5,
                total_errors: Some(4),
                read: Some(DirectionResult {
                    total_ios,
                    ..DirectionResult::default()
                }),
                ..JobResult::default()
            }],
            ..Results::default()
        };
        let fails = |limit: &str, total_ios, failed_are_done| {
            let limit: MaxErrors = limit.parse().unwrap();
            !limit
                .exceeded(&results(total_ios), failed_are_done)
                .is_empty()
        };
        // 4 of 16 failed: fio says 16 I/Os, the native engine 12.
        for (total_ios, failed_are_done) in [(16, true), (12, false)] {
            assert!(fails("3", total_ios, failed_are_done));
            assert!(!fails("4", total_ios, failed_are_done));
            assert!(fails("24.9%", total_ios, failed_are_done));
            assert!(!fails("25%", total_ios, failed_are_done));
        }
        assert!(fails("0", 16, true) && fails("0%", 16, true));
    }
}
