//! What limited a figure.

use fathom_model::{FigureVerdict, ReasonKind};
use serde::Serialize;

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

/// Reasons that say what the limit was, the surest first: what takes I/O away from the
/// device altogether, then what stands before the device, then what is beside it.
const BY_REASON: [(ReasonKind, StepLimit); 14] = [
    (ReasonKind::CachedReads, StepLimit::NoDevice),
    (ReasonKind::UnsyncedWrites, StepLimit::NoDevice),
    (ReasonKind::InMemory, StepLimit::NoDevice),
    (ReasonKind::NothingRead, StepLimit::NoDevice),
    (ReasonKind::OwnLimit, StepLimit::Job),
    (ReasonKind::Throttled, StepLimit::ControlGroup),
    (ReasonKind::Thermal, StepLimit::Temperature),
    (ReasonKind::LinkLimit, StepLimit::Link),
    (ReasonKind::CpuBound, StepLimit::Cpu),
    (ReasonKind::InterruptBound, StepLimit::Cpu),
    (ReasonKind::CpuTaken, StepLimit::Cpu),
    (ReasonKind::ForeignIo, StepLimit::Others),
    (ReasonKind::DepthNotReached, StepLimit::Depth),
    (ReasonKind::BehindRate, StepLimit::Device),
];

/// Share of the time in which the device had a request under way, in percent, from which
/// on it was busy all the time but for what an engine takes between two I/Os.
pub const BUSY_PERCENT: f64 = 90.0;

impl StepLimit {
    /// What limited a figure with this verdict, on a device that was busy for so many
    /// percent of the time.
    #[must_use]
    pub fn of(verdict: &FigureVerdict, busy_percent: Option<f64>) -> Self {
        let known = BY_REASON.iter().find(|(kind, _)| verdict.has(*kind));
        match known {
            Some((_, limit)) => *limit,
            None if busy_percent.is_some_and(|percent| percent >= BUSY_PERCENT) => Self::Device,
            None => Self::Unknown,
        }
    }

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Job => "the job itself",
            Self::ControlGroup => "a control group",
            Self::NoDevice => "no device: memory, or blocks that hold nothing",
            Self::Cpu => "the CPU",
            Self::Link => "the link to the drive",
            Self::Depth => "the number of I/Os under way",
            Self::Others => "others on the same device",
            Self::Temperature => "the temperature",
            Self::Device => "the device",
            Self::Unknown => "nothing was found",
        }
    }
}
