//! Pre-conditioning: leads a device to the state in which it is to be measured.
//!
//! Two methods. *Santa Clara*, as fio-tests has it: the range is filled
//! sequentially, then the wanted load runs until it is steady; random work is
//! preceded by the sequential one where the order is strict. *SNIA's way*, an
//! interpretation of SSS PTS: two sequential fills, then rounds of the wanted load
//! until its criterion holds. Which rule says what is steady is a setting of its
//! own, and always named.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use fathom_analysis::steady_state::{Ask, Metric, RoundSpan, SNIA_WINDOW, WindowRule};
use fathom_model::{Stage, StageEnd, StageKind, units};

use fathom_flow::{Act, Criterion, Ending, Fill, History, Next, Script, SteadyLoad, Task, Work};
use fathom_model::DevicePhase;
use serde::{Deserialize, Serialize};

mod config;
mod files;
pub mod jobs;

pub use files::{File, files};

/// How a device is pre-conditioned.
#[derive(Debug, Clone, PartialEq)]
pub struct PreconditionSettings {
    /// What runs: named in titles.
    pub method: PreconditionMethod,
    /// The device.
    pub dut: PathBuf,
    /// fio's I/O engine.
    pub ioengine: String,
    /// The part of the device that is written, from its begin.
    pub range: ActiveRange,
    /// Size of a write of the sequential fill and load, in bytes.
    pub bs_bytes: u64,
    /// Size of a write of the random ones, in bytes.
    pub random_bs_bytes: u64,
    /// I/Os that each job keeps under way.
    pub iodepth: u32,
    /// Jobs.
    pub numjobs: u32,
    /// How often the range is filled.
    pub loops: u32,
    /// Whether random work is preceded by the sequential load.
    pub strict_order: bool,
    /// When the load is steady; `None`: fills only.
    pub steady: Option<SteadyWait>,
    /// Whether a fast random fill is used where the engine has one.
    pub sprandom: bool,
}

/// The way to steady state.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum PreconditionMethod {
    /// Santa Clara: fills, then the load until fio's rule holds
    #[serde(rename = "sc")]
    #[value(name = "sc")]
    SantaClara,
    /// SNIA's way, interpreted: fills, then the load until its criterion holds
    Snia,
}

/// The active range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActiveRange {
    /// So many percent of the device.
    Percent(u8),
    /// So many bytes.
    Bytes(u64),
}

/// When a load is steady, and how long that is waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyWait {
    /// By which rule.
    pub by: DecidingRule,
    /// Limits for IOPS.
    pub iops: Option<MetricLimits>,
    /// Limits for bandwidth.
    pub bw: Option<MetricLimits>,
    /// So many windows are waited for.
    pub rounds: u32,
    /// Whether it goes on when they are over, with a warning.
    pub soft: bool,
}

/// Which rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidingRule {
    /// fio's: distance from the mean and slope per sample.
    Fio,
    /// SNIA's, interpreted: range and change of the fit over five rounds.
    Snia,
}

/// The limits of one metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MetricLimits {
    /// fio's rule: largest distance from the mean; SNIA's: range; in percent.
    pub mean_percent: f64,
    /// Over this time.
    pub mean_window: Duration,
    /// fio's rule: slope per sample; SNIA's: change over the window; in percent.
    pub slope_percent: f64,
    /// Over this time.
    pub slope_window: Duration,
}

/// What is known of the machine when it is about to run: generated job files are
/// to be the same everywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Size of the device in bytes.
    pub capacity_bytes: Option<u64>,
    /// Whether the fio that runs the jobs has sprandom.
    pub has_sprandom: bool,
}

/// Time between two samples of fio's `ss_interval`, in ms (fio's default).
const SAMPLE_MS: u64 = 1000;
/// Samples of the shortest window: less has no slope worth the name.
const SAMPLES_MIN: u64 = 5;

impl ActiveRange {
    /// In bytes, in whole blocks.
    pub fn bytes(self, capacity_bytes: Option<u64>, bs_bytes: u64) -> Option<u64> {
        let all = match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                let part = u128::from(capacity_bytes?) * u128::from(percent) / 100;
                u64::try_from(part).ok()?
            }
        };
        Some(all - all % bs_bytes.max(1))
    }

    /// In percent of the device; of one whose size is not known a size counts as
    /// all of it.
    pub fn percent(self, capacity_bytes: Option<u64>) -> f64 {
        match (self, capacity_bytes) {
            (Self::Percent(percent), _) => f64::from(percent),
            (Self::Bytes(bytes), Some(all)) if all > 0 => 100.0 * bytes as f64 / all as f64,
            (Self::Bytes(_), _) => 100.0,
        }
    }
}

