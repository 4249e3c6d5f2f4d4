//! The most load that keeps a limit.

use super::{
    FindAnswer, FindEnd, FindGoal, Known, LoadProbe, NextProbe, ProbeResult, WholeLoad, measure,
};

/// Probes of a search for a rate at the most.
pub(super) const RATE_PROBES_MOST: usize = 20;
/// Rates are told apart down to this share of each other.
const RATE_SHARE: f64 = 0.025;
/// The first rates that are offered are so much of what the device does at its most.
const RATE_BEGIN: f64 = 0.5;
/// Below this share of its most a device is said not to keep the objective at all.
const RATE_LEAST: f64 = 1.0 / 512.0;
/// What a device that is only led through does, in I/Os per second.
const LED_IOPS: f64 = 1000.0;

/// The most of some loads that keeps the limit; where the number of jobs is searched as
/// well, the one that does most of those found for each number.
pub(super) fn loads(goal: FindGoal, loads: &[WholeLoad], probes: &[ProbeResult]) -> NextProbe {
    let Some(limit) = goal.limit() else {
        return nothing(&Known::default(), None);
    };
    let mut rows: Vec<Option<u32>> = loads.iter().map(|load| load.jobs).collect();
    rows.sort_unstable();
    rows.dedup();
    let mut best: Option<FindAnswer> = None;
    for jobs in rows {
        let row: Vec<WholeLoad> = loads.iter().filter(|it| it.jobs == jobs).copied().collect();
        let found = match row_of(goal, limit, &row, probes) {
            NextProbe::Found(found) => found,
            next => return next,
        };
        let is_better = |best: &FindAnswer| match best.load {
            Some(_) => found.load.is_some() && found.iops > best.iops,
            None => found.load.is_some(),
        };
        if best.as_ref().is_none_or(is_better) {
            best = Some(found);
        }
    }
    best.map_or_else(|| nothing(&Known::default(), None), NextProbe::Found)
}

/// The most of some loads, ascending, that keeps the limit: doubled until one does not,
/// and halved between.
fn row_of(goal: FindGoal, limit: f64, loads: &[WholeLoad], probes: &[ProbeResult]) -> NextProbe {
    let load = |place: usize| f64::from(loads[place].load);
    let known = |place: usize| Known::of(goal, probes, Some(load(place)), loads[place].jobs);
    let (mut good, mut bad) = (None, None);
    let mut place = 0;
    while place < loads.len() {
        let here = known(place);
        match here.keeps(limit) {
            None => return measure(&loads[place], true, false),
            Some(true) => good = Some(place),
            Some(false) => bad = Some(place),
        }
        place = match (good, bad) {
            (None, _) => break,
            // The load doubles: places of depths that do not are passed over.
            (Some(good), None) => {
                let double = loads[good].load.saturating_mul(2);
                let far = loads.iter().rposition(|it| it.load <= double);
                far.map_or(good + 1, |far| far.max(good + 1))
            }
            (Some(good), Some(bad)) if bad - good > 1 => good.midpoint(bad),
            _ => break,
        };
    }
    let Some(place) = good else {
        return nothing(&known(0), loads.first().map(|it| f64::from(it.load)));
    };
    // What was ended early is tried to the end of a probe: if it does not stand that, the
    // same way leads to a smaller one.
    if !known(place).is_whole() {
        return measure(&loads[place], true, true);
    }
    let ended_by = match bad {
        Some(_) => FindEnd::Objective,
        None => FindEnd::Range,
    };
    NextProbe::Found(FindAnswer {
        too_much: bad.map(load),
        ..known(place).answer(Some(load(place)), loads[place].jobs, ended_by)
    })
}

fn nothing(known: &Known, least: Option<f64>) -> NextProbe {
    NextProbe::Found(FindAnswer {
        too_much: least,
        ..known.answer(None, None, FindEnd::Nothing)
    })
}

fn offer(load: Option<f64>, is_long: bool, is_whole: bool) -> NextProbe {
    NextProbe::Measure(LoadProbe {
        load,
        jobs: None,
        is_long,
        is_whole,
    })
}

/// The highest rate that keeps the limit, between what is offered and kept, and what is
/// not.
pub(super) fn rates(goal: FindGoal, least: f64, probes: &[ProbeResult]) -> NextProbe {
    let known = |rate: Option<f64>| Known::of(goal, probes, rate, None);
    let most = known(None);
    let Some(limit) = goal.limit() else {
        // Throughput without a limit is that of the device.
        return match most.tries() {
            0 => offer(None, true, true),
            _ => nothing(&most, None),
        };
    };
    if most.tries() == 0 {
        return offer(None, false, false);
    }
    let most_iops = if most.is_led() { LED_IOPS } else { most.iops() };
    let least = least.max(RATE_LEAST * most_iops);
    let (mut good, mut bad): (Option<f64>, Option<(f64, bool)>) = (None, None);
    let mut rate = (RATE_BEGIN * most_iops).max(least).ceil();
    let may_probe = probes.len() < RATE_PROBES_MOST;
    let is_fickle = is_fickle(goal, limit, probes);
    loop {
        let mut here = known(Some(rate));
        if is_fickle && here.keeps(limit) == Some(true) && !here.is_whole() {
            here = Known::default();
        }
        // Of a rate that is not reached the queue grows without end: it is too much,
        // whatever the latency of the I/Os that came back.
        let is_behind = here.is_behind(rate);
        match here.keeps(limit) {
            _ if is_behind => bad = Some((rate, true)),
            // What a short probe has not settled a short one does not settle.
            None if may_probe => return offer(Some(rate), true, is_fickle || here.tries() > 0),
            None => break,
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
    let found = known(Some(load));
    if !found.is_whole() && may_probe {
        return offer(Some(load), true, true);
    }
    let ended_by = match bad {
        Some((_, true)) => FindEnd::Device,
        Some((_, false)) => FindEnd::Objective,
        None => FindEnd::Range,
    };
    NextProbe::Found(FindAnswer {
        too_much: bad.map(|(bad, _)| bad),
        ..found.answer(Some(load), None, ended_by)
    })
}

/// Whether a rate was kept while a short probe looked and was not, clearly, to the end of
/// a whole one: credits or a cache were used up. Then only whole probes say that one is
/// kept.
fn is_fickle(goal: FindGoal, limit: f64, probes: &[ProbeResult]) -> bool {
    let kept = |it: &&ProbeResult| it.is_early && it.limited(goal).is_some_and(|it| it <= limit);
    probes.iter().filter(kept).any(|early| {
        let same = probes
            .iter()
            .filter(|it| it.probe.load == early.probe.load && !it.is_early);
        let values = same.filter_map(|it| it.limited(goal));
        values.fold(0.0, f64::max) > super::CLEAR * limit
    })
}
