//! The smallest load that is enough.

use super::{FindEnd, FindGoal, Known, NextProbe, ProbeResult, WholeLoad, measure, probes_most};

/// A load is enough from this share of the best on: within 2 %, less what noise adds to
/// the best of many.
const ENOUGH: f64 = 0.986;
/// Runs of a load differ by so much where nothing is known yet, as a share.
const SPREAD_FIRST: f64 = 0.03;
/// Nothing is known better than so, as a share.
const SPREAD_LEAST: f64 = 0.003;
/// Long probes of a load at the most.
const LONG_MOST: usize = 4;

/// The smallest load within 2 % of the best: a short look at each, then long ones at
/// those that may be it, until the rest is clear.
pub(super) fn knee(loads: &[WholeLoad], probes: &[ProbeResult]) -> NextProbe {
    let known: Vec<Known> = (loads.iter())
        .map(|it| Known::of(FindGoal::Knee, probes, Some(f64::from(it.load)), it.jobs))
        .collect();
    // From the far end as well: where it only gets worse is seen at once.
    if let Some(place) = known.iter().position(|known| known.tries() == 0) {
        return measure(&loads[place], false, true);
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
    if !is_clear && probes.len() < probes_most(loads.len()) {
        // Of those that matter, what is known least.
        if let Some(&place) = open.iter().min_by_key(|&&place| known[place].long) {
            return measure(&loads[place], true, true);
        }
    }
    let found = loads[knee];
    let ended_by = match knee + 1 == loads.len() {
        true => FindEnd::Range,
        false => FindEnd::Device,
    };
    NextProbe::Found(known[knee].answer(Some(f64::from(found.load)), found.jobs, ended_by))
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