impl PreconditionSettings {
    /// Those of `method` with what fio-tests and SNIA's PTS have for an enterprise
    /// drive: 128 KiB, 32 × 4, twice, all of the device, 4 KiB for random work.
    pub fn usual(method: PreconditionMethod, dut: PathBuf) -> Self {
        let limits = MetricLimits {
            mean_percent: fathom_analysis::steady_state::SNIA_DATA_PERCENT,
            mean_window: Duration::from_secs(15 * 60),
            slope_percent: fathom_analysis::steady_state::SNIA_SLOPE_PERCENT,
            slope_window: Duration::from_secs(15 * 60),
        };
        let snia = MetricLimits {
            mean_window: SNIA_ROUND * SNIA_WINDOW as u32,
            slope_window: SNIA_ROUND * SNIA_WINDOW as u32,
            ..limits
        };
        let (by, limits) = match method {
            PreconditionMethod::SantaClara => (DecidingRule::Fio, limits),
            PreconditionMethod::Snia => (DecidingRule::Snia, snia),
        };
        Self {
            method,
            dut,
            ioengine: "libaio".to_owned(),
            range: ActiveRange::Percent(100),
            bs_bytes: 128 << 10,
            random_bs_bytes: 4 << 10,
            iodepth: 32,
            numjobs: 4,
            loops: 2,
            strict_order: method == PreconditionMethod::SantaClara,
            steady: Some(SteadyWait {
                by,
                iops: Some(limits),
                bw: (method == PreconditionMethod::SantaClara).then_some(limits),
                rounds: 5,
                soft: false,
            }),
            sprandom: true,
        }
    }

    /// The size of one write in a phase.
    pub fn bs_of(&self, phase: DevicePhase) -> u64 {
        match phase {
            DevicePhase::Sequential => self.bs_bytes,
            DevicePhase::Random => self.random_bs_bytes,
        }
    }

    /// Whether a fill of this phase is the engine's fast one.
    fn is_fast(&self, phase: DevicePhase, here: DeviceFacts) -> bool {
        phase == DevicePhase::Random && self.sprandom && here.has_sprandom
    }

    /// The rules with their limits, as a ledger has them.
    pub fn rule_text(&self, phase: DevicePhase) -> String {
        match self.settle(phase, DeviceFacts::default()) {
            Some(settle) => settle.rule_text(),
            None => String::new(),
        }
    }

    /// One fill.
    fn fill(&self, phase: DevicePhase, here: DeviceFacts) -> Fill {
        let bs_bytes = self.bs_of(phase);
        Fill {
            job_text: jobs::fill(self, phase, here),
            pattern: phase.pattern(),
            bs_bytes,
            range_percent: self.range.percent(here.capacity_bytes),
            bytes: self.range.bytes(here.capacity_bytes, bs_bytes),
        }
    }

    /// The load that runs until it is steady.
    fn settle(&self, phase: DevicePhase, here: DeviceFacts) -> Option<SteadyLoad> {
        let steady = self.steady.as_ref()?;
        let criteria = steady.criteria();
        let interval = criteria.iter().filter_map(|c| match c.ask.span {
            RoundSpan::Time(ms) => Some(ms),
            RoundSpan::Interval | RoundSpan::Point => None,
        });
        let interval = interval.min().filter(|ms| *ms < SAMPLE_MS);
        Some(SteadyLoad {
            job_text: jobs::settle(self, phase, here, steady.most()),
            pattern: phase.pattern(),
            bs_bytes: self.bs_of(phase),
            range_percent: self.range.percent(here.capacity_bytes),
            criteria,
            interval: interval.map(Duration::from_millis),
            least: steady.window(),
            most: steady.most(),
        })
    }
}

/// A round of SNIA's IOPS test is a minute for each cell (SSS PTS 2.0, 7.2).
const SNIA_ROUND: Duration = Duration::from_secs(60);

impl SteadyWait {
    /// The longest window.
    pub fn window(&self) -> Duration {
        let windows = self.iops.iter().chain(&self.bw);
        let longest = windows.map(|limits| limits.mean_window.max(limits.slope_window));
        longest.max().unwrap_or_default()
    }

    /// The most time the load runs: its rounds, and two samples for the engine's
    /// first and last, which may be no whole ones.
    pub fn most(&self) -> Duration {
        let window = self.window();
        window * self.rounds.max(1) + 2 * Duration::from_millis(sample_ms(window))
    }

