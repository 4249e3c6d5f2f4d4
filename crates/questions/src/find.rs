//! A search for a load: probe after probe of one job, each at the load that those before
//! it leave open.

use std::ops::ControlFlow;
use std::time::Duration;

use fathom_analysis::find::{
    FindAnswer, FindGoal, FindLoads, Limited, LoadProbe, NextProbe, ProbeResult, SIDE_INTERVALS,
    SideWatch, is_early, next_probe,
};
use fathom_model::{
    Direction, Event, Failure, FigureVerdict, Histogram, JobResult, Outcome, RunDocument,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use fathom_flow::load::Load;
use fathom_flow::{Ending, History, JobStep, Next, Script, StepFigures, StepWatch};

mod map;

pub use map::{MapConfig, MapScript, MapState};

/// The command in records.
pub const COMMAND: &str = "find";

/// `rwmixread` where nobody sets it (fio's HOWTO).
const MIX_DEFAULT: f64 = 50.0;
/// Samples of a probe are not shorter than this.
const INTERVAL_LEAST: Duration = Duration::from_millis(100);

/// What is searched, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindConfig {
    /// What counts.
    pub goal: FindGoal,
    /// Loads to choose among.
    pub loads: FindLoads,
    /// The option that makes the load: `iodepth`, `numjobs`, `rate_iops`.
    pub over: String,
    /// Percentile that the limit is about; `None`: the mean.
    pub percent: Option<f64>,
    /// The I/Os that the limit is about; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Direction>,
    /// How many machines run each probe together, a rate in equal parts, `iodepth` and
    /// `numjobs` on each; absent: this one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// What the search is made for, each by itself; empty: for the job as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<FindRow>,
    /// How long a short look takes.
    pub look: Duration,
    /// How long a long one takes.
    pub probe: Duration,
}

/// One of several searches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FindRow {
    /// What tells it from the others, also in names of steps.
    pub name: String,
    /// Options of the job with their values.
    pub options: Vec<(String, String)>,
}

/// A search, as far as it has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct RowFound {
    /// What it is made for.
    #[serde(flatten)]
    pub row: FindRow,
    /// What was found; absent where it did not come to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<FindAnswer>,
    /// What was measured, in order.
    pub probes: Vec<ProbeResult>,
    /// Whether the figures of the answer are true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FigureVerdict>,
    /// Of a search by I/Os under way with a limit of a percentile: that percentile at the
    /// answer, in ns, had the I/Os that waited for a slow one been sent in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrected_ns: Option<f64>,
    /// The number of the first probe's step.
    #[serde(skip)]
    pub first: u32,
    /// The names of the probes' steps.
    #[serde(skip)]
    pub steps: Vec<String>,
}

impl RowFound {
    /// The name of the last step that measured the load of the answer.
    pub fn step_of_answer(&self) -> Option<&str> {
        let answer = self.answer?;
        let is_it = |probe: &LoadProbe| (probe.load, probe.jobs) == (answer.load, answer.jobs);
        let place = self.probes.iter().rposition(|it| is_it(&it.probe))?;
        self.steps.get(place).map(String::as_str)
    }

    /// Judges the answer by the verdicts of its step.
    pub fn judge(&mut self, document: &RunDocument) {
        let Some(step) = self.step_of_answer() else {
            return;
        };
        let jobs = document.jobs.iter();
        let of_step = jobs.filter(|job| job.step.as_deref() == Some(step));
        let results = of_step.flat_map(JobResult::directions);
        let mut all = None;
        for verdict in results.filter_map(|(_, result)| result.verdict.as_ref()) {
            let all: &mut FigureVerdict = all.get_or_insert_default();
            verdict
                .reasons
                .iter()
                .for_each(|reason| all.add(reason.clone()));
        }
        self.verdict = all;
    }

    /// Corrects the latency of the answer for what a closed loop omits.
    pub fn correct(&mut self, config: &FindConfig, document: &RunDocument) {
        let percent = config.percent.filter(|_| config.over != "rate_iops");
        let (Some(percent), Some(step)) = (percent, self.step_of_answer()) else {
            return;
        };
        let jobs = document.jobs.iter();
        let of_step = jobs.filter(|job| job.step.as_deref() == Some(step));
        let results = of_step.flat_map(JobResult::directions);
        let wanted = results.filter(|(dir, _)| config.of.is_none_or(|of| of == *dir));
        let mut all = Histogram::new();
        for (_, result) in wanted {
            if let Some(histogram) = result.clat.as_ref().and_then(|it| it.histogram.as_ref()) {
                all.merge(histogram);
            }
        }
        // Each of the I/Os in flight is followed by the next: one is due every mean latency.
        let interval_ns = all.mean_ns().map_or(0, |mean| mean.round() as u64);
        let corrected = all.corrected(interval_ns).percentile_ns(percent);
        self.corrected_ns = corrected.map(|ns| ns as f64);
    }
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
    /// This is measured next.
    Probe(Box<JobStep>, LoadProbe),
    /// Everything was found.
    Found,
    /// A probe has failed.
    Failed(String),
}

