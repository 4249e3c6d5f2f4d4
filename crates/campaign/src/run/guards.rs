//! The guards of all series of a campaign, fed in the order of the plan.
//!
//! Repetitions in a row are judged together, when the last of them has been
//! measured. Interleaved ones are judged in the first pass, on one measurement
//! each: later passes measure what the first one measured, so that every point
//! of a series has the same number of repetitions.

use std::collections::HashMap;

use fathom_analysis::guard::{Guard, GuardRule, MeasurementTotals};

use crate::flow::{History, PointOutcome};
use crate::plan::{CampaignStep, ResolvedCampaign};

/// The guards of a campaign.
#[derive(Debug, Default)]
pub struct Guards {
    series: HashMap<String, WatchedSeries>,
}

/// One series: its points in the order of the plan.
#[derive(Debug)]
struct WatchedSeries {
    guard: Guard,
    /// The steps of each point that are judged together.
    visits: Vec<Vec<usize>>,
    /// Place in `visits` by the point's id.
    places: HashMap<String, usize>,
    /// Points that were judged before the run.
    judged: usize,
}

impl Guards {
    /// The guards that a plan wants.
    fn new(plan: &ResolvedCampaign) -> Self {
        let mut series: HashMap<String, WatchedSeries> = HashMap::new();
        let Some(rule) = plan.settings.guard else {
            return Self::default();
        };
        let rule = GuardRule {
            points: rule.points,
            noise_percent: rule.noise_percent,
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
                .or_insert_with(|| WatchedSeries::new(rule));
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
    #[must_use]
    pub fn after(plan: &ResolvedCampaign, history: &History) -> Self {
        let mut guards = Self::new(plan);
        for watched in guards.series.values_mut() {
            (watched.guard, watched.judged) = watched.judge(plan, history);
        }
        guards
    }

    /// Why a step is left out after what has been measured; `None`: it is measured.
    #[must_use]
    pub fn against(
        &self,
        plan: &ResolvedCampaign,
        step: &CampaignStep,
        history: &History,
    ) -> Option<String> {
        let watched = self.series.get(&step.point.series)?;
        let place = watched.places.get(&step.point.id)?;
        let (guard, judged) = watched.judge(plan, history);
        (guard.is_over() && *place >= judged).then(|| guard.reason())
    }
}

impl WatchedSeries {
    fn new(rule: GuardRule) -> Self {
        Self {
            guard: Guard::new(rule),
            visits: Vec::new(),
            places: HashMap::new(),
            judged: 0,
        }
    }

    /// The guard once the points whose turn has come are judged too, and how many that
    /// are then.
    fn judge(&self, plan: &ResolvedCampaign, history: &History) -> (Guard, usize) {
        let (mut guard, mut judged) = (self.guard.clone(), self.judged);
        for visit in &self.visits[judged..] {
            let points = visit.iter().map(|&place| &plan.steps[place].point);
            let came = points.map(|point| history.tally().came_of(point));
            let came: Vec<Option<&PointOutcome>> = came.collect();
            let all_ended = came
                .iter()
                .all(|came| came.is_some_and(PointOutcome::has_ended));
            if guard.is_over() || !all_ended {
                break;
            }
            let totals = came.into_iter().filter_map(|came| match came {
                Some(PointOutcome::Done(totals)) => Some(*totals),
                _ => None,
            });
            guard.add(&totals.collect::<Vec<MeasurementTotals>>());
            judged += 1;
        }
        (guard, judged)
    }
}