    /// What has to hold, all on one run of I/O.
    pub fn criteria(&self) -> Vec<Criterion> {
        let metrics = [(Metric::Iops, self.iops), (Metric::Bandwidth, self.bw)];
        let mut criteria: Vec<Criterion> = Vec::new();
        let wanted = metrics.into_iter().filter_map(|(m, l)| Some((m, l?)));
        for (metric, limits) in wanted {
            for (rule, span) in self.rules(&limits) {
                let same = |c: &&mut Criterion| c.rule == rule && c.ask.span == span;
                match criteria.iter_mut().find(same) {
                    Some(known) => known.ask.metrics.push(metric),
                    None => criteria.push(Criterion {
                        rule,
                        ask: Ask {
                            span,
                            ..Ask::of(vec![metric])
                        },
                    }),
                }
            }
        }
        criteria
    }

    /// The rules for one metric, each with what a round is. Where the times of
    /// fio's two limits differ, each limit has a window of its own.
    fn rules(&self, limits: &MetricLimits) -> Vec<(WindowRule, RoundSpan)> {
        let fio = |window: Duration, mean: bool, slope: bool| {
            let sample_ms = sample_ms(window);
            let samples = window.as_millis() as u64 / sample_ms;
            let rule = WindowRule::Fio {
                mean_limit_percent: mean.then_some(limits.mean_percent),
                slope_limit_percent: slope.then_some(limits.slope_percent),
                window: usize::try_from(samples).unwrap_or(usize::MAX).max(2),
            };
            (rule, RoundSpan::Time(sample_ms))
        };
        match self.by {
            DecidingRule::Fio if limits.mean_window == limits.slope_window => {
                vec![fio(limits.mean_window, true, true)]
            }
            DecidingRule::Fio => vec![
                fio(limits.mean_window, true, false),
                fio(limits.slope_window, false, true),
            ],
            DecidingRule::Snia => {
                let window = limits.mean_window.max(limits.slope_window);
                let round = (window.as_millis() as u64 / SNIA_WINDOW as u64).max(1);
                let rule = WindowRule::Snia {
                    data_limit_percent: limits.mean_percent,
                    slope_limit_percent: limits.slope_percent,
                    window: SNIA_WINDOW,
                    max_rounds: SNIA_WINDOW * self.rounds.max(1) as usize,
                };
                vec![(rule, RoundSpan::Time(round))]
            }
        }
    }
}

/// A sample of fio's rule is a second, as in fio; in windows that are too short
/// for that, as those for debugging, a fifth of the window.
fn sample_ms(window: Duration) -> u64 {
    let window_ms = window.as_millis() as u64;
    SAMPLE_MS.min(window_ms / SAMPLES_MIN).max(1)
}

/// The flow that leads a device to the state for one phase. The stages are those
/// of one *pass*; when sequential work is wanted after random work, or the state
/// has gone stale, another pass begins, whose stages are called `….2`.
#[derive(Debug, Clone)]
pub struct Precondition {
    /// How; `None`: it is only purged.
    pub settings: Option<PreconditionSettings>,
    /// What is known of the machine.
    pub here: DeviceFacts,
    /// What comes first: the wait until the device is energized, the purge.
    pub first: Vec<(Stage, Rc<dyn Act>)>,
    /// For which work.
    pub phase: DevicePhase,
    /// The least pass: greater than those begun when the state has gone stale.
    pub pass: u32,
    /// Why it is needless.
    pub skip: Option<String>,
    /// What its stages begin with, as a part of a plan file: `STEP/`.
    pub scope: String,
}

impl Precondition {
    /// The pass it is in.
    fn pass(&self, history: &History) -> u32 {
        let begun = history.stages().iter();
        let begun = begun.filter_map(|past| past.stage.id.strip_prefix(&self.scope));
        let last = begun.clone().map(pass_of).max().unwrap_or(1);
        let spoilt = self.phase == DevicePhase::Sequential
            && begun
                .filter(|id| pass_of(id) == last)
                .any(|id| base_of(id).contains("-rand"));
        self.pass.max(if spoilt { last + 1 } else { last })
    }

    /// The pass in which the device was led to the state, if it was.
    pub fn led(&self, history: &History) -> Option<u32> {
        let pass = self.pass(history);
        let goal = self.stages(pass).pop()?;
        match history.ended(&goal.stage.id)? {
            StageEnd::Done | StageEnd::Skipped { .. } => Some(pass),
            StageEnd::NotAttained { .. }
            | StageEnd::Failed { .. }
            | StageEnd::Waits { .. }
            | StageEnd::Interrupted { .. } => None,
        }
    }

    /// Why the device is not steady although it goes on, the limit being soft.
    pub fn not_attained(&self, history: &History) -> Option<String> {
        let goal = self.stages(self.pass(history)).pop()?;
        match history.ended(&goal.stage.id)? {
            StageEnd::NotAttained { reason } => Some(reason.clone()),
            _ => None,
        }
    }

