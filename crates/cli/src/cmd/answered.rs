//! What a run was made to answer, by the plan in its record: for its report and its graphs.

use std::path::Path;

use fathom_flow::plan_log::Head;
use fathom_sheet::answer::RunAnswer;

use super::ab;
use super::planned::Plan;

/// That of a record; nothing of one that only measured, or whose plan this Fathom does not
/// know: its figures are there all the same.
pub fn of(dir: &Path) -> RunAnswer {
    let plan = || serde_json::from_value(Head::read(dir).ok()??.flags).ok();
    let answer = plan().and_then(|plan| match plan {
        Plan::Find(plan) => plan.answer(dir).ok(),
        Plan::Ab(plan) => ab::show::of_report(&plan.config, dir).ok(),
        Plan::Tune(plan) => plan.answer(dir).ok(),
        _ => None,
    });
    answer.unwrap_or_default()
}
