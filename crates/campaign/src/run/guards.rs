//! What is left out of the series of a campaign, by what was measured of them.
//!
//! Repetitions in a row are judged together, when the last of them has been
//! measured. Interleaved ones are judged in the first pass, on one measurement
//! each: later passes measure what the first one measured, so that every point
//! of a series has the same number of repetitions.

use std::collections::HashMap;

use fathom_analysis::guard::{Guard, MeasurementTotals};
use fathom_analysis::knee_search::{is_needless, search_order};
use fathom_flow::{History, PointOutcome};
use fathom_prepare::settings::GuardPolicy;

use crate::plan::{CampaignStep, ResolvedCampaign};

/// The guards of a campaign.
#[derive(Debug, Default)]
pub struct Guards {
    series: HashMap<String, WatchedSeries>,
}

/// One series: its points in the order of the plan.
#[derive(Debug)]
struct WatchedSeries {
    watch: SeriesWatch,
    /// The steps of each point that are judged together.
    visits: Vec<Vec<usize>>,
    /// Place in `visits` by the point's id.
    places: HashMap<String, usize>,
}

/// What says which of its points are left out.
#[derive(Debug)]
enum SeriesWatch {
    /// The guard, and how many points it judged before the run.
    Worse(Guard, usize),
    NotForKnee,
}

impl Guards {
    /// The guards that a plan wants.
    fn new(plan: &ResolvedCampaign) -> Self {
        let mut series: HashMap<String, WatchedSeries> = HashMap::new();
        let Some(policy) = plan.settings.guard else {
            return Self::default();
        };
        let mut last: HashMap<&str, &str> = HashMap::new();
        for (place, step) in plan.steps.iter().enumerate() {
            let point = &step.point;
            let before = last.insert(&point.series, &point.id);
            if !step.guarded {
                continue;
            }
            let watched = series
                .entry(point.series.clone())
                .or_insert_with(|| WatchedSeries::new(policy));
            match watched.places.get(&point.id) {
                Some(&visit) if before == Some(&point.id) => watched.visits[visit].push(place),
                // A later pass.
                Some(_) => {}
                None => {
                    watched
                        .places
                        .insert(point.id.clone(), watched.visits.len());
                    watched.visits.push(vec![place]);
                }
            }
        }
        Self { series }
    }

    /// The guards that a plan wants, after a record was read.
    pub fn after(plan: &ResolvedCampaign, history: &History) -> Self {
        let mut guards = Self::new(plan);
        for watched in guards.series.values_mut() {
            if let SeriesWatch::Worse(guard, judged) = &watched.watch {
                let (guard, judged) = watched.judge(guard, *judged, plan, history);
                watched.watch = SeriesWatch::Worse(guard, judged);
            }
        }
        guards
    }

    /// Why a step is left out after what has been measured; `None`: it is measured.
    pub fn against(
        &self,
        plan: &ResolvedCampaign,
        step: &CampaignStep,
        history: &History,
    ) -> Option<String> {
        let watched = self.series.get(&step.point.series)?;
        let place = *watched.places.get(&step.point.id)?;
        match &watched.watch {
            SeriesWatch::Worse(guard, judged) => {
                let (guard, judged) = watched.judge(guard, *judged, plan, history);
                (guard.is_over() && place >= judged).then(|| guard.reason())
            }
            SeriesWatch::NotForKnee => watched.needless(place, plan, history),
        }
    }
}

impl WatchedSeries {
    fn new(policy: GuardPolicy) -> Self {
        Self {
            watch: match policy {
                GuardPolicy::Worse(rule) => SeriesWatch::Worse(Guard::new(rule), 0),
                GuardPolicy::NotForKnee => SeriesWatch::NotForKnee,
            },
            visits: Vec::new(),
            places: HashMap::new(),
        }
    }

    /// What came of the measurements of a point.
    fn came<'h>(
        &self,
        visit: usize,
        plan: &ResolvedCampaign,
        history: &'h History,
    ) -> Vec<Option<&'h PointOutcome>> {
        let points = self.visits[visit].iter();
        let came = points.map(|&place| history.tally().came_of(&plan.steps[place].point));
        came.collect()
    }

    /// The guard once the points whose turn has come are judged too, and how many that
    /// are then.
    fn judge(
        &self,
        guard: &Guard,
        before: usize,
        plan: &ResolvedCampaign,
        history: &History,
    ) -> (Guard, usize) {
        let (mut guard, mut judged) = (guard.clone(), before);
        for visit in before..self.visits.len() {
            let came = self.came(visit, plan, history);
            let all_ended = came
                .iter()
                .all(|came| came.is_some_and(PointOutcome::has_ended));
            if guard.is_over() || !all_ended {
                break;
            }
            guard.add(&done(&came));
            judged += 1;
        }
        (guard, judged)
    }

    /// Why the search for the knee does not need a point. One that was begun is measured
    /// as often as it is to be.
    fn needless(&self, visit: usize, plan: &ResolvedCampaign, history: &History) -> Option<String> {
        let order = search_order(self.visits.len());
        let mut bandwidths = vec![None; order.len()];
        for (visit, &on_axis) in order.iter().enumerate() {
            let totals = done(&self.came(visit, plan, history));
            let sum: f64 = totals.iter().map(|totals| totals.bw_bytes).sum();
            bandwidths[on_axis] = (!totals.is_empty()).then(|| sum / totals.len() as f64);
        }
        is_needless(&bandwidths, order[visit]).map(str::to_owned)
    }
}

/// The figures of what was measured.
fn done(came: &[Option<&PointOutcome>]) -> Vec<MeasurementTotals> {
    let totals = came.iter().filter_map(|came| match came {
        Some(PointOutcome::Done(totals)) => Some(*totals),
        _ => None,
    });
    totals.collect()
}
