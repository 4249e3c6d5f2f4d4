//! The rate had not settled: its start differs, or it went up or down all the time.

use fathom_model::{ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;
use crate::verdict::course::are_far_apart;

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
        let is_far = are_far_apart(start.before, start.after);
        return Some(VerdictReason::found(kind, text, numbers).noted_unless(is_far));
    }
    let percent = course.trend_percent?;
    let text = format!("the rate changed by {percent:+.0} % from the begin to the end of the run");
    let is_far = are_far_apart(200.0 - percent, 200.0 + percent);
    let found = VerdictReason::found(kind, text, [("change_percent", percent)]);
    Some(found.noted_unless(is_far))
}
