//! Whether one side of repeated runs is faster than the other.
//!
//! Figures are compared by their ratio, in logarithms: Welch's t test (B. L. Welch, The
//! generalization of 'Student's' problem, Biometrika 34, 1947) where both sides have
//! repetitions, with the spread of the one that has them where the other has none. Over
//! all figures of a table the chance of any false difference is held to 5 % (S. Holm, A
//! simple sequentially rejective multiple test procedure, Scandinavian Journal of
//! Statistics 6, 1979). Within a margin both sides are the same; that needs the interval
//! of the ratio to lie within it whole.
//!
//! The spread between runs is known from runs only: those that are compared, or earlier
//! ones of the same kind.

use serde::{Deserialize, Serialize};

use crate::student;

/// Chance of a false difference over all figures that are compared.
const FALSE_CHANCE: f64 = 0.05;
/// So many runs are needed in all. A device with two modes of its own gives n equal runs
/// the one and the others the other mode with a chance of 2/2ⁿ: 3 % for six.
pub const RUNS_LEAST: usize = 6;
/// Earlier runs from which the spread between runs is known.
pub const EARLIER_LEAST: usize = 5;
/// More repetitions than this are not advised: another measurement is needed.
const MORE_MOST: usize = 200;

/// The value of a figure in one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunValue {
    /// In any unit; only positive ones can be compared.
    pub value: f64,
    /// Standard error of the value by its own run, as a share of it.
    pub own_error: Option<f64>,
    /// When the run began, ms since 1970 UTC.
    pub at_ms: u64,
}

/// One figure on both sides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FigureSides {
    /// The one side, a value a run.
    pub a: Vec<RunValue>,
    /// The other side.
    pub b: Vec<RunValue>,
    /// Of runs like them that were made before: groups of repetitions.
    pub earlier: Vec<Vec<f64>>,
    /// Whether more is better.
    pub more_is_better: bool,
    /// Step in which the values are known, as a share of them: that of a histogram.
    pub resolution: f64,
    /// Why they are not to be compared.
    pub invalid: bool,
}

/// What came of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompareVerdict {
    /// The second side is better.
    Faster,
    /// The second side is worse.
    Slower,
    /// They differ by less than the margin.
    Same,
    /// Neither can be said.
    CannotTell,
}

/// Why nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyNot {
    /// One run of each does not tell how runs differ from one another.
    SpreadUnknown,
    /// The runs of a side differ from one another by too much.
    Noise,
    /// One side was measured after the other, and the figure drifts.
    Drift,
    /// The figure is not valid, or missing, on one side.
    Invalid,
}

/// One figure, compared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FigureComparison {
    /// Geometric mean of the one side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<f64>,
    /// Geometric mean of the other side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<f64>,
    /// b / a.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Lower end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_high: Option<f64>,
    /// What came of it.
    pub verdict: CompareVerdict,
    /// Why nothing can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<WhyNot>,
    /// So many more repetitions of each side would probably tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_runs: Option<usize>,
}

/// A difference of logarithms with what is known of it.
#[derive(Debug, Clone, Copy)]
struct Effect {
    difference: f64,
    /// Standard error of it.
    error: f64,
    freedom: f64,
    /// Deviation of single runs.
    deviation: f64,
    /// Both sides may be known this much too high or too low, however often they are
    /// measured.
    resolution: f64,
}

impl Effect {
    fn half(&self, p: f64) -> f64 {
        student::quantile(p, self.freedom) * self.error + self.resolution
    }

    fn p(&self) -> f64 {
        let beyond = (self.difference.abs() - self.resolution).max(0.0);
        match self.error > 0.0 {
            true => student::two_sided_p(beyond / self.error, self.freedom),
            // Nothing varies: any difference is one.
            false => f64::from(u8::from(beyond == 0.0)),
        }
    }
}

/// Compares all figures of a table. Values within `margin`, a share, are the same.
pub fn compare(figures: &[FigureSides], margin: f64) -> Vec<FigureComparison> {
    let effects: Vec<Option<Effect>> = figures.iter().map(effect).collect();
    let seen = |effect: &Option<Effect>| effect.as_ref().map(Effect::p);
    let differ = holm(&effects.iter().map(seen).collect::<Vec<_>>());
    let both = effects.iter().zip(figures).map(|(effect, sides)| {
        let effect = effect.as_ref()?;
        Some(effect.p().max(drift_p(sides, effect).unwrap_or(0.0)))
    });
    let rejected = holm(&both.collect::<Vec<_>>());
    let tested = effects.iter().flatten().count().max(1);
    let all = figures
        .iter()
        .zip(effects)
        .zip(differ.into_iter().zip(rejected));
    all.map(|((sides, effect), (differs, by_itself))| {
        let seen = match (differs, by_itself) {
            (_, true) => Seen::Difference,
            (true, false) => Seen::Drift,
            (false, false) => Seen::Nothing,
        };
        judge(sides, effect, seen, margin, tested)
    })
    .collect()
}

