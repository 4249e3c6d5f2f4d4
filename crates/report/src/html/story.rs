//! The first reading of a record: everything but its samples.

use std::path::Path;

use fathom_analysis::nodes::{StepWindow, Windows};
use fathom_analysis::{PointResult, Sweep};
use fathom_model::{Entry, Event, RunDocument};
use fathom_record::{DigestSums, RecordError, RecordPart};
use serde_json::{Map, Value};

use fathom_document::attempts::{AttemptKey, Attempts};
use fathom_document::nodes;
use fathom_document::sweep::read_along;

/// What is shown of a run. Takes memory for its jobs and points.
#[derive(Debug)]
pub struct Story {
    /// Its document, with histograms; of a campaign without the jobs of its points.
    pub doc: RunDocument,
    /// The engines that measured, with their versions.
    pub engines: Vec<String>,
    /// Its curves; none when the run was no campaign.
    pub sweep: Sweep,
    /// The attempts of its steps in the order of the record: a step that was measured
    /// again after a kill is there twice.
    pub steps: Vec<StoryStep>,
    /// What the command noted of its own kind.
    pub facts: Map<String, Value>,
    /// Start, ms since 1970 UTC.
    pub started_ms: u64,
    /// Last line, ms since 1970 UTC.
    pub last_ms: u64,
    /// When the jobs of each step ran.
    pub windows: Vec<StepWindow>,
    /// Number of entries read: a run that goes on has more by the second reading.
    pub entries: u64,
    /// How many of the samples were read as sums.
    pub summed: u64,
}

/// A part of the run.
#[derive(Debug, Default)]
pub struct StoryStep {
    /// Its name: a job file, a test, a point's id. Empty: the run has no steps.
    pub name: String,
    /// The point that it measures.
    pub point: Option<String>,
    /// Which measurement of a point it is.
    pub repetition: u32,
    /// Begin and last line, ms since 1970 UTC.
    pub time_ms: (u64, u64),
    /// Engine with its version.
    pub engine: String,
    /// The command as executed.
    pub argv: Vec<String>,
    /// Names of the jobs that samples refer to.
    pub jobs: Vec<String>,
    /// Where each of them runs; empty when all run on one machine.
    pub hosts: Vec<String>,
    /// Number of samples.
    pub samples: u64,
    /// Whether the engine gave its figures.
    pub finished: bool,
    /// Whether it counts: it was not broken off and measured again.
    pub counts: bool,
    /// What went wrong in it.
    pub failures: Vec<String>,
    /// `None` of what stands before the first step.
    began: Option<AttemptKey>,
}

impl Story {
    /// Reads a record folder.
    pub fn read(dir: &Path) -> Result<Self, RecordError> {
        let mut teller = StoryTeller::default();
        let mut windows = Windows::default();
        let mut record = read_along(dir, |part| match part {
            RecordPart::Entry(entry) => {
                windows.take(entry);
                teller.take(entry);
            }
            RecordPart::Sums(sums) => {
                sums.interval().iter().for_each(|last| windows.take(last));
                teller.take_sums(sums);
            }
        })?;
        let windows = windows.finish();
        record.run.nodes = nodes::uses(dir, &windows);
        let last_ms = teller.last_ms.max(record.header.started_ms);
        let (entries, summed) = (teller.entries, teller.summed);
        Ok(Self {
            doc: record.run,
            engines: record.engines,
            sweep: record.sweep,
            steps: teller.finish(),
            facts: record.header.facts,
            started_ms: record.header.started_ms,
            last_ms,
            windows,
            entries,
            summed,
        })
    }

    /// The steps that samples show, with their places: one attempt of each.
    pub fn sampled(&self) -> impl Iterator<Item = (usize, &StoryStep)> {
        let all = self.steps.iter().enumerate();
        all.filter(|(_, step)| step.counts && step.samples > 0)
    }

    /// Samples that will be embedded before any are merged: where a step has
    /// several jobs their sums come on top.
    pub fn samples(&self) -> u64 {
        let of = |step: &StoryStep| match step.jobs.len() as u64 {
            0 | 1 => step.samples,
            jobs => step.samples + step.samples.div_ceil(jobs),
        };
        self.sampled().map(|(_, step)| of(step)).sum()
    }

