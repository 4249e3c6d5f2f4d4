//! What a flow will do, before it does it: its script is led through as if all
//! went well, or as badly as it can.

use std::time::Duration;

use fathom_model::{
    Direction, DirectionResult, Event, JobResult, Outcome, Results, Sample, SkipCause, StageEnd,
    units::parse_size,
};

use super::{Ending, History, Next, RoundPoint, Script, Task, Work};
use crate::budget::Speed;

/// How it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Everything is steady as soon as it can be.
    Best,
    /// Nothing is ever steady.
    Worst,
}

/// Random writes that every drive takes in a second: a disk of 5400 turns a minute
/// needs half a turn and a seek across a third of its surface, about 20 ms.
const LEAST_IOPS: f64 = 50.0;
/// More than any flow wants to write.
const PLENTY_BYTES: u64 = 1 << 52;
/// Samples of a cell that is led through.
const SAMPLES: u64 = 3;
/// No flow has so many stages and steps: 25 rounds are the most of SNIA's tests.
const STAGES_MAX: usize = 100_000;

/// The stages that are left after `history`, and how the flow ends.
pub fn outlook(script: &dyn Script, history: &History, case: Case) -> (Vec<Task>, Ending) {
    lead(script, &mut history.clone(), case)
}

/// As [`outlook`], and leaves the history as it will be then.
pub fn lead(script: &dyn Script, history: &mut History, case: Case) -> (Vec<Task>, Ending) {
    let mut tasks = Vec::new();
    for _ in 0..STAGES_MAX {
        let task = match script.next(history) {
            Next::End(ending) => return (tasks, ending),
            Next::Fail(failure) => return (tasks, Ending::Failed(failure.message)),
            Next::Do(task) | Next::Prepare(task, _) => task,
            Next::LeaveOut(point, reason) => {
                let cause = SkipCause::NotNeeded;
                history.take(&Event::Skipped {
                    point,
                    reason,
                    cause,
                });
                continue;
            }
            Next::Unready(task, reason) => match task.point() {
                Some(point) => {
                    let cause = SkipCause::NotReady;
                    history.take(&Event::Skipped {
                        point,
                        reason,
                        cause,
                    });
                    continue;
                }
                None => return (tasks, Ending::Failed(reason)),
            },
            Next::Note(text) if history.has_noted(&text) => {
                return (tasks, Ending::asked_again(&text));
            }
            Next::Note(text) => {
                history.take(&Event::Note { text });
                continue;
            }
        };
        if let Work::Job(step) = &task.work {
            history.take(&step.told());
            let outcome = Outcome::Complete;
            history.take(&Event::StepEnded { outcome });
            tasks.push(task);
            continue;
        }
        history.take(&Event::Stage {
            stage: Box::new(task.stage.clone()),
        });
        let end = match &task.work {
            Work::Settle(settle) if case == Case::Worst && !settle.criteria.is_empty() => {
                StageEnd::NotAttained {
                    reason: "not steady".to_owned(),
                }
            }
            Work::Cells(cells) => {
                for cell in cells {
                    measure(history, cell, case);
                }
                StageEnd::Done
            }
            Work::Skip(reason) => StageEnd::Skipped {
                reason: reason.clone(),
            },
            _ => StageEnd::Done,
        };
        let id = task.stage.id.clone();
        history.take(&Event::StageEnded { id, end });
        tasks.push(task);
    }
    let what = format!("the flow has more than {STAGES_MAX} stages");
    (tasks, Ending::Failed(what))
}

/// The events of a cell that was measured: the same figure in each round, or one
/// that doubles from round to round, which is never steady.
fn measure(history: &mut History, cell: &RoundPoint, case: Case) {
    let doublings = match case {
        Case::Best => 0,
        Case::Worst => cell.point.repetition.min(60),
    };
    let iops = 1000.0 * f64::from(doublings).exp2();
    let clat = fathom_model::Latency {
        n: Some(1000),
        mean_ns: 1e9 / iops,
        ..fathom_model::Latency::default()
    };
    let moved = DirectionResult {
        total_ios: 1000,
        iops,
        bw_bytes: iops * 4096.0,
        clat: Some(clat),
        ..DirectionResult::default()
    };
    history.take(&Event::Step {
        step: 1,
        of: 1,
        name: cell.point.id.clone(),
        point: Some(Box::new(cell.point.clone())),
    });
    for second in 1..=SAMPLES {
        let ios = match case {
            Case::Best => 1000,
            Case::Worst => 1000 << second,
        };
        let t_ms = history.t_ms() + 1000;
        history.take(&Event::Sample(Sample {
            t_ms,
            span_ms: 1000,
            job: 0,
            dir: Direction::Write,
            ios,
            // How many nobody knows: what ends by them ends at once, or as late as
            // on the slowest disk.
            bytes: match case {
                Case::Best => PLENTY_BYTES,
                Case::Worst => least_of_cell(cell).div_ceil(SAMPLES),
            },
            clat: None,
            lat: None,
        }));
        history.take(&Event::Interval {
            t_ms,
            remaining_ms: None,
        });
    }
    let results = Results {
        jobs: vec![JobResult {
            write: Some(moved),
            ..JobResult::default()
        }],
        ..Results::default()
    };
    history.take(&Event::Finished {
        results: Box::new(results),
    });
    let outcome = Outcome::Complete;
    history.take(&Event::StepEnded { outcome });
}

