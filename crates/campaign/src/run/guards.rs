//! The guards of all series of a campaign, fed in the order of the plan.
//!
//! Repetitions in a row are judged together, when the last of them has been
//! measured. Interleaved ones are judged in the first pass, on one measurement
//! each: later passes measure what the first one measured, so that every point
//! of a series has the same number of repetitions.

use std::collections::HashMap;

use fathom_analysis::guard::{Guard, Rule, Totals};

use super::tally::{Came, Tally};
use crate::plan::{Plan, Step};

/// The guards of a campaign.
#[derive(Debug, Default)]
pub struct Guards {
    series: HashMap<String, Watched>,
}

/// One series: its points in the order of the plan.
#[derive(Debug)]
struct Watched {
    guard: Guard,
    /// The steps of each point that are judged together.
    visits: Vec<Vec<usize>>,
    /// Place in `visits` by the point's id.
    places: HashMap<String, usize>,
    /// Points that have been judged.
    judged: usize,
}

impl Guards {
    /// The guards that a plan wants.
    fn new(plan: &Plan) -> Self {
        let mut series: HashMap<String, Watched> = HashMap::new();
        let Some(rule) = plan.settings.guard else {
            return Self::default();
        };
        let rule = Rule {
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
                .or_insert_with(|| Watched::new(rule));
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
    pub fn after(plan: &Plan, tally: &Tally) -> Self {
        let mut guards = Self::new(plan);
        for watched in guards.series.values_mut() {
            watched.look(plan, tally);
        }
        guards
    }

    /// Looks at the series of a step that has been measured.
    pub fn look(&mut self, plan: &Plan, step: &Step, tally: &Tally) {
        if let Some(watched) = self.series.get_mut(&step.point.series) {
            watched.look(plan, tally);
        }
    }

    /// Why a step is left out; `None`: it is measured.
    #[must_use]
    pub fn against(&self, step: &Step) -> Option<String> {
        let watched = self.series.get(&step.point.series)?;
        let place = watched.places.get(&step.point.id)?;
        (watched.guard.is_over() && *place >= watched.judged).then(|| watched.guard.reason())
    }
}

impl Watched {
    fn new(rule: Rule) -> Self {
        Self {
            guard: Guard::new(rule),
            visits: Vec::new(),
            places: HashMap::new(),
            judged: 0,
        }
    }

    /// Judges the points whose turn has come.
    fn look(&mut self, plan: &Plan, tally: &Tally) {
        while let Some(visit) = self.visits.get(self.judged) {
            let came = visit
                .iter()
                .map(|&place| tally.came_of(&plan.steps[place].point));
            let came: Vec<Option<&Came>> = came.collect();
            let all_ended = came.iter().all(|came| came.is_some_and(Came::has_ended));
            if self.guard.is_over() || !all_ended {
                return;
            }
            let totals = came.into_iter().filter_map(|came| match came {
                Some(Came::Done(totals)) => Some(*totals),
                _ => None,
            });
            self.guard.add(&totals.collect::<Vec<Totals>>());
            self.judged += 1;
        }
    }
}
