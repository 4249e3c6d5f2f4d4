//! How much load is enough, and how much a limit allows: the decisions of a search,
//! probe after probe.
//!
//! [`next_probe`] is a pure function of what has been measured: the same probes lead to
//! the same next one, so that a search that is resumed, or led through for a plan, goes
//! the same way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rate::BEHIND_RATE_SHARE;
use crate::student;

mod knee;
mod limit;
mod map;
mod side;

pub use map::{LoadMap, MapCell, MapLoad, MapOutcome, MapResult};
pub use side::{Limited, SIDE_INTERVALS, SideWatch, is_early};

/// Probes of a search among a few loads at the most.
const PROBES_FEW: usize = 60;
/// Beside one look at each load so many probes are made at the most.
const PROBES_MORE: usize = 47;

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "goal", rename_all = "snake_case")]
pub enum FindGoal {
    /// The smallest load whose throughput is within 2 % of the best.
    Knee,
    /// The most load whose latency keeps a limit.
    Latency {
        /// The limit, in ns.
        limit_ns: f64,
    },
    /// The most load that leaves the CPUs of the machine so idle.
    Cpu {
        /// How busy they may be, in percent of all of them.
        limit_percent: f64,
    },
}

impl FindGoal {
    /// What is not to be passed, in its unit.
    pub fn limit(self) -> Option<f64> {
        match self {
            Self::Knee => None,
            Self::Latency { limit_ns } => Some(limit_ns),
            Self::Cpu { limit_percent } => Some(limit_percent),
        }
    }
}

/// What a load is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindLoads {
    /// Whole numbers, the smallest load first: depths, jobs, both.
    Whole(Vec<WholeLoad>),
    /// Rates in I/Os per second.
    Rates {
        /// Below it a probe has too few I/Os for its percentile.
        least: f64,
    },
}

impl FindLoads {
    /// Loads of one number each.
    pub fn whole(loads: impl IntoIterator<Item = u32>) -> Self {
        let each = loads.into_iter().map(|load| WholeLoad { load, jobs: None });
        Self::Whole(each.collect())
    }

    /// No search among these makes more probes.
    pub fn probes_most(&self) -> usize {
        match self {
            Self::Whole(loads) => probes_most(loads.len()),
            Self::Rates { .. } => limit::RATE_PROBES_MOST,
        }
    }
}

fn probes_most(loads: usize) -> usize {
    PROBES_FEW.max(loads + PROBES_MORE)
}

/// A load that is a number, or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WholeLoad {
    /// The number.
    pub load: u32,
    /// The number of jobs, where that is searched as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
}

/// A load that is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadProbe {
    /// The load; `None`: no rate is set, so that the device shows its most.
    pub load: Option<f64>,
    /// The number of jobs, where that is searched as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// Whether it is a long look, or a short one.
    pub is_long: bool,
    /// It goes on to its end, however clear it is: what was found is tried.
    pub is_whole: bool,
}

/// A load that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeResult {
    /// What was asked for.
    pub probe: LoadProbe,
    /// I/Os per second; 0: it was only led through.
    pub iops: f64,
    /// The latency that has a limit, in ns; of a search without one the mean.
    pub latency_ns: Option<f64>,
    /// How busy the CPUs of the machine were, in percent of all of them.
    pub cpu_percent: Option<f64>,
    /// How long it measured.
    pub seconds: f64,
    /// It was ended before its time: the side of the limit was clear.
    pub is_early: bool,
}

impl ProbeResult {
    /// What has the limit.
    pub fn limited(&self, goal: FindGoal) -> Option<f64> {
        match goal {
            FindGoal::Knee => None,
            FindGoal::Latency { .. } => self.latency_ns,
            FindGoal::Cpu { .. } => self.cpu_percent,
        }
    }
}

/// What a search found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindAnswer {
    /// The load; `None`: there is none that keeps the limit.
    pub load: Option<f64>,
    /// The number of jobs, where that is searched as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<u32>,
    /// I/Os per second there.
    pub iops: f64,
    /// Half the width of its 95 % interval, as a share; `None` of a single probe.
    pub iops_error: Option<f64>,
    /// The latency there, in ns.
    pub latency_ns: Option<f64>,
    /// How busy the CPUs of the machine were there, in percent of all of them.
    pub cpu_percent: Option<f64>,
    /// The smallest load that was too much.
    pub too_much: Option<f64>,
    /// What ended the search.
    pub ended_by: FindEnd,
}

/// What ended a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindEnd {
    /// More load does not keep the limit.
    Objective,
    /// The device does no more.
    Device,
    /// The last load that was to be tried keeps the limit, or is the best.
    Range,
    /// Not even the least load keeps the limit.
    Nothing,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NextProbe {
    /// This load is measured.
    Measure(LoadProbe),
    /// This was found.
    Found(FindAnswer),
}

