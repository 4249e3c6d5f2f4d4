//! Steady state, judged from what was measured: the same code live and, with
//! other limits, again on an old record.
//!
//! Two rules, which do not say the same and go by their own names:
//!
//! - **fio's rule** (`ss=`, steadystate.c): in a window of the last samples the
//!   largest distance of a sample from the mean, and the least-squares slope
//!   *per sample*, each in percent of the mean, are below (not equal to) a limit.
//! - **SNIA's criterion**, an interpretation (SSS PTS 2.0, 2.1.24): in a window of the
//!   last five rounds the range is at most 20 % of the average, and the best
//!   linear fit changes by at most 10 % of it *over the whole window*. The text
//!   says "less than" in one place and "no more than" in another: ≤ is taken.
//!
//! Whether a window holds is computed from sums that slide, in constant time
//! whatever its length ([`SteadyJudge`]). A window without I/O is never steady, nor is
//! one in which a value is missing.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

mod judge;
mod rounds;
mod twofold;
mod verdict;
mod watch;

pub use judge::{SteadyJudge, judge};
pub use rounds::{Ask, RoundSeries, RoundSpan, Rounds, SteadyRound};
pub use verdict::{FittedWindow, SteadyOutcome, SteadyVerdict, Term, TermKind};
pub use watch::SteadyWatch;

/// Rounds of SNIA's window (SSS PTS 2.0, 2.1.24).
pub const SNIA_WINDOW: usize = 5;
/// Rounds after which SNIA's criterion is not attained (SSS PTS 2.0, 7.2).
pub const SNIA_MAX_ROUNDS: usize = 25;
/// Most that the values of SNIA's window may lie apart, in percent of the average.
pub const SNIA_DATA_PERCENT: f64 = 20.0;
/// Most that the fit may change over SNIA's window, in percent of the average.
pub const SNIA_SLOPE_PERCENT: f64 = 10.0;

/// What is to hold of a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum WindowRule {
    /// fio's. An absent limit is not looked at.
    Fio {
        /// The largest |sample − mean| is below so many percent of the mean.
        mean_limit_percent: Option<f64>,
        /// The |slope| per sample is below so many percent of the mean.
        slope_limit_percent: Option<f64>,
        /// Samples of the window; at least 2. A verdict has its window beside it.
        #[serde(rename = "window_rounds")]
        window: usize,
    },
    /// SNIA's, as interpreted here.
    Snia {
        /// max − min is at most so many percent of the average.
        data_limit_percent: f64,
        /// |slope| · (n − 1) is at most so many percent of the average.
        slope_limit_percent: f64,
        /// Rounds of the window; at least 2.
        #[serde(rename = "window_rounds")]
        window: usize,
        /// Steady state has to be attained within so many rounds.
        max_rounds: usize,
    },
}

impl WindowRule {
    /// SNIA's criterion with its own limits.
    pub const SNIA: Self = Self::Snia {
        data_limit_percent: SNIA_DATA_PERCENT,
        slope_limit_percent: SNIA_SLOPE_PERCENT,
        window: SNIA_WINDOW,
        max_rounds: SNIA_MAX_ROUNDS,
    };

    /// What it is called wherever it is shown.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fio { .. } => "fio's rule",
            _ if *self == Self::SNIA => "SNIA's criterion (interpretation)",
            Self::Snia { .. } => "SNIA's criterion (interpretation), other limits",
        }
    }

    /// Values of the window; at least 2, because one has no slope.
    pub fn window(&self) -> usize {
        match *self {
            Self::Fio { window, .. } | Self::Snia { window, .. } => window.max(2),
        }
    }

    /// Values after which it is too late; `None`: it never is.
    pub fn max_rounds(&self) -> Option<usize> {
        match *self {
            Self::Fio { .. } => None,
            Self::Snia { max_rounds, .. } => Some(max_rounds),
        }
    }

    /// What it demands of a window, each with what was found. Without a limit
    /// there is nothing to demand, and nothing holds.
    pub fn terms(&self, window: &FittedWindow) -> impl Iterator<Item = Term> {
        let term = |kind, limit| Term::new(kind, window, limit);
        let terms = match *self {
            Self::Fio {
                mean_limit_percent: mean,
                slope_limit_percent: slope,
                ..
            } => [
                mean.map(|limit| term(TermKind::Deviation, limit)),
                slope.map(|limit| term(TermKind::Slope, limit)),
            ],
            Self::Snia {
                data_limit_percent: data,
                slope_limit_percent: slope,
                ..
            } => [
                Some(term(TermKind::DataExcursion, data)),
                Some(term(TermKind::SlopeExcursion, slope)),
            ],
        };
        terms.into_iter().flatten()
    }

    /// Whether a window is steady.
    pub fn holds(&self, window: &FittedWindow) -> bool {
        let mut terms = self.terms(window).peekable();
        terms.peek().is_some() && terms.all(|term| term.holds)
    }
}

/// What is judged: the tracked variable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// I/Os per second, of all chosen jobs and directions together.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// Mean completion latency in ns.
    Latency,
    /// A percentile (0–100) of the completion latencies in ns, of the merged
    /// histograms of the round.
    Percentile(f64),
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Iops => f.write_str("iops"),
            Self::Bandwidth => f.write_str("bw"),
            Self::Latency => f.write_str("lat"),
            Self::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "iops" => return Ok(Self::Iops),
            "bw" => return Ok(Self::Bandwidth),
            "lat" => return Ok(Self::Latency),
            _ => {}
        }
        let percent = text.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
        let within = percent.filter(|percent| (0.0..=100.0).contains(percent));
        let metric = within.map(Self::Percentile);
        metric.ok_or_else(|| "it is iops, bw, lat, or a percentile as in p99.9".to_owned())
    }
}

/// By its name.
impl schemars::JsonSchema for Metric {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Metric".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One value of a series: a sample, a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SeriesValue {
    /// Begin, ms since the run's start.
    pub begin_ms: u64,
    /// End, ms since the run's start.
    pub end_ms: u64,
    /// The figure in its unit; `None` where there is none, as of latencies
    /// when there was no I/O.
    pub value: Option<f64>,
}

#[cfg(test)]
mod tests;
