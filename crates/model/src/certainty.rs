//! How far a figure of a run can be trusted, as the run's own intervals tell it.

use serde::{Deserialize, Serialize};

/// How far a figure can be trusted. It says nothing of the spread *between* runs, which
/// only repetitions tell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Certainty {
    /// A 95 % interval.
    Interval {
        /// Its lower end, in the unit of the figure.
        low: f64,
        /// Its upper end.
        high: f64,
        /// As many independent intervals would tell as much.
        independent: f64,
    },
    /// The run has too few independent intervals for one: too short to say.
    TooShort {
        /// How many there are.
        independent: f64,
        /// How long a run would probably do, in ms.
        enough_ms: u64,
    },
    /// The level changed within the run: its mean is that of no level.
    LevelShift {
        /// When it changed most, ms since the step's first interval.
        at_ms: u64,
        /// The level before, in the unit of the figure.
        from: f64,
        /// The level behind it.
        to: f64,
    },
}

impl Certainty {
    /// Half of the interval's width, in the unit of the figure; `None` where none is told.
    pub fn half_width(&self) -> Option<f64> {
        match *self {
            Self::Interval { low, high, .. } => Some((high - low) / 2.0),
            _ => None,
        }
    }

    /// The same interval around `value`: what the engine counted over the whole run
    /// differs a little from what its intervals add up to.
    #[must_use]
    pub fn about(self, value: f64) -> Self {
        match self {
            Self::Interval {
                low,
                high,
                independent,
            } => Self::Interval {
                low: value - (high - low) / 2.0,
                high: value + (high - low) / 2.0,
                independent,
            },
            other => other,
        }
    }
}

/// How far the rates of one direction can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RateCertainty {
    /// Intervals that it was told from; of a long run several are taken as one.
    pub intervals: u64,
    /// That of the IOPS.
    pub iops: Certainty,
    /// That of the bandwidth, in bytes per second.
    pub bw_bytes: Certainty,
}

/// How far latencies can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LatencyCertainty {
    /// That of the mean, in ns.
    pub mean_ns: Certainty,
    /// Those of percentiles, ascending; none where it is too short to say it of the mean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<PercentileCertainty>,
}

/// How far a percentile can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PercentileCertainty {
    /// Which, in percent.
    pub percent: f64,
    /// In ns.
    #[serde(flatten)]
    pub certainty: Certainty,
}

impl LatencyCertainty {
    /// That of a percentile; `None` where it was not told.
    pub fn percentile(&self, percent: f64) -> Option<Certainty> {
        let mut all = self.percentiles.iter();
        let found = all.find(|one| (one.percent - percent).abs() < 1e-9)?;
        Some(found.certainty)
    }
}
