//! The rate went from one level to another: a burst and then the base rate, a limit that
//! was set in mid-run, a cache that was full.

use fathom_model::{ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;
use crate::verdict::course::{Break, are_far_apart};

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let course = figure.course.filter(|course| !course.shift_is_start)?;
    let Break {
        at_s,
        before,
        after,
    } = course.shift?;
    let text = format!(
        "after {at_s:.0} s the rate went from {} to {} IOPS: the mean is of neither",
        units::count(before),
        units::count(after)
    );
    let numbers = [
        ("at_s", at_s),
        ("iops_before", before),
        ("iops_after", after),
    ];
    let found = VerdictReason::found(ReasonKind::LevelShift, text, numbers);
    Some(found.noted_unless(are_far_apart(before, after)))
}