/// What the tests have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    /// A difference that may be a drift.
    Drift,
    Difference,
}

fn judge(
    sides: &FigureSides,
    effect: Option<Effect>,
    seen: Seen,
    margin: f64,
    tested: usize,
) -> FigureComparison {
    let (a, b) = (mean(&logs(&sides.a)), mean(&logs(&sides.b)));
    let difference = a.zip(b).map(|(a, b)| b - a);
    let mut found = FigureComparison {
        a: a.map(f64::exp),
        b: b.map(f64::exp),
        ratio: difference.map(f64::exp),
        ratio_low: None,
        ratio_high: None,
        verdict: CompareVerdict::CannotTell,
        why_not: None,
        more_runs: None,
    };
    if sides.invalid || difference.is_none() {
        found.why_not = Some(WhyNot::Invalid);
        return found;
    }
    let Some(effect) = effect else {
        found.why_not = Some(WhyNot::SpreadUnknown);
        let least = sides.a.len().min(sides.b.len());
        found.more_runs = Some((RUNS_LEAST / 2).saturating_sub(least).max(1));
        return found;
    };
    let half = effect.half(0.05);
    let (low, high) = (effect.difference - half, effect.difference + half);
    if half.is_finite() {
        (found.ratio_low, found.ratio_high) = (Some(low.exp()), Some(high.exp()));
    }
    let within = margin.ln_1p();
    if low > -within && high < within {
        found.verdict = CompareVerdict::Same;
    } else if seen == Seen::Drift {
        found.why_not = Some(WhyNot::Drift);
    } else if seen == Seen::Difference {
        found.verdict = match (effect.difference > 0.0) == sides.more_is_better {
            true => CompareVerdict::Faster,
            false => CompareVerdict::Slower,
        };
    } else {
        found.why_not = Some(WhyNot::Noise);
        found.more_runs = more_runs(sides, &effect, within, tested);
    }
    found
}

/// Which differences are none of chance, all figures taken together.
fn holm(chances: &[Option<f64>]) -> Vec<bool> {
    let mut order: Vec<(f64, usize)> = (chances.iter().enumerate())
        .filter_map(|(place, p)| Some(((*p)?, place)))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rejected = vec![false; chances.len()];
    for (rank, &(p, place)) in order.iter().enumerate() {
        if p >= FALSE_CHANCE / (order.len() - rank) as f64 {
            break;
        }
        rejected[place] = true;
    }
    rejected
}

/// The difference of both sides; `None` where the spread between runs is not known.
fn effect(sides: &FigureSides) -> Option<Effect> {
    if sides.invalid {
        return None;
    }
    let (a, b) = (logs(&sides.a), logs(&sides.b));
    let difference = mean(&b)? - mean(&a)?;
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let known: Vec<&Vec<f64>> = sides
        .earlier
        .iter()
        .filter(|group| group.len() > 1)
        .collect();
    let is_known = known.iter().map(|group| group.len()).sum::<usize>() >= EARLIER_LEAST;
    if a.len() + b.len() >= RUNS_LEAST && a.len() > 1 && b.len() > 1 {
        let (v_a, v_b) = (variance(&a, &sides.a) / n_a, variance(&b, &sides.b) / n_b);
        let sum = v_a + v_b;
        // Welch and Satterthwaite.
        let freedom = match sum > 0.0 {
            true => sum * sum / (v_a * v_a / (n_a - 1.0) + v_b * v_b / (n_b - 1.0)),
            false => n_a + n_b - 2.0,
        };
        return Some(Effect {
            difference,
            error: sum.sqrt(),
            freedom,
            deviation: (sum / (1.0 / n_a + 1.0 / n_b)).sqrt(),
            resolution: sides.resolution,
        });
    }
    let is_enough = a.len() + b.len() >= RUNS_LEAST;
    if !is_enough && !is_known {
        return None;
    }
    // One spread for both: of the side that has one, and of earlier runs.
    let mut groups: Vec<Vec<f64>> = vec![a, b];
    groups.extend(known.iter().map(|group| {
        let positive = group.iter().filter(|&&value| value > 0.0);
        positive.map(|value| value.ln()).collect()
    }));
    let freedom: f64 = groups
        .iter()
        .map(|group| (group.len() as f64 - 1.0).max(0.0))
        .sum();
    let squares: f64 = groups.iter().map(|group| squares(group)).sum();
    if freedom < 1.0 {
        return None;
    }
    let runs: Vec<RunValue> = sides.a.iter().chain(&sides.b).copied().collect();
    let variance = (squares / freedom).max(floor(&runs));
    Some(Effect {
        difference,
        error: (variance * (1.0 / n_a + 1.0 / n_b)).sqrt(),
        freedom,
        deviation: variance.sqrt(),
        resolution: sides.resolution,
    })
}

