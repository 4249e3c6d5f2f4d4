//! The figures of a run in percent of baselines, for the first screen of its report.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_model::Event;
use fathom_record::Entries;
use fathom_report::html::AgainstBaseline;
use fathom_suites::quick::{Baseline, Conditions, DEFAULT_BASELINE, SeriesFacts, StepIops};

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
        let run = MeasuredRun::read(dir, conditions.is_some())?;
        let all = wanted.iter().map(|one| match why_not(one) {
            Some(reason) => AgainstBaseline {
                name: one.name.clone(),
                percents: Vec::new(),
                doubts: vec![reason],
            },
            None => run.against(one),
        });
        Ok(all.collect())
    }
}

/// What a run measured, and with what.
struct MeasuredRun {
    engine: String,
    /// IOPS by step and job.
    iops: BTreeMap<(String, String), f64>,
    /// Whether it is of the quick series.
    is_series: bool,
}

impl MeasuredRun {
    fn read(dir: &Path, is_series: bool) -> anyhow::Result<Self> {
        let (mut engine, mut iops) = (String::new(), StepIops::default());
        // Damage is told by the report.
        for entry in Entries::summed(dir)?.flatten() {
            if let Event::EngineStarted { engine: name, .. } = &entry.event {
                engine.clone_from(name);
            }
            iops.take(&entry.event);
        }
        Ok(Self {
            engine,
            iops: iops.finish(),
            is_series,
        })
    }

    fn against(&self, baseline: &Baseline) -> AgainstBaseline {
        let mut percents = Vec::new();
        for ((step, job), iops) in &self.iops {
            // A baseline has its figures by the test, which is a step, or by the job.
            let both = format!("{step}: {job}");
            let known = |name: &&String| baseline.iops.contains_key(*name);
            let name = [&both, step, job].into_iter().find(known);
            let percent = name.and_then(|name| baseline.percent(name, *iops as u64));
            percents.extend(name.cloned().zip(percent));
        }
        let mut doubts: Vec<String> = baseline.doubt_for(&self.engine).into_iter().collect();
        doubts.extend(baseline.caveat(percents.iter().map(|(name, _)| name.as_str())));
        if baseline.conditions.is_some() && !self.is_series {
            let what = "it is of the quick series, this run is not: options, size and run time were not compared";
            doubts.push(format!("baseline {}: {what}", baseline.name));
        }
        AgainstBaseline {
            name: baseline.name.clone(),
            percents,
            doubts,
        }
    }
}