    /// All stages of a pass, in order.
    pub fn stages(&self, pass: u32) -> Vec<Task> {
        let mut tasks: Vec<Task> = Vec::new();
        for (stage, act) in &self.first {
            tasks.push(Task {
                stage: stage.clone(),
                work: Work::Act(Rc::clone(act)),
            });
        }
        if let Some(settings) = &self.settings {
            self.fills(settings, DevicePhase::Sequential, &mut tasks);
            let random = self.phase == DevicePhase::Random;
            if !random || settings.strict_order {
                self.settling(settings, DevicePhase::Sequential, &mut tasks);
            }
            if random {
                if settings.method == PreconditionMethod::SantaClara {
                    self.fills(settings, DevicePhase::Random, &mut tasks);
                }
                self.settling(settings, DevicePhase::Random, &mut tasks);
            }
        }
        for Task { stage, .. } in &mut tasks {
            stage.id.insert_str(0, &self.scope);
            if pass > 1 {
                stage.id += &format!(".{pass}");
            }
        }
        tasks
    }

    fn fills(&self, settings: &PreconditionSettings, phase: DevicePhase, tasks: &mut Vec<Task>) {
        let fast = settings.is_fast(phase, self.here);
        // sprandom leaves the device as many random fills would.
        let loops = if fast { 1 } else { settings.loops };
        for nth in 1..=loops {
            let bs = units::bytes(settings.bs_of(phase) as f64);
            let how = match (phase, fast) {
                (DevicePhase::Sequential, _) => "sequentially",
                (DevicePhase::Random, false) => "at random",
                (DevicePhase::Random, true) => "at random by fio's sprandom",
            };
            let of = match loops {
                1 => String::new(),
                loops => format!(", {nth} of {loops}"),
            };
            tasks.push(Task {
                stage: Stage {
                    id: format!("fill-{}-{nth}", short(phase)),
                    kind: StageKind::Fill,
                    title: format!("fill {how}, {bs}{of}"),
                    round: (loops > 1).then_some(nth),
                },
                work: Work::Fill(settings.fill(phase, self.here)),
            });
        }
    }

    fn settling(&self, settings: &PreconditionSettings, phase: DevicePhase, tasks: &mut Vec<Task>) {
        let Some(settle) = settings.settle(phase, self.here) else {
            return;
        };
        let bs = units::bytes(settle.bs_bytes as f64);
        let by = match settings.steady.as_ref().map(|steady| steady.by) {
            Some(DecidingRule::Snia) => "SNIA's criterion, interpreted",
            _ => "fio's rule",
        };
        tasks.push(Task {
            stage: Stage {
                id: format!("settle-{}", short(phase)),
                kind: StageKind::Settle,
                title: format!("{phase} writes of {bs} until steady by {by}"),
                round: None,
            },
            work: Work::Settle(settle),
        });
    }
}

impl Script for Precondition {
    fn next(&self, history: &History) -> Next {
        let pass = self.pass(history);
        let stages = self.stages(pass);
        let Some(goal) = stages.last() else {
            return Next::End(Ending::Complete);
        };
        if let (Some(reason), None) = (&self.skip, history.past(&goal.stage.id)) {
            return Next::Do(Task {
                stage: goal.stage.clone(),
                work: Work::Skip(reason.clone()),
            });
        }
        let skipped = |task: &Task| {
            let end = history.ended(&task.stage.id);
            matches!(end, Some(StageEnd::Skipped { .. })) && matches!(task.work, Work::Settle(_))
        };
        // What comes before a state in which the device was found has no use.
        let from = stages.iter().rposition(skipped).map_or(0, |at| at + 1);
        let soft = self.settings.as_ref().and_then(|s| s.steady.as_ref());
        let soft = soft.is_some_and(|steady| steady.soft);
        for task in stages.into_iter().skip(from) {
            match history.ended(&task.stage.id) {
                None => return Next::Do(task),
                Some(StageEnd::NotAttained { reason }) if !soft => {
                    return Next::End(Ending::NotAttained(reason.clone()));
                }
                Some(StageEnd::Failed { reason }) => {
                    let what = format!("{}: {reason}", task.stage.title);
                    return Next::End(Ending::Failed(what));
                }
                Some(_) => {}
            }
        }
        Next::End(Ending::Complete)
    }
}

fn short(phase: DevicePhase) -> &'static str {
    match phase {
        DevicePhase::Sequential => "seq",
        DevicePhase::Random => "rand",
    }
}

/// The pass of a stage: 2 of `settle-seq.2`.
fn pass_of(id: &str) -> u32 {
    let number = id.rsplit_once('.').and_then(|(_, pass)| pass.parse().ok());
    number.unwrap_or(1)
}

fn base_of(id: &str) -> &str {
    id.split('.').next().unwrap_or(id)
}

#[cfg(test)]
mod tests;
