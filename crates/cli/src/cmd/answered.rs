//! What a run was made to answer, by the plan in its record: for its report and its graphs.

use std::path::Path;

use fathom_flow::plan_log::Head;
use fathom_sheet::answer::RunAnswer;

use super::kinds;

/// That of a record; nothing of one that only measured, or whose plan this Fathom does not
/// know: its figures are there all the same.
pub fn of(dir: &Path) -> RunAnswer {
    let request = || kinds::read(Head::read(dir).ok()??.flags).ok();
    let answer = request().and_then(|request| request.answer(dir));
    answer.unwrap_or_default()
}
