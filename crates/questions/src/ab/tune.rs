//! Which values of all settings that can matter are best: one setting after the other,
//! coarsely, then what was found against how it stood.

use fathom_analysis::compare::CompareVerdict;
use fathom_flow::{Ending, History, JobStep, Next, Script};
use fathom_model::SettingValue;
use serde::{Deserialize, Serialize};

use super::race::{AbQuestion, AbRow, AbState, Race, RaceNext};
use super::setup::{AbSetup, AbSide};

/// The command in records.
pub const TUNE_COMMAND: &str = "tune";
/// The setting that changes others.
const SCHEDULER: &str = "scheduler";

/// A value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TuneValue {
    /// As people write it.
    pub value: String,
    /// What is written for it.
    pub values: Vec<SettingValue>,
}

/// A setting that can matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuneKnob {
    /// Its name.
    pub name: String,
    /// Its values; the first is how it stands.
    pub values: Vec<TuneValue>,
    /// Whether another scheduler sets it.
    pub is_by_scheduler: bool,
}

/// What is tuned, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneConfig {
    /// The settings, in the order in which they are tried and written.
    pub knobs: Vec<TuneKnob>,
    /// The device.
    pub setup: AbSetup,
    /// What is asked of each setting.
    pub coarse: AbQuestion,
    /// What is asked of all that was found, against how it stood.
    pub fine: AbQuestion,
}

/// The script of a search for settings.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneScript {
    /// What is measured.
    pub job: JobStep,
    /// What is tuned.
    pub config: TuneConfig,
}

/// One setting that was tried; or, without a name, all that was found.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TuneTrial {
    /// The setting; absent: all that was found, against how it stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The sides; the others are judged against the first.
    pub sides: Vec<AbSide>,
    /// What came of it.
    pub rows: Vec<AbRow>,
    /// Whether it came to its end.
    pub ended: bool,
}

/// How far a search has come.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneState {
    /// The settings that were tried, in order.
    pub trials: Vec<TuneTrial>,
    /// The value of each setting that is best so far, by its place.
    pub best: Vec<usize>,
    /// What comes next: of the last trial.
    pub next: RaceNext,
}

impl TuneState {
    /// Whether what was found is better than how it stood: the last comparison says so.
    pub fn is_better(&self) -> bool {
        let confirmed = self.trials.last().filter(|trial| trial.setting.is_none());
        confirmed.is_some_and(|trial| {
            let faster = |row: &AbRow| row.comparison.verdict == CompareVerdict::Faster;
            trial.rows.first().is_some_and(faster)
        })
    }
}

impl TuneScript {
    /// What the history has measured, and what comes next.
    pub fn state(&self, history: &History) -> TuneState {
        let knobs = &self.config.knobs;
        let as_it_stood = vec![0; knobs.len()];
        let mut state = TuneState {
            trials: Vec::new(),
            best: as_it_stood.clone(),
            next: RaceNext::Ended,
        };
        let mut first = 1;
        for (place, knob) in knobs.iter().enumerate() {
            let choices = (0..knob.values.len()).map(|value| {
                let mut choice = state.best.clone();
                choice[place] = value;
                let label = format!("{}={}", knob.name, knob.values[value].value);
                (label, choice)
            });
            let sides = self.sides(choices.collect());
            let (trial, next) = self.trial(history, &mut first, Some(&knob.name), sides);
            state.best[place] = best(&trial.rows);
            state.trials.push(trial);
            if next != RaceNext::Ended {
                state.next = next;
                return state;
            }
        }
        if state.best != as_it_stood {
            let found = self.words(&state.best).join(" ");
            let sides = self.sides(vec![
                ("as it stood".to_owned(), as_it_stood),
                (found, state.best.clone()),
            ]);
            let (trial, next) = self.trial(history, &mut first, None, sides);
            state.trials.push(trial);
            state.next = next;
        }
        state
    }

    /// What a choice changes, as people write it.
    pub fn words(&self, choice: &[usize]) -> Vec<String> {
        let knobs = self.config.knobs.iter().zip(choice);
        let changed = knobs.filter(|&(_, &value)| value > 0);
        changed
            .map(|(knob, &value)| format!("{}={}", knob.name, knob.values[value].value))
            .collect()
    }

    fn trial(
        &self,
        history: &History,
        first: &mut u32,
        setting: Option<&str>,
        sides: Vec<AbSide>,
    ) -> (TuneTrial, RaceNext) {
        let race = Race {
            sides: sides.len(),
            first: *first,
            has_boots: false,
            question: match setting {
                Some(_) => &self.config.coarse,
                None => &self.config.fine,
            },
        };
        let AbState {
            measured,
            rows,
            next,
        } = race.state(history);
        *first += u32::try_from(measured.len()).unwrap_or(u32::MAX);
        let trial = TuneTrial {
            setting: setting.map(str::to_owned),
            sides,
            rows,
            ended: next == RaceNext::Ended,
        };
        (trial, next)
    }

    fn sides(&self, choices: Vec<(String, Vec<usize>)>) -> Vec<AbSide> {
        let side = |(letter, (label, choice)): (char, (String, Vec<usize>))| AbSide {
            name: letter.to_string(),
            label,
            values: self.values(&choice),
            command: None,
            fio: None,
            kernel: None,
            mount: None,
        };
        ('a'..='z').zip(choices).map(side).collect()
    }

    /// What is written for a choice.
    fn values(&self, choice: &[usize]) -> Vec<SettingValue> {
        let knobs = || self.config.knobs.iter().zip(choice);
        let other_scheduler = knobs().any(|(knob, &value)| knob.name == SCHEDULER && value > 0);
        let written = knobs()
            .filter(|&(knob, &value)| value > 0 || !(other_scheduler && knob.is_by_scheduler));
        written
            .flat_map(|(knob, &value)| knob.values[value].values.clone())
            .collect()
    }
}

/// The place of the side that is best by the first figure: another than the first only
/// where it is clearly better.
fn best(rows: &[AbRow]) -> usize {
    let Some(figure) = rows.first().map(|row| row.figure) else {
        return 0;
    };
    let better = rows
        .iter()
        .filter(|row| row.figure == figure && row.comparison.verdict == CompareVerdict::Faster);
    let gain = |row: &AbRow| {
        let ratio = row.comparison.ratio.unwrap_or(1.0).ln();
        if figure.is_rate() { ratio } else { -ratio }
    };
    better
        .max_by(|a, b| gain(a).total_cmp(&gain(b)))
        .map_or(0, |row| row.side)
}

impl Script for TuneScript {
    fn next(&self, history: &History) -> Next {
        let state = self.state(history);
        let sides = state.trials.last().map(|trial| &trial.sides);
        match (state.next, sides) {
            (RaceNext::Measure(step), Some(sides)) => {
                let side = &sides[step.side];
                self.config
                    .setup
                    .next(history, step, (side, &self.job), None)
            }
            (RaceNext::Failed(reason), _) => Next::End(Ending::Failed(reason)),
            _ => Next::End(Ending::Complete),
        }
    }
}
