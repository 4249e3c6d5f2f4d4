//! A map of loads: reads and writes at rates of their own, place after place.

use std::time::Duration;

use fathom_analysis::find::{LoadMap, MapLoad, MapResult};
use fathom_flow::load::Load;
use fathom_flow::{Ending, History, JobStep, Next, Script, StepFigures};
use fathom_model::{Direction, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::with_values;

/// What is measured, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MapConfig {
    /// Steps of either load.
    pub steps: u32,
    /// Percentile of the latencies of reads.
    pub percent: f64,
    /// How many machines run each place together, with rates in equal parts; absent: this
    /// one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u32>,
    /// How long a look without a rate takes.
    pub look: Duration,
    /// How long a place takes.
    pub probe: Duration,
}

/// The script of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapScript {
    /// The job, one that reads and writes, with the options that a map sets.
    pub job: JobStep,
    /// What is measured.
    pub config: MapConfig,
}

/// What comes next of a map.
#[derive(Debug, Clone, PartialEq)]
pub enum MapState {
    /// This is measured next.
    Probe(Box<JobStep>),
    /// Nothing.
    Complete,
    /// A step has failed.
    Failed(String),
}

impl MapScript {
    /// The map so far, and what comes next.
    pub fn state(&self, history: &History) -> (LoadMap, MapState) {
        let mut results = Vec::new();
        loop {
            let map = LoadMap::of(self.config.steps, self.config.percent, &results);
            let Some(load) = map.next() else {
                return (map, MapState::Complete);
            };
            let step = self.step(results.len() as u32 + 1, load);
            let Some(ended) = history.ended_step(step.number) else {
                return (map, MapState::Probe(Box::new(step)));
            };
            if ended.outcome == Outcome::Failed {
                return (map, MapState::Failed(format!("{} failed", step.name)));
            }
            results.push(self.result(load, history.step_figures(step.number)));
        }
    }

    fn result(&self, load: MapLoad, figures: Option<&StepFigures>) -> MapResult {
        let iops = |dir| figures.and_then(|it| it.iops_of(dir)).unwrap_or(0.0);
        let percent = Some(self.config.percent);
        MapResult {
            load,
            read_iops: iops(Direction::Read),
            write_iops: iops(Direction::Write),
            latency_ns: figures.and_then(|it| it.latency_ns(Some(Direction::Read), percent)),
            seconds: figures.map_or(0.0, |it| it.runtime_ms as f64 / 1000.0),
        }
    }

    fn step(&self, number: u32, load: MapLoad) -> JobStep {
        let text = &self.job.text;
        let is_random = text.lines().any(|line| line.trim() == "rw=randrw");
        let kind = |kind: &str| format!("{}{kind}", if is_random { "rand" } else { "" });
        let mut values = Vec::new();
        let mut set = |key: &str, value: String| values.push((key.to_owned(), value));
        let no_rate = ["rate_iops", "rate_process"];
        let most = |what: &str| {
            (
                format!("{number:02}-most-{what}s"),
                self.config.look,
                &no_rate[..],
            )
        };
        let (name, length, left_out) = match load {
            MapLoad::MostReads => {
                set("rw", kind("read"));
                most("read")
            }
            MapLoad::MostWrites => {
                set("rw", kind("write"));
                most("write")
            }
            MapLoad::Offered {
                read,
                write,
                read_iops,
                write_iops,
            } => {
                let machines = f64::from(self.config.hosts.unwrap_or(1).max(1));
                let part = |iops: f64| (iops / machines).max(1.0);
                let (reads, writes) = (part(read_iops), part(write_iops));
                if write == 0 {
                    set("rw", kind("read"));
                    set("rate_iops", format!("{reads:.0}"));
                } else {
                    set("rate_iops", format!("{reads:.0},{writes:.0}"));
                    let share = (100.0 * reads / (reads + writes)).round();
                    set("rwmixread", format!("{:.0}", share.clamp(1.0, 99.0)));
                }
                let name = format!("{number:02}-read-{read}-write-{write}");
                (name, self.config.probe, &[][..])
            }
        };
        set("runtime", format!("{}ms", length.as_millis()));
        JobStep {
            number,
            of: number,
            text: with_values(text, &values, left_out),
            as_written: None,
            job_file: format!("{name}.fio").into(),
            raw: name.clone().into(),
            name,
            load: Load {
                duration: Some(length),
                ..self.job.load
            },
            ..self.job.clone()
        }
    }
}

impl Script for MapScript {
    fn next(&self, history: &History) -> Next {
        match self.state(history).1 {
            MapState::Probe(step) => Next::Do(step.task()),
            MapState::Complete => Next::End(Ending::Complete),
            MapState::Failed(reason) => Next::End(Ending::Failed(reason)),
        }
    }
}