    /// The points with the name of their curve.
    pub fn points(&self) -> impl Iterator<Item = &PointResult> {
        self.sweep.series.iter().flat_map(|series| &series.points)
    }

    /// What a step is called; one without a name is the run.
    pub fn name_of(&self, step: &StoryStep) -> String {
        match (step.name.as_str(), step.repetition) {
            ("", _) => self.doc.name.clone(),
            (name, 0 | 1) => name.to_owned(),
            (name, n) => format!("{name}, repetition {n}"),
        }
    }

    /// Whether the run was a campaign.
    pub fn is_campaign(&self) -> bool {
        !self.sweep.series.is_empty()
    }
}

/// Counts the steps of a run, the same way in both readings.
#[derive(Debug, Default)]
pub struct Places {
    begun: usize,
}

impl Places {
    /// The place of the step that this event belongs to, from 0. What comes
    /// before the first step, or in a run without steps, belongs to the first.
    pub fn of(&mut self, event: &Event) -> usize {
        if matches!(event, Event::Step { .. }) {
            self.begun += 1;
        }
        self.begun.saturating_sub(1)
    }
}

/// Takes down what is told of a run.
#[derive(Debug, Default)]
struct StoryTeller {
    steps: Vec<StoryStep>,
    attempts: Attempts,
    places: Places,
    between_steps: bool,
    last_ms: u64,
    entries: u64,
    summed: u64,
}

impl StoryTeller {
    /// The steps, with those marked that count.
    fn finish(mut self) -> Vec<StoryStep> {
        let counting = self.attempts.counting();
        for step in &mut self.steps {
            step.counts = step.began.is_none_or(|began| counting.contains(&began));
        }
        self.steps
    }

    fn take_sums(&mut self, sums: &DigestSums) {
        self.entries = self.entries.saturating_add(sums.entries);
        self.last_ms = self.last_ms.max(sums.at_ms);
        let samples = sums.samples();
        self.summed = self.summed.saturating_add(samples);
        if self.steps.is_empty() {
            self.steps.push(StoryStep {
                time_ms: (sums.at_ms, sums.at_ms),
                ..StoryStep::default()
            });
        }
        if let Some(step) = self.steps.last_mut() {
            step.samples = step.samples.saturating_add(samples);
            step.time_ms.1 = sums.at_ms;
        }
    }

    fn take(&mut self, entry: &Entry) {
        self.entries += 1;
        self.last_ms = self.last_ms.max(entry.at_ms);
        self.attempts.take(entry.at_ms, &entry.event);
        let place = self.places.of(&entry.event);
        // These belong to the run, and so does what stands behind the end of a step.
        let of_run = matches!(
            entry.event,
            Event::Skipped { .. } | Event::Resumed { .. } | Event::Ended { .. }
        );
        match entry.event {
            Event::Step { .. } => self.between_steps = false,
            Event::StepEnded { .. } => self.between_steps = true,
            _ => {}
        }
        if of_run || (self.between_steps && !matches!(entry.event, Event::StepEnded { .. })) {
            return;
        }
        if self.steps.len() <= place {
            self.steps.resize_with(place + 1, || StoryStep {
                time_ms: (entry.at_ms, entry.at_ms),
                ..StoryStep::default()
            });
        }
        let step = &mut self.steps[place];
        step.time_ms.1 = entry.at_ms;
        match &entry.event {
            Event::Step {
                step: number,
                name,
                point,
                ..
            } => {
                step.began = Some((entry.at_ms, *number));
                step.name.clone_from(name);
                step.time_ms.0 = entry.at_ms;
                step.repetition = point.as_ref().map_or(1, |point| point.repetition);
                step.point = point.as_ref().map(|point| point.id.clone());
            }
            Event::EngineStarted {
                engine,
                version,
                argv,
                ..
            } => {
                step.engine = version.clone().unwrap_or_else(|| engine.clone());
                step.argv.clone_from(argv);
            }
            Event::Jobs { names, hosts } => {
                step.jobs.clone_from(names);
                step.hosts.clone_from(hosts);
            }
            Event::Sample(_) => step.samples += 1,
            Event::Finished { .. } => step.finished = true,
            Event::Failure(failure) => step.failures.push(failure.message.clone()),
            _ => {}
        }
    }
}
