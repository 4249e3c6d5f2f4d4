//! The device saw requests of another size than the job's.

use fathom_model::{Direction, ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;

/// Mean sizes that differ by a quarter: an I/O in five was split, or merged with another.
const RATIO: f64 = 1.25;
/// Bytes that both counted alike, within this share: else the requests are those of others.
const SAME_SHARE: f64 = 0.05;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let (own, counted) = (figure.own()?, figure.counted()?);
    let (ios, bytes, requests, moved) = match figure.dir {
        Direction::Read => (
            own.read_ios,
            own.read_bytes,
            counted.read_ios,
            counted.read_bytes,
        ),
        Direction::Write => (
            own.write_ios,
            own.write_bytes,
            counted.write_ios,
            counted.write_bytes,
        ),
        _ => return None,
    };
    if ios == 0 || requests == 0 || bytes.abs_diff(moved) as f64 > SAME_SHARE * bytes as f64 {
        return None;
    }
    let (asked, seen) = (bytes as f64 / ios as f64, moved as f64 / requests as f64);
    let is_random = figure.pattern().is_some_and(|rw| rw.starts_with("rand"));
    let how = match seen / asked {
        // That adjacent I/Os are merged is what queues are for.
        ratio if ratio >= RATIO && is_random => "merged",
        ratio if ratio <= 1.0 / RATIO => "split",
        _ => return None,
    };
    let text = format!(
        "the job asked for {} at a time, and the device saw {}: the kernel {how} them",
        units::bytes(asked),
        units::bytes(seen)
    );
    let numbers = [("asked_bytes", asked), ("seen_bytes", seen)];
    Some(VerdictReason::found(
        ReasonKind::RequestsSplit,
        text,
        numbers,
    ))
}
