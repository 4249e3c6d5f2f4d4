//! A search for a load: probe after probe of one job, each at the load that those before
//! it leave open.

use std::time::Duration;

use fathom_analysis::find::{
    FindAnswer, FindGoal, FindLoads, LoadProbe, NextProbe, PROBES_MOST, ProbeResult, next_probe,
};
use fathom_model::Outcome;
use serde::{Deserialize, Serialize};

use crate::flow::{Ending, History, JobStep, Next, Script};

/// The command in records.
pub const COMMAND: &str = "find";

/// What is searched, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FindConfig {
    /// What counts.
    pub goal: FindGoal,
    /// Loads to choose among.
    pub loads: FindLoads,
    /// The option that makes the load: `iodepth`, `numjobs`, `rate_iops`.
    pub over: String,
    /// Percentile that the limit is about; `None`: the mean.
    pub percent: Option<f64>,
    /// How long a short look takes.
    pub look: Duration,
    /// How long a long one takes.
    pub probe: Duration,
}

/// The script of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct FindScript {
    /// The job, with the options that a search sets.
    pub job: JobStep,
    /// What is searched.
    pub config: FindConfig,
}

/// How far a search has come.
#[derive(Debug, Clone, PartialEq)]
pub enum FindState {
    /// This is measured next, as the step of this number.
    Probe(u32, LoadProbe),
    /// This was found.
    Found(FindAnswer),
    /// A probe has failed.
    Failed(String),
}

impl FindScript {
    /// What the history has measured, in order, and what comes next.
    #[must_use]
    pub fn state(&self, history: &History) -> (Vec<ProbeResult>, FindState) {
        let mut probes = Vec::new();
        for number in 1.. {
            let next = next_probe(self.config.goal, &self.config.loads, &probes);
            let probe = match next {
                NextProbe::Measure(probe) if probes.len() <= PROBES_MOST => probe,
                NextProbe::Measure(_) => break,
                NextProbe::Found(found) => return (probes, FindState::Found(found)),
            };
            let Some(ended) = history.ended_step(number) else {
                return (probes, FindState::Probe(number, probe));
            };
            if ended.outcome == Outcome::Failed {
                let name = self.step(number, probe).name;
                return (probes, FindState::Failed(format!("{name} failed")));
            }
            let figures = history.step_figures(number);
            let latency = figures.and_then(|figures| match self.config.percent {
                None => figures.totals.clat_ns,
                Some(percent) => figures.percentile_ns(percent),
            });
            probes.push(ProbeResult {
                probe,
                iops: figures.map_or(0.0, |figures| figures.totals.iops),
                latency_ns: latency,
            });
        }
        (
            probes,
            FindState::Failed("the search did not end".to_owned()),
        )
    }

    /// The step of a probe.
    fn step(&self, number: u32, probe: LoadProbe) -> JobStep {
        let length = match probe.is_long {
            true => self.config.probe,
            false => self.config.look,
        };
        let load = probe.load.map(|load| format!("{load:.0}"));
        let name = match &load {
            Some(load) => format!("{number:02}-{}-{load}", self.config.over),
            None => format!("{number:02}-most"),
        };
        let runtime = format!("runtime={}ms", length.as_millis());
        let key = format!("{}=", self.config.over);
        let lines = self.job.text.lines().filter_map(|line| {
            let line = line.trim();
            match (line.strip_prefix(&key), &load) {
                (Some(_), Some(load)) => Some(format!("{key}{load}")),
                (Some(_), None) => None,
                // Only a rate has a process.
                (None, None) if line.starts_with("rate_process=") => None,
                _ if line.starts_with("runtime=") => Some(runtime.clone()),
                _ => Some(line.to_owned()),
            }
        });
        JobStep {
            number,
            of: number,
            text: lines.map(|line| line + "\n").collect(),
            as_written: None,
            job_file: format!("{name}.fio").into(),
            raw: name.clone().into(),
            name,
            ..self.job.clone()
        }
    }
}

impl Script for FindScript {
    fn next(&self, history: &History) -> Next {
        match self.state(history).1 {
            FindState::Probe(number, probe) => Next::Do(self.step(number, probe).task()),
            FindState::Found(_) => Next::End(Ending::Complete),
            FindState::Failed(reason) => Next::End(Ending::Failed(reason)),
        }
    }
}