fn logs(values: &[RunValue]) -> Vec<f64> {
    let positive = values
        .iter()
        .filter(|one| one.value > 0.0 && one.value.is_finite());
    positive.map(|one| one.value.ln()).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values).unwrap_or(0.0);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Variance of single runs, never less than the runs themselves say.
fn variance(logs: &[f64], runs: &[RunValue]) -> f64 {
    (squares(logs) / (logs.len() as f64 - 1.0)).max(floor(runs))
}

/// What single runs vary by at the least: what is not known within a run.
fn floor(runs: &[RunValue]) -> f64 {
    let own: Vec<f64> = (runs.iter().filter_map(|run| run.own_error))
        .map(|error| error * error)
        .collect();
    mean(&own).unwrap_or(0.0)
}

/// The chance of such a difference where one side was measured wholly behind the other
/// and the figure changes steadily: what the slope within the sides explains is taken off,
/// and how badly that slope is known counts (analysis of covariance). `None` where they
/// were measured in turn, or too few to have a slope.
fn drift_p(sides: &FigureSides, effect: &Effect) -> Option<f64> {
    let ends = |runs: &[RunValue]| {
        let times = || runs.iter().map(|run| run.at_ms);
        Some((times().min()?, times().max()?))
    };
    let (a, b) = (ends(&sides.a)?, ends(&sides.b)?);
    let freedom = (sides.a.len() + sides.b.len()) as f64 - 3.0;
    if (a.1 >= b.0 && b.1 >= a.0) || freedom < 1.0 {
        return None;
    }
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    let mut centres = [0.0; 2];
    for (runs, centre) in [&sides.a, &sides.b].into_iter().zip(&mut centres) {
        let times: Vec<f64> = runs.iter().map(|run| run.at_ms as f64).collect();
        let logs = logs(runs);
        let (t, y) = (mean(&times)?, mean(&logs)?);
        *centre = t;
        for (time, log) in times.iter().zip(&logs) {
            xy += (time - t) * (log - y);
            xx += (time - t).powi(2);
            yy += (log - y).powi(2);
        }
    }
    if xx <= 0.0 {
        return None;
    }
    let slope = xy / xx;
    let distance = centres[1] - centres[0];
    let rest = (effect.difference - slope * distance).abs() - effect.resolution;
    let variance = ((yy - slope * xy).max(0.0) / freedom).max(floor(&sides.a));
    let (n_a, n_b) = (sides.a.len() as f64, sides.b.len() as f64);
    let error = (variance * (1.0 / n_a + 1.0 / n_b + distance * distance / xx)).sqrt();
    // A difference that turns round behind the slope is none.
    let is_same_way = (effect.difference - slope * distance).signum() == effect.difference.signum();
    Some(match error > 0.0 && is_same_way {
        true => student::two_sided_p(rest.max(0.0) / error, freedom),
        false => f64::from(u8::from(!is_same_way || rest <= 0.0)),
    })
}

/// So many more repetitions of each side would probably tell.
fn more_runs(sides: &FigureSides, effect: &Effect, within: f64, tested: usize) -> Option<usize> {
    let least = sides.a.len().min(sides.b.len());
    let size = effect.difference.abs();
    let (wanted, p) = match size > within {
        true => (size, FALSE_CHANCE / tested as f64),
        false => (within - size, 0.05),
    };
    let is_enough = |n: usize| {
        let error = effect.deviation * (2.0 / n as f64).sqrt();
        let half = student::quantile(p, 2.0 * (n as f64 - 1.0)) * error + effect.resolution;
        2 * n >= RUNS_LEAST && half < wanted
    };
    // More runs never tell less.
    let (mut low, mut high) = (least, least + MORE_MOST);
    if !is_enough(high) {
        return None;
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        match is_enough(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    Some(high - least)
}

#[cfg(test)]
mod tests;
