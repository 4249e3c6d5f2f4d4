//! Sides that are measured in turn, each against the first, until all is clear.

use fathom_analysis::compare::{CompareVerdict, FigureComparison};
use fathom_analysis::paired::{FALSE_CHANCE, PairedQuestion, judge};
use fathom_model::Outcome;
use fathom_model::histogram::HISTOGRAM_STEP;
use fathom_model::mix::mix;
use serde::{Deserialize, Serialize};

use fathom_flow::{History, StepFigures};

/// A figure by which sides are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AbFigure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    BwBytes,
    /// Mean latency.
    MeanNs,
    /// Median latency.
    P50Ns,
    /// 90th percentile.
    P90Ns,
    /// 95th percentile.
    P95Ns,
    /// 99th percentile.
    P99Ns,
    /// 99.9th percentile.
    P999Ns,
    /// 99.99th percentile.
    P9999Ns,
}

impl AbFigure {
    /// All of them, with the name that people write and the percentile that it is.
    const ALL: [(Self, &'static str, Option<f64>); 9] = [
        (Self::Iops, "iops", None),
        (Self::BwBytes, "bw", None),
        (Self::MeanNs, "mean", None),
        (Self::P50Ns, "p50", Some(50.0)),
        (Self::P90Ns, "p90", Some(90.0)),
        (Self::P95Ns, "p95", Some(95.0)),
        (Self::P99Ns, "p99", Some(99.0)),
        (Self::P999Ns, "p99.9", Some(99.9)),
        (Self::P9999Ns, "p99.99", Some(99.99)),
    ];

    /// As people write it.
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(figure, ..)| *figure == self);
        known.map_or("", |(_, name, _)| name)
    }

    /// Whether more is better.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::Iops | Self::BwBytes)
    }

    /// Step in which it is known, as a share.
    fn resolution(self) -> f64 {
        let is_it = |known: &&(Self, &str, Option<f64>)| known.0 == self;
        let percent = Self::ALL.iter().find(is_it).and_then(|known| known.2);
        percent.map_or(0.0, |_| HISTOGRAM_STEP)
    }

    fn of(self, figures: &StepFigures) -> Option<f64> {
        let percent = Self::ALL.iter().find(|(figure, ..)| *figure == self)?.2;
        match self {
            Self::Iops => Some(figures.totals.iops),
            Self::BwBytes => Some(figures.totals.bw_bytes),
            _ => figures.latency_ns(None, percent),
        }
    }
}

impl std::str::FromStr for AbFigure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(_, name, _)| *name == text);
        let names: Vec<&str> = Self::ALL.iter().map(|(_, name, _)| *name).collect();
        known
            .map(|(figure, ..)| *figure)
            .ok_or_else(|| format!("'{text}' is none of {}", names.join(", ")))
    }
}

/// What is asked of the figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbQuestion {
    /// By which figures sides are judged.
    pub figures: Vec<AbFigure>,
    /// Values within this share are the same.
    pub margin: f64,
    /// Pairs at the most.
    pub pairs: u32,
    /// From which the order follows.
    pub seed: u64,
}

/// A side against the first, by one figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct AbRow {
    /// Which side: its place among all, from 1.
    pub side: usize,
    /// Which figure.
    pub figure: AbFigure,
    /// Pairs that were measured.
    pub pairs: usize,
    /// What came of it: `a` is the first side, `b` this one.
    #[serde(flatten)]
    pub comparison: FigureComparison,
}

/// A measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RaceStep {
    /// Its number in the run.
    pub number: u32,
    /// The place of its side.
    pub side: usize,
    /// It is the first of the run, or of a boot, which finds a device that was doing
    /// something else: it does not count.
    pub is_warm_up: bool,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum RaceNext {
    /// This is measured.
    Measure(RaceStep),
    /// Nothing: all is clear, or there are as many pairs as there may be.
    Ended,
    /// A measurement has failed.
    Failed(String),
}

/// How far a comparison has come.
#[derive(Debug, Clone, PartialEq)]
pub struct AbState {
    /// What was measured, in order.
    pub measured: Vec<RaceStep>,
    /// What came of each side, so far.
    pub rows: Vec<AbRow>,
    /// What comes next.
    pub next: RaceNext,
}

