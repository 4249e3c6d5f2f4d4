//! Everything that a run would do, but for the I/O.

use fathom_campaign::plan::Plan;
use fathom_campaign::run::Ready;
use fathom_engine::jobfile::shell_quote;
use fathom_model::{Exit, units};
use serde_json::json;

use super::failed;
use crate::cmd::Global;
use crate::cmd::campaign::tell_notes;
use crate::out;

/// Shows each step with its command, also when it would be refused, and ends as
/// the run itself would.
pub fn run(global: &Global, ready: Ready, plan: &Plan) -> anyhow::Result<Exit> {
    let engine = ready.selected().engine().name();
    let mut shown = Vec::new();
    if !global.json {
        tell_notes(ready.notes());
        tell_notes(&ready.spending());
    }
    for (place, step) in ready.todo() {
        let (job_file, command) = ready.command(step).map_err(failed)?;
        if global.json {
            shown.push(json!({ "name": step.point.id, "command": command, "job_file": job_file }));
            continue;
        }
        let mut about = format!("# {}/{} {}", place + 1, plan.steps.len(), step.point.id);
        if step.point.repetition > 1 {
            about += &format!(" #{}", step.point.repetition);
        }
        if let Some(time) = step.duration {
            about += &format!(", {}", units::duration(time.as_millis() as u64));
        }
        out::line(about);
        if command.is_empty() {
            let path = step.job_file.display();
            out::line(format_args!(
                "# the {engine} engine, in this process, runs {path}"
            ));
        } else {
            let quoted: Vec<String> = command.iter().map(|arg| shell_quote(arg)).collect();
            out::line(quoted.join(" "));
        }
        if out::is_stopped() {
            break;
        }
    }
    if global.json {
        out::json(&json!({ "schema": "fathom.dry-run/1", "engine": engine, "steps": shown }))?;
    } else if ready.is_done() {
        out::note("Nothing is left to do.");
    }
    match ready.refusal() {
        Some(refusal) => Err(failed(refusal).into()),
        None => Ok(Exit::Success),
    }
}