impl FindScript {
    /// What the history has measured, in order, and what comes next.
    pub fn state(&self, history: &History) -> (Vec<RowFound>, FindState) {
        let rows = match self.config.rows.is_empty() {
            true => vec![FindRow::default()],
            false => self.config.rows.clone(),
        };
        let mut all = Vec::new();
        let mut number = 1;
        for row in rows {
            let mut found = RowFound {
                row,
                first: number,
                ..RowFound::default()
            };
            let state = self.row(&mut found, history);
            number += found.probes.len() as u32;
            all.push(found);
            if let Some(state) = state {
                return (all, state);
            }
        }
        (all, FindState::Found)
    }

    /// Follows one search; gives the state where that is not its end.
    fn row(&self, found: &mut RowFound, history: &History) -> Option<FindState> {
        let (goal, loads) = (self.config.goal, &self.config.loads);
        while found.probes.len() <= loads.probes_most() {
            let probe = match next_probe(goal, loads, &found.probes) {
                NextProbe::Measure(probe) => probe,
                NextProbe::Found(answer) => {
                    found.answer = Some(answer);
                    return None;
                }
            };
            let step = self.step(found, probe);
            let Some(ended) = history.ended_step(step.number) else {
                return Some(FindState::Probe(Box::new(step), probe));
            };
            if ended.outcome == Outcome::Failed {
                return Some(FindState::Failed(format!("{} failed", step.name)));
            }
            let result = self.result(probe, history.step_figures(step.number));
            let is_limited = goal.limit().is_none() || result.limited(goal).is_some();
            if result.iops > 0.0 && !is_limited && probe.load.is_some() {
                let what = format!("{} has no figure for the limit", step.name);
                return Some(FindState::Failed(what));
            }
            found.steps.push(step.name);
            found.probes.push(result);
        }
        Some(FindState::Failed("the search did not end".to_owned()))
    }

    fn result(&self, probe: LoadProbe, figures: Option<&StepFigures>) -> ProbeResult {
        let seconds = figures.map_or(0.0, |it| it.runtime_ms as f64 / 1000.0);
        let latency = |it: &StepFigures| it.latency_ns(self.config.of, self.config.percent);
        ProbeResult {
            probe,
            iops: figures.map_or(0.0, |figures| figures.totals.iops),
            latency_ns: figures.and_then(latency),
            cpu_percent: figures.and_then(|figures| figures.cpu_percent),
            seconds,
            is_early: seconds > 0.0
                && self.ends_early(probe)
                && is_early(self.length(probe), seconds),
        }
    }

    /// How many machines share a rate.
    fn machines(&self) -> u32 {
        self.config.hosts.unwrap_or(1).max(1)
    }

    fn length(&self, probe: LoadProbe) -> Duration {
        match probe.is_long {
            true => self.config.probe,
            false => self.config.look,
        }
    }

    /// Whether a probe ends as soon as it is clear on which side of the limit it lies.
    fn ends_early(&self, probe: LoadProbe) -> bool {
        let has_limit = matches!(self.config.goal, FindGoal::Latency { .. });
        has_limit && probe.is_long && !probe.is_whole
    }

    /// The step of the probe behind those of a search.
    fn step(&self, found: &RowFound, probe: LoadProbe) -> JobStep {
        let number = found.first + found.probes.len() as u32;
        let over = &self.config.over;
        let mut values = found.row.options.clone();
        values.push((
            "runtime".to_owned(),
            format!("{}ms", self.length(probe).as_millis()),
        ));
        let jobs = probe
            .jobs
            .map(|jobs| ("numjobs".to_owned(), jobs.to_string()));
        let text = with_values(&self.job.text, &values, &[]);
        let load = probe.load.map(|load| (over.clone(), format!("{load:.0}")));
        let parts = [Some(number_name(number)), Some(found.row.name.clone())];
        let named = |(key, value): &(String, String)| format!("{key}-{value}");
        let most = || Some("most".to_owned());
        let parts = parts
            .into_iter()
            .chain([load.as_ref().map(named).or_else(most)]);
        let parts = parts.chain([jobs.as_ref().map(named)]).flatten();
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        let part = |load: f64| load / f64::from(self.machines());
        let rated = |load: f64| (over.clone(), rate_value(&text, part(load)));
        let values: Vec<_> = match self.config.loads {
            FindLoads::Rates { .. } => probe.load.map(rated).into_iter().collect(),
            FindLoads::Whole(_) => jobs.into_iter().chain(load).collect(),
        };
        // Without a load no rate is set, and only a rate has a process.
        let left_out = match probe.load {
            Some(_) => Vec::new(),
            None => vec![over.as_str(), "rate_process"],
        };
        let name = parts.join("-");
        JobStep {
            number,
            of: number,
            text: with_values(&text, &values, &left_out),
            as_written: None,
            job_file: format!("{name}.fio").into(),
            raw: name.clone().into(),
            name,
            load: Load {
                duration: Some(self.length(probe)),
                ..self.job.load
            },
            interval: match self.ends_early(probe) {
                true => (self.config.probe / SIDE_INTERVALS).max(INTERVAL_LEAST),
                false => self.job.interval,
            },
            ..self.job.clone()
        }
    }
}

