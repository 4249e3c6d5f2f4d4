//! How much load is enough, and how much a latency allows: the decisions of a search,
//! probe after probe.
//!
//! [`next_probe`] is a pure function of what has been measured: the same probes lead to
//! the same next one, so that a search that is resumed, or led through for a plan, goes
//! the same way.

use serde::{Deserialize, Serialize};

use crate::student;

/// Probes of one search at the most.
pub const PROBES_MOST: usize = 60;
/// Rates are told apart down to this share of each other.
const RATE_SHARE: f64 = 0.05;
/// The first rates that are offered are so much of what the device does at its most.
const RATE_BEGIN: f64 = 0.5;
/// Below this share of its most a device is said not to keep the objective at all.
const RATE_LEAST: f64 = 1.0 / 512.0;
/// A latency beyond this factor of the objective is clear at once.
const CLEAR: f64 = 1.5;
/// So often a load is probed until it is clear on which side it lies.
const TRIES_MOST: usize = 5;
/// Less than this share of the offered rate is behind it: the device ended the search.
const BEHIND: f64 = crate::rate::BEHIND_RATE_SHARE;
/// A load is enough from this share of the best on: within 2 %, less what noise adds to
/// the best of many.
const ENOUGH: f64 = 0.986;
/// Runs of a load differ by so much where nothing is known yet, as a share.
const SPREAD_FIRST: f64 = 0.03;
/// Nothing is known better than so, as a share.
const SPREAD_LEAST: f64 = 0.003;
/// Long probes of a load at the most.
const LONG_MOST: usize = 4;

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "goal", rename_all = "snake_case")]
pub enum FindGoal {
    /// The smallest load whose throughput is within 2 % of the best.
    Knee,
    /// The most load whose latency keeps a limit, in ns.
    Latency {
        /// The limit.
        limit_ns: f64,
    },
}

/// What a load is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindLoads {
    /// Whole numbers, ascending: depths, jobs.
    Whole(Vec<u32>),
    /// Rates in I/Os per second.
    Rates {
        /// Below it a probe has too few I/Os for its percentile.
        least: f64,
    },
}

/// A load that is to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LoadProbe {
    /// The load; `None`: no rate is set, so that the device shows its most.
    pub load: Option<f64>,
    /// Whether it is a long look, or a short one.
    pub is_long: bool,
}

/// A load that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// What was asked for.
    pub probe: LoadProbe,
    /// I/Os per second; 0: it was only led through.
    pub iops: f64,
    /// The latency that has a limit, in ns.
    pub latency_ns: Option<f64>,
}

/// What a search found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FindAnswer {
    /// The load; `None`: there is none that keeps the limit.
    pub load: Option<f64>,
    /// I/Os per second there.
    pub iops: f64,
    /// Half the width of its 95 % interval, as a share; `None` of a single probe.
    pub iops_error: Option<f64>,
    /// The latency there, in ns.
    pub latency_ns: Option<f64>,
    /// The smallest load that was too much.
    pub too_much: Option<f64>,
    /// What ended the search.
    pub ended_by: FindEnd,
}

/// What ended a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[must_use]
pub fn next_probe(goal: FindGoal, loads: &FindLoads, probes: &[ProbeResult]) -> NextProbe {
    match (goal, loads) {
        (FindGoal::Knee, FindLoads::Whole(loads)) => knee(loads, probes),
        (FindGoal::Latency { limit_ns }, FindLoads::Whole(loads)) => {
            depths(limit_ns, loads, probes)
        }
        (goal, FindLoads::Rates { least }) => rates(goal, *least, probes),
    }
}

/// What is known of one load.
#[derive(Debug, Clone, Default)]
struct Known {
    iops: Vec<f64>,
    /// The long ones among them.
    long: usize,
    latencies: Vec<f64>,
}

impl Known {
    fn of(probes: &[ProbeResult], load: Option<f64>) -> Self {
        let mut known = Self::default();
        for probe in probes.iter().filter(|probe| probe.probe.load == load) {
            known.iops.push(probe.iops);
            known.long += usize::from(probe.probe.is_long);
            known.latencies.extend(probe.latency_ns);
        }
        known
    }

    fn tries(&self) -> usize {
        self.iops.len()
    }

    fn iops(&self) -> f64 {
        self.iops.iter().sum::<f64>() / self.iops.len().max(1) as f64
    }

