//! The order of causes: what takes I/O away from the device altogether, then what stands
//! before the device from the outside in, then the device, then what the job asked for.

use fathom_model::{FigureVerdict, ReasonKind, VerdictLevel, VerdictReason};

use super::StepLimit;

/// Others that move this share of the job's own bytes take more from it than two runs differ
/// by, whatever else is full.
const OTHERS_SHARE: f64 = 0.2;

/// Reasons that say what the limit was, the first cause first.
const BY_REASON: [(ReasonKind, StepLimit); 17] = [
    (ReasonKind::InMemory, StepLimit::NoDevice),
    (ReasonKind::NothingRead, StepLimit::NoDevice),
    (ReasonKind::CachedReads, StepLimit::NoDevice),
    (ReasonKind::UnsyncedWrites, StepLimit::NoDevice),
    (ReasonKind::Throttled, StepLimit::ControlGroup),
    (ReasonKind::OwnLimit, StepLimit::Job),
    (ReasonKind::CachedBelow, StepLimit::NoDevice),
    (ReasonKind::LinkLimit, StepLimit::Link),
    (ReasonKind::Thermal, StepLimit::Temperature),
    (ReasonKind::CpuBound, StepLimit::Cpu),
    (ReasonKind::InterruptBound, StepLimit::Cpu),
    (ReasonKind::ForeignIo, StepLimit::Others),
    (ReasonKind::CpuTaken, StepLimit::Cpu),
    (ReasonKind::MemoryPressure, StepLimit::Others),
    (ReasonKind::Maintenance, StepLimit::Others),
    (ReasonKind::BehindRate, StepLimit::Device),
    (ReasonKind::DepthNotReached, StepLimit::Depth),
];

/// What a job shows that something holds back.
const HELD_BACK: [ReasonKind; 5] = [
    ReasonKind::DepthNotReached,
    ReasonKind::BehindRate,
    ReasonKind::LevelShift,
    ReasonKind::StillChanging,
    ReasonKind::Stalls,
];

/// The first cause among the reasons of a verdict.
pub(super) fn first(verdict: &FigureVerdict) -> Option<(ReasonKind, StepLimit)> {
    let counts = |kind: ReasonKind| {
        let mut its = verdict.reasons.iter().filter(|reason| reason.kind == kind);
        // One that is only told beside the figure did not limit it, but where that is all
        // that its kind ever says.
        its.any(|reason| reason.level > VerdictLevel::Valid || kind.level() == VerdictLevel::Valid)
    };
    let weighs = verdict.reasons.iter().any(others_weigh);
    let others = (ReasonKind::ForeignIo, StepLimit::Others);
    let found = BY_REASON.iter().copied().find(|(kind, _)| counts(*kind));
    match found {
        Some((_, StepLimit::Cpu)) if weighs => Some(others),
        // With more of a CPU it would still wait for each I/O.
        Some((_, StepLimit::Cpu)) if verdict.reasons.iter().any(is_by_engine) => {
            Some((ReasonKind::DepthNotReached, StepLimit::Depth))
        }
        found => found,
    }
}

/// Whether the engine keeps no more in flight, whatever the job asks for.
fn is_by_engine(reason: &VerdictReason) -> bool {
    reason.kind == ReasonKind::DepthNotReached && reason.evidence.get("one_at_a_time") == Some(&1.0)
}

fn others_weigh(reason: &VerdictReason) -> bool {
    let number = |name: &str| reason.evidence.get(name).copied().unwrap_or(0.0);
    reason.kind == ReasonKind::ForeignIo
        && reason.level > VerdictLevel::Valid
        && number("foreign_bytes") >= OTHERS_SHARE * number("own_bytes")
}

/// Whether a reason is a consequence of a limit.
pub(super) fn follows(limit: StepLimit, kind: ReasonKind) -> bool {
    match limit {
        // What answers from memory keeps the CPU busy.
        StepLimit::NoDevice => {
            HELD_BACK.contains(&kind) || matches!(kind, ReasonKind::CpuBound | ReasonKind::CpuTaken)
        }
        StepLimit::Depth | StepLimit::Unknown => false,
        _ => HELD_BACK.contains(&kind),
    }
}
