//! The figures of a run in percent of baselines, for the first screen of its report.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_campaign::quick::{Baseline, Conditions, DEFAULT_BASELINE, SeriesFacts};
use fathom_model::RunDocument;
use fathom_record::Entries;
use fathom_report::html::AgainstBaseline;

use crate::cmd::compare::compared;
use crate::cmd::quick::run::baselines;

/// Baselines that a report measures its run against.
#[derive(Debug, Default)]
pub struct WantedBaselines {
    /// Those that were named; none: the quick series has its own.
    named: Vec<Baseline>,
}

impl WantedBaselines {
    /// Those of these names.
    ///
    /// # Errors
    /// When there is no such baseline.
    pub fn named(names: &[String]) -> anyhow::Result<Self> {
        let named = baselines(names)?;
        Ok(Self { named })
    }

    /// The run of a record in percent of each.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn against(&self, dir: &Path) -> anyhow::Result<Vec<AgainstBaseline>> {
        let header = Entries::open(dir)?.header;
        let conditions = SeriesFacts::of(&header).map(|facts| Conditions::of(&facts));
        let is_named = !self.named.is_empty();
        let mut wanted = match (is_named, &conditions) {
            (true, _) => self.named.clone(),
            (false, Some(_)) => baselines(&[DEFAULT_BASELINE.to_owned()])?,
            (false, None) => Vec::new(),
        };
        // What nobody named is not worth a sentence where it does not hold.
        let why_not = |one: &Baseline| one.reason_not_to_use(conditions.as_ref()?);
        wanted.retain(|one| is_named || why_not(one).is_none());
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let doc = compared(dir)?.doc;
        let figures = figures(&doc);
        let all = wanted.iter().map(|one| match why_not(one) {
            Some(reason) => AgainstBaseline {
                name: one.name.clone(),
                percents: Vec::new(),
                doubts: vec![reason],
            },
            None => against(one, &figures, &doc, conditions.is_some()),
        });
        Ok(all.collect())
    }
}

/// IOPS of each step and job, all directions together; `None`: it failed.
type StepFigures = BTreeMap<(String, String), Option<f64>>;

fn figures(doc: &RunDocument) -> StepFigures {
    let mut all = StepFigures::new();
    for job in doc.jobs.iter().filter(|job| !job.is_sum_of_clients()) {
        let step = job.step.clone().unwrap_or_default();
        let sum = all.entry((step, job.name.clone())).or_insert(Some(0.0));
        let iops: f64 = job.directions().map(|(_, found)| found.iops).sum();
        *sum = sum.filter(|_| !job.has_failed()).map(|sum| sum + iops);
    }
    all
}

fn against(
    baseline: &Baseline,
    figures: &StepFigures,
    doc: &RunDocument,
    is_series: bool,
) -> AgainstBaseline {
    let mut percents = Vec::new();
    for ((step, job), iops) in figures {
        // A baseline has its figures by the test, which is a step, or by the job.
        let both = format!("{step}: {job}");
        let known = |name: &&String| baseline.iops.contains_key(*name);
        let name = [&both, step, job].into_iter().find(known);
        if let (Some(name), Some(iops)) = (name, iops)
            && let Some(percent) = baseline.percent(name, *iops as u64)
        {
            percents.push((name.clone(), percent));
        }
    }
    let mut doubts: Vec<String> = baseline.doubt_for(&doc.engine).into_iter().collect();
    doubts.extend(baseline.caveat(percents.iter().map(|(name, _)| name.as_str())));
    if baseline.conditions.is_some() && !is_series {
        let what = "it is of the quick series, this run is not: options, size and run time were not compared";
        doubts.push(format!("baseline {}: {what}", baseline.name));
    }
    AgainstBaseline {
        name: baseline.name.clone(),
        percents,
        doubts,
    }
}
