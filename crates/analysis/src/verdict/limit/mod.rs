//! What limited a figure: the first cause that holds, what was ruled out, and what follows.

mod causes;
mod facts;

use fathom_model::{FigureVerdict, VerdictReason};
use serde::Serialize;

pub use facts::SeenOfStep;

use super::JudgedFigure;

/// What a step came up against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepLimit {
    /// The job asked for no more.
    Job,
    /// A control group.
    ControlGroup,
    /// Memory or a cache answered, or nothing did: no device was measured.
    NoDevice,
    /// The CPU, or the time that others left of it.
    Cpu,
    /// The link to the drive.
    Link,
    /// The number of I/Os under way.
    Depth,
    /// Somebody else's I/O on the device.
    Others,
    /// The drive's or the CPU's temperature.
    Temperature,
    /// The device: it was busy nearly all the time, with the I/Os that were asked for.
    Device,
    /// Nothing was found.
    Unknown,
}

/// Share of the time in which the device had a request under way, in percent, from which
/// on it was busy all the time but for what an engine takes between two I/Os.
pub const BUSY_PERCENT: f64 = 90.0;

/// What limited a figure, and what that rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitFound {
    /// The limit.
    pub limit: StepLimit,
    /// The reason that says so; `None` where it is seen without one.
    pub cause: Option<VerdictReason>,
    /// Reasons that are consequences of it.
    pub follows: Vec<VerdictReason>,
    /// Limits that were looked for and not reached, with what was seen, in the order of
    /// causes.
    pub ruled_out: Vec<String>,
    /// What was seen.
    pub seen: SeenOfStep,
}

impl LimitFound {
    /// Of a figure with this verdict.
    pub fn of(figure: &JudgedFigure, verdict: &FigureVerdict) -> Self {
        let seen = SeenOfStep::of(figure);
        let found = causes::first(verdict);
        let is_busy = |percent: f64| percent >= BUSY_PERCENT;
        let limit = match found {
            Some((_, limit)) => limit,
            // A device that is asked for one I/O at a time is busy, and could do more.
            None if figure.wanted_depth() == Some(1.0) => StepLimit::Depth,
            None if seen.device_busy_percent.is_some_and(is_busy) => StepLimit::Device,
            None => StepLimit::Unknown,
        };
        let is_cause = |reason: &VerdictReason| found.is_some_and(|(kind, _)| kind == reason.kind);
        let (cause, rest): (Vec<_>, Vec<_>) = verdict.reasons.iter().cloned().partition(is_cause);
        let follows = rest.into_iter();
        let follows = follows.filter(|reason| causes::follows(limit, reason.kind));
        Self {
            limit,
            cause: cause.into_iter().next(),
            follows: follows.collect(),
            ruled_out: facts::ruled_out(figure, limit, &seen),
            seen,
        }
    }
}

impl StepLimit {
    /// What is said of a figure.
    pub fn told(self) -> &'static str {
        match self {
            Self::Job => "limited by the job's own options",
            Self::ControlGroup => "limited by a cgroup",
            Self::NoDevice => "no storage was measured",
            Self::Cpu => "limited by the CPU",
            Self::Link => "limited by the link to the drive",
            Self::Depth => "limited by the queue depth",
            Self::Others => "limited by other I/O on the device",
            Self::Temperature => "limited by the temperature",
            Self::Device => "limited by the device",
            Self::Unknown => "no limit found",
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::ReasonKind;

    use super::*;

    fn verdict(kinds: &[ReasonKind]) -> FigureVerdict {
        let mut verdict = FigureVerdict::default();
        kinds
            .iter()
            .for_each(|kind| verdict.add(VerdictReason::of(*kind)));
        verdict
    }

    #[test]
    fn a_cause_comes_before_its_consequences() {
        let all = verdict(&[
            ReasonKind::DepthNotReached,
            ReasonKind::Throttled,
            ReasonKind::CpuTaken,
        ]);
        assert_eq!(
            causes::first(&all),
            Some((ReasonKind::Throttled, StepLimit::ControlGroup))
        );
        assert!(causes::follows(
            StepLimit::ControlGroup,
            ReasonKind::DepthNotReached
        ));
        assert!(!causes::follows(
            StepLimit::ControlGroup,
            ReasonKind::NothingRead
        ));
    }

    #[test]
    fn an_engine_that_waits_for_each_io_is_the_limit_beside_a_cpu_that_was_taken() {
        let with = |one_at_a_time: f64| {
            let mut all = verdict(&[ReasonKind::CpuTaken]);
            let numbers = [("one_at_a_time", one_at_a_time)];
            let text = String::new();
            all.add(VerdictReason::found(
                ReasonKind::DepthNotReached,
                text,
                numbers,
            ));
            causes::first(&all).unwrap().1
        };
        assert_eq!(with(1.0), StepLimit::Depth);
        assert_eq!(with(0.0), StepLimit::Cpu);
    }

    #[test]
    fn a_little_of_others_is_no_limit_beside_a_full_cpu() {
        let with = |foreign: f64| {
            let mut all = verdict(&[ReasonKind::CpuBound]);
            let numbers = [("own_bytes", 100.0), ("foreign_bytes", foreign)];
            let text = String::new();
            all.add(VerdictReason::found(ReasonKind::ForeignIo, text, numbers));
            causes::first(&all).unwrap().1
        };
        assert_eq!(with(10.0), StepLimit::Cpu);
        assert_eq!(with(30.0), StepLimit::Others);
    }
}