/// Sides that are measured in turn.
#[derive(Debug, Clone, Copy)]
pub struct Race<'q> {
    /// How many there are; at least two.
    pub sides: usize,
    /// The number of the first step.
    pub first: u32,
    /// Whether each measurement has a boot of the machine of its own, with a warm-up.
    pub has_boots: bool,
    /// What is asked.
    pub question: &'q AbQuestion,
}

/// Why nothing is measured now.
struct Halt(RaceNext);

impl Race<'_> {
    /// What the history has measured, and what comes next.
    pub fn state(&self, history: &History) -> AbState {
        let mut measured = Vec::new();
        let mut values = vec![Vec::new(); self.sides];
        let mut rows: Vec<Vec<AbRow>> = (1..self.sides)
            .map(|side| self.rows(side, &values))
            .collect();
        let halt = self.go(history, &mut measured, &mut values, &mut rows);
        AbState {
            measured,
            rows: rows.concat(),
            next: halt.err().map_or(RaceNext::Ended, |halt| halt.0),
        }
    }

    fn go(
        &self,
        history: &History,
        measured: &mut Vec<RaceStep>,
        values: &mut [Vec<Option<Vec<f64>>>],
        rows: &mut [Vec<AbRow>],
    ) -> Result<(), Halt> {
        if !self.has_boots {
            self.measure(history, measured, 0, true)?;
        }
        for block in 0..self.question.pairs {
            let is_open = |side: &usize| {
                let open = |row: &AbRow| row.comparison.verdict == CompareVerdict::CannotTell;
                rows[*side - 1].iter().any(open)
            };
            let open: Vec<usize> = (1..self.sides).filter(is_open).collect();
            if open.is_empty() {
                break;
            }
            // A side that is clear has no part in this block, and none of it counts.
            for all in values.iter_mut() {
                all.push(None);
            }
            for side in self.order(block, &open) {
                if self.has_boots {
                    self.measure(history, measured, side, true)?;
                }
                let number = self.measure(history, measured, side, false)?;
                let figures = history.step_figures(number);
                let found = figures.and_then(|figures| {
                    let each = self.question.figures.iter();
                    each.map(|figure| figure.of(figures)).collect()
                });
                values[side][block as usize] = found;
            }
            for side in open {
                rows[side - 1] = self.rows(side, values);
            }
        }
        Ok(())
    }

    /// The next measurement: gives its number where it has been made.
    fn measure(
        &self,
        history: &History,
        measured: &mut Vec<RaceStep>,
        side: usize,
        is_warm_up: bool,
    ) -> Result<u32, Halt> {
        let number = self.first + u32::try_from(measured.len()).unwrap_or(u32::MAX);
        let step = RaceStep {
            number,
            side,
            is_warm_up,
        };
        match history.ended_step(number) {
            None => Err(Halt(RaceNext::Measure(step))),
            Some(ended) if ended.outcome == Outcome::Failed => Err(Halt(RaceNext::Failed(
                format!("measurement {number} failed"),
            ))),
            Some(_) => {
                measured.push(step);
                Ok(number)
            }
        }
    }

    /// The first side and these, in an order that follows from the seed: each is as likely
    /// as any other, whatever was measured.
    fn order(&self, block: u32, open: &[usize]) -> Vec<usize> {
        let mut order: Vec<usize> = std::iter::once(0).chain(open.iter().copied()).collect();
        let block = mix(
            mix(self.question.seed, u64::from(self.first)),
            u64::from(block),
        );
        // Fisher and Yates.
        for last in (1..order.len()).rev() {
            let place = mix(block, last as u64) % (last as u64 + 1);
            order.swap(last, place as usize);
        }
        order
    }

    fn rows(&self, side: usize, values: &[Vec<Option<Vec<f64>>>]) -> Vec<AbRow> {
        let figures = self.question.figures.iter().enumerate();
        let each = figures.map(|(place, &figure)| {
            let both = values[0].iter().zip(&values[side]);
            let pairs: Vec<(f64, f64)> = both
                .filter_map(|(a, b)| Some((a.as_ref()?[place], b.as_ref()?[place])))
                .collect();
            let rows = (self.sides - 1) * self.question.figures.len();
            let question = PairedQuestion {
                chance: FALSE_CHANCE / rows as f64,
                margin: self.question.margin,
                more_is_better: figure.is_rate(),
                resolution: figure.resolution(),
            };
            AbRow {
                side,
                figure,
                pairs: pairs.len(),
                comparison: judge(&pairs, question),
            }
        });
        each.collect()
    }
}
