//! From events to the rounds of a test.

use std::collections::BTreeMap;

use fathom_model::{
    Direction, Event, Histogram, Outcome, Point, Results, Stage, StageEnd, StageKind,
};
use serde::Serialize;

use super::setup::{CellRule, HISTOGRAM, Setup};
use crate::steady_state::{Ask, Metric, Rounds, SeriesValue, WindowRule, judge};

/// One mix with one block size.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
pub struct SniaCell {
    /// Reads, in percent of the I/Os.
    pub reads_percent: u8,
    /// Size of an I/O in bytes.
    pub block_bytes: u64,
}

/// What was measured of a cell: reads and writes together, of all threads.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CellFigures {
    /// The cell.
    #[serde(flatten)]
    pub cell: SniaCell,
    /// Begin, ms of the run's time.
    pub begin_ms: u64,
    /// End, ms of the run's time.
    pub end_ms: u64,
    /// I/Os per second: reads and writes added up.
    pub iops: Option<f64>,
    /// Bytes per second: reads and writes added up.
    pub bw_bytes: Option<f64>,
    /// Mean completion latency of all I/Os in ns.
    pub lat_mean_ns: Option<f64>,
    /// The longest, in ns.
    pub lat_max_ns: Option<u64>,
    /// All completion latencies; empty where the engine gave none.
    #[serde(skip)]
    pub lat: Histogram,
    /// Bytes it wrote.
    pub written_bytes: u64,
    /// Whether its own samples keep fio's rule; `None`: there are too few.
    pub keeps_fio_rule: Option<bool>,
    /// Why there are no good figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl CellFigures {
    /// The completion latency at `percent` (0–100) in ns. The middle of the last
    /// bucket can be beyond the greatest latency, which no percentile is.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let at = self.lat.percentile_ns(percent)?;
        Some(self.lat_max_ns.map_or(at, |most| at.min(most)))
    }

    /// The tracked figure; `None` where it failed or there is none.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        if self.failed.is_some() {
            return None;
        }
        match metric {
            Metric::Iops => self.iops,
            Metric::Bandwidth => self.bw_bytes,
            Metric::Latency => self.lat_mean_ns,
            Metric::Percentile(percent) => self.percentile_ns(percent).map(|ns| ns as f64),
        }
    }
}

/// One round of a part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SniaRound {
    /// Counted from 1.
    pub round: u32,
    /// Its cells in the order in which they were measured; a round that was
    /// broken off is measured anew.
    pub cells: Vec<CellFigures>,
    /// Whether the flow says that it has ended.
    pub ended: bool,
}

impl SniaRound {
    /// What was measured of a cell.
    pub fn cell(&self, cell: SniaCell) -> Option<&CellFigures> {
        self.cells.iter().find(|figures| figures.cell == cell)
    }

    /// Bytes that its cells wrote.
    pub fn written_bytes(&self) -> u64 {
        self.cells.iter().map(|cell| cell.written_bytes).sum()
    }

    /// Whether every one of these cells has come to its end.
    pub fn is_whole(&self, cells: &[SniaCell]) -> bool {
        cells.iter().all(|&cell| self.cell(cell).is_some())
    }
}

/// A time in which nothing was measured, which the flow forbids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Interruption {
    /// The stage that was broken off, or had ended before.
    pub stage: String,
    /// Whether it was in the middle of that stage.
    pub within: bool,
    /// How long nothing happened, in ms.
    pub gap_ms: u64,
}

/// Gathers the rounds of a test while its events go by.
#[derive(Debug)]
pub struct RoundCollector {
    setup: Setup,
    /// By part, in the order of the setup.
    parts: BTreeMap<String, PartRounds>,
    histogram: Option<CellFigures>,
    /// Every stage of this test that was begun, with its last end.
    stages: Vec<(Stage, Option<StageEnd>)>,
    /// Whether the last stage that was begun is one of this test.
    here: bool,
    interruptions: Vec<Interruption>,
    notes: Vec<String>,
    attempt: Option<CellAttempt>,
    now_ms: u64,
}

/// What is known of a part.
#[derive(Debug, Default)]
struct PartRounds {
    rounds: Vec<SniaRound>,
}

/// A cell that is measured.
#[derive(Debug)]
struct CellAttempt {
    cell: SniaCell,
    begin_ms: u64,
    results: Option<Box<Results>>,
    failures: Vec<String>,
    samples: Rounds,
}