/// What comes next after these probes, in their order.
pub fn next_probe(goal: FindGoal, loads: &FindLoads, probes: &[ProbeResult]) -> NextProbe {
    match loads {
        FindLoads::Whole(loads) if goal == FindGoal::Knee => knee::knee(loads, probes),
        FindLoads::Whole(loads) => limit::loads(goal, loads, probes),
        FindLoads::Rates { least } => limit::rates(goal, *least, probes),
    }
}

/// A latency beyond this factor of the objective is clear at once.
const CLEAR: f64 = 1.5;
/// So often a load is probed until it is clear on which side it lies.
const TRIES_MOST: usize = 3;

/// What is known of one load.
#[derive(Debug, Clone, Default)]
struct Known {
    iops: Vec<f64>,
    /// The long ones among them.
    long: usize,
    /// What has the limit, of probes that went on to their ends, and of others.
    whole: Vec<f64>,
    early: Vec<f64>,
    /// How long all of them measured.
    seconds: f64,
    latencies: Vec<f64>,
    cpus: Vec<f64>,
}

impl Known {
    fn of(goal: FindGoal, probes: &[ProbeResult], load: Option<f64>, jobs: Option<u32>) -> Self {
        let mut known = Self::default();
        let is_it = |it: &&ProbeResult| it.probe.load == load && it.probe.jobs == jobs;
        for probe in probes.iter().filter(is_it) {
            known.iops.push(probe.iops);
            known.seconds += probe.seconds;
            known.long += usize::from(probe.probe.is_long);
            known.latencies.extend(probe.latency_ns);
            known.cpus.extend(probe.cpu_percent);
            match probe.is_early {
                true => known.early.extend(probe.limited(goal)),
                false => known.whole.extend(probe.limited(goal)),
            }
        }
        known
    }

    fn tries(&self) -> usize {
        self.iops.len()
    }

    fn iops(&self) -> f64 {
        mean(&self.iops).unwrap_or(0.0)
    }

    fn iops_error(&self) -> Option<f64> {
        let n = self.iops.len() as f64;
        let mean = self.iops();
        if n < 2.0 || mean <= 0.0 {
            return None;
        }
        let squares: f64 = self.iops.iter().map(|iops| (iops - mean).powi(2)).sum();
        let error = (squares / (n - 1.0) / n).sqrt();
        Some(student::quantile(0.05, n - 1.0) * error / mean)
    }

    /// Whether it was only led through: nothing is known of the device.
    fn is_led(&self) -> bool {
        self.tries() > 0 && self.iops() <= 0.0
    }

    /// Whether it was tried to the end of a probe.
    fn is_whole(&self) -> bool {
        self.is_led() || !self.whole.is_empty()
    }

    /// Whether the limit is kept; `None`: that is not clear yet. What went on to its end
    /// counts before what was ended: a device may have become slower meanwhile.
    fn keeps(&self, limit: f64) -> Option<bool> {
        if self.tries() == 0 {
            return None;
        }
        if self.is_led() {
            return Some(true);
        }
        if self.whole.is_empty() {
            return Some(geometric_mean(&self.early)? <= limit);
        }
        let mean = geometric_mean(&self.whole)?;
        let below = self.whole.iter().filter(|value| **value <= limit).count();
        let ahead = below.abs_diff(self.whole.len() - below);
        let is_as_early = self
            .early
            .iter()
            .all(|value| (*value <= limit) == (mean <= limit));
        let is_clear = mean > CLEAR * limit
            || mean < limit / CLEAR
            || ahead > 1
            || (is_as_early && !self.early.is_empty());
        (is_clear || self.whole.len() >= TRIES_MOST).then_some(mean <= limit)
    }

    fn is_behind(&self, rate: f64) -> bool {
        self.tries() > 0 && !self.is_led() && is_behind(rate, self.iops(), self.seconds)
    }

    /// The answer at this load.
    fn answer(&self, load: Option<f64>, jobs: Option<u32>, ended_by: FindEnd) -> FindAnswer {
        FindAnswer {
            load,
            jobs,
            iops: self.iops(),
            iops_error: self.iops_error(),
            latency_ns: geometric_mean(&self.latencies),
            cpu_percent: mean(&self.cpus),
            too_much: None,
            ended_by,
        }
    }
}

/// Whether less than this rate was done in so many seconds, beyond what Poisson's own
/// chance makes of it (three standard deviations).
fn is_behind(rate: f64, done: f64, seconds: f64) -> bool {
    let chance = 3.0 / (rate * seconds).max(1.0).sqrt();
    done < BEHIND_RATE_SHARE * (1.0 - chance) * rate
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// That of figures which differ by factors: latencies. What is less than a thousandth of
/// its unit counts as that.
fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|value| value.max(1e-3).ln()).collect();
    mean(&logs).map(f64::exp)
}

fn measure(load: &WholeLoad, is_long: bool, is_whole: bool) -> NextProbe {
    NextProbe::Measure(LoadProbe {
        load: Some(f64::from(load.load)),
        jobs: load.jobs,
        is_long,
        is_whole,
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod trials;