fn number_name(number: u32) -> String {
    format!("{number:02}")
}

/// A rate for jobs of one direction, or for both by the mix: an engine gives a rate
/// without a comma to each of them.
fn rate_value(text: &str, rate: f64) -> String {
    let last = |keys: [&str; 2]| {
        let mut lines = text.lines().rev().filter_map(|line| line.split_once('='));
        lines.find(|(key, _)| keys.contains(key))
    };
    let is_mixed = last(["rw", "readwrite"]).is_some_and(|(_, rw)| is_mixed(rw));
    if !is_mixed {
        return format!("{rate:.0}");
    }
    let reads = match last(["rwmixread", "rwmixwrite"]) {
        Some(("rwmixread", share)) => share.parse().ok(),
        Some((_, share)) => share.parse().ok().map(|writes: f64| 100.0 - writes),
        None => None,
    };
    let reads = rate * reads.unwrap_or(MIX_DEFAULT) / 100.0;
    // A rate of 0 would be none. A direction without a share has no I/Os to limit.
    let of = |share: f64| match share > 0.0 {
        true => format!("{:.0}", share.round().max(1.0)),
        false => String::new(),
    };
    format!("{},{}", of(reads), of(rate - reads))
}

/// Whether this value of `rw` reads and writes.
pub fn is_mixed(rw: &str) -> bool {
    let kind = rw.split(':').next().unwrap_or(rw).trim();
    matches!(kind, "rw" | "readwrite" | "randrw")
}

/// A job file with other values of options that it has, and without some.
fn with_values(text: &str, values: &[(String, String)], left_out: &[&str]) -> String {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim();
        let key = line.split('=').next().unwrap_or(line);
        match values.iter().find(|(known, _)| known == key) {
            Some((_, value)) => Some(format!("{key}={value}\n")),
            None if left_out.contains(&key) => None,
            None => Some(format!("{line}\n")),
        }
    });
    lines.collect()
}

impl Script for FindScript {
    fn next(&self, history: &History) -> Next {
        match self.state(history).1 {
            FindState::Probe(step, _) => Next::Do(step.task()),
            FindState::Found => Next::End(Ending::Complete),
            FindState::Failed(reason) => Next::End(Ending::Failed(reason)),
        }
    }

    fn watch(&self, step: &JobStep, history: &History) -> Option<Box<dyn StepWatch>> {
        let (FindGoal::Latency { limit_ns }, FindState::Probe(_, probe)) =
            (self.config.goal, self.state(history).1)
        else {
            return None;
        };
        if !self.ends_early(probe) {
            return None;
        }
        let limited = Limited {
            limit_ns,
            percent: self.config.percent,
            dir: self.config.of,
        };
        let rate = match self.config.loads {
            FindLoads::Rates { .. } => {
                rate_of(&step.text).map(|each| each * f64::from(self.machines()))
            }
            FindLoads::Whole(_) => None,
        };
        let watch = SideWatch::new(limited, rate, self.config.probe);
        Some(Box::new(ProbeWatch { watch, side: None }))
    }
}

/// I/Os per second that a job file asks for, where it runs.
fn rate_of(text: &str) -> Option<f64> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("rate_iops="))?;
    let rates = value.split(',').filter(|rate| !rate.is_empty());
    rates.map(|rate| rate.parse::<f64>().ok()).sum()
}

/// Ends a probe once it is clear on which side of the limit it lies.
#[derive(Debug)]
struct ProbeWatch {
    watch: SideWatch,
    side: Option<bool>,
}

impl StepWatch for ProbeWatch {
    fn take(&mut self, event: &Event) -> ControlFlow<()> {
        if self.side.is_none() {
            self.side = self.watch.take(event);
        }
        match self.side {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    /// That it has ended the probe is what was wanted.
    fn judge(&self, outcome: Outcome) -> Result<Outcome, Failure> {
        Ok(
            match self.side.is_some() && outcome == Outcome::Interrupted {
                true => Outcome::Complete,
                false => outcome,
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rate of 1 for the other direction once made a job of reads write.
    #[test]
    fn a_share_of_0_gets_no_rate() {
        for (text, value) in [
            ("rw=randread\n", "1000"),
            ("rw=randrw\n", "500,500"),
            ("rw=randrw\nrwmixread=70\n", "700,300"),
            ("rw=randrw\nrwmixread=100\n", "1000,"),
            ("rw=randrw\nrwmixwrite=0\n", "1000,"),
            ("rw=rw\nrwmixread=0\n", ",1000"),
        ] {
            assert_eq!(rate_value(text, 1000.0), value, "{text}");
            let written = format!("rate_iops={value}\n");
            assert_eq!(rate_of(&written), Some(1000.0), "{text}");
        }
    }
}