impl RoundCollector {
    /// Has seen nothing.
    pub fn new(setup: Setup) -> Self {
        let parts = setup.parts().into_iter();
        Self {
            parts: parts.map(|part| (part, PartRounds::default())).collect(),
            setup,
            histogram: None,
            stages: Vec::new(),
            here: false,
            interruptions: Vec::new(),
            notes: Vec::new(),
            attempt: None,
            now_ms: 0,
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        if let Some(attempt) = &mut self.attempt {
            attempt.take(event);
        }
        match event {
            Event::Stage { stage } => {
                self.give_up();
                self.here = self.setup.part_of(&stage.id).is_some();
                if self.here {
                    self.stage(stage);
                }
            }
            // It is done anew.
            Event::StageEnded {
                end: StageEnd::Interrupted { .. },
                ..
            } => self.give_up(),
            Event::StageEnded { id, end } => self.stage_ended(id, end),
            Event::Step { point, .. } => {
                self.give_up();
                self.begin(point.as_deref());
            }
            Event::StepEnded { outcome } => match outcome {
                Outcome::Interrupted => self.give_up(),
                Outcome::Complete | Outcome::Failed => self.settle(),
            },
            Event::Interval { t_ms, .. } => self.now_ms = *t_ms,
            Event::Ended { .. } => self.give_up(),
            Event::Resumed { gap_ms, .. } => {
                self.give_up();
                self.interrupted(*gap_ms);
            }
            Event::Note { text } if !self.notes.contains(text) => self.notes.push(text.clone()),
            _ => {}
        }
    }

    /// What the test was asked for.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The rounds of a part that have been begun.
    pub fn rounds(&self, part: &str) -> &[SniaRound] {
        self.parts.get(part).map_or(&[], |part| &part.rounds)
    }

    /// What the histogram's cell gave.
    pub fn histogram(&self) -> Option<&CellFigures> {
        self.histogram.as_ref()
    }

    /// The stages that were begun, with their ends.
    pub fn stages(&self) -> &[(Stage, Option<StageEnd>)] {
        &self.stages
    }

    /// The times in which the flow stood still.
    pub fn interruptions(&self) -> &[Interruption] {
        &self.interruptions
    }

    /// What was noted while it ran.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// A stage begins, or begins anew: what was measured in it before is gone.
    fn stage(&mut self, stage: &Stage) {
        self.stages.retain(|(known, _)| known.id != stage.id);
        self.stages.push((stage.clone(), None));
        if let (Some(round), Some((part, _))) = (stage.round, self.setup.part_of(&stage.id)) {
            let part = self.parts.entry(part.to_owned()).or_default();
            *part.round(round) = SniaRound {
                round,
                ..SniaRound::default()
            };
        }
    }

    /// The part, round and name of the stage in which cells are measured now.
    fn place(&self) -> Option<(String, Option<u32>, String)> {
        let (stage, _) = self.stages.last().filter(|_| self.here)?;
        let measures = matches!(stage.kind, StageKind::Round | StageKind::Measure);
        let (part, name) = self.setup.part_of(&stage.id)?;
        measures.then(|| (part.to_owned(), stage.round, name.to_owned()))
    }

    fn begin(&mut self, point: Option<&Point>) {
        let (Some(_), Some(cell)) = (self.place(), point.and_then(SniaCell::of)) else {
            return;
        };
        self.attempt = Some(CellAttempt {
            cell,
            begin_ms: self.now_ms,
            results: None,
            failures: Vec::new(),
            samples: Rounds::new(Ask::of([Metric::Iops])),
        });
    }

    /// The cell in progress has come to its end.
    fn settle(&mut self) {
        let (Some(attempt), Some((part, round, stage))) = (self.attempt.take(), self.place())
        else {
            return;
        };
        if attempt.results.is_none() && attempt.failures.is_empty() {
            // Nothing tells: it was broken off, and is measured again.
            return;
        }
        let figures = attempt.figures(&self.setup.cell_rule, self.now_ms);
        match round {
            Some(round) => {
                let part = self.parts.entry(part).or_default();
                part.round(round).keep(figures);
            }
            None if stage == HISTOGRAM => self.histogram = Some(figures),
            None => {}
        }
    }

    /// The cell in progress was broken off.
    fn give_up(&mut self) {
        if let Some(attempt) = &mut self.attempt {
            attempt.results = None;
            attempt.failures.clear();
        }
        self.settle();
    }

    fn stage_ended(&mut self, id: &str, end: &StageEnd) {
        let Some((stage, place)) = self.stages.iter_mut().find(|(stage, _)| stage.id == id) else {
            return;
        };
        *place = Some(end.clone());
        if let (Some(round), Some((part, _))) = (stage.round, self.setup.part_of(id)) {
            let part = self.parts.entry(part.to_owned()).or_default();
            part.round(round).ended = true;
        }
    }

    fn interrupted(&mut self, gap_ms: u64) {
        let Some((stage, end)) = self.stages.last().filter(|_| self.here) else {
            return;
        };
        self.interruptions.push(Interruption {
            stage: stage.id.clone(),
            within: end.is_none(),
            gap_ms,
        });
    }
}

impl PartRounds {
    /// The round of this number.
    fn round(&mut self, round: u32) -> &mut SniaRound {
        let place = match self.rounds.binary_search_by_key(&round, |r| r.round) {
            Ok(place) => place,
            Err(place) => {
                let new = SniaRound {
                    round,
                    ..SniaRound::default()
                };
                self.rounds.insert(place, new);
                place
            }
        };
        &mut self.rounds[place]
    }
}

impl SniaRound {
    fn keep(&mut self, figures: CellFigures) {
        self.cells.retain(|known| known.cell != figures.cell);
        self.cells.push(figures);
    }
}

impl CellAttempt {
    fn take(&mut self, event: &Event) {
        match event {
            Event::Finished { results } => self.results = Some(results.clone()),
            Event::Failure(failure) => self.failures.push(failure.sentence()),
            _ => {}
        }
        self.samples.take(event);
    }