    /// Geometric mean of the latencies.
    fn latency_ns(&self) -> Option<f64> {
        let logs: Vec<f64> = self.latencies.iter().map(|ns| ns.max(1.0).ln()).collect();
        (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
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

    /// Whether the latency keeps the limit; `None`: that is not clear yet.
    fn keeps(&self, limit_ns: f64) -> Option<bool> {
        let tries = self.tries();
        if tries == 0 {
            return None;
        }
        // It was only led through.
        let Some(mean) = self.latency_ns() else {
            return Some(true);
        };
        let is_clear = mean > CLEAR * limit_ns || mean < limit_ns / CLEAR;
        let logs: Vec<f64> = self.latencies.iter().map(|ns| ns.max(1.0).ln()).collect();
        let n = logs.len() as f64;
        let squares: f64 = logs.iter().map(|log| (log - mean.ln()).powi(2)).sum();
        let half = match logs.len() {
            0..=2 => f64::INFINITY,
            _ => student::quantile(0.05, n - 1.0) * (squares / (n - 1.0) / n).sqrt(),
        };
        let is_told = (mean.ln() - limit_ns.ln()).abs() > half;
        (is_clear || is_told || tries >= TRIES_MOST).then_some(mean <= limit_ns)
    }
}

fn measure(load: f64, is_long: bool) -> NextProbe {
    NextProbe::Measure(LoadProbe {
        load: Some(load),
        is_long,
    })
}

/// The most of some loads, ascending, whose latency keeps the limit: doubled until one
/// does not, and halved between.
fn depths(limit_ns: f64, loads: &[u32], probes: &[ProbeResult]) -> NextProbe {
    let known = |place: usize| Known::of(probes, Some(f64::from(loads[place])));
    let answer = |place: usize, too_much: Option<usize>| {
        let found = known(place);
        NextProbe::Found(FindAnswer {
            load: Some(f64::from(loads[place])),
            iops: found.iops(),
            iops_error: found.iops_error(),
            latency_ns: found.latency_ns(),
            too_much: too_much.map(|place| f64::from(loads[place])),
            ended_by: match too_much {
                Some(_) => FindEnd::Objective,
                None => FindEnd::Range,
            },
        })
    };
    let (mut good, mut bad) = (None, None);
    let mut place = 0;
    loop {
        if place >= loads.len() || probes.len() >= PROBES_MOST {
            break;
        }
        match known(place).keeps(limit_ns) {
            None => return measure(f64::from(loads[place]), true),
            Some(true) => good = Some(place),
            Some(false) => bad = Some(place),
        }
        place = match (good, bad) {
            (None, _) => break,
            // The load doubles: places of depths that do not are passed over.
            (Some(good), None) => match good + 1 {
                next if next >= loads.len() => break,
                next => {
                    let double = loads[good].saturating_mul(2);
                    let far = loads.iter().rposition(|&load| load <= double);
                    far.map_or(next, |far| far.max(next))
                }
            },
            (Some(good), Some(bad)) if bad - good > 1 => good.midpoint(bad),
            _ => break,
        };
    }
    match good {
        Some(good) => answer(good, bad),
        None => nothing(&known(0), loads.first().map(|&load| f64::from(load))),
    }
}

fn nothing(known: &Known, least: Option<f64>) -> NextProbe {
    NextProbe::Found(FindAnswer {
        load: None,
        iops: known.iops(),
        iops_error: known.iops_error(),
        latency_ns: known.latency_ns(),
        too_much: least,
        ended_by: FindEnd::Nothing,
    })
}

/// The highest rate that keeps the limit, between what is offered and kept, and what is
/// not.
fn rates(goal: FindGoal, least: f64, probes: &[ProbeResult]) -> NextProbe {
    let FindGoal::Latency { limit_ns } = goal else {
        // Throughput without a limit is that of the device.
        return match probes.first() {
            None => NextProbe::Measure(LoadProbe {
                load: None,
                is_long: true,
            }),
            Some(_) => nothing(&Known::of(probes, None), None),
        };
    };
    let most = Known::of(probes, None);
    if most.tries() == 0 {
        return NextProbe::Measure(LoadProbe {
            load: None,
            is_long: false,
        });
    }
    // Led through, nothing is known of the device.
    let most_iops = if most.iops() > 0.0 {
        most.iops()
    } else {
        1000.0
    };
    let least = least.max(RATE_LEAST * most_iops);
    let (mut good, mut bad): (Option<f64>, Option<(f64, bool)>) = (None, None);
    let mut rate = (RATE_BEGIN * most_iops).max(least).ceil();
    while probes.len() < PROBES_MOST {
        let known = Known::of(probes, Some(rate));
        // Of a rate that is not reached the queue grows without end: it is too much,
        // whatever the latency of the I/Os that came back.
        let is_behind = known.tries() > 0 && known.iops() > 0.0 && known.iops() < BEHIND * rate;
        match known.keeps(limit_ns) {
            _ if is_behind => bad = Some((rate, true)),
            None => return measure(rate, true),
            Some(true) => good = Some(rate),
            Some(false) => bad = Some((rate, false)),
        }
        rate = match (good, bad) {
            (Some(good), None) if good >= 1.5 * most_iops => break,
            (Some(good), None) => good * 1.5,
            (None, Some((bad, _))) if bad <= least => break,
            (None, Some((bad, _))) => (bad / 2.0).max(least),
            (Some(good), Some((bad, _))) if bad > good * (1.0 + RATE_SHARE) + 1.0 => {
                (good * bad).sqrt()
            }
            _ => break,
        }
        .ceil()
        .max(1.0);
        if Some(rate) == good || bad.is_some_and(|(bad, _)| bad == rate) {
            break;
        }
    }
    let Some(load) = good else {
        return nothing(&most, bad.map(|(bad, _)| bad));
    };
    let found = Known::of(probes, Some(load));
    NextProbe::Found(FindAnswer {
        load: Some(load),
        iops: found.iops(),
        iops_error: found.iops_error(),
        latency_ns: found.latency_ns(),
        too_much: bad.map(|(bad, _)| bad),
        ended_by: match bad {
            Some((_, true)) => FindEnd::Device,
            Some((_, false)) => FindEnd::Objective,
            None => FindEnd::Range,
        },
    })
}

/// The smallest load within 2 % of the best: a short look at each, then long ones at
/// those that may be it, until the rest is clear.
fn knee(loads: &[u32], probes: &[ProbeResult]) -> NextProbe {
    let known: Vec<Known> = (loads.iter())
        .map(|&load| Known::of(probes, Some(f64::from(load))))
        .collect();
    // From the far end as well: where it only gets worse is seen at once.
    if let Some(place) = known.iter().position(|known| known.tries() == 0) {
        return measure(f64::from(loads[place]), false);
    }
    let spread = spread(&known);
    let bounds: Vec<(f64, f64)> = (known.iter())
        .map(|known| {
            // A long look counts as much as several short ones.
            let weight = known.tries() as f64 + 2.0 * known.long as f64;
            let half = (2.0 * spread / weight.sqrt()).max(SPREAD_LEAST);
            (known.iops() * (1.0 - half), known.iops() * (1.0 + half))
        })
        .collect();
    let most = known.iter().map(Known::iops).fold(0.0, f64::max);
    let best_low = bounds.iter().map(|&(low, _)| low).fold(0.0, f64::max);
    let best_high = bounds.iter().map(|&(_, high)| high).fold(0.0, f64::max);
    let first = |enough: &dyn Fn(usize) -> bool| (0..loads.len()).find(|&place| enough(place));
    let knee = first(&|place| known[place].iops() >= ENOUGH * most).unwrap_or(0);
    // Loads below the knee that may be enough, and those that may be the best.
    let is_open = |place: usize| {
        let (low, high) = bounds[place];
        let may_be_best = high >= best_low;
        let may_be_enough = high >= ENOUGH * best_low && low < ENOUGH * best_high;
        let matters = may_be_best || (may_be_enough && place <= knee);
        matters && known[place].long < LONG_MOST && most > 0.0
    };
    let open: Vec<usize> = (0..loads.len()).filter(|&place| is_open(place)).collect();
    let is_clear = bounds[knee].0 >= ENOUGH * best_high || open.is_empty();
    if !is_clear && probes.len() < PROBES_MOST {
        // Of those that matter, what is known least.
        if let Some(&place) = open.iter().min_by_key(|&&place| known[place].long) {
            return measure(f64::from(loads[place]), true);
        }
    }
    let found = &known[knee];
    NextProbe::Found(FindAnswer {
        load: Some(f64::from(loads[knee])),
        iops: found.iops(),
        iops_error: found.iops_error(),
        latency_ns: found.latency_ns(),
        too_much: None,
        ended_by: match knee + 1 == loads.len() {
            true => FindEnd::Range,
            false => FindEnd::Device,
        },
    })
}

/// What probes of the same load differ by, as a share, over all loads together.
fn spread(known: &[Known]) -> f64 {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for known in known.iter().filter(|known| known.tries() > 1) {
        let mean = known.iops().max(f64::MIN_POSITIVE);
        squares += (known.iops.iter())
            .map(|iops| (iops / mean - 1.0).powi(2))
            .sum::<f64>();
        freedom += known.tries() as f64 - 1.0;
    }
    // What is assumed counts as two probes.
    let assumed = 2.0;
    ((squares + assumed * SPREAD_FIRST * SPREAD_FIRST) / (freedom + assumed)).sqrt()
}

#[cfg(test)]
mod tests;