/// What the slowest disk writes in this time.
fn slow(time: Duration, bs_bytes: u64, share: f64) -> u64 {
    (time.as_secs_f64() * LEAST_IOPS * share).ceil() as u64 * bs_bytes
}

/// The least that a cell writes.
fn least_of_cell(cell: &RoundPoint) -> u64 {
    let bs = cell.point.settings.get("bs");
    let bs_bytes = bs.and_then(|bs| parse_size(bs)).unwrap_or(0);
    slow(cell.time, bs_bytes, cell.write_share)
}

impl Work {
    /// The least time it takes, as far as that is known.
    pub fn least_time(&self) -> Duration {
        match self {
            Self::Settle(settle) if settle.criteria.is_empty() => settle.most,
            Self::Settle(settle) => settle.least,
            Self::Cells(cells) => cells.iter().map(|cell| cell.time).sum(),
            Self::Job(step) => step.load.duration.unwrap_or_default(),
            Self::Act(_) | Self::Fill(_) | Self::Skip(_) => Duration::ZERO,
        }
    }

    /// The time it takes, where that is known: a fill goes by the device's speed.
    pub fn time(&self, case: Case, speed: Option<Speed>) -> Option<Duration> {
        match self {
            Self::Act(act) => act.time(),
            Self::Fill(fill) => {
                let speed = speed?.bytes_per_second().max(1) as f64;
                Some(Duration::from_secs_f64(fill.bytes? as f64 / speed))
            }
            Self::Settle(settle) if case == Case::Worst => Some(settle.most),
            Self::Job(step) => step.load.duration,
            _ => Some(self.least_time()),
        }
    }

    /// The most bytes it writes, where that is known: loads write as fast as the
    /// device takes it.
    pub fn write_bytes(&self, case: Case, speed: Option<Speed>) -> Option<u64> {
        let at_speed = |time: Duration, share: f64| {
            let speed = speed?.bytes_per_second() as f64;
            Some((time.as_secs_f64() * speed * share) as u64)
        };
        match self {
            Self::Act(act) => Some(act.bytes()),
            Self::Fill(fill) => fill.bytes,
            Self::Settle(_) => at_speed(self.time(case, speed)?, 1.0),
            Self::Cells(cells) => {
                let each = cells.iter().map(|cell| match cell.write_share {
                    0.0 => Some(0),
                    share => at_speed(cell.time, share),
                });
                each.sum()
            }
            Self::Job(step) => match step.load.write_bytes {
                Some(bytes) => Some(bytes),
                None => at_speed(step.load.duration?, step.load.write_share),
            },
            Self::Skip(_) => Some(0),
        }
    }

    /// The least that it writes for certain. Of a load that is what the slowest
    /// disk takes: [`LEAST_IOPS`].
    pub fn least_write_bytes(&self) -> u64 {
        match self {
            Self::Act(act) => act.bytes(),
            Self::Fill(fill) => fill.bytes.unwrap_or(0),
            Self::Settle(settle) => slow(self.least_time(), settle.bs_bytes, 1.0),
            Self::Cells(cells) => cells.iter().map(least_of_cell).sum(),
            Self::Job(step) => u64::from(step.load.write_share > 0.0),
            Self::Skip(_) => 0,
        }
    }

    /// The job files in it.
    pub fn job_texts(&self) -> impl Iterator<Item = &str> {
        let (one, cells): (Option<&str>, &[RoundPoint]) = match self {
            Self::Fill(fill) => (Some(&fill.job_text), &[]),
            Self::Settle(settle) => (Some(&settle.job_text), &[]),
            Self::Cells(cells) => (None, cells),
            Self::Job(step) => (Some(&step.text), &[]),
            Self::Act(_) | Self::Skip(_) => (None, &[]),
        };
        one.into_iter()
            .chain(cells.iter().map(|cell| cell.job_text.as_str()))
    }
}