    fn figures(self, rule: &CellRule, end_ms: u64) -> CellFigures {
        let mut figures = CellFigures {
            cell: self.cell,
            begin_ms: self.begin_ms.min(end_ms),
            end_ms,
            iops: None,
            bw_bytes: None,
            lat_mean_ns: None,
            lat_max_ns: None,
            lat: Histogram::new(),
            written_bytes: 0,
            keeps_fio_rule: None,
            failed: self.failures.into_iter().next(),
        };
        let samples = self.samples.series().iter();
        let samples: Vec<SeriesValue> = samples.flat_map(|series| series.values(0)).collect();
        figures.keeps_fio_rule = rule.keeps(&samples);
        if let Some(results) = self.results {
            figures.written_bytes = figures.add(&results);
        }
        figures
    }
}

impl CellFigures {
    /// Adds up jobs and directions; gives the bytes written.
    fn add(&mut self, results: &Results) -> u64 {
        let jobs = results.jobs.iter().filter(|job| !job.is_sum_of_clients());
        let (mut waited_ns, mut ios, mut written) = (0.0, 0, 0);
        for (dir, result) in jobs.flat_map(|job| job.directions()) {
            if dir == Direction::Write {
                written += result.io_bytes;
            }
            if result.total_ios == 0 {
                continue;
            }
            *self.iops.get_or_insert(0.0) += result.iops;
            *self.bw_bytes.get_or_insert(0.0) += result.bw_bytes;
            let Some(clat) = &result.clat else { continue };
            ios += result.total_ios;
            waited_ns += clat.mean_ns * result.total_ios as f64;
            self.lat_max_ns = self.lat_max_ns.max(Some(clat.max_ns));
            if let Some(histogram) = &clat.histogram {
                self.lat.merge(histogram);
            }
        }
        self.lat_mean_ns = (ios > 0).then(|| waited_ns / ios as f64);
        if self.iops.is_none() && self.failed.is_none() {
            self.failed = Some("it moved no data".to_owned());
        }
        written
    }
}

impl CellRule {
    /// Whether the samples at the end of a cell keep it; `None` when there are
    /// not two in a window.
    pub fn keeps(&self, samples: &[SeriesValue]) -> Option<bool> {
        let mut lengths: Vec<u64> = samples.iter().map(|v| v.end_ms - v.begin_ms).collect();
        lengths.sort_unstable();
        let sample_ms = lengths.get(lengths.len() / 2).copied().unwrap_or(0).max(1);
        let holds = |ms: u64, mean: Option<f64>, slope: Option<f64>| {
            // A cell that is as long as the window may have an interval less.
            let wanted = usize::try_from((ms + sample_ms / 2) / sample_ms);
            let window = wanted.unwrap_or(usize::MAX).min(samples.len());
            let rule = WindowRule::Fio {
                mean_limit_percent: mean,
                slope_limit_percent: slope,
                window,
            };
            let last = samples[samples.len() - window..].iter().copied();
            (window >= 2).then(|| judge(rule, last).attained)
        };
        let mean = holds(self.mean_ms, Some(self.mean_percent), None)?;
        let slope = holds(self.slope_ms, None, Some(self.slope_percent))?;
        Some(mean && slope)
    }
}
