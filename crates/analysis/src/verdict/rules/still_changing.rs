//! The rate had not settled: its start differs, or it went up or down all the time.

use fathom_model::{ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;

pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let course = figure.course?;
    let kind = ReasonKind::StillChanging;
    if let Some(start) = course.shift.filter(|_| course.shift_is_start) {
        let ramp_s = start.at_s.ceil();
        let text = format!(
            "the first {ramp_s:.0} s went at {} IOPS and the rest at {}: ramp_time={ramp_s:.0} leaves them out",
            units::count(start.before),
            units::count(start.after)
        );
        let numbers = [
            ("ramp_s", ramp_s),
            ("iops_before", start.before),
            ("iops_after", start.after),
        ];
        let found = VerdictReason::found(kind, text, numbers);
        return Some(unless_within(
            figure,
            start.after - figure.result.iops,
            found,
        ));
    }
    let percent = course.trend_percent?;
    let text = format!("the rate changed by {percent:+.0} % from the begin to the end of the run");
    let found = VerdictReason::found(kind, text, [("change_percent", percent)]);
    // Its mean lies half way.
    let off = percent / 200.0 * figure.result.iops;
    Some(unless_within(figure, off, found))
}

/// Only a note, where the interval of the rate holds the one that a longer run would have.
fn unless_within(figure: &JudgedFigure, off_iops: f64, found: VerdictReason) -> VerdictReason {
    match figure.may_exceed_interval(off_iops.abs() / figure.result.iops.max(1.0)) {
        true => found,
        false => found.noted(),
    }
}
