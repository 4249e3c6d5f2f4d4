//! Everything that a run would do, but for the I/O.

use std::path::Path;

use fathom_campaign::run::ReadyCampaign;
use fathom_flow::{Case, Work};
use fathom_model::{Exit, units};

use crate::cmd::campaign::tell_notes;
use crate::cmd::dry::{DryRun, commands_of};
use crate::cmd::failed;
use crate::cmd::{ExitError, Global};
use crate::out;

/// Shows each step with its command, also when it would be refused, and ends as
/// the run itself would.
pub fn run(global: &Global, ready: &ReadyCampaign<'_>) -> anyhow::Result<Exit> {
    let mut dry = DryRun::new(global);
    // fathom gen writes them.
    dry.shows_texts = false;
    if !global.json {
        tell_notes(ready.notes());
        tell_notes(&ready.spending());
    }
    for (_, task) in ready.stages(Case::Best) {
        let id = &task.stage.id;
        dry.head(&task);
        if let Work::Act(act) = &task.work {
            dry.act(id, &commands_of(act.as_ref(), ready.selected()));
        }
        for (text, argv) in ready.stage_commands(&task).map_err(failed)? {
            dry.job(id, (Path::new(id), &text), ready.selected(), &argv);
        }
    }
    for (place, step) in ready.todo() {
        let (text, argv) = ready.command(step).map_err(failed)?;
        let mut about = format!(
            "# {}/{} {}",
            place + 1,
            ready.plan().steps.len(),
            step.point.id
        );
        if step.point.repetition > 1 {
            about += &format!(" #{}", step.point.repetition);
        }
        if let Some(time) = step.duration {
            about += &format!(", {}", units::duration(time.as_millis() as u64));
        }
        dry.line(about);
        let id = &step.point.id;
        dry.job(id, (&step.job_file, &text), ready.selected(), &argv);
        if out::is_stopped() {
            break;
        }
    }
    if !global.json && ready.is_done() {
        out::note("Nothing is left to do.");
    }
    dry.document.engine = Some(ready.selected().engine().name().to_owned());
    dry.end(ready.refusal().map(ExitError::from))
}
