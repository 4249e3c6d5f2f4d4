//! What was found, with every term of the inequality.

use serde::Serialize;

use super::WindowRule;

/// The values of a window and the straight line through them. The x of the line
/// is the value's place in the window, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FittedWindow {
    /// Place of its first value in the series, from 1.
    pub first: usize,
    /// Place of its last value: the round at which it is judged.
    pub last: usize,
    /// Begin of the first value, ms since the run's start.
    pub begin_ms: u64,
    /// End of the last value, ms since the run's start.
    pub end_ms: u64,
    /// Number of values.
    pub n: usize,
    /// Their mean, in the unit of the metric, as all that follow.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// max − min.
    pub range: f64,
    /// The largest |value − mean|.
    pub deviation: f64,
    /// Least-squares slope, for each value (sample, round).
    pub slope: f64,
    /// The line at the first value.
    pub intercept: f64,
    /// What the line changes from the first value to the last: |slope| · (n − 1).
    pub slope_excursion: f64,
    /// Pearson's r of values and places; `None` when all values are equal.
    pub correlation: Option<f64>,
    /// [`Self::range`] in percent of the mean; `None` when the mean is 0: there
    /// was no I/O. Likewise the three below.
    pub range_percent: Option<f64>,
    /// [`Self::deviation`] in percent of the mean.
    pub deviation_percent: Option<f64>,
    /// |slope| in percent of the mean.
    pub slope_percent: Option<f64>,
    /// [`Self::slope_excursion`] in percent of the mean.
    pub slope_excursion_percent: Option<f64>,
}

/// One side of an inequality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TermKind {
    /// fio's: largest distance of a sample from the mean.
    Deviation,
    /// fio's: slope per sample.
    Slope,
    /// SNIA's: greatest less least.
    DataExcursion,
    /// SNIA's: change of the fit over the window.
    SlopeExcursion,
}

/// One inequality of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Term {
    /// What is compared.
    pub term: TermKind,
    /// What was found, in the unit of the metric.
    pub measured: f64,
    /// The same in percent of the mean; `None` when the mean is 0.
    pub measured_percent: Option<f64>,
    /// The limit in the unit of the metric.
    pub allowed: f64,
    /// The limit in percent of the mean.
    pub allowed_percent: f64,
    /// It has to be below the limit (fio); else it may reach it (SNIA).
    pub strict: bool,
    /// Whether it holds; never without I/O.
    pub holds: bool,
}

impl Term {
    pub(super) fn new(term: TermKind, window: &FittedWindow, limit_percent: f64) -> Self {
        let (measured, measured_percent, strict) = match term {
            TermKind::Deviation => (window.deviation, window.deviation_percent, true),
            TermKind::Slope => (window.slope.abs(), window.slope_percent, true),
            TermKind::DataExcursion => (window.range, window.range_percent, false),
            TermKind::SlopeExcursion => (
                window.slope_excursion,
                window.slope_excursion_percent,
                false,
            ),
        };
        let holds = measured_percent.is_some_and(|percent| match strict {
            true => percent < limit_percent,
            false => percent <= limit_percent,
        });
        Self {
            term,
            measured,
            measured_percent,
            allowed: window.mean * limit_percent / 100.0,
            allowed_percent: limit_percent,
            strict,
            holds,
        }
    }

    /// How often the limit goes into what was found: above 1 it fails.
    pub(super) fn ratio(&self) -> f64 {
        let ratio = self.measured_percent.map(|p| p / self.allowed_percent);
        // 0 of a limit of 0.
        ratio.filter(|r| !r.is_nan()).unwrap_or(f64::INFINITY)
    }
}

/// How it came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteadyOutcome {
    /// Attained.
    Attained,
    /// A window was steady only after the rounds that the rule gives: not attained.
    TooLate,
    /// No window was steady.
    NotAttained,
    /// There are fewer values than a window has.
    TooShort,
    /// No window is without a missing value: there was no I/O, or no latency
    /// was measured.
    NoValues,
}

/// The judgement of one metric of one series.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SteadyVerdict {
    /// Attained within the rule's own rounds.
    pub attained: bool,
    /// How it came out.
    pub outcome: SteadyOutcome,
    /// The rule.
    #[serde(flatten)]
    pub rule: WindowRule,
    /// [`WindowRule::name`].
    pub rule_name: &'static str,
    /// Values that were looked at.
    pub rounds: usize,
    /// Those among them that are missing.
    pub missing: usize,
    /// The first window that is steady; when none is, the last one, which is
    /// *not* steady. `None` when no window is full and without missing values.
    pub window: Option<FittedWindow>,
    /// The terms of the rule in that window.
    pub terms: Vec<Term>,
    /// When no window is steady: the one that came closest to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closest: Option<FittedWindow>,
}
